/** Whether the claims of an external token are what a trust rule asks for. Pure. */
import type { TrustRow } from './trust-queries.ts'

/** Whether the text is what the pattern says: the same, with `*` standing for any run of characters, none included. Linear in both. */
export function matchesGlob(pattern: string, text: string): boolean {
  const [head = '', ...parts] = pattern.split('*')
  const tail = parts.pop()
  if (tail === undefined) return text === pattern
  if (text.length < head.length + tail.length || !text.startsWith(head) || !text.endsWith(tail)) return false
  const end = text.length - tail.length
  let at = head.length
  for (const part of parts) {
    const found = text.indexOf(part, at)
    if (found < 0 || found + part.length > end) return false
    at = found + part.length
  }
  return true
}

/** Whether the subject and every claim of the rule hold. A claim that is a list holds when one of its texts does; numbers that JSON keeps apart and truth values are compared as text. */
export function claimsHold(rule: Pick<TrustRow, 'subject' | 'claims'>, payload: Readonly<Record<string, unknown>>): boolean {
  return valueHolds(rule.subject, payload['sub']) && Object.entries(rule.claims).every(([name, pattern]) => valueHolds(pattern, ownValue(payload, name)))
}

/** A name that every object has, such as `constructor`, is no claim. */
const ownValue = (payload: Readonly<Record<string, unknown>>, name: string): unknown => (Object.hasOwn(payload, name) ? payload[name] : undefined)

function valueHolds(pattern: string, value: unknown): boolean {
  if (typeof value === 'string') return matchesGlob(pattern, value)
  // Several whole numbers beyond these are read as one: somebody else's id may be among them.
  if (typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER) return false
  if (typeof value === 'number' || typeof value === 'boolean') return pattern === String(value)
  return Array.isArray(value) && value.some(each => typeof each === 'string' && matchesGlob(pattern, each))
}
