import { RE2JS } from 're2js'
import { instructionsOf, rangeCharsMax, rangeCharsOf } from '../../../platform/security/pattern-cost.ts'

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
/**
 * The keywords that are kept as they are. A keyword of no list is dropped: `format` and annotations say nothing that must be checked, and `uniqueItems`
 * compares each item with each other one, which the server of the tool does.
 */
const plain = [
  '$anchor',
  '$id',
  '$ref',
  '$schema',
  'dependentRequired',
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
]
/** Keywords that compare whole values. They are kept for texts, numbers and the like: a comparison of objects reads all names of the argument each time. */
const compared = ['const', 'enum']
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
  for (const name of compared) if (schema[name] !== undefined && isOfScalars(schema[name])) copy[name] = schema[name]
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

/** Returns whether the value, or each value of a list, is neither an object nor a list. */
const isOfScalars = (value: unknown): boolean => (Array.isArray(value) ? value : [value]).every(each => typeof each !== 'object' || each === null)

/** Longer texts are not checked against a pattern. Their server checks them. */
const patternedMaxChars = 65_536
const patternMaxChars = 1000
/** Instructions of a pattern at most. Its compilation takes some milliseconds. A larger one is not checked here. */
const instructionsMax = 1000
/** Instructions times characters of one match at most, which takes some ten milliseconds. */
const matchMax = 4_000_000

const isSmall = (pattern: string): boolean =>
  pattern.length <= patternMaxChars && instructionsOf(pattern) <= instructionsMax && rangeCharsOf(pattern) <= rangeCharsMax

/** What a check of patterns needs: the compiled ones, and `step`, which runs before each match and may throw to end the check. */
interface PatternCheck {
  readonly known: Map<string, RE2JS | null>
  step(): void
}

/** Returns a compiled pattern, or null for one that RE2 does not know, such as a look-ahead. RE2 takes linear time, whatever the pattern is. A large one is not compiled. */
function compiled(pattern: string, known: Map<string, RE2JS | null>): RE2JS | null {
  const found = known.get(pattern)
  if (found !== undefined) return found
  let made: RE2JS | null = null
  try {
    made = isSmall(pattern) ? RE2JS.compile(pattern) : null
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
export function patternFault(schema: unknown, value: unknown, check: PatternCheck, place = ''): string | null {
  if (!isObject(schema)) return null
  const { pattern, properties, items, additionalProperties, allOf } = schema
  if (typeof value === 'string') {
    if (typeof pattern !== 'string' || value.length > patternedMaxChars) return null
    check.step()
    const expression = compiled(pattern, check.known)
    if (expression === null || expression.programSize() * value.length > matchMax) return null
    return expression.test(value) ? null : place
  }
  if (Array.isArray(allOf)) {
    for (const inner of allOf) {
      const fault = patternFault(inner, value, check, place)
      if (fault !== null) return fault
    }
  }
  if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) {
      const fault = patternFault(items, item, check, `${place}/${i}`)
      if (fault !== null) return fault
    }
  } else if (isObject(value)) {
    for (const [name, item] of Object.entries(value)) {
      const inner = isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : additionalProperties
      const fault = patternFault(inner, item, check, `${place}/${name}`)
      if (fault !== null) return fault
    }
  }
  return null
}
