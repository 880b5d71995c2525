import { expect, test } from 'vitest'
import { etagOf } from '../../src/memory/stores/s3/s3-etags.ts'

test('an etag has quotes and at most 256 characters, because the index keeps it', () => {
  expect(etagOf('abc')).toBe('"abc"')
  expect(etagOf('W/"abc"')).toBe('"abc"')
  expect(etagOf('a'.repeat(254))).toBe(`"${'a'.repeat(254)}"`)
  expect(etagOf('a'.repeat(255))).toBeNull()
})
