/**
 * Ends a refusal while its request may still be coming. Closing the socket then makes the kernel throw away what was sent, and a client
 * that writes sees a broken pipe instead of the refusal. So the refusal goes out immediately, and what still comes is read and thrown
 * away for a while before the connection ends. Decision 0371 says why.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { waitsForContinue } from './bodies/continue.ts'
import { isChunked, isTooFine } from './bodies/pieces.ts'

/** The rest of a body of at most this length is thrown away without ado, and the connection stays. */
const keptBytes = 64 * 1024
/**
 * Most that is thrown away before the connection ends all the same. Pieces that are too small end it earlier. The time that it may take is the
 * server's requestTimeout.
 */
const discardMaxBytes = 128 * 1024 * 1024
/** Silence behind which nobody sends any more. */
const silenceMs = 10_000

/**
 * Whether the connection has to end behind a refusal: more of the body may come than is worth reading, or it may come although nobody has
 * asked for it, because a client waits for `100 Continue` for a second only. To be asked before the head is written.
 */
export function endsConnection(request: IncomingMessage): boolean {
  const { headers, complete } = request
  if (complete) return false
  if (isChunked(headers) || waitsForContinue(request)) return true
  return Number(headers['content-length'] ?? 0) > keptBytes
}

/** Sends the text that ends the response, whose head has been written. */
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
