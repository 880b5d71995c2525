/**
 * How finely a body may be cut. A chunk of HTTP costs about a microsecond however short it is, and thousands of them come in one read of a
 * socket, so a body of one-byte chunks holds the event loop. Decision 0461 says why the bounds are what they are.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { fail, type GatewayError } from '../../../platform/errors.ts'

/** The first pieces of a body may be as small as they will. */
export const freePieces = 4096
/** What the pieces of a body have on average when there are more of them than that. */
export const leastPieceBytes = 32

/** Whether a body of which `bytes` have come in `pieces` is cut too finely to be read on. */
export const isTooFine = (pieces: number, bytes: number): boolean => pieces > freePieces && bytes < pieces * leastPieceBytes

/** The refusal of such a body, `bad_request`. The connection ends: the pieces that were sent already would have to be read. */
export function tooFine(): GatewayError {
  return fail('bad_request', {
    message: `The body comes in pieces that are too small: after the first ${freePieces} pieces they must have at least ${leastPieceBytes} bytes on average. Send it in larger chunks.`,
    headers: { connection: 'close' },
  })
}

/** Whether a body comes in chunks, of which one read of the socket may have thousands. */
export const isChunked = (headers: IncomingHttpHeaders): boolean => headers['transfer-encoding'] !== undefined

/**
 * Throws away a body that nobody reads. One in chunks that are too small costs its sender the connection: the reply is none about the body,
 * and may be out already.
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
