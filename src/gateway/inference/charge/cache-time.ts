/**
 * Finds prompts that a provider's cache keeps for longer than five minutes. The plain price of cache writes is for five minutes. Decision 0463
 * gives the reasons.
 */
import { isObject } from '../../../platform/values/json.ts'
import type { TokenUsage } from '../../wire/usage.ts'
import type { ParsedRequest } from '../kinds/request.ts'

/** The time of a `cache_control` mark without a `ttl`, and of the plain price of cache writes. */
const shortTime = '5m'
/** The members whose parts may carry a mark, in the formats of clients. */
const holders = ['system', 'tools', 'messages', 'input', 'content', 'tool_calls', 'output'] as const
/** The most levels of members below the body that are searched. */
const depthMax = 6

const asked = new WeakMap<object, boolean>()

/** Returns true when a request has a mark with a longer time. The body is searched once, and only for routes with a price for the longer time. */
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

/**
 * Returns the usage to charge. When the provider does not report the time for which it keeps the written tokens, all of them count for the
 * longer time if the request has a mark with a longer time.
 */
export function withCacheTime(tokens: TokenUsage, request: Pick<ParsedRequest, 'native'>): TokenUsage {
  if (tokens.cacheWriteTokens === 0 || tokens.cacheWriteLongTokens !== undefined || !asksLongCache(request)) return tokens
  return { ...tokens, cacheWriteLongTokens: tokens.cacheWriteTokens }
}
