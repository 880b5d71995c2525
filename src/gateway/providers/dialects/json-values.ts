/** Helpers for the dialects to read values from outside. */
import { isObject } from '../../../platform/values/json.ts'
import type { JsonTexts } from '../../wire/json/json-texts.ts'

/** Returns whether the caller left the value out. Null counts as left out. */
export function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null
}

/** Returns the value if it is a string. Otherwise returns ''. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Returns the value as JSON that every parser accepts. */
export function wellFormedJson(value: unknown): string {
  return withoutHalves(JSON.stringify(value))
}

/**
 * Replaces unpaired surrogates in JSON that this gateway wrote with the replacement character. JSON can contain unpaired surrogates, but many parsers
 * refuse them.
 */
export function withoutHalves(json: string): string {
  // JSON.stringify writes only unpaired surrogates as escapes of this kind. After an odd number of backslashes, the match is ordinary text that only
  // looks like an escape.
  return json.includes('\\ud') ? json.replace(/(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, '$1\\ufffd') : json
}

/**
 * Returns the arguments of a function call as an object. '' becomes an empty object. Any other JSON becomes `{value}`, and text that is not JSON
 * becomes `{text}`, so that nothing is lost. `texts` counts the values in all JSON texts of one body. When there are too many values, this throws a
 * `bad_request` that names the bound.
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
