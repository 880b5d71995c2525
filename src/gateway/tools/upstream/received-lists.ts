/**
 * The lists in the results of a server. The SDK checks each item in several ways and writes a long text about each one that it refuses, so a small reply could
 * hold the event loop for seconds. The SDK sees empty lists, and our own checks stop at the first wrong item.
 */
import { isObject } from '../../../platform/values/json.ts'
import { UpstreamError } from './upstream-error.ts'

type Result = Readonly<Record<string, unknown>>

/** Returns the last result of an exchange as it arrived. */
export type Received = () => Result

/** The most questions of a server in one answer. */
export const questionsMax = 64

const lists = ['content', 'contents', 'messages', 'tools', 'resources', 'resourceTemplates', 'prompts'] as const

/** Returns a result with empty lists. */
export function hiddenLists(result: Result): Record<string, unknown> {
  const hidden: Record<string, unknown> = { ...result }
  for (const name of lists) if (Array.isArray(hidden[name])) hidden[name] = []
  return hidden
}

/** Returns the lists of a result. */
export function listsOf(result: Result): Record<string, unknown> {
  const found: Record<string, unknown> = {}
  for (const name of lists) if (Array.isArray(result[name])) found[name] = result[name]
  return found
}

/** Returns the list of a result when every item passes the check. Throws `protocol` at the first one that does not. An absent list is empty. */
export function checkedList<T>(list: unknown, isItem: (item: unknown) => item is T): readonly T[] {
  if (list === undefined) return []
  if (!Array.isArray(list) || !list.every(isItem)) throw new UpstreamError('protocol', 'the server does not answer as the protocol says')
  return list
}

const texts: Readonly<Record<string, readonly string[]>> = {
  text: ['text'],
  image: ['data', 'mimeType'],
  audio: ['data', 'mimeType'],
  resource_link: ['uri', 'name'],
}

/** Returns true for a block of content with what its type requires. Types that are not known pass. */
export function isBlock(item: unknown): item is { readonly type: string; readonly [member: string]: unknown } {
  if (!isObject(item) || typeof item['type'] !== 'string') return false
  const { type, resource } = item
  if (type === 'resource') return isObject(resource) && typeof resource['uri'] === 'string'
  const required = Object.hasOwn(texts, type) ? texts[type] : undefined
  return required === undefined || required.every(name => typeof item[name] === 'string')
}
