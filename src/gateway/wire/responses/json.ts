/** Reading of JSON that others wrote. */

export type Json = Readonly<Record<string, unknown>>

/** True for a JSON object: no array, no null. */
export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The objects of an array; none when it is no array. */
export function objectsOf(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

/** The value when it is text, else null. */
export function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

/** The object that the text holds, or null. */
export function parsedObject(text: string): Json | null {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : null
  } catch {
    return null
  }
}

/** Given and not null. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}
