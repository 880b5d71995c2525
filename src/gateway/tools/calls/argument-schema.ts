import { RE2JS } from 're2js'

/** The keywords whose value is a schema, a list of schemas or schemas by name. */
const oneSchema = [
  'additionalItems',
  'additionalProperties',
  'contains',
  'else',
  'if',
  'items',
  'not',
  'propertyNames',
  'then',
  'unevaluatedItems',
  'unevaluatedProperties',
]
const manySchemas = ['allOf', 'anyOf', 'oneOf', 'prefixItems']
const namedSchemas = ['$defs', 'definitions', 'dependentSchemas', 'properties']
/** The keywords that are kept as they are. A keyword of no list is dropped: `format` and annotations say nothing that must be checked. */
const plain = [
  '$anchor',
  '$id',
  '$ref',
  '$schema',
  'const',
  'dependentRequired',
  'enum',
  'exclusiveMaximum',
  'exclusiveMinimum',
  'maxContains',
  'maxItems',
  'maxLength',
  'maxProperties',
  'maximum',
  'minContains',
  'minItems',
  'minLength',
  'minProperties',
  'minimum',
  'multipleOf',
  'required',
  'uniqueItems',
]
/** Maximum nesting of a schema. */
const schemaDepthMax = 64

type Schema = Readonly<Record<string, unknown>>

/** Returns whether the value is an object that is no list. */
export const isObject = (value: unknown): value is Schema => typeof value === 'object' && value !== null && !Array.isArray(value)

/** The schema cannot be checked here. */
export class UncheckableSchemaError extends Error {
  override readonly name = 'UncheckableSchemaError'
}

/**
 * Returns a copy of a schema that is safe to run: with known keywords only and without regular expressions, which `patternFault` checks. `step` runs once for
 * each subschema that a check visits, and may throw to end the check. Throws UncheckableSchemaError for a schema that is nested too deeply.
 */
export function runnableSchema(schema: unknown, step: () => void, depth = 0): unknown {
  if (depth > schemaDepthMax) throw new UncheckableSchemaError('the schema is nested too deeply')
  if (!isObject(schema)) return schema
  const below = (inner: unknown): unknown => runnableSchema(inner, step, depth + 1)
  const copy: Record<string, unknown> = {}
  for (const name of plain) if (schema[name] !== undefined) copy[name] = schema[name]
  for (const name of oneSchema) {
    const value = schema[name]
    if (value !== undefined) copy[name] = Array.isArray(value) ? value.map(below) : below(value)
  }
  for (const name of manySchemas) if (Array.isArray(schema[name])) copy[name] = (schema[name] as unknown[]).map(below)
  for (const name of namedSchemas) {
    const value = schema[name]
    if (isObject(value)) copy[name] = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, below(inner)]))
  }
  // Names that match a pattern are allowed, so the schema for all other names cannot be checked without it.
  if (schema['patternProperties'] !== undefined) for (const name of ['additionalProperties', 'unevaluatedProperties']) delete copy[name]
  const { type } = schema
  // The checker reads the type of each subschema once.
  Object.defineProperty(copy, 'type', {
    enumerable: true,
    get() {
      step()
      return type
    },
  })
  return copy
}

/** Longer texts are not checked against a pattern. Their server checks them. */
const patternedMaxChars = 65_536
const patternMaxChars = 1000

/** Returns a compiled pattern, or null for one that RE2 does not know, such as a look-ahead. RE2 takes linear time, whatever the pattern is. */
function compiled(pattern: string, known: Map<string, RE2JS | null>): RE2JS | null {
  const found = known.get(pattern)
  if (found !== undefined) return found
  let made: RE2JS | null = null
  try {
    made = pattern.length > patternMaxChars ? null : RE2JS.compile(pattern)
  } catch {
    // The server checks the pattern.
  }
  known.set(pattern, made)
  return made
}

/**
 * Returns the place of the first text that does not match the `pattern` of its schema, such as `/filter/name`, or null. It follows `properties`, `items`,
 * `additionalProperties` and `allOf`. Behind a reference or an alternative, the server checks patterns.
 */
export function patternFault(schema: unknown, value: unknown, known: Map<string, RE2JS | null>, place = ''): string | null {
  if (!isObject(schema)) return null
  const { pattern, properties, items, additionalProperties, allOf } = schema
  if (typeof value === 'string') {
    if (typeof pattern !== 'string' || value.length > patternedMaxChars) return null
    return compiled(pattern, known)?.matcher(value).find() === false ? place : null
  }
  if (Array.isArray(allOf)) {
    for (const inner of allOf) {
      const fault = patternFault(inner, value, known, place)
      if (fault !== null) return fault
    }
  }
  if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) {
      const fault = patternFault(items, item, known, `${place}/${i}`)
      if (fault !== null) return fault
    }
  } else if (isObject(value)) {
    for (const [name, item] of Object.entries(value)) {
      const inner = isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : additionalProperties
      const fault = patternFault(inner, item, known, `${place}/${name}`)
      if (fault !== null) return fault
    }
  }
  return null
}
