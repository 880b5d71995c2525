import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Form } from '../../../platform/endpoint.ts'
import { fail } from '../../../platform/errors.ts'
import type { Upload } from './body-room.ts'
import { boundaryOf } from './boundaries.ts'
import { FormParts } from './form-parts.ts'
import { admitBody, ClientGoneError, tooLarge } from './request-body.ts'

export interface FormLimits {
  /** Maximum bytes of one file. */
  readonly fileBytes: number
  /** Maximum bytes of the whole form. */
  readonly totalBytes: number
}

/**
 * Reads a multipart form into memory. Rejects with `unsupported_media_type` for another type, `bad_request` for a malformed form, `payload_too_large` above
 * a limit, `bodies_refused` when there is no room for the form, and `ClientGoneError` when the client disconnects. It keeps no byte of a refused form.
 */
export function readForm(request: IncomingMessage, response: ServerResponse, limits: FormLimits, upload: Upload): Promise<Form> {
  const type = request.headers['content-type'] ?? ''
  if (!/^multipart\/form-data\s*;/i.test(type)) return Promise.reject(fail('unsupported_media_type', { message: 'This endpoint takes multipart/form-data.' }))
  const refused = admitBody(request, response, limits.totalBytes, upload)
  if (refused !== null) return Promise.reject(refused)
  const boundary = boundaryOf(type)
  if (boundary === null) return Promise.reject(fail('bad_request', { message: 'The multipart form has no boundary.' }))
  return new Promise((resolve, reject) => {
    const end = (): void => parts.end()
    const refuse = (error: Error): void => {
      request.removeAllListeners('data').off('end', end)
      parts.drop()
      upload.release()
      reject(error)
    }
    const done = (form: Form): void => {
      upload.arrived()
      resolve(form)
    }
    const parts = new FormParts(boundary, limits.fileBytes, { refuse, done, room: () => void request.resume() })
    upload.begin(refuse)
    request.on('data', (chunk: Buffer) => {
      const full = upload.count(chunk.length)
      if (upload.receivedBytes > limits.totalBytes) refuse(tooLarge(limits.totalBytes, 'upload'))
      else if (full !== null) refuse(full)
      else if (!parts.add(chunk)) request.pause()
    })
    request.on('end', end)
    request.on('close', () => {
      if (!request.complete) refuse(new ClientGoneError())
    })
  })
}
