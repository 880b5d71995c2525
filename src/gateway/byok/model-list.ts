/** One page of a provider's list of models. */
import { isObject } from '../../platform/values/json.ts'
import { JsonTexts } from '../wire/json/json-texts.ts'

export interface ModelPage {
  readonly models: readonly string[]
  /** What asks for the page behind this one; null = there is none. */
  readonly next: string | null
}

/** Printable and short: an id of a model goes into requests, lists and headers. */
const idShape = /^[\x21-\x7e]{1,200}$/
const cursorMaxChars = 500

/**
 * Reads the forms in which providers list their models: `{data: [{id}]}` with `has_more` and `last_id`, `{models: [{name}]}` with
 * `nextPageToken`, or a bare list. Ids that nobody could send are left out. Null when it is none of these, or beyond the bounds of JSON.
 */
export function modelPageOf(text: string): ModelPage | null {
  const value = parse(text)
  const items = Array.isArray(value) ? value : isObject(value) ? (value['data'] ?? value['models']) : null
  if (!Array.isArray(items)) return null
  const models = items.flatMap((item: unknown) => idOf(item) ?? [])
  return { models, next: isObject(value) ? nextOf(value) : null }
}

function idOf(item: unknown): string | null {
  const id: unknown = isObject(item) ? (item['id'] ?? item['name']) : item
  if (typeof id !== 'string') return null
  // Gemini writes models/gemini-…, and takes the id without it.
  const plain = id.replace(/^models\//, '')
  return idShape.test(plain) ? plain : null
}

function nextOf(page: Record<string, unknown>): string | null {
  const next = page['has_more'] === true ? page['last_id'] : page['nextPageToken']
  return typeof next === 'string' && next !== '' && next.length <= cursorMaxChars ? next : null
}

function parse(text: string): unknown {
  try {
    return new JsonTexts().value(text)
  } catch {
    return null
  }
}
