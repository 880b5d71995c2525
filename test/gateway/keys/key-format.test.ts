import { expect, test } from 'vitest'
import { keyPrefix, looksLikeKey, newKey } from '../../../src/gateway/keys/key-format.ts'
import { systemIds } from '../../../src/platform/values/ids.ts'

test('a new key is br- followed by 192 random bits', () => {
  const key = newKey(systemIds)
  expect(key).toMatch(/^br-[A-Za-z0-9_-]{32}$/)
  expect(newKey(systemIds)).not.toBe(key)
})

test('a new key looks like a key', () => {
  expect(looksLikeKey(newKey(systemIds))).toBe(true)
})

test.each([
  '',
  'br-',
  'br-short',
  'sk-ant-api03-0123456789012345678901234567890',
  'Bearer br-01234567890123456789012345678901',
  `br-${'a'.repeat(200)}`,
  'br-0123456789012345678901234567890!',
  'a.b.c',
  'br-01234567890123456789012345678901\n',
])('%j does not look like a key', text => {
  expect(looksLikeKey(text)).toBe(false)
})

test('the prefix that lists show has twelve characters', () => {
  expect(keyPrefix('br-0123456789abcdef')).toBe('br-012345678')
})
