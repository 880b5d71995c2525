/** Replaces the model id in a reply by changing only the bytes of that value. */
import { isWordAt, skipWhite, stringEnd } from './json/json-bytes.ts'

const quote = 34
const colon = 58
const name = Buffer.from('model')

/** Returns a model id as JSON text. This text replaces the value of `model` in whole replies (`withModel`) and in streams. */
export const echoOf = (modelId: string): Buffer => Buffer.from(JSON.stringify(modelId))

/** Returns the whole reply with that text as the value of its `model`, or the same bytes if it has no `model`. */
export function withModel(bytes: Buffer, echo: Buffer): Buffer {
  const found = modelAt(bytes, 0, bytes.length)
  return found === null ? bytes : Buffer.concat([bytes.subarray(0, found.from), echo, bytes.subarray(found.to)])
}

/**
 * Returns the position of the string value of the outermost `model` in the JSON in `bytes[start, end)`, including the quotes. Returns null if there is none. It
 * never throws.
 */
export function modelAt(bytes: Uint8Array, start: number, end: number): { readonly from: number; readonly to: number } | null {
  let depth = 0
  let at = start
  while (at < end) {
    const byte = bytes[at]
    if (byte === 123 || byte === 91) depth++
    else if (byte === 125 || byte === 93) depth--
    if (byte !== quote) {
      at++
      continue
    }
    const close = stringEnd(bytes, at + 1, end)
    const behind = skipWhite(bytes, close + 1, end)
    if (depth === 1 && bytes[behind] === colon && isWordAt(bytes, at + 1, close, name)) {
      const from = skipWhite(bytes, behind + 1, end)
      return bytes[from] === quote && from < end ? { from, to: Math.min(end, stringEnd(bytes, from + 1, end) + 1) } : null
    }
    at = close + 1
  }
  return null
}
