/** The length of thinking that a request names, next to its limit of output tokens. */
import { isObject } from '../../../platform/values/json.ts'

type Body = Readonly<Record<string, unknown>>

/** The fields that name a length of thinking, each with its member when the field is an object. */
const places: readonly (readonly [field: string, member: string | null])[] = [
  ['thinking', 'budget_tokens'],
  ['reasoning', 'max_tokens'],
  ['thinking_budget', null],
]
/** The tokens that stay for the answer. The project chose them; they are those of a short answer. */
const answerTokens = 256
/** The shortest length that all providers take. Source: the reference of the messages format, `thinking.budget_tokens`. */
const leastTokens = 1024

/**
 * Returns the fields of the body that name thinking of `maxTokens` or more, with a length that fits. Providers refuse a limit that does not leave
 * more than the thinking. The value is undefined when no length fits; the field is then left out.
 */
export function thinkingWithin(body: Body, maxTokens: number): ReadonlyMap<string, unknown> {
  const changed = new Map<string, unknown>()
  const fits = maxTokens - answerTokens
  for (const [field, member] of places) {
    const value = body[field]
    const named = member !== null && isObject(value) ? value[member] : value
    if (typeof named !== 'number' || named < maxTokens) continue
    const object = isObject(value) && member !== null ? { ...value, [member]: fits } : fits
    changed.set(field, fits < leastTokens ? undefined : object)
  }
  return changed
}

/** Returns the body with the changed fields. Fields that are undefined are left out. */
export function withFields(body: Body, changed: ReadonlyMap<string, unknown>): Body {
  const next = { ...body, ...Object.fromEntries(changed) }
  for (const [field, value] of changed) if (value === undefined) delete next[field]
  return next
}
