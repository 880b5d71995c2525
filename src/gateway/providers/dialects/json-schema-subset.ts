import { isObject, mapValues } from '../../../platform/values/json.ts'

/** The part of JSON Schema that a provider accepts. */
export interface SchemaSubset {
  /** Keywords that are kept. All others are removed and reported. */
  readonly keywords: ReadonlySet<string>
  /** True when objects without `additionalProperties: false` get it. */
  readonly closesObjects: boolean
}

/** Maximum depth of a schema that is checked. Deeper levels are sent unchanged. */
const depthMax = 64

/** Returns the schema without keywords that the provider refuses. Each removed keyword is added to `dropped` under `at`. */
export function withinSubset(schema: unknown, subset: SchemaSubset, at: string, dropped: Set<string>, depth = 0): unknown {
  if (!isObject(schema) || depth > depthMax) return schema
  const kept: Record<string, unknown> = {}
  const clean = (child: unknown): unknown => withinSubset(child, subset, at, dropped, depth + 1)
  for (const keyword of Object.keys(schema)) {
    if (!subset.keywords.has(keyword)) dropped.add(`${at}.${keyword}`)
    else kept[keyword] = subschemas(keyword, schema[keyword], clean)
  }
  if (subset.closesObjects && isObject(kept['properties']) && kept['additionalProperties'] !== false) kept['additionalProperties'] = false
  return kept
}

/** Keywords whose value maps names to schemas. */
const byName = new Set(['properties', '$defs', 'definitions', 'patternProperties'])
/** Keywords whose value is a list of schemas. */
const listed = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems'])

function subschemas(keyword: string, value: unknown, clean: (schema: unknown) => unknown): unknown {
  if (byName.has(keyword) && isObject(value)) return mapValues(value, clean)
  if (listed.has(keyword) && Array.isArray(value)) return value.map(clean)
  if (keyword === 'items' || keyword === 'additionalProperties') return Array.isArray(value) ? value.map(clean) : clean(value)
  return value
}
