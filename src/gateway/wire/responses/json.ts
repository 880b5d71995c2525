/** Helpers for reading JSON from outside. */

/** Returns the value if it is text, else null. */
export function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

/** Whether the value is neither undefined nor null. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** Returns a type as an error message shows it. A caller can send one of any length. */
export const shownType = (type: unknown): string => (typeof type === 'string' ? JSON.stringify(type.slice(0, 64)) : `${typeof type}`)
