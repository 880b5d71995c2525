import type { IncomingMessage } from 'node:http'
import { fail } from '../../platform/errors.ts'

const empty = Buffer.alloc(0)

/**
 * The whole body, at most `limitBytes`. A body of one chunk is passed on without a copy. Throws `payload_too_large`; the rest of
 * the body is then thrown away so that the client can read the answer.
 */
export function readBody(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  const announced = Number(request.headers['content-length'] ?? 0)
  if (announced > limitBytes) return Promise.reject(tooLarge(request, limitBytes))
  return new Promise((resolve, reject) => {
    let first: Buffer | null = null
    let rest: Buffer[] | null = null
    let bytes = 0
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > limitBytes) {
        request.removeAllListeners('data')
        reject(tooLarge(request, limitBytes))
      } else if (first === null) first = chunk
      else if (rest === null) rest = [first, chunk]
      else rest.push(chunk)
    })
    request.on('end', () => resolve(rest === null ? (first ?? empty) : Buffer.concat(rest, bytes)))
    // A connection that ends in the middle is an error first and a close behind it.
    request.on('error', error => reject('code' in error && error.code === 'ECONNRESET' ? new ClientGoneError() : error))
    request.on('close', () => {
      if (!request.complete) reject(new ClientGoneError())
    })
  })
}

/** The client closed the connection before we were done; nobody reads an answer. */
export class ClientGoneError extends Error {
  override readonly name = 'ClientGoneError'
}

function tooLarge(request: IncomingMessage, limitBytes: number): Error {
  request.resume()
  return fail('payload_too_large', { message: `The body is larger than the ${limitBytes} bytes that this endpoint takes.`, headers: { connection: 'close' } })
}

/** JSON text to a value; an empty body is undefined. Throws `bad_request`. */
export function parseJsonBody(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch (cause) {
    throw fail('bad_request', { message: 'The body is not valid JSON.', cause })
  }
}
