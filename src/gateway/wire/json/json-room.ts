/** Each value counts as this many characters in addition to its text. */
const valueChars = 4

/**
 * Returns `chars` minus the approximate length of a value as JSON. When the result becomes negative, the value does not fit, and the rest of it is not
 * examined. The value must come from a body whose depth was checked, because this function is recursive.
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
