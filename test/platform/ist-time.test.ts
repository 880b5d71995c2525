import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { endOfIstDayMs, endOfIstMinuteMs, endOfIstMonthMs, istDay, istMinute, istMonth, startOfIstDayMs } from '../../src/platform/values/ist-time.ts'

describe('Indian Standard Time', () => {
  test('the day changes at 18:30 UTC', () => {
    expect(istDay(Date.UTC(2026, 10, 21, 18, 29, 59, 999))).toBe('2026-11-21')
    expect(istDay(Date.UTC(2026, 10, 21, 18, 30))).toBe('2026-11-22')
    expect(endOfIstDayMs(Date.UTC(2026, 10, 21, 18, 30))).toBe(Date.UTC(2026, 10, 22, 18, 30))
  })

  test('the month changes with the day, also at the end of the year', () => {
    expect(istMonth(Date.UTC(2026, 11, 31, 18, 29))).toBe('2026-12')
    expect(istMonth(Date.UTC(2026, 11, 31, 18, 30))).toBe('2027-01')
    expect(endOfIstMonthMs(Date.UTC(2026, 11, 31, 18, 0))).toBe(Date.UTC(2026, 11, 31, 18, 30))
  })

  test('a minute is a minute on a wall clock in India', () => {
    expect(istMinute(Date.UTC(2026, 10, 21, 3, 45, 59))).toBe('2026-11-21T09:15')
    expect(endOfIstMinuteMs(Date.UTC(2026, 10, 21, 3, 45, 59))).toBe(Date.UTC(2026, 10, 21, 3, 46))
  })

  test('only a valid calendar day has a start', () => {
    expect(startOfIstDayMs('2026-02-30')).toBeNull()
    expect(startOfIstDayMs('yesterday')).toBeNull()
    expect(startOfIstDayMs('2028-02-29')).toBe(Date.UTC(2028, 1, 28, 18, 30))
  })

  test('every instant is within the day to which it is assigned', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4_102_444_800_000 }), ms => {
        const start = startOfIstDayMs(istDay(ms)) ?? Number.NaN
        expect(start).toBeLessThanOrEqual(ms)
        expect(endOfIstDayMs(ms)).toBeGreaterThan(ms)
        expect(endOfIstDayMs(ms) - start).toBe(24 * 3600 * 1000)
      }),
    )
  })
})
