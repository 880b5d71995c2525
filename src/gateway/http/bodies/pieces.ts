/** Request bodies that are cut too finely. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { fail, type GatewayError } from '../../../platform/errors.ts'
import { freePieces, isTooFine, leastPieceBytes } from '../../../platform/loop/fine-pieces.ts'

/**
 * Returns the refusal of a body that is cut too finely: `bad_request`. It ends the connection, because the pieces that were already sent would have
 * to be read.
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
 * Discards a body that has no reader. Chunks that are too small end the connection without a refusal, because the reply is about something else and
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
