/** Reads one page of a provider's list of models. */
import { isObject } from '../../platform/values/json.ts'
import { JsonTexts } from '../wire/json/json-texts.ts'

export interface ModelPage {
  readonly models: readonly string[]
  /** The cursor of the next page. Null on the last page. */
  readonly next: string | null
}

/** A printable, short id. Model ids are used in requests, lists and headers. */
const idShape = /^[\x21-\x7e]{1,200}$/
const cursorMaxChars = 500

/**
 * Reads a list of models in the forms that providers use: `{data: [{id}]}` with `has_more` and `last_id`, `{models: [{name}]}` with `nextPageToken`,
 * or a bare list. It leaves out ids that cannot be sent in a request. Returns null for any other form, and for JSON that exceeds the limits.
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
  // Gemini lists `models/gemini-…` and accepts the id without this prefix.
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
