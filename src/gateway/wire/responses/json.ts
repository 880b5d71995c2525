/** Reading of JSON that others wrote. */

/** The value when it is text, else null. */
export function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

/** Given and not null. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}
