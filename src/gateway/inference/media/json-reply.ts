/** Reads and writes replies in JSON of providers of audio and pictures. A long reply takes turns, so that it does not delay other calls. Decision 0468 gives the reasons. */
import { isObject } from '../../../platform/values/json.ts'
import { isBoundedInTurns, type JsonOfOthersBounds, objectOfBytes, operatorBounds } from '../../wire/json/json-bounds.ts'
import { JsonSlices } from '../../wire/json/json-slices.ts'
import { writtenInSlices } from '../attempt/written-slices.ts'
import type { PerformContext } from '../kinds/kind.ts'

/**
 * Bounds of a transcript. A word is an object with three members, which are four pieces. A day of speech has some two hundred thousand words. All words
 * of a transcript have the same few shapes.
 */
export const transcriptBounds: JsonOfOthersBounds = { ...operatorBounds, piecesMax: 1_000_000, shapesMax: 200 }

/** A reply of more bytes takes heavy turns, as a long request does. */
export const lightReplyBytes = 1024 * 1024

/** Returns the JSON of a value that was made of replies of this number of bytes. The JSON of a long one is written in turns. */
export function jsonInTurns(value: unknown, replyBytes: number, { orgId, deps }: Pick<PerformContext, 'orgId' | 'deps'>): Buffer | Promise<Buffer> {
  if (replyBytes <= lightReplyBytes) return Buffer.from(JSON.stringify(value))
  return writtenInSlices({ value, mend: json => json }, work => deps.heavyTurns.run(orgId, work))
}

/** Returns the object in the bytes. Null when they are not JSON, not an object, or beyond the bounds. */
export async function objectInTurns(
  bytes: Buffer,
  bounds: JsonOfOthersBounds,
  { orgId, deps }: Pick<PerformContext, 'orgId' | 'deps'>,
): Promise<Record<string, unknown> | null> {
  if (!(await isBoundedInTurns(bytes, bounds))) return null
  if (bytes.length <= lightReplyBytes) return objectOfBytes(bytes, bounds.piecesMax)
  const slices = new JsonSlices(bytes)
  try {
    while (!(await deps.heavyTurns.run(orgId, () => slices.next())));
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
  return isObject(slices.value) ? slices.value : null
}
