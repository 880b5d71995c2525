/** Turns Google's schemas into JSON Schema: types are in capitals there, and whole numbers may be text. */
import { isObject, type JsonObject, mapValues } from '../../../../platform/values/json.ts'
import { camelOf } from '../fields.ts'

/** A schema that is nested deeper than this is cut. No provider accepts one. */
const depthMax = 64
/** Members whose values are numbers that Google's API also takes as text. */
const counts: ReadonlySet<string> = new Set(['minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties'])
/** Members that JSON Schema does not have. */
const left: ReadonlySet<string> = new Set(['nullable', 'propertyOrdering', 'example'])

/** Returns the schema as JSON Schema. Members that both have are unchanged. */
export function jsonSchemaOf(schema: unknown, depth = 0): unknown {
  if (!isObject(schema) || depth > depthMax) return {}
  const within = (value: unknown): unknown => jsonSchemaOf(value, depth + 1)
  const made: Record<string, unknown> = {}
  for (const [given, value] of Object.entries(schema)) {
    const name = given.includes('_') ? camelOf(given) : given
    if (left.has(name)) continue
    if (name === 'type') made['type'] = typeof value === 'string' ? value.toLowerCase() : value
    else if (name === 'properties' && isObject(value)) made['properties'] = mapValues(value, within)
    else if (name === 'items') made['items'] = within(value)
    else if (name === 'anyOf' && Array.isArray(value)) made['anyOf'] = value.map(within)
    else if (counts.has(name) && typeof value === 'string' && /^\d{1,15}$/.test(value)) made[name] = Number(value)
    else if (name !== 'format' || value !== 'enum') made[name] = value
  }
  return schema['nullable'] === true ? nullable(made) : withoutUnknownType(made)
}

function withoutUnknownType(schema: Record<string, unknown>): JsonObject {
  if (schema['type'] === 'type_unspecified') delete schema['type']
  return schema
}

function nullable(schema: Record<string, unknown>): JsonObject {
  const { type } = schema
  if (typeof type === 'string' && type !== 'null') schema['type'] = [type, 'null']
  if (Array.isArray(schema['enum'])) schema['enum'] = [...schema['enum'], null]
  return schema
}
