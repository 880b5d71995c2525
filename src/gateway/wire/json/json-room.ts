/** What each value is reckoned with beside its characters. */
const valueChars = 4

/**
 * About how much of a number of characters is left after a value is written as JSON. Negative: it does not fit, and the rest of it is not examined. The
 * value comes from a body within its bounds, so it is not nested deeply.
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
