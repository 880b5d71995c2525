/** Reading of values that came from outside, for the dialects. */
import { isObject } from '../../../platform/values/json.ts'
import type { JsonTexts } from '../../wire/json/json-texts.ts'

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
  // Only surrogates are written as escapes of this kind; after an odd number of backslashes it is text that looks like one.
  return json.includes('\\ud') ? json.replace(/(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, '$1\\ufffd') : json
}

/**
 * Arguments of a function call as an object: '' gives an empty object, and a value that is no object is kept under a name so that nothing is lost.
 * `texts` are those of the same body. Throws `bad_request` that names the bound when these hold too much.
 */
export function argumentsObject(value: unknown, texts: JsonTexts): Record<string, unknown> {
  if (isObject(value)) return value
  const text = textOf(value).trim()
  if (text === '') return {}
  try {
    const parsed = texts.value(text)
    return isObject(parsed) ? parsed : { value: parsed }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return { text }
  }
}
