import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { simulatedJson } from '../../src/sandbox/simulated-json.ts'

interface Tree {
  readonly name: string
  readonly children: readonly Tree[]
}
const tree: z.ZodType<Tree> = z.lazy(() => z.object({ name: z.string(), children: z.array(tree) }))

describe('answers of the sandbox in a requested format', () => {
  test.each([
    ['an object', z.object({ name: z.string(), age: z.int().min(18), score: z.number().gt(0).lt(1), ok: z.boolean(), nothing: z.null() })],
    ['choices', z.object({ kind: z.enum(['a', 'b']), one: z.literal('x'), either: z.union([z.number(), z.string()]), maybe: z.string().nullable() })],
    ['lists', z.object({ tags: z.array(z.string()).min(2), pair: z.tuple([z.string(), z.number()]) })],
    ['formats and lengths', z.object({ day: z.iso.date(), at: z.iso.datetime(), mail: z.email(), link: z.url(), id: z.uuid(), short: z.string().max(5) })],
    ['a recursive schema', tree],
    ['a list at the top', z.array(z.object({ n: z.number() }))],
    ['an intersection of objects', z.intersection(z.object({ a: z.string() }), z.object({ b: z.int() }))],
    ['a maximum number and a minimum length', z.object({ low: z.number().max(-3), long: z.string().min(200) })],
  ])('%s: the answer is valid for the schema of the request', (_, schema) => {
    const { pattern: _free, ...asked } = z.toJSONSchema(schema)
    const value: unknown = JSON.parse(JSON.stringify(simulatedJson(asked, 'simulated')))
    expect(schema.safeParse(value).error?.issues ?? [], JSON.stringify(value)).toEqual([])
  })

  test('for a schema that doubles at every level, the answer comes quickly', () => {
    const doubling = { type: 'object', properties: { a: { $ref: '#' }, b: { $ref: '#' } }, required: ['a', 'b'] }
    for (const schema of [doubling, { allOf: [{ $ref: '#' }, { $ref: '#' }] }])
      expect(JSON.stringify(simulatedJson(schema, 'x')).length).toBeLessThan(1_000_000)
  })

  test('without a schema, the answer is an object that says it is simulated, and an invalid schema causes no error', () => {
    expect(simulatedJson({}, 'simulated')).toEqual({ simulated: 'simulated' })
    for (const nonsense of [
      null,
      7,
      'x',
      [],
      { $ref: '#' },
      { $ref: '#/nowhere' },
      { type: 'array', minItems: 1e9 },
      { anyOf: [] },
      { type: 'object', properties: 3 },
    ])
      expect(() => JSON.stringify(simulatedJson(nonsense, 'simulated'))).not.toThrow()
  })
})
