import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { JsonSlices, type SliceSize } from '../../../src/gateway/wire/json/json-slices.ts'
import { propertyRuns } from '../../harness/property-runs.ts'

/** The value, or `refused` for a text that is not JSON. */
function sliced(text: string, size: SliceSize): unknown {
  const slices = new JsonSlices(Buffer.from(text), size)
  try {
    while (!slices.next());
  } catch (error) {
    if (error instanceof SyntaxError) return 'refused'
    throw error
  }
  return JSON.stringify(slices.value)
}

function whole(text: string): unknown {
  try {
    return JSON.stringify(JSON.parse(text))
  } catch {
    return 'refused'
  }
}

const sizes: readonly SliceSize[] = [
  { bytes: 1, commas: 1 },
  { bytes: 7, commas: 100 },
  { bytes: 1000, commas: 3 },
]

function expectSame(text: string): void {
  for (const size of sizes) expect(sliced(text, size), `${text} in slices of ${size.bytes} bytes`).toBe(whole(text))
}

const name = fc.oneof(fc.constantFrom('__proto__', 'a', '', '1', '0', 'constructor', '"\\'), fc.string())
const { value } = fc.letrec(tie => ({
  value: fc.oneof({ depthSize: 'medium' }, fc.string(), fc.integer(), fc.boolean(), fc.constant(null), tie('list'), tie('object')),
  list: fc.array(tie('value'), { maxLength: 6 }),
  // Written by hand, because a name may occur twice.
  object: fc.array(fc.tuple(name, tie('value')), { maxLength: 6 }).map(members => ({ members })),
}))

function write(node: unknown): string {
  if (Array.isArray(node)) return `[${node.map(write).join(' , ')}]`
  if (typeof node === 'object' && node !== null)
    return `{${(node as { members: [string, unknown][] }).members.map(([key, item]) => `${JSON.stringify(key)}: ${write(item)}`).join(',')}}`
  return JSON.stringify(node)
}

describe('JSON that is parsed in slices', () => {
  test('gives the value of JSON.parse, with names that occur twice and with __proto__', () => {
    fc.assert(
      fc.property(value, node => expectSame(write(node))),
      { numRuns: propertyRuns(2000) },
    )
  })

  test('is refused in the same cases as by JSON.parse', () => {
    const broken = fc.tuple(value, fc.nat(), fc.constantFrom('', ',', ']', '}', '[', '{', ':', '"', ' ', '0', ',,', '],')).map(([node, at, piece]) => {
      const text = write(node)
      const cut = at % (text.length + 1)
      return text.slice(0, cut) + piece + text.slice(piece === '' ? cut + 1 : cut)
    })
    fc.assert(
      fc.property(broken, text => expectSame(text)),
      { numRuns: propertyRuns(4000) },
    )
    for (const text of ['', ' ', '1,2', '[1,]', '[ ,1]', '{"a":1,}', '{,"a":1}', '[1,2', '{"a":[1,2}', '[1]]', '{"a":1},{"b":2}', '[1,2],[3]']) expectSame(text)
  })

  test('has long strings with escapes and characters of any length, in lists and in objects, and is refused when one of them is broken', () => {
    const piece = fc.constantFrom('a', '\\n', '\\\\', '\\"', '\\u0041', '\\ud83d\\ude00', '\\ud83d', 'é', 'न', '😀', ' , ', '[', '":')
    const text = fc.array(piece, { maxLength: 60 }).map(pieces => `"${pieces.join('')}"`)
    const around = fc.constantFrom(
      '[#]',
      '[1,#,2]',
      '{"a":#}',
      '{"a":#,"b":[#,#]}',
      '[[#],{"a":{"__proto__":#}}, # ]',
      '{"a":1,"a":#,"a":2}',
      '#',
      '[{"b":#}]',
      '{#:1}',
    )
    const breakage = fc.constantFrom('', '', '', '\\', '\\x', '\\u12', '\n', '"')
    fc.assert(
      fc.property(around, fc.array(text, { minLength: 3, maxLength: 3 }), breakage, fc.nat(), (shape, texts, broken, at) => {
        let next = 0
        const whole = shape.replaceAll('#', () => texts[next++] ?? '""')
        const place = at % (whole.length + 1)
        expectSame(whole.slice(0, place) + broken + whole.slice(place))
      }),
      { numRuns: propertyRuns(6000) },
    )
    for (const wrong of [
      '["aaaaaaaaaaaa""b"]',
      '["aaaaaaaaaaaa" 1]',
      '["a" "aaaaaaaaaaaaaaa"]',
      '{"a":"aaaaaaaaaaaa":1}',
      '{"a" "aaaaaaaaaaaaaaa"}',
      '[1"aaaaaaaaaaaaa"]',
      '["aaaaaaaaaaaaaaaa',
      '["aaaaaaaaaaaaa".5]',
      '["aaaaaaaaaaaaa"5]',
      '{"a":"aaaaaaaaaaaaa"e5}',
      '{"a":"aaaaaaaaaaaaa"l}',
    ])
      expectSame(wrong)
  })

  test('parses a string of 30 MB in pieces, so that no slice has much more than a piece of it', () => {
    const text = `{"messages":[{"content":"${'\\n\\"'.repeat(7_000_000)}"},1]}`
    const slices = new JsonSlices(Buffer.from(text))
    let turns = 1
    while (!slices.next()) turns++
    expect(turns).toBeGreaterThan(20)
    expect(JSON.stringify(slices.value)).toBe(text)
  })

  test('may be a long string, white space, or a list in a list', () => {
    for (const text of [`["${'a\\n'.repeat(500)}",1]`, `[1,${' '.repeat(300)}2${' '.repeat(300)},3]`, '[[[1,2,[3,4],5],6],{"a":{"b":[1,{"c":2,"d":3}]}},7]'])
      expectSame(text)
  })
})
