/** Reading of values that came from outside, for the dialects. */
import { isObject } from '../../../platform/json.ts'

/** True for what the caller has left out: null counts as absent. */
export function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null
}

/** The text when it is a string, else ''. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** The value as JSON that every parser takes. */
export function wellFormedJson(value: unknown): string {
  return withoutHalves(JSON.stringify(value))
}

/** JSON of ours in which half a character, which JSON can write and many parsers refuse, has become the sign for an unreadable one. */
export function withoutHalves(json: string): string {
  // Only halves are written as escapes of this kind; behind an odd number of backslashes it is text that looks so.
  return json.includes('\\ud') ? json.replace(/(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, '$1\\ufffd') : json
}

/** Arguments of a function call as an object: '' is none, and what is no object is kept under a name so that nothing is lost. */
export function argumentsObject(value: unknown): Record<string, unknown> {
  if (isObject(value)) return value
  const text = textOf(value).trim()
  if (text === '') return {}
  try {
    const parsed: unknown = JSON.parse(text)
    return isObject(parsed) ? parsed : { value: parsed }
  } catch {
    return { text }
  }
}
