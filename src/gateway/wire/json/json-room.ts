/** The number of characters that each value counts for in addition to its text. */
const valueChars = 4

/**
 * Returns about how much of a number of characters is left after a value is written as JSON. A negative result means that the value does not fit; its rest is
 * then not examined. The value comes from a body within its bounds, so it is not nested deeply.
 */
export function roomBehind(value: unknown, chars: number): number {
  let left = chars - valueChars
  if (typeof value === 'string') return left - value.length
  if (typeof value !== 'object' || value === null) return left
  for (const name in value) {
    left = roomBehind((value as Readonly<Record<string, unknown>>)[name], left - name.length)
    if (left < 0) return left
  }
  return left
}
