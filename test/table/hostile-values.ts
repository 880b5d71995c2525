/** Values for the inputs of a row: what its schema asks for, and what nobody should send. */
import fc from 'fast-check'
import { z } from 'zod'

type Schema = Readonly<Record<string, unknown>>

const long = 'x'.repeat(20_000)
/** Texts that have broken a server somewhere: null characters, half characters, numbers past every column, paths, markup, names of prototypes. */
const hostileTexts = [
  '',
  ' ',
  '\ud800',
  'a\udfffb',
  '\u202egnp.exe',
  '\uffff\ufeff',
  'é'.normalize('NFD'),
  '😀'.repeat(60),
  '-1',
  '0',
  '1.5',
  'NaN',
  '1e400',
  '2147483648',
  '9007199254740993',
  '99999999999999999999999',
  '../../etc/passwd',
  'a/b//c',
  'a\\b',
  "' or 1=1 --",
  '%00%2f%',
  '<script>',
  '__proto__',
  'constructor',
  'line\r\nset-cookie: a=b',
  'auto:',
  'alpha/',
  '/alpha',
  'byoe:',
  'https://user:pw@models.example.com/v1',
  '2026-13-45',
  long,
] as const
const hostileNumbers = [-1, -0.5, 0, 0.5, 1e-9, 2 ** 31 - 1, 2 ** 31, -(2 ** 31) - 1, 2 ** 53, 1e21, 1e308, 5e-324]

/** Often with a null character, which texts of PostgreSQL cannot hold. */
export const hostileText: fc.Arbitrary<string> = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom('\u0000', 'a\u0000b') },
  { weight: 6, arbitrary: fc.constantFrom(...hostileTexts) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 30 }) },
)
/** Anything that JSON can carry. */
export const hostileValue: fc.Arbitrary<unknown> = fc.oneof(
  hostileText,
  fc.constantFrom<unknown>(...hostileNumbers, null, true, false, [], {}, [[]], { a: {} }, [null], Array(300).fill('x')),
  fc.jsonValue({ maxDepth: 3 }),
)

/** Mostly what the schema asks for, and in places something else; what is optional is left out now and then. `known` are texts that name something here. */
export function inputFor(schema: z.ZodType, known: readonly string[]): fc.Arbitrary<unknown> {
  return fieldFor(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Schema, known)
}

function fieldFor(schema: Schema, known: readonly string[]): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 5, arbitrary: fittingFor(schema, known) }, { weight: 1, arbitrary: hostileValue })
}

function fittingFor(schema: Schema, known: readonly string[]): fc.Arbitrary<unknown> {
  const branches = schema['anyOf'] ?? schema['oneOf']
  if (Array.isArray(branches)) return fc.oneof(...branches.map((branch: Schema) => fittingFor(branch, known)))
  if ('const' in schema) return fc.constant(schema['const'])
  if (Array.isArray(schema['enum'])) return fc.constantFrom(...(schema['enum'] as unknown[]))
  switch (schema['type']) {
    case 'string':
      return fc.oneof({ weight: 2, arbitrary: fc.constantFrom(...known) }, { weight: 1, arbitrary: hostileText })
    case 'integer':
      return fc.oneof(fc.integer({ min: 0, max: 40 }), fc.constantFrom(2 ** 31 - 1, 2 ** 31, Number.MAX_SAFE_INTEGER, -1))
    case 'number':
      return fc.oneof(fc.integer({ min: 0, max: 40 }), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.constantFrom(...hostileNumbers))
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'array':
      return fc.array(fieldFor((schema['items'] ?? {}) as Schema, known), { maxLength: 4 })
    case 'object':
      return objectFor(schema, known)
    default:
      return hostileValue
  }
}

function objectFor(schema: Schema, known: readonly string[]): fc.Arbitrary<unknown> {
  const properties = Object.entries((schema['properties'] ?? {}) as Record<string, Schema>)
  const required = (schema['required'] ?? []) as string[]
  const fields = properties.map(([name, property]) => {
    const field = fieldFor(property, known)
    return fc.tuple(fc.constant(name), fc.option(field, { freq: required.includes(name) ? 20 : 3, nil: undefined }))
  })
  const more = fc.option(fc.tuple(hostileText, hostileValue), { freq: 4, nil: undefined })
  return fc
    .tuple(more, ...fields)
    .map(([extra, ...entries]) => Object.fromEntries([...(extra ? [extra] : []), ...entries].filter(([, value]) => value !== undefined)))
}
