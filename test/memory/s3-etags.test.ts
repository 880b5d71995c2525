import { expect, test } from 'vitest'
import { etagOf } from '../../src/memory/stores/s3/s3-etags.ts'

test('an etag from a store is accepted only with quotes and at most 256 characters, because the index stores it', () => {
  expect(etagOf('abc')).toBe('"abc"')
  expect(etagOf('W/"abc"')).toBe('"abc"')
  expect(etagOf('a'.repeat(254))).toBe(`"${'a'.repeat(254)}"`)
  expect(etagOf('a'.repeat(255))).toBeNull()
})
