import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { joinKey, parseKey, parsePrefix, relativeKey } from '../../src/memory/memory-key.ts'
import { segmentName } from '../../src/memory/stores/folder-names.ts'
import { propertyRuns } from '../harness/property-runs.ts'
import { errorCode } from './service.ts'

describe('memory keys', () => {
  test.each(['agents/a.md', 'users/7/notes/2026.md', 'agents/ü–名/x', 'agents/a b', 'agents/..a', 'agents/a..', 'agents/%2e%2e/a'])(
    '%s is a valid key',
    text => {
      expect(parseKey(text)).toBe(text)
    },
  )

  test.each([
    '',
    '/',
    '/etc',
    'a//b',
    'a/',
    '../a',
    'a/../b',
    'a/..',
    '..',
    '.',
    'a/./b',
    'a\\b',
    'a\0b',
    'a\nb',
    'a\u202eb',
    'a\u200db',
    'a\ud800b',
    'a\uffffb',
    'e\u0301',
    'x'.repeat(1001),
    `${'a/'.repeat(20)}b`,
  ])('%j is refused as a key', async text => {
    expect(await errorCode(() => parseKey(text))).toBe('bad_memory_key')
  })

  test('a prefix may be the beginning of a key or empty', async () => {
    for (const text of ['', 'agents', 'agents/', 'users/7/no']) expect(parsePrefix(text)).toBe(text)
    for (const text of ['/', 'agents//', 'users/../', '..', 'a\\']) expect(await errorCode(() => parsePrefix(text))).toBe('bad_memory_key')
  })

  test('a joined key never leaves the prefix of its organisation, whatever a client sends', () => {
    const nasty = fc
      .array(fc.oneof(fc.constantFrom('..', '.', '/', '\\', '%2e', 'org-2', '\0', '//'), fc.string({ unit: 'binary' })), { maxLength: 8 })
      .map(parts => parts.join('/'))
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e6 }), nasty, (orgId, text) => {
        let key: string
        try {
          key = parseKey(text)
        } catch {
          return true
        }
        const joined = joinKey(orgId, key)
        const resolved = new URL(joined.split('/').map(encodeURIComponent).join('/'), 'http://store/').pathname
        return joined.startsWith(`org-${orgId}/`) && resolved.startsWith(`/org-${orgId}/`) && relativeKey(orgId, joined) === key
      }),
      { numRuns: propertyRuns(2000) },
    )
  })

  test('different segments get different file names that are plain lower-case ASCII', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', minLength: 1 }), fc.string({ unit: 'binary', minLength: 1 }), (a, b) => {
        const [x, y] = [segmentName(a), segmentName(b)]
        expect(x).toMatch(/^[a-z0-9._%~-]{1,160}$/)
        expect(x).not.toMatch(/^\.|\.$|^(con|nul|aux|prn)(\.|$)/)
        return Buffer.from(a).equals(Buffer.from(b)) || x.toLowerCase() !== y.toLowerCase()
      }),
    )
    expect(segmentName('A')).not.toBe(segmentName('a'))
  })
})
