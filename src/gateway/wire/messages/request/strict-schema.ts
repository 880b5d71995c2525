import { isObject } from '../../../../platform/values/json.ts'

/** Keywords that strict schemas may not use. */
const refused: readonly string[] = ['allOf', 'oneOf', 'not', 'if', 'then', 'else', 'dependentRequired', 'dependentSchemas', 'patternProperties']
/** Keywords whose value maps names to schemas. */
const byName: readonly string[] = ['properties', '$defs', 'definitions']
/** The deepest schema that is examined. A deeper one does not count as strict. */
const depthMax = 32

/**
 * Returns whether OpenAI-shaped providers accept a schema as strict. Every object must require all of its properties and allow no others. For any other
 * strict schema, these providers refuse the whole request. The messages format allows optional properties in strict schemas.
 */
export function takesStrict(schema: unknown, depth = 0): boolean {
  if (!isObject(schema)) return typeof schema !== 'boolean'
  if (depth > depthMax || refused.some(keyword => schema[keyword] !== undefined)) return false
  if (!isClosed(schema)) return false
  const children = [
    ...byName.flatMap(name => (isObject(schema[name]) ? Object.values(schema[name]) : [])),
    ...(Array.isArray(schema['anyOf']) ? (schema['anyOf'] as readonly unknown[]) : []),
    ...(schema['items'] === undefined ? [] : [schema['items']]),
  ]
  return children.every(child => takesStrict(child, depth + 1))
}

function isClosed({ type, properties, required, additionalProperties }: Readonly<Record<string, unknown>>): boolean {
  const isObjectSchema = type === 'object' || (Array.isArray(type) && type.includes('object')) || isObject(properties)
  if (!isObjectSchema) return true
  if (additionalProperties !== false) return false
  const known = new Set<unknown>(Array.isArray(required) ? required : [])
  return !isObject(properties) || Object.keys(properties).every(name => known.has(name))
}
