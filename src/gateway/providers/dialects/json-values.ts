/** Helpers for the dialects to read values from outside. */
import { isObject } from '../../../platform/values/json.ts'
import type { JsonTexts } from '../../wire/json/json-texts.ts'
import type { Target, UpstreamRequest } from '../dialect.ts'

/** Returns whether the caller left the value out. Null counts as left out. */
export function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null
}

/** Returns the value if it is a string. Otherwise returns ''. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** The body of a request to a provider. */
type WrittenBody = Pick<UpstreamRequest, 'body' | 'unwritten'>

/** Returns the value as the body of a request. Its JSON has no halves of surrogate pairs, so that every parser accepts it. */
export const mendedBody = (value: unknown, target: Target): WrittenBody => jsonBody(value, target, withoutHalves)

/** Returns the value as the body of a request. `mend` changes its JSON. A target that writes later gets the value. */
export function jsonBody(value: unknown, { writesLater }: Pick<Target, 'writesLater'>, mend = same): WrittenBody {
  return writesLater === true ? { body: '', unwritten: { value, mend } } : { body: mend(JSON.stringify(value)) }
}

const same = (json: string): string => json

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
