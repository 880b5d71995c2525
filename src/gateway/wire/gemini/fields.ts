import { isObject, type JsonObject, objectsOf } from '../../../platform/values/json.ts'

/** Helpers for reading Google's API. Its fields have a name in camelCase and one in snake_case, and clients use both. */

/** The names in snake_case. All names come from this code, so there are few. */
const snakeNames = new Map<string, string>()

function snakeOf(name: string): string {
  const known = snakeNames.get(name)
  if (known !== undefined) return known
  const made = name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
  snakeNames.set(name, made)
  return made
}

/** Returns the name under which the object has the field: `name` in camelCase, or the same in snake_case. */
export function nameIn(object: JsonObject, name: string): string {
  const snake = snakeOf(name)
  return object[name] === undefined && object[snake] !== undefined ? snake : name
}

/** Returns a field of an object under either name. `name` is in camelCase. */
export const fieldOf = (object: JsonObject, name: string): unknown => object[name] ?? object[snakeOf(name)]

/** Returns a field that is an object, else an empty object. */
export function objectAt(object: JsonObject, name: string): JsonObject {
  const value = fieldOf(object, name)
  return isObject(value) ? value : none
}

const none: JsonObject = Object.freeze({})

/** Returns a field that is text, else ''. */
export function textAt(object: JsonObject, name: string): string {
  const value = fieldOf(object, name)
  return typeof value === 'string' ? value : ''
}

/** Returns the name in camelCase of a field that a client has sent. */
export const camelOf = (name: string): string => name.replace(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase())

/** Returns the settings of the generation. */
export const configOf = (body: JsonObject): JsonObject => objectAt(body, 'generationConfig')

/** Returns the declarations of all functions that the request offers. */
export function declarationsOf(body: JsonObject): readonly JsonObject[] {
  const { tools } = body
  return objectsOf(tools).flatMap(tool => objectsOf(fieldOf(tool, 'functionDeclarations')))
}

/** Returns the parts of a content. */
export const partsIn = (content: unknown): readonly JsonObject[] => (isObject(content) ? objectsOf(content['parts']) : [])
