import { expect, test } from 'vitest'
import { type StickyEntry, StickyTable } from '../../../src/gateway/routing/sticky/sticky-table.ts'

const entry = (stateKey: string, expiresAtMs = 1000): StickyEntry => ({ modelId: 'm', stateKey, cachedShare: 0, expiresAtMs })
const kept = (table: StickyTable, orgId: number, keys: readonly string[]) => keys.filter(key => table.get(orgId, key, 0) !== null)

test('an organisation that has its share loses its own oldest conversation, and no other organisation loses any', () => {
  const table = new StickyTable(10, 3)
  table.set(1, 'of one', entry('a'))
  for (const key of ['a', 'b', 'c']) table.set(2, key, entry(key))
  // A conversation that goes on is not the oldest any more.
  table.set(2, 'a', entry('a'))
  for (const key of ['d', 'e']) table.set(2, key, entry(key))
  expect(kept(table, 2, ['a', 'b', 'c', 'd', 'e'])).toEqual(['a', 'd', 'e'])
  expect(kept(table, 1, ['of one'])).toEqual(['of one'])
  expect(table.size).toBe(4)
})

test('a full table drops the oldest conversation of the organisation that was served longest ago', () => {
  const table = new StickyTable(4, 3)
  for (const key of ['a', 'b']) table.set(1, key, entry(key))
  for (const key of ['a', 'b']) table.set(2, key, entry(key))
  table.set(3, 'a', entry('a'))
  expect([kept(table, 1, ['a', 'b']), kept(table, 2, ['a', 'b']), kept(table, 3, ['a'])]).toEqual([['b'], ['a', 'b'], ['a']])
  table.set(3, 'b', entry('b'))
  table.set(3, 'c', entry('c'))
  expect([kept(table, 1, ['a', 'b']), kept(table, 2, ['a', 'b']), kept(table, 3, ['a', 'b', 'c'])]).toEqual([[], ['b'], ['a', 'b', 'c']])
  expect(table.size).toBe(4)
})

test('an entry ends at its time, and the entries of an organisation can be forgotten', () => {
  const table = new StickyTable()
  table.set(1, 'a', entry('a', 50))
  expect(table.get(1, 'a', 49)?.stateKey).toBe('a')
  expect(table.get(1, 'a', 50)).toBeNull()
  table.set(1, 'b', entry('b'))
  table.set(2, 'b', entry('b'))
  table.forget(1)
  expect([table.get(1, 'b', 0), table.get(2, 'b', 0)?.stateKey, table.size]).toEqual([null, 'b', 1])
  table.clear()
  expect(table.size).toBe(0)
})
