import { describe, expect, test } from 'vitest'
import { definitionHash } from '../../../../src/gateway/tools/registry/definitions/canonical.ts'
import { differencesOf } from '../../../../src/gateway/tools/registry/definitions/definition-diff.ts'
import { findingsIn } from '../../../../src/gateway/tools/registry/definitions/findings.ts'
import { definitionMaxBytes, receivedTools } from '../../../../src/gateway/tools/registry/definitions/received-tools.ts'

const base = {
  name: 'echo',
  title: 'Echo',
  description: 'Says it again.',
  inputSchema: { type: 'object', properties: { text: { type: 'string', enum: ['a', 'b'] } } },
  outputSchema: { type: 'object' },
  annotations: { readOnlyHint: true },
  icons: [{ src: 'https://tools.example.com/i.png' }],
  execution: { taskSupport: 'forbidden' },
  _meta: { 'example.com/a': 1 },
}
const hashOf = (tool: Record<string, unknown>, slug = 'ours') => definitionHash(slug, tool as { name: string })

describe('the hash of a definition', () => {
  test('does not depend on the order of members, and depends on everything else', () => {
    const reordered = {
      _meta: base._meta,
      inputSchema: { properties: { text: { enum: ['a', 'b'], type: 'string' } }, type: 'object' },
      ...Object.fromEntries(Object.entries(base).reverse()),
    }
    expect(hashOf(reordered)).toBe(hashOf(base))
    const others: Record<string, unknown>[] = [
      { ...base, name: 'echo2' },
      { ...base, title: 'echo' },
      { ...base, description: 'Says it again' },
      { ...base, description: 'Says it\u200b again.' },
      { ...base, inputSchema: { type: 'object', properties: { text: { type: 'string', enum: ['b', 'a'] } } } },
      { ...base, outputSchema: {} },
      { ...base, annotations: { readOnlyHint: false } },
      { ...base, icons: [] },
      { ...base, execution: {} },
      { ...base, _meta: { 'example.com/a': 2 } },
      { ...base, strange: null },
      { ...base, v: 1 },
      { ...base, server_slug: 'ours' },
      { ...base, other: {} },
      JSON.parse(JSON.stringify(base).replace('"title"', '"__proto__":{"x":1},"title"')),
    ]
    const { title: _title, ...untitled } = base
    const hashes = [base, ...others, untitled].map(tool => hashOf(tool))
    expect(new Set([...hashes, hashOf(base, 'theirs')]).size).toBe(hashes.length + 1)
  })
})

describe('findings', () => {
  test.each([
    ['zero_width', 'a\u200bb', 'U+200B'],
    ['zero_width', 'a\u2060b', 'U+2060'],
    ['bidi', 'a\u202eb', 'U+202E'],
    ['tag', 'a\u{e0041}b', 'U+E0041'],
    ['variation', 'a\u{e0101}b', 'U+E0101'],
    ['control', 'a\u001b[8mb', 'U+001B'],
  ])('a %s character blocks, in a text, a nested schema and the name of a member', (kind, text, code_point) => {
    const nested = { name: 'n', inputSchema: { properties: { x: { description: text } } } }
    expect(findingsIn({ name: 'n', description: text })).toEqual([{ kind, at: '/description', code_point, blocks: true }])
    expect(findingsIn(nested)).toEqual([{ kind, at: '/inputSchema/properties/x/description', code_point, blocks: true }])
    expect(findingsIn({ name: 'n', _meta: { [text]: 1 } })).toMatchObject([{ kind, code_point, blocks: true }])
  })

  test('usual text in any script, emoji and lines have no findings, and a foreign $ref is advice', () => {
    expect(findingsIn({ name: 'n', description: 'मौसम बताता है\n\tWetter für Köln ☀️ 天気' })).toEqual([])
    expect(findingsIn({ name: 'n', inputSchema: { $ref: 'https://evil.example.com/schema' } })).toEqual([
      { kind: 'remote_ref', at: '/inputSchema/$ref', code_point: null, blocks: false },
    ])
  })

  test('a definition with many of them has at most 20 findings, and those that block come first', () => {
    const inputSchema = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`p${index}`, { $ref: 'https://x.example.com' }]))
    const found = findingsIn({ name: 'n', description: '\u200b', inputSchema })
    expect([found.length, found[0]?.kind]).toEqual([20, 'zero_width'])
  })
})

describe('a received list', () => {
  const deep = (levels: number): unknown => JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`)

  test('leaves out tools without a usable name, twins, and definitions that are too large, too deep or not expressible', async () => {
    const { tools, leftOut } = await receivedTools('ours', [
      { name: 'good', description: 'x' },
      { name: '' },
      { name: 'a\nb' },
      { name: 'n'.repeat(257) },
      { name: 'twin', description: 'one' },
      { name: 'twin', description: 'two' },
      { name: 'large', description: 'x'.repeat(definitionMaxBytes) },
      { name: 'deep', inputSchema: deep(100_000) },
      { name: 'half', description: 'a\ud800' },
    ])
    expect(tools.map(({ publicName }) => publicName)).toEqual(['ours__good'])
    expect(leftOut.map(({ position, reason }) => [position, reason])).toEqual([
      [1, 'bad_name'],
      [2, 'bad_name'],
      [3, 'bad_name'],
      [4, 'duplicate'],
      [5, 'duplicate'],
      [6, 'too_large'],
      [7, 'too_deep'],
      [8, 'not_canonical'],
    ])
  })
})

describe('the difference of two definitions', () => {
  test('names each place, by member and by position', () => {
    const seen = structuredClone(base) as Record<string, unknown>
    seen['description'] = 'Says it again!'
    seen['inputSchema'] = { type: 'object', properties: { text: { type: 'string', enum: ['a', 'b', 'c'] } } }
    delete seen['title']
    expect(differencesOf(base, seen)).toEqual([
      { at: '/title', change: 'removed', approved: 'Echo' },
      { at: '/description', change: 'changed', approved: 'Says it again.', seen: 'Says it again!' },
      { at: '/inputSchema/properties/text/enum/2', change: 'added', seen: 'c' },
    ])
    expect(differencesOf({ a: 1, b: { c: 2 } }, { b: { c: 2 }, a: 1 })).toEqual([])
    expect(differencesOf({ 'a/b~c': 1 }, { 'a/b~c': [1] })).toMatchObject([{ at: '/a~1b~0c', change: 'changed' }])
  })

  test('has a bound', () => {
    const many = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`p${index}`, index]))
    expect(differencesOf({}, many)).toHaveLength(200)
  })
})
