/**
 * When a reply repeats part of the request, writes its numbers with exactly the digits that the caller sent. A Responses reply repeats the tools of the
 * request, for example.
 */
import { Reply } from '../../../platform/endpoint.ts'
import { changedSink, type StreamSink } from '../../../platform/loop/stream-sink.ts'
import type { ExactNumbers } from '../../wire/json/exact-numbers.ts'
import { exactPieceLength, inPieceTurn, restoredInPieces } from '../exact-pieces.ts'

/**
 * Returns a whole reply with the numbers of the request that a double cannot represent restored. A long reply is restored in turns. Without such
 * numbers the function returns the same bytes.
 */
export function exactBytes(made: Uint8Array, exact: ExactNumbers | undefined): Uint8Array | Promise<Uint8Array> {
  if (exact === undefined) return made
  const bytes = bufferOf(made)
  return bytes.length <= exactPieceLength ? exact.restored(bytes) : restoredInPieces(bytes, exact, inPieceTurn)
}

/** Returns a streamed reply with the same numbers restored. */
export function exactStream(made: Reply, exact: ExactNumbers | undefined): Reply {
  const { status, headers, body, cookies } = made
  if (exact === undefined || body.kind !== 'stream') return made
  const { pump } = body
  return new Reply(status, headers, { ...body, pump: sink => pump(restoringSink(sink, exact)) }, cookies)
}

/** Streams that the gateway writes consist of whole events in each chunk. Chunks of a relay contain none of the replacement numbers and pass unchanged. */
const restoringSink = (sink: StreamSink, exact: ExactNumbers): StreamSink => changedSink(sink, chunk => exact.restored(bufferOf(chunk)))

const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
