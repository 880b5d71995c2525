/** Prompts that are to be kept in the provider's cache for longer than the five minutes that the price of writing is for. Decision 0463 says why. */
import { isObject } from '../../../platform/values/json.ts'
import type { TokenUsage } from '../../wire/usage.ts'
import type { ParsedRequest } from '../kinds/request.ts'

/** The time that a mark without one, and the plain price of writing, are for. */
const shortTime = '5m'
/** Members with parts that may be marked, in the formats of clients. */
const holders = ['system', 'tools', 'messages', 'input', 'content', 'tool_calls', 'output'] as const
/** Parts of a part of a message of a body. */
const depthMax = 6

const asked = new WeakMap<object, boolean>()

/** Whether a request has a mark with a longer time. Looked up once a body: only routes with a price for it ask. */
export function asksLongCache({ native: { body } }: Pick<ParsedRequest, 'native'>): boolean {
  const known = asked.get(body)
  if (known !== undefined) return known
  const found = hasLongMark(body, 0)
  asked.set(body, found)
  return found
}

function hasLongMark(value: unknown, depth: number): boolean {
  if (Array.isArray(value)) return value.some(each => hasLongMark(each, depth))
  if (!isObject(value) || depth > depthMax) return false
  const mark = value['cache_control']
  const time = isObject(mark) ? mark['ttl'] : undefined
  if (time !== undefined && time !== null && time !== shortTime) return true
  return holders.some(name => typeof value[name] === 'object' && value[name] !== null && hasLongMark(value[name], depth + 1))
}

/** What is charged: where the provider does not tell for how long it keeps what it wrote, all of it for the longer time if that was asked. */
export function withCacheTime(tokens: TokenUsage, request: Pick<ParsedRequest, 'native'>): TokenUsage {
  if (tokens.cacheWriteTokens === 0 || tokens.cacheWriteLongTokens !== undefined || !asksLongCache(request)) return tokens
  return { ...tokens, cacheWriteLongTokens: tokens.cacheWriteTokens }
}
