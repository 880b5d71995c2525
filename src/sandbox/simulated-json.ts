/** Makes values that a JSON schema accepts, for replies in a requested format. It supports the schemas that SDKs send, without `pattern`. */

type Schema = Readonly<Record<string, unknown>>

/** Below this depth only required fields are made, so that a recursive schema ends. */
const optionalDepthMax = 4
/** The deepest level of a schema for which values are made. */
const depthMax = 24
/** The maximum number of values that are made. A schema that asks for more gets null for the rest. */
const valuesMax = 5_000

const formats: Readonly<Record<string, string>> = {
  date: '2026-01-01',
  'date-time': '2026-01-01T00:00:00Z',
  time: '00:00:00Z',
  email: 'sandbox@example.com',
  uri: 'https://example.com/',
  uuid: '00000000-0000-4000-8000-000000000000',
}

/** Returns a value for the schema. Its strings contain `text`. An empty schema gives an object with the text. */
export function simulatedJson(schema: unknown, text: string): unknown {
  if (!isSchema(schema) || Object.keys(schema).length === 0) return { simulated: text }
  return made(schema, { root: schema, text, depth: 0, left: { values: valuesMax } })
}

interface Place {
  readonly root: Schema
  readonly text: string
  readonly depth: number
  /** The number of values that may still be made. */
  readonly left: { values: number }
}

function made(schema: unknown, place: Place): unknown {
  if (!isSchema(schema) || place.depth > depthMax || place.left.values-- <= 0) return null
  const below = { ...place, depth: place.depth + 1 }
  if ('const' in schema) return schema['const']
  if (Array.isArray(schema['enum'])) return schema['enum'][0]
  if (typeof schema['$ref'] === 'string') return made(referred(schema['$ref'], place.root), below)
  const parts = [schema['anyOf'], schema['oneOf']].find(Array.isArray)
  if (parts !== undefined) return made(parts[0], below)
  if (Array.isArray(schema['allOf'])) return Object.assign({}, ...schema['allOf'].map((part: unknown) => made(part, below)))
  const type = Array.isArray(schema['type']) ? schema['type'][0] : schema['type']
  switch (type ?? (isSchema(schema['properties']) ? 'object' : 'string')) {
    case 'object':
      return objectOf(schema, below)
    case 'array':
      return listOf(schema, below)
    case 'integer':
    case 'number':
      return numberOf(schema)
    case 'boolean':
      return true
    case 'null':
      return null
    default:
      return textOf(schema, place.text)
  }
}

function objectOf({ properties, required }: Schema, place: Place): Record<string, unknown> {
  const needed: readonly unknown[] = Array.isArray(required) ? required : []
  const members = isSchema(properties) ? Object.entries(properties) : []
  return Object.fromEntries(
    members.filter(([name]) => place.depth <= optionalDepthMax || needed.includes(name)).map(([name, schema]) => [name, made(schema, place)]),
  )
}

function listOf({ items, prefixItems, minItems }: Schema, place: Place): unknown[] {
  if (Array.isArray(prefixItems)) return prefixItems.map((schema: unknown) => made(schema, place))
  const least = typeof minItems === 'number' ? Math.min(minItems, 100) : 0
  const length = Math.max(least, place.depth <= optionalDepthMax ? 1 : 0)
  return Array.from({ length }, () => made(items, place))
}

function numberOf({ minimum, exclusiveMinimum, maximum, exclusiveMaximum }: Schema): number {
  if (typeof minimum === 'number') return minimum
  if (typeof exclusiveMinimum === 'number') return exclusiveMinimum + (typeof exclusiveMaximum === 'number' ? (exclusiveMaximum - exclusiveMinimum) / 2 : 1)
  if (typeof maximum === 'number') return Math.min(1, maximum)
  return typeof exclusiveMaximum === 'number' ? Math.min(1, exclusiveMaximum - 1) : 1
}

function textOf({ format, minLength, maxLength }: Schema, text: string): string {
  const known = typeof format === 'string' && Object.hasOwn(formats, format) ? formats[format] : undefined
  if (known !== undefined) return known
  const padded = typeof minLength === 'number' ? text.padEnd(Math.min(minLength, 10_000), '.') : text
  return typeof maxLength === 'number' ? padded.slice(0, maxLength) : padded
}

/** Returns the target of a reference within the document: `#`, `#/$defs/name`. */
function referred(reference: string, root: Schema): unknown {
  let found: unknown = root
  for (const name of reference.replace(/^#\/?/, '').split('/').filter(Boolean)) found = isSchema(found) ? found[name] : undefined
  return found
}

const isSchema = (value: unknown): value is Schema => typeof value === 'object' && value !== null && !Array.isArray(value)
