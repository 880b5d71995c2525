import fc from 'fast-check'
import { expect, test } from 'vitest'
import { publicNameOf } from '../../../../src/gateway/tools/registry/definitions/public-name.ts'
import { propertyRuns } from '../../../harness/property-runs.ts'

const slugs = fc.stringMatching(/^[a-z][a-z0-9-]{0,15}$/)
/** Names as servers give them, with those that look like a made one and those that differ in one character only. */
const names = fc.oneof(
  fc.stringMatching(/^[A-Za-z0-9_.-]{1,128}$/),
  fc.string({ minLength: 1, maxLength: 128, unit: 'grapheme' }),
  fc.stringMatching(/^[a-z_.]{1,4}(_[A-Z2-7]{6})?$/),
  fc.stringMatching(/^a{30,34}[._-]?$/),
)

test('the public name of a tool has at most 50 characters, begins with its slug, and names two tools differently', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.tuple(slugs, names), { minLength: 2, maxLength: 12, selector: pair => JSON.stringify(pair) }), pairs => {
      const made = pairs.map(([slug, name]) => publicNameOf(slug, name))
      for (const [index, name] of made.entries()) {
        expect(name).toMatch(/^[a-z][a-z0-9-]{0,15}__[A-Za-z0-9_-]+$/)
        expect(name.length).toBeLessThanOrEqual(50)
        expect(name.slice(0, name.indexOf('__'))).toBe(pairs[index]?.[0])
      }
      expect(new Set(made).size).toBe(made.length)
      // The name depends on nothing else, such as the order of registration.
      expect([...pairs].reverse().map(([slug, name]) => publicNameOf(slug, name))).toEqual([...made].reverse())
    }),
    { numRuns: propertyRuns(2000, 500) },
  )
})

test('a usual name stays readable, and a name that is changed ends in six characters of its hash', () => {
  expect(publicNameOf('git', 'list_events')).toBe('git__list_events')
  expect(publicNameOf('git', 'x__y')).toBe('git__x__y')
  expect([publicNameOf('a', '-x'), publicNameOf('a-', 'x')]).toEqual(['a__-x', 'a-__x'])
  expect(publicNameOf('git', 'repo.get')).toMatch(/^git__repo_get_[A-Z2-7]{6}$/)
  expect(publicNameOf('git', 'n'.repeat(128))).toMatch(/^git__n{38}_[A-Z2-7]{6}$/)
  const changed = publicNameOf('git', 'repo.get').slice('git__'.length)
  expect(publicNameOf('git', changed), 'a name that looks like a changed one is changed too').not.toBe(`git__${changed}`)
})
