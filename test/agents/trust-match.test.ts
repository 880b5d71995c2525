import fc from 'fast-check'
import { expect, test } from 'vitest'
import { claimsHold, matchesGlob } from '../../src/agents/federation/oauth-exchange.ts'
import { propertyRuns } from '../harness/property-runs.ts'

/** The same match as a regular expression. The product does not use it, because an attacker could make it slow. */
const byRegExp = (pattern: string, text: string): boolean =>
  new RegExp(
    `^${pattern
      .split('*')
      .map(part => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      .join('[^]*')}$`,
  ).test(text)

test('a pattern matches its own text, and * matches any run of characters', () => {
  const few = fc.string({ unit: fc.constantFrom('a', 'b', '*', '/', '.'), maxLength: 8 })
  fc.assert(
    fc.property(few, few, (pattern, text) => matchesGlob(pattern, text) === byRegExp(pattern, text)),
    { numRuns: propertyRuns(5_000) },
  )
  for (const [pattern, text, isSo] of [
    ['repo:acme/app:ref:refs/heads/main', 'repo:acme/app:ref:refs/heads/main', true],
    ['repo:acme/app:ref:refs/heads/main', 'repo:acme/app:ref:refs/heads/main2', false],
    ['repo:acme/app:*', 'repo:acme/app:environment:production', true],
    ['repo:acme/app:*', 'repo:acme/app2:environment:production', false],
    ['repo:acme/*:ref:*', 'repo:acme/app:ref:refs/heads/main', true],
    ['repo:acme/app:ref:refs/tags/v*-final', 'repo:acme/app:ref:refs/tags/v1-final', true],
    ['a*a', 'a', false],
    ['repo:.cme/.*', 'repo:acme/app', false],
    ['REPO:acme/*', 'repo:acme/app', false],
  ] as const)
    expect(matchesGlob(pattern, text), `${pattern} ${text}`).toBe(isSo)
})

test('matching a pattern with many stars takes time in proportion to the text', () => {
  expect(matchesGlob(`${'a*'.repeat(250)}b`, 'a'.repeat(100_000))).toBe(false)
})

test('every claim of a rule must be present and match: texts by pattern, numbers and booleans as text, and lists by one of their texts', () => {
  // JSON.parse turns 9007199254740993 into another number.
  const payload = { huge: JSON.parse('9007199254740993'), sub: 's', ref: 'main', groups: ['a', 'deployers'], run: 12, ok: true, nested: { a: 'b' }, none: null }
  const holds = (claims: Record<string, string>, subject = 's') => claimsHold({ subject, claims }, payload)
  for (const claims of [{}, { ref: 'm*' }, { groups: 'deploy*' }, { run: '12' }, { ok: 'true' }, { ref: '*', groups: 'a' }] as Record<string, string>[])
    expect(holds(claims), JSON.stringify(claims)).toBe(true)
  for (const claims of [
    { ref: 'M*' },
    { groups: 'b' },
    { run: '1*' },
    { huge: '9007199254740992' },
    { ok: 'false' },
    { nested: '*' },
    { none: '*' },
    { absent: '*' },
    { constructor: '*' },
    { ref: 'main', run: '13' },
  ] as Record<string, string>[])
    expect(holds(claims), JSON.stringify(claims)).toBe(false)
  expect(holds({}, 't')).toBe(false)
})
