import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Shares } from '../../src/platform/shares.ts'

describe('shares of places', () => {
  test('holders that take all the places they can get a half, a quarter and so on of nine tenths. The next holder still gets its first place', () => {
    const places = new Shares<string>(100, 50)
    const greedy = (holder: string): number => {
      let count = 0
      while (places.take(holder) === null) count++
      return count
    }
    expect(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map(greedy)).toEqual([45, 22, 11, 6, 3, 1, 1, 1])
    expect(places.held).toBe(90)
    expect(Array.from({ length: 10 }, (_, index) => places.take(`late ${index}`))).toEqual(Array(10).fill(null))
    expect([places.take('one more'), places.take('a')]).toEqual(['total', 'total'])
    expect(places.refusals).toEqual({ total: 2, share: 8 })
    places.give('a')
    expect([places.take('a'), places.take('one more')]).toEqual(['share', null])
  })

  test('for any sequence of taking, giving and moving, a holder without a place gets one while fewer holders have some than the reserve has places', () => {
    const step = fc.record({ kind: fc.constantFrom('take', 'take', 'take', 'give', 'move'), by: fc.nat(8), to: fc.nat(8) })
    fc.assert(
      fc.property(fc.integer({ min: 100, max: 300 }), fc.integer({ min: 1, max: 100 }), fc.array(step, { maxLength: 800 }), (total, percent, steps) => {
        const places = new Shares<number>(total, percent)
        const counts = new Map<number, number>()
        const add = (holder: number, by: number) => void counts.set(holder, (counts.get(holder) ?? 0) + by)
        for (const { kind, by, to } of steps) {
          const has = (counts.get(by) ?? 0) > 0
          if (kind === 'take' && places.take(by) === null) add(by, 1)
          else if (kind === 'give' && has) {
            places.give(by)
            add(by, -1)
          } else if (kind === 'move' && has && places.move(by, to) === null && by !== to) {
            add(by, -1)
            add(to, 1)
          }
        }
        expect(places.held).toBe([...counts.values()].reduce((sum, count) => sum + count, 0))
        for (const [holder, count] of counts) expect(places.of(holder)).toBe(count)
        // There are at most nine holders, and the reserve has at least ten places.
        expect(places.take(99)).toBeNull()
      }),
    )
  })
})
