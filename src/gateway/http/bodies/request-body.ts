/**
 * The one place that reads request bodies. What is taken, for inference and management alike:
 * - no content-encoding but `identity`: 415 names another one;
 * - content-type: a JSON type, none, `text/plain` or `application/x-www-form-urlencoded` (what curl sends by itself): 415 names another one;
 * - text is UTF-8, with or without a byte order mark: 400 otherwise;
 * - the length: 413 as soon as it is known to be too large.
 * /mcp takes `application/json` alone, as its protocol says; forms take their own types. All the rest is the same there.
 * Decision 0370 says why.
 */
import { isUtf8 } from 'node:buffer'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { fail, type GatewayError } from '../../../platform/errors.ts'
import { BodyPieces } from '../../../platform/loop/body-pieces.ts'
import type { Upload } from './body-room.ts'
import { expectsContinue, sendContinue } from './continue.ts'

/** The client closed the connection before we were done; nobody reads an answer. */
export class ClientGoneError extends Error {
  override readonly name = 'ClientGoneError'
}

/**
 * What a body must pass before its first byte is read: encoding, announced length, room for it. A client that waits for a word to go on is
 * told to. Returns the refusal: `unsupported_media_type`, `payload_too_large`, `bodies_refused`.
 */
export function admitBody(request: IncomingMessage, response: ServerResponse, limitBytes: number, upload: Upload): GatewayError | null {
  const { headers } = request
  const encoding = headers['content-encoding']
  if (encoding !== undefined && !isNoEncoding(encoding))
    return fail('unsupported_media_type', { message: `Send the body as it is: Content-Encoding "${shown(encoding)}" is not taken here.` })
  const announced = headers['content-length']
  if (announced !== undefined) {
    const bytes = Number(announced)
    if (bytes > limitBytes) return tooLarge(limitBytes)
    const refused = upload.announce(bytes)
    if (refused !== null) return refused
  }
  if (expectsContinue(request)) sendContinue(request, response)
  return null
}

/** Not by a pattern: one with room for spaces at both sides takes a time that grows with their square. */
function isNoEncoding(encoding: string): boolean {
  const name = encoding.trim().toLowerCase()
  return name === '' || name === 'identity'
}

/** Text of a caller in a message: short and printable. */
const shown = (text: string): string =>
  text
    .trim()
    .slice(0, 40)
    .replace(/[^\x20-\x7e]/g, '?')

/**
 * The whole body, at most `limitBytes`. A body of one chunk is passed on without a copy. Rejects with what `admitBody` returns, and with
 * `ClientGoneError`.
 */
export function readBody(request: IncomingMessage, response: ServerResponse, limitBytes: number, upload: Upload): Promise<Buffer> {
  const refused = admitBody(request, response, limitBytes, upload)
  if (refused !== null) return Promise.reject(refused)
  return new Promise((resolve, reject) => {
    const pieces = new BodyPieces()
    const stop = (error: Error): void => {
      request.removeAllListeners('data')
      upload.release()
      pieces.drop()
      reject(error)
    }
    upload.begin(stop)
    request.on('data', (chunk: Buffer) => {
      const full = upload.count(chunk.length)
      if (upload.receivedBytes > limitBytes) stop(tooLarge(limitBytes))
      else if (full !== null) stop(full)
      else pieces.add(chunk)
    })
    request.on('end', () => {
      upload.arrived()
      resolve(pieces.joined())
    })
    // A connection that ends in the middle is an error first and a close behind it.
    request.on('error', error => stop('code' in error && error.code === 'ECONNRESET' ? new ClientGoneError() : error))
    request.on('close', () => {
      if (!request.complete) stop(new ClientGoneError())
    })
  })
}

/** The refusal of a body that is too large. */
export function tooLarge(limitBytes: number, what = 'body'): GatewayError {
  return fail('payload_too_large', { message: `The ${what} is larger than the ${limitBytes} bytes that this endpoint takes.` })
}

/** Throws `unsupported_media_type` for a body that says to be something else than JSON. */
export function checkJsonType({ 'content-type': type }: IncomingHttpHeaders): void {
  // curl without -H sends a form type by default; callers of JSON APIs forget the header often, so only other explicit types are refused.
  if (type === undefined || type === 'application/json' || /^\s*$|json|^\s*(application\/x-www-form-urlencoded|text\/plain)/i.test(type)) return
  throw fail('unsupported_media_type', { message: `This endpoint takes application/json, not ${shown(type.split(';')[0] ?? '')}.` })
}

/** The bytes of a text without a byte order mark. Throws `bad_request` for what is no UTF-8: a parser would put other characters in its place. */
export function textBytes(bytes: Buffer): Buffer {
  if (!isUtf8(bytes)) throw fail('bad_request', { message: 'The body is not valid UTF-8.' })
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes
}
