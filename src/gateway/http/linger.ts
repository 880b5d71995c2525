/**
 * Ends a refusal while its request may still be coming. If the socket closed now, the kernel would discard the refusal, and a client that is still
 * writing would see a broken pipe. So the refusal is sent immediately. Then the rest of the request is read and discarded for a while before the
 * connection ends. Decision 0371 says why.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { isTooFine } from '../../platform/loop/fine-pieces.ts'
import { waitsForContinue } from './bodies/continue.ts'
import { isChunked } from './bodies/pieces.ts'

/** A rest of a body up to this length is simply discarded, and the connection stays open. */
const keptBytes = 64 * 1024
/**
 * Maximum number of bytes that are discarded before the connection ends. Pieces that are too small end it earlier. The time limit is the
 * requestTimeout of the server.
 */
const discardMaxBytes = 128 * 1024 * 1024
/** After this much silence, the client is taken to have stopped sending. */
const silenceMs = 10_000

/**
 * Returns true when the connection has to end after a refusal. That is so when more of the body may come than is worth reading. It is also so when
 * the client waits for `100 Continue`, because such a client waits for a second only and then sends the body. Call it before the head is written.
 */
export function endsConnection(request: IncomingMessage): boolean {
  const { headers, complete } = request
  if (complete) return false
  if (isChunked(headers) || waitsForContinue(request)) return true
  return Number(headers['content-length'] ?? 0) > keptBytes
}

/** Sends the text that ends the response. The head must have been written. */
export function endWith(response: ServerResponse, text: string, isLast: boolean): void {
  const { req: request } = response
  if (!isLast) {
    response.end(text)
    if (!request.complete) request.resume()
    return
  }
  response.write(text)
  discard(request, () => response.end())
}

function discard(request: IncomingMessage, done: () => void): void {
  let isDone = false
  let bytes = 0
  let pieces = 0
  const finish = (): void => {
    if (isDone) return
    isDone = true
    done()
  }
  request.unpipe()
  request.removeAllListeners('data')
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    pieces++
    if (bytes > discardMaxBytes || isTooFine(pieces, bytes)) finish()
  })
  for (const event of ['end', 'error', 'close']) request.on(event, finish)
  request.socket.setTimeout(silenceMs)
  request.resume()
}
