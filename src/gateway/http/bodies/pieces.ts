/** Handles request bodies that arrive in too many small pieces. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { fail, type GatewayError } from '../../../platform/errors.ts'
import { freePieces, isTooFine, leastPieceBytes } from '../../../platform/loop/fine-pieces.ts'

/**
 * Returns `bad_request` for a body that arrives in too many small pieces. The refusal ends the connection, because otherwise the gateway would have to read
 * the pieces that are already on their way.
 */
export function tooFine(): GatewayError {
  return fail('bad_request', {
    message: `The body comes in pieces that are too small: after the first ${freePieces} pieces they must have at least ${leastPieceBytes} bytes on average. Send it in larger chunks.`,
    headers: { connection: 'close' },
  })
}

/** Returns true for a body in chunks. One read of the socket can bring thousands of them. */
export const isChunked = (headers: IncomingHttpHeaders): boolean => headers['transfer-encoding'] !== undefined

/**
 * Discards a body that has no reader. When its chunks are too small, the connection ends without a refusal, because the request has another reply, which
 * may already be sent.
 */
export function skipBody(request: IncomingMessage): void {
  if (isChunked(request.headers)) {
    let bytes = 0
    let pieces = 0
    request.on('data', (piece: Buffer) => {
      bytes += piece.length
      if (isTooFine(++pieces, bytes)) request.destroy()
    })
  }
  request.resume()
}
