/**
 * Reads request bodies, except multipart forms. The rules are the same for inference and management:
 * - content-encoding: none or `identity`. Others get 415 with their name.
 * - content-type: a JSON type, none, `text/plain` or `application/x-www-form-urlencoded` (which curl sends by default). Others get 415 with their name.
 * - text: UTF-8, with or without a byte order mark. Everything else gets 400.
 * - length: 413 as soon as the body is known to be too large.
 * /mcp accepts only `application/json`, as its protocol requires, and forms have their own types. The other rules apply there, too. Decision 0370 says why.
 */
import { isUtf8 } from 'node:buffer'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { fail, type GatewayError } from '../../../platform/errors.ts'
import { BodyPieces } from '../../../platform/loop/body-pieces.ts'
import type { Upload } from './body-room.ts'
import { expectsContinue, sendContinue } from './continue.ts'

/** The client closed the connection before the gateway had finished, so there is nobody to reply to. */
export class ClientGoneError extends Error {
  override readonly name = 'ClientGoneError'
}

/**
 * Checks a body before its first byte is read: its encoding, its announced length, and whether there is room for it. Sends `100 Continue` to a client that
 * waits for it. `upload` is null for a body that is not kept. Returns null or the refusal: `unsupported_media_type`, `payload_too_large`, `bodies_refused`.
 */
export function admitBody(request: IncomingMessage, response: ServerResponse, limitBytes: number, upload: Upload | null): GatewayError | null {
  const { headers } = request
  const encoding = headers['content-encoding']
  if (encoding !== undefined && !isNoEncoding(encoding))
    return fail('unsupported_media_type', { message: `Send the body as it is: Content-Encoding "${shown(encoding)}" is not taken here.` })
  const announced = headers['content-length']
  if (announced !== undefined) {
    const bytes = Number(announced)
    if (bytes > limitBytes) return tooLarge(limitBytes)
    const refused = upload?.announce(bytes) ?? null
    if (refused !== null) return refused
  }
  if (expectsContinue(request)) sendContinue(request, response)
  return null
}

/**
 * Returns true for `identity` and for an empty text. It uses no regular expression, because the time of one that allows spaces on both sides grows with the
 * square of their number.
 */
function isNoEncoding(encoding: string): boolean {
  const name = encoding.trim().toLowerCase()
  return name === '' || name === 'identity'
}

/** Shortens a caller's text and makes it printable, for a message. */
const shown = (text: string): string =>
  text
    .trim()
    .slice(0, 40)
    .replace(/[^\x20-\x7e]/g, '?')

/**
 * Reads the whole body, at most `limitBytes`, and resolves with what `made` returns for it. A body of one chunk is passed on without a copy. Rejects with
 * the refusals of `admitBody`, with `bodies_refused`, with `ClientGoneError`, and with the errors of `made`.
 */
export function readBody<T>(
  request: IncomingMessage,
  response: ServerResponse,
  limitBytes: number,
  upload: Upload,
  made: (bytes: Buffer) => T | Promise<T>,
): Promise<T> {
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
      try {
        resolve(made(pieces.joined()))
      } catch (error) {
        reject(error)
      }
    })
    // When a connection ends in the middle of a body, Node.js emits an error first and then a close.
    request.on('error', error => stop('code' in error && error.code === 'ECONNRESET' ? new ClientGoneError() : error))
    request.on('close', () => {
      if (!request.complete) stop(new ClientGoneError())
    })
  })
}

/** Returns the refusal of a body that is too large. */
export function tooLarge(limitBytes: number, what = 'body'): GatewayError {
  return fail('payload_too_large', { message: `The ${what} is larger than the ${limitBytes} bytes that this endpoint takes.` })
}

/** Throws `unsupported_media_type` for a body that declares another type than JSON. */
export function checkJsonType({ 'content-type': type }: IncomingHttpHeaders): void {
  // curl without -H sends a form type, and callers of JSON APIs often forget the header. So these are accepted, and only other explicit types are refused.
  if (type === undefined || type === 'application/json' || /^\s*$|json|^\s*(application\/x-www-form-urlencoded|text\/plain)/i.test(type)) return
  throw fail('unsupported_media_type', { message: `This endpoint takes application/json, not ${shown(type.split(';')[0] ?? '')}.` })
}

/**
 * Returns the bytes of a text without its byte order mark. Throws `bad_request` when they are not UTF-8, because a parser would silently replace
 * characters.
 */
export function textBytes(bytes: Buffer): Buffer {
  if (!isUtf8(bytes)) throw fail('bad_request', { message: 'The body is not valid UTF-8.' })
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes
}
