/**
 * Sends a refusal while the client may still be sending its request. If the socket closed now, the kernel would discard the refusal, and a client that is
 * still writing would see a broken pipe. So the refusal is sent first. The rest of the request is then read and discarded for a while before the connection
 * ends. Decision 0371 says why.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { isTooFine } from '../../platform/loop/fine-pieces.ts'
import { waitsForContinue } from './bodies/continue.ts'
import { isChunked } from './bodies/pieces.ts'

/** When at most this many bytes of the body remain, they are read and discarded, and the connection stays open. */
const keptBytes = 64 * 1024
/**
 * Maximum number of bytes that are discarded before the connection ends. It ends earlier when the pieces of the body are too small. The time limit is the
 * requestTimeout of the server.
 */
const discardMaxBytes = 128 * 1024 * 1024
/** After this much silence, the client is taken to have stopped sending. */
const silenceMs = 10_000

/**
 * Returns true when the connection has to end after a refusal. There are two such cases: more of the body may come than is worth reading, or the client
 * waits for `100 Continue`. A waiting client sends the body after about a second even without that reply. Call it before the head is written.
 */
export function endsConnection(request: IncomingMessage): boolean {
  const { headers, complete } = request
  if (complete) return false
  if (isChunked(headers) || waitsForContinue(request)) return true
  return Number(headers['content-length'] ?? 0) > keptBytes
}

/** Sends the text that ends the response. The head must already be written. `isLast` says whether the connection has to end. */
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
