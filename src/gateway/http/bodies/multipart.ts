import type { IncomingMessage, ServerResponse } from 'node:http'
import busboy from 'busboy'
import type { Form, FormFile } from '../../../platform/endpoint.ts'
import { fail, GatewayError } from '../../../platform/errors.ts'
import { BodyPieces } from '../../../platform/loop/body-pieces.ts'
import type { Upload } from './body-room.ts'
import { BoundaryCount, boundaryOf } from './boundaries.ts'
import { GatheredPieces } from './gathered-pieces.ts'
import { admitBody, ClientGoneError, tooLarge } from './request-body.ts'

export interface FormLimits {
  /** Maximum bytes of one file. */
  readonly fileBytes: number
  /** Maximum bytes of the whole form. */
  readonly totalBytes: number
}

/** Maximum number of files, of text fields, and of bytes in a text field. */
const partsMax = 64
const fieldMaxBytes = 1024 * 1024
/** Maximum number of boundaries: one before each part, and the last. */
const boundariesMax = 2 * partsMax + 1

/**
 * Reads a multipart form into memory. Rejects with `unsupported_media_type` for another type, `bad_request` for a malformed form, `payload_too_large` above
 * a limit, `bodies_refused` when there is no room for the form, and `ClientGoneError` when the client disconnects.
 */
export function readForm(request: IncomingMessage, response: ServerResponse, limits: FormLimits, upload: Upload): Promise<Form> {
  const type = request.headers['content-type'] ?? ''
  if (!/^multipart\/form-data\s*;/i.test(type)) return Promise.reject(fail('unsupported_media_type', { message: 'This endpoint takes multipart/form-data.' }))
  const refused = admitBody(request, response, limits.totalBytes, upload)
  if (refused !== null) return Promise.reject(refused)
  return new Promise((resolve, reject) => {
    const give = (error: Error): void => {
      request.removeAllListeners('data')
      upload.release()
      reject(error)
    }
    const boundary = boundaryOf(type)
    if (boundary === null) return give(fail('bad_request', { message: 'The multipart form has no boundary.' }))
    const parts = { files: partsMax, fields: partsMax, fileSize: limits.fileBytes, fieldSize: fieldMaxBytes }
    const parser = busboy({ headers: { 'content-type': `multipart/form-data; boundary="${boundary}"` }, limits: parts, defParamCharset: 'utf8' })
    // The limits of the parser do not count parts without a name, although each of them costs microseconds.
    const boundaries = new BoundaryCount(boundary)
    const fields: { name: string; value: string }[] = []
    const files: FormFile[] = []
    const toParser = new GatheredPieces(bytes => {
      if (boundaries.add(bytes) > boundariesMax) give(tooManyParts())
      else if (!parser.write(bytes)) request.pause()
    })
    upload.begin(give)
    request.on('data', (chunk: Buffer) => {
      const full = upload.count(chunk.length)
      if (upload.receivedBytes > limits.totalBytes) give(tooLarge(limits.totalBytes, 'upload'))
      else if (full !== null) give(full)
      else toParser.add(chunk)
    })
    request.on('end', () => {
      toParser.flush()
      parser.end()
    })
    parser.on('drain', () => request.resume())
    parser.on('field', (name: string | undefined, value: string | undefined, { valueTruncated }) => {
      if (valueTruncated) return give(fail('payload_too_large', { message: `A text field is larger than ${fieldMaxBytes} bytes.` }))
      // The parser gives no value when it does not know the charset. The name is missing when the part has only `name*=`.
      if (name === undefined) return give(nameless())
      if (value === undefined) return give(fail('bad_request', { message: 'A text field is written in a charset that is not known here; send UTF-8.' }))
      fields.push({ name, value })
    })
    parser.on('file', (field: string | undefined, stream, { filename, mimeType }) => {
      if (field === undefined) {
        stream.resume()
        return give(nameless())
      }
      const pieces = new BodyPieces()
      stream.on('data', (chunk: Buffer) => pieces.add(chunk))
      stream.on('limit', () => give(tooLarge(limits.fileBytes, 'upload')))
      stream.on('error', cause => give(malformed(cause)))
      stream.on('close', () => files.push({ field, filename: filename ?? '', contentType: mimeType, bytes: pieces.joined() }))
    })
    for (const limit of ['partsLimit', 'filesLimit', 'fieldsLimit'] as const) parser.on(limit, () => give(tooManyParts()))
    parser.on('error', cause => give(cause instanceof GatewayError ? cause : malformed(cause)))
    parser.on('close', () => {
      upload.arrived()
      resolve({ fields, files })
    })
    request.on('close', () => {
      if (!request.complete) give(new ClientGoneError())
    })
  })
}

const malformed = (cause: unknown): Error => fail('bad_request', { message: 'The multipart form is not well formed.', cause })
const tooManyParts = (): Error => fail('bad_request', { message: `A form may have at most ${partsMax} parts of a sort.` })
const nameless = (): Error => fail('bad_request', { message: 'A part of the form has no name.' })
