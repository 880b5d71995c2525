/** Reads JSON from other parties. */

export type JsonObject = Readonly<Record<string, unknown>>

/** Returns true for a JSON object, false for arrays and null. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the objects in a list. Skips other elements. Empty when the value is not a list. */
export function objectsOf(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

/** Returns the object in a JSON text, or null when the text is invalid or contains no object. */
export function parsedObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : null
  } catch {
    return null
  }
}
