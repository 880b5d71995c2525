import { expect, test } from 'vitest'
import { parseFormBody } from '../../../src/gateway/http/oauth-wire.ts'

test('EDGE-09 a form that repeats one name hundreds of thousands of times is read without delay', () => {
  const count = 300_000
  const begun = performance.now()
  const form = parseFormBody(Buffer.from(`${'a=1&'.repeat(count)}b=2&a=3&c=&d=4&d=5`), undefined)
  expect(performance.now() - begun).toBeLessThan(5000)
  expect(form['a']).toHaveLength(count + 1)
  expect([form['a']?.at(-1), form['b'], form['c'], form['d']]).toEqual(['3', '2', undefined, ['4', '5']])
})
