/** Reads JSON from other parties. */

export type JsonObject = Readonly<Record<string, unknown>>

/** Returns true for a JSON object, false for arrays and null. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns an object with the same names and changed values. It takes less time than `Object.fromEntries`, which makes a list for each member. */
export function mapValues(object: JsonObject, change: (value: unknown) => unknown): Record<string, unknown> {
  const made: Record<string, unknown> = {}
  for (const name of Object.keys(object)) setOwn(made, name, change(object[name]))
  return made
}

/** Sets an own member like JSON.parse. An assignment to `__proto__` would change the prototype. */
export function setOwn(target: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__') Object.defineProperty(target, name, { value, writable: true, enumerable: true, configurable: true })
  else target[name] = value
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
