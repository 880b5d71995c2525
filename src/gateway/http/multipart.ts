import type { IncomingMessage } from 'node:http'
import busboy from 'busboy'
import type { Form, FormFile } from '../../platform/endpoint.ts'
import { fail, GatewayError } from '../../platform/errors.ts'
import { ClientGoneError } from './request-body.ts'

export interface FormLimits {
  /** One file. */
  readonly fileBytes: number
  /** Everything together. */
  readonly totalBytes: number
}

/** Most parts of each sort, and the longest text field. */
const partsMax = 64
const fieldMaxBytes = 1024 * 1024

/**
 * Reads a multipart form into memory. Throws `unsupported_media_type` for another type, `bad_request` for a form that is not well
 * formed, `payload_too_large` above a limit; the rest of the body is then thrown away so that the client can read the answer.
 */
export function readForm(request: IncomingMessage, limits: FormLimits): Promise<Form> {
  const type = request.headers['content-type'] ?? ''
  if (!/^multipart\/form-data\s*;/i.test(type)) {
    request.resume()
    return Promise.reject(fail('unsupported_media_type', { message: 'This endpoint takes multipart/form-data.' }))
  }
  const announced = Number(request.headers['content-length'] ?? 0)
  if (announced > limits.totalBytes) return Promise.reject(tooLarge(request, limits.totalBytes))
  return new Promise((resolve, reject) => {
    const give = (error: Error): void => {
      request.unpipe()
      request.resume()
      reject(error)
    }
    let parser: busboy.Busboy
    try {
      const parts = { files: partsMax, fields: partsMax, fileSize: limits.fileBytes, fieldSize: fieldMaxBytes }
      parser = busboy({ headers: request.headers, limits: parts, defParamCharset: 'utf8' })
    } catch (cause) {
      return give(fail('bad_request', { message: 'The multipart form has no boundary.', cause }))
    }
    const fields: { name: string; value: string }[] = []
    const files: FormFile[] = []
    let bytes = 0
    const count = (more: number): void => {
      bytes += more
      if (bytes > limits.totalBytes) give(tooLarge(request, limits.totalBytes))
    }
    parser.on('field', (name: string | undefined, value: string | undefined, { valueTruncated }) => {
      if (valueTruncated) return give(fail('payload_too_large', { message: `A text field is larger than ${fieldMaxBytes} bytes.` }))
      // The parser knows few charsets, and gives nothing for the others. A name is missing where only the form `name*=` is written.
      if (name === undefined) return give(nameless())
      if (value === undefined) return give(fail('bad_request', { message: 'A text field is written in a charset that is not known here; send UTF-8.' }))
      count(Buffer.byteLength(value))
      fields.push({ name, value })
    })
    parser.on('file', (field: string | undefined, stream, { filename, mimeType }) => {
      if (field === undefined) {
        stream.resume()
        return give(nameless())
      }
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        count(chunk.length)
      })
      stream.on('limit', () => give(tooLarge(request, limits.fileBytes)))
      stream.on('error', cause => give(malformed(cause)))
      stream.on('close', () => files.push({ field, filename: filename ?? '', contentType: mimeType, bytes: Buffer.concat(chunks) }))
    })
    for (const limit of ['partsLimit', 'filesLimit', 'fieldsLimit'] as const)
      parser.on(limit, () => give(fail('bad_request', { message: `A form may have at most ${partsMax} parts of a sort.` })))
    parser.on('error', cause => give(cause instanceof GatewayError ? cause : malformed(cause)))
    parser.on('close', () => resolve({ fields, files }))
    request.on('close', () => {
      if (!request.complete) reject(new ClientGoneError())
    })
    request.pipe(parser)
  })
}

const malformed = (cause: unknown): Error => fail('bad_request', { message: 'The multipart form is not well formed.', cause })
const nameless = (): Error => fail('bad_request', { message: 'A part of the form has no name.' })

function tooLarge(request: IncomingMessage, limitBytes: number): Error {
  request.resume()
  return fail('payload_too_large', { message: `The upload is larger than the ${limitBytes} bytes that this endpoint takes.`, headers: { connection: 'close' } })
}
