/** Replies that repeat what the caller sent (a Responses reply repeats its tools) have the digits that came, too. */
import { Reply } from '../../../platform/endpoint.ts'
import { nextTurn } from '../../../platform/loop/next-turn.ts'
import type { ExactNumbers } from '../../wire/json/exact-numbers.ts'
import { exactPieceLength, restoredInPieces } from '../exact-pieces.ts'

/** A whole reply to a body with numbers that a double cannot hold; a long one in turns. Without such numbers the very same bytes. */
export function exactBytes(made: Uint8Array, exact: ExactNumbers | undefined): Uint8Array | Promise<Uint8Array> {
  if (exact === undefined) return made
  const bytes = bufferOf(made)
  return bytes.length <= exactPieceLength ? exact.restored(bytes) : restoredInPieces(bytes, exact, inNextTurn)
}

/** The same for a streamed reply. */
export function exactStream(made: Reply, exact: ExactNumbers | undefined): Reply {
  const { status, headers, body, cookies } = made
  if (exact === undefined || body.kind !== 'stream') return made
  return new Reply(status, headers, { ...body, chunks: restoredChunks(body.chunks, exact) }, cookies)
}

const inNextTurn = <T>(work: () => T): Promise<T> => nextTurn().then(work)

/** What we write comes in whole events; chunks of a relay have none of the numbers and stay the very same bytes. */
async function* restoredChunks(chunks: AsyncIterable<Uint8Array>, exact: ExactNumbers): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) yield exact.restored(bufferOf(chunk))
}

const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
