/** Compares texts by keyed hashes, so that no text is kept. Most comparisons read a bounded part of a text, and a whole text is read only when that part is the same. */
import { createHmac } from 'node:crypto'
import { hashKey } from '../../../../platform/values/hash-seed.ts'
import type { Turn } from '../../../wire/runs/last-turn.ts'

/** The characters at the beginning and at the end of a text that are in its sample. */
const sampledChars = 1024
/** A sample has the lengths of further texts only. */
const sampleMaxChars = 16 * 1024
/** The bytes at the beginning and at the end of a body that are in its sample. The end of a conversation changes with each turn. */
const bodyStartBytes = 1024
const bodyEndBytes = 3072
/** One step reads a body in pieces of this length. */
export const pieceBytes = 256 * 1024

const made = (text: string): string => createHmac('sha256', hashKey).update(text).digest('base64url').slice(0, 22)

/** Returns the hash of a bounded part of a turn. `isWhole` is true when this part is all of it. */
export function sampleOfTurn(turn: Turn): { readonly sample: string; readonly isWhole: boolean } {
  let text = ''
  let isWhole = true
  for (const each of turn) {
    const { length } = each
    text += `${length}:`
    const isShort = length <= 2 * sampledChars
    const hasRoom = text.length < sampleMaxChars
    if (hasRoom) text += isShort ? each : each.slice(0, sampledChars) + each.slice(-sampledChars)
    isWhole &&= isShort && hasRoom
  }
  return { sample: made(text), isWhole }
}

/** Returns the pieces of a turn whose hash is that of the whole turn. */
export function* piecesOfTurn(turn: Turn): Generator<string> {
  for (const each of turn) {
    yield `${each.length}:`
    for (let from = 0; from < each.length; from += pieceBytes) yield each.slice(from, from + pieceBytes)
  }
}

/** Returns true when the sample of a body reads all of it. */
export const isWholeSample = (body: Buffer): boolean => body.length <= bodyStartBytes + bodyEndBytes

/** Returns the hash of a bounded part of a body. */
export function sampleOfBody(body: Buffer): string {
  const hmac = createHmac('sha256', hashKey).update(`${body.length}:`)
  if (isWholeSample(body)) return hmac.update(body).digest('base64url').slice(0, 22)
  return hmac
    .update(body.subarray(0, bodyStartBytes))
    .update(body.subarray(body.length - bodyEndBytes))
    .digest('base64url')
    .slice(0, 22)
}

/** Returns the pieces of a body. */
export function* piecesOfBody(body: Buffer): Generator<Buffer> {
  for (let from = 0; from < body.length; from += pieceBytes) yield body.subarray(from, from + pieceBytes)
}

type InTurn = <T>(work: () => T) => Promise<T>

/** Returns the hash of all pieces. With `inTurn`, each piece is read in a turn of its own, because the text may be long. */
export function hashOf(pieces: Iterable<string | Buffer>, inTurn: InTurn | undefined): string | Promise<string> {
  const hmac = createHmac('sha256', hashKey)
  if (inTurn !== undefined) return hashInTurns(pieces, inTurn)
  for (const piece of pieces) hmac.update(piece)
  return hmac.digest('base64url').slice(0, 22)
}

async function hashInTurns(pieces: Iterable<string | Buffer>, inTurn: InTurn): Promise<string> {
  const hmac = createHmac('sha256', hashKey)
  let waiting = 0
  let part: (string | Buffer)[] = []
  const read = (): void => {
    for (const piece of part) hmac.update(piece)
  }
  for (const piece of pieces) {
    part.push(piece)
    waiting += piece.length
    if (waiting < pieceBytes) continue
    await inTurn(read)
    part = []
    waiting = 0
  }
  await inTurn(read)
  return hmac.digest('base64url').slice(0, 22)
}
