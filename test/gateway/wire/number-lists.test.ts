import fc from 'fast-check'
import { expect, test } from 'vitest'
import { withoutNumberLists } from '../../../src/gateway/wire/json/number-lists.ts'

/** Makes every JSON long enough to be looked at. */
const padding = ' '.repeat(70_000)

/** The value with empty lists in place of lists of numbers of 64 bytes and more. */
function emptied(value: unknown): unknown {
  if (Array.isArray(value)) {
    const isCut = value.length > 0 && JSON.stringify(value).length - 1 >= 64 && value.every(each => typeof each === 'number')
    return isCut ? [] : value.map(emptied)
  }
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, emptied(each)]))
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

test('lists of numbers are left out, everything else stays, and every kept byte is found again', () => {
  fc.assert(
    fc.property(fc.record({ data: value, more: vector, model: text }), made => {
      const whole = Buffer.from(JSON.stringify(made) + padding)
      const { lean, offsetOf } = withoutNumberLists(whole)
      expect(JSON.parse(lean.toString())).toEqual(JSON.parse(JSON.stringify(emptied(made))))
      for (let at = 0; at < lean.length - padding.length; at++) expect(whole[offsetOf(at)]).toBe(lean[at])
    }),
    { numRuns: 1000, examples: [[{ data: [0, [7.06124e-319, -1.0175411492697602e41, -2.7046450489990083e40]], more: [], model: '' }]] },
  )
})

test('short JSON, and JSON without such lists, is not copied', () => {
  for (const text of ['{"data":[1.25,2.5]}', `{"a":"[1,2"}${padding}`]) {
    const whole = Buffer.from(text)
    expect(withoutNumberLists(whole).lean).toBe(whole)
  }
})

test('a list that is not closed, or that has a text in it, is left to the parser', () => {
  const numbers = Array(100).fill(1.5).join(',')
  for (const text of [`{"a":[${numbers}`, `{"a":[${numbers},"]"]}`]) {
    const whole = Buffer.from(text + padding)
    expect(withoutNumberLists(whole).lean.toString()).toBe(whole.toString())
  }
})
