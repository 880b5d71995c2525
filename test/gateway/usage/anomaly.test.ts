import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  anomalyFloor,
  anomalyMetrics,
  anomalyRatio,
  baselineHoursMax,
  baselineHoursMin,
  type HourAgainstWeek,
  judgeHour,
  meanHour,
  ratioOf,
} from '../../../src/gateway/usage/anomalies/anomaly.ts'
import { propertyRuns } from '../../harness/property-runs.ts'

const metric = fc.constantFrom(...anomalyMetrics)
const amount = fc.bigInt({ min: 0n, max: 10n ** 13n })
const figures = fc.record({ observed: amount, total: amount, hours: fc.integer({ min: 0, max: baselineHoursMax }) })
const week = baselineHoursMax

describe('the rule of anomalies', () => {
  test("an hour of five times the week's mean begins an anomaly, and an hour just below that does not", () => {
    const mean = 40_000_000n
    const at = (observed: bigint) => judgeHour('spend', { observed, total: mean * BigInt(week), hours: week }, false)
    expect([at(mean * 5n), at(mean * 5n - 1n), at(mean)]).toEqual(['begins', 'quiet', 'quiet'])
  })

  test('an hour below the floor begins no anomaly, even after a quiet week', () => {
    for (const metric of anomalyMetrics) {
      const at = (observed: bigint) => judgeHour(metric, { observed, total: 0n, hours: week }, false)
      expect([at(anomalyFloor[metric] - 1n), at(anomalyFloor[metric])]).toEqual(['quiet', 'begins'])
    }
  })

  test('after a week without use there is no ratio', () => {
    expect(ratioOf({ observed: 10n, total: 0n, hours: week })).toBe(null)
    expect(ratioOf({ observed: 10n, total: 168n, hours: week })).toBe(10)
  })

  test('a new organisation has no anomaly before a day of history, and its mean counts from its first use', () => {
    const at = (hours: number) => judgeHour('tokens', { observed: 10_000_000n, total: 2_000_000n, hours }, false)
    expect([at(0), at(baselineHoursMin - 1), at(baselineHoursMin)]).toEqual(['quiet', 'quiet', 'begins'])
  })

  test('an anomaly continues above half of the threshold and half of the floor, so an hour near the threshold is reported once', () => {
    const total = 40_000_000n * BigInt(week)
    const at = (observed: bigint) => judgeHour('spend', { observed, total, hours: week }, true)
    expect([at(400_000_000n), at(199_999_999n), at(100_000_000n), at(99_999_999n)]).toEqual(['goes_on', 'goes_on', 'goes_on', 'over'])
    const quietWeek = (observed: bigint) => judgeHour('errors', { observed, total: 0n, hours: week }, true)
    expect([quietWeek(25n), quietWeek(24n)]).toEqual(['goes_on', 'over'])
  })

  test('an hour that stays at six times the usual one is reported once, and becomes the usual hour within three days', () => {
    const usual = 100n
    let goesOn = false
    const told: number[] = []
    const ended: number[] = []
    for (let high = 0; high < 100; high++) {
      const total = usual * BigInt(week - high) + usual * 6n * BigInt(high)
      const verdict = judgeHour('errors', { observed: usual * 6n, total, hours: week }, goesOn)
      if (verdict === 'begins') told.push(high)
      if (verdict === 'over') ended.push(high)
      goesOn = verdict === 'begins' || verdict === 'goes_on'
    }
    expect([told, ended]).toEqual([[0], [48]])
  })

  test('for any figures, an hour begins an anomaly only at the floor, at five times the mean and after a day of history, and so does every higher hour', () => {
    fc.assert(
      fc.property(metric, figures, amount, (metric, hour, more) => {
        const verdict = judgeHour(metric, hour, false)
        expect(['quiet', 'begins']).toContain(verdict)
        const begins =
          hour.observed >= anomalyFloor[metric] && hour.hours >= baselineHoursMin && hour.observed * BigInt(hour.hours) >= anomalyRatio * hour.total
        expect(verdict === 'begins').toBe(begins)
        if (begins) {
          expect(judgeHour(metric, { ...hour, observed: hour.observed + more }, false)).toBe('begins')
          expect(ratioOf(hour) ?? 5).toBeGreaterThanOrEqual(5)
        }
      }),
      { numRuns: propertyRuns(500) },
    )
  })

  test('for any figures, a new anomaly is not over, and one that is over does not begin again with the same figures', () => {
    fc.assert(
      fc.property(metric, figures, (metric, hour) => {
        const begins = judgeHour(metric, hour, false) === 'begins'
        const verdict = judgeHour(metric, hour, true)
        expect(['goes_on', 'over']).toContain(verdict)
        if (begins) expect(verdict).toBe('goes_on')
      }),
      { numRuns: propertyRuns(500) },
    )
  })

  test('for any sequence of hours, begins and ends alternate, and a begin comes first', () => {
    fc.assert(
      fc.property(metric, fc.array(figures, { maxLength: 60 }), (metric, course) => {
        let goesOn = false
        const marks: string[] = []
        for (const hour of course) {
          const verdict = judgeHour(metric, hour as HourAgainstWeek, goesOn)
          if (verdict === 'begins' || verdict === 'over') marks.push(verdict)
          goesOn = verdict === 'begins' || verdict === 'goes_on'
        }
        for (const [index, mark] of marks.entries()) expect(mark).toBe(index % 2 === 0 ? 'begins' : 'over')
      }),
      { numRuns: propertyRuns(200) },
    )
  })

  test('the mean has three decimals, and the ratio two', () => {
    expect(meanHour({ observed: 0n, total: 100n, hours: 168 })).toBe(0.595)
    expect(meanHour({ observed: 0n, total: 0n, hours: 0 })).toBe(0)
    expect(ratioOf({ observed: 60n, total: 100n, hours: 168 })).toBe(100.8)
  })
})
