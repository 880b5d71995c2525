import fc from 'fast-check'
import { expect, test } from 'vitest'
import { withoutNumberLists } from '../../../src/gateway/wire/json/number-lists.ts'
import { propertyRuns } from '../../harness/property-runs.ts'

/** Makes every JSON long enough to be looked at. */
const padding = ' '.repeat(70_000)

/** The value with empty lists in place of lists of numbers of 64 bytes and more. */
function emptied(value: unknown, indent: number | undefined, depth = 1): unknown {
  if (Array.isArray(value)) {
    // Each line of an indented list begins with as many spaces as it is deep.
    const written = JSON.stringify(value, null, indent).length + (indent === undefined ? 0 : (depth - 1) * (value.length + 1))
    const isCut = value.length > 0 && written - 1 >= 64 && value.every(each => typeof each === 'number')
    return isCut ? [] : value.map(each => emptied(each, indent, depth + 1))
  }
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, emptied(each, indent, depth + 1)]))
}

const vector = fc.array(
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(number => number + 0),
  { maxLength: 30 },
)
const text = fc.oneof(
  fc.string(),
  fc.constantFrom('[1,2,3', ']', '"', '\\', '[1.5,2.5,3.5,4.5,5.5,6.5,7.5,8.5,9.5,10.5,11.5,12.5,13.5,14.5,15.5,16.5,17.5,18.5]'),
)
const { value } = fc.letrec(tie => ({
  value: fc.oneof({ depthSize: 'small' }, vector, text, fc.boolean(), fc.constant(null), fc.integer(), tie('list'), tie('object')),
  list: fc.array(tie('value'), { maxLength: 4 }),
  object: fc.dictionary(text, tie('value'), { maxKeys: 4 }),
}))

test('withoutNumberLists empties lists of numbers, keeps everything else, and maps every kept byte to its offset', async () => {
  await fc.assert(
    fc.asyncProperty(fc.record({ data: value, more: vector, model: text }), fc.constantFrom(undefined, 1), async (made, indent) => {
      const whole = Buffer.from(JSON.stringify(made, null, indent) + padding)
      const { lean, offsetOf } = await withoutNumberLists(whole)
      expect(JSON.parse(lean.toString())).toEqual(JSON.parse(JSON.stringify(emptied(made, indent))))
      for (let at = 0; at < lean.length - padding.length; at++) expect(whole[offsetOf(at)]).toBe(lean[at])
    }),
    {
      numRuns: propertyRuns(1000),
      examples: [[{ data: [0, [7.06124e-319, -1.0175411492697602e41, -2.7046450489990083e40]], more: [], model: '' }, undefined]],
    },
  )
})

test('withoutNumberLists does not copy short JSON or JSON without such lists', async () => {
  for (const text of ['{"data":[1.25,2.5]}', `{"a":"[1,2"}${padding}`]) {
    const whole = Buffer.from(text)
    expect((await withoutNumberLists(whole)).lean).toBe(whole)
  }
})

test('withoutNumberLists does not change a list that is not closed or that contains a text', async () => {
  const numbers = Array(100).fill(1.5).join(',')
  for (const text of [`{"a":[${numbers}`, `{"a":[${numbers},"]"]}`]) {
    const whole = Buffer.from(text + padding)
    expect((await withoutNumberLists(whole)).lean.toString()).toBe(whole.toString())
  }
})

/** The bounds of this file's tests are in bytes and turns: a search that begins again at each bracket would take hours for these. */
test('HARD-03 unclosed brackets and quotes take time in proportion to their bytes, in many turns of the event loop', async () => {
  for (const piece of ['[1', '[1""', '[1,"', '[ 1', '[1 {']) {
    const whole = Buffer.from(`{"data":${piece.repeat(4_000_000)}]`)
    let turns = 0
    let isOver = false
    const count = (): void => {
      turns++
      if (!isOver) setImmediate(count)
    }
    setImmediate(count)
    expect((await withoutNumberLists(whole)).lean).toBe(whole)
    isOver = true
    expect(turns).toBeGreaterThanOrEqual(Math.floor(whole.length / (256 * 1024)))
  }
})
