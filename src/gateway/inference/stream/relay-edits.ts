/** Changes of the bytes of a relayed chat stream. */
import { parsedObject } from '../../../platform/values/json.ts'
import type { ByteEdit } from '../../wire/chat/chat-reasoning.ts'
import { modelAt } from '../../wire/model-echo.ts'
import type { EventFrame } from '../../wire/sse/repeated-events.ts'

/** Returns the text of `bytes[start, end)`. */
export const textOf = (bytes: Uint8Array, start: number, end: number): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('utf8')

/** Returns true for a line that can be read at the end of the stream: the end mark, or complete data. */
export const isWholeLine = (line: string): boolean => line.startsWith('data:') && (line.slice(5).trim() === '[DONE]' || Object.keys(parsed(line)).length > 0)

/** Returns the object in a data line, or an empty object when there is none. */
export const parsed = (line: string): Record<string, unknown> => parsedObject(line.replace(/^data:/, '')) ?? {}

/** Returns the frame with another model, or an equal frame when it names none. The model is before or after the text, because the text is one string. */
export function frameWithModel({ before, after }: EventFrame, echo: Buffer): EventFrame {
  const frame = Buffer.concat([before, after])
  const found = modelAt(frame, 0, frame.length)
  if (found === null) return { before, after }
  const isBefore = found.to <= before.length
  const moved = isBefore ? 0 : before.length
  const changed = edited(isBefore ? before : after, [{ from: found.from - moved, to: found.to - moved, bytes: echo }])
  return isBefore ? { before: changed, after } : { before, after: changed }
}

/** Returns the bytes with the edits, which are in the order of their offsets. */
export function edited(bytes: Uint8Array, edits: readonly ByteEdit[]): Buffer {
  const parts: Uint8Array[] = []
  let at = 0
  for (const { from, to, bytes: made } of edits) {
    parts.push(bytes.subarray(at, from), made)
    at = to
  }
  parts.push(bytes.subarray(at))
  return Buffer.concat(parts)
}
