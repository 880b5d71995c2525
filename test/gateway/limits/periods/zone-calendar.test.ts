import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ZoneCalendar } from '../../../../src/gateway/limits/budgets/periods/zone-calendar.ts'
import { BudgetCalendar, defaultZones, zoneAt, zoneOfText } from '../../../../src/gateway/limits/budgets/periods/zones.ts'
import { endOfIstDayMs, endOfIstMonthMs, istDay, istMonth } from '../../../../src/platform/values/ist-time.ts'
import { propertyRuns } from '../../../harness/property-runs.ts'

const hourMs = 3600_000
const at = (iso: string): number => Date.parse(iso)
const calendars = new Map(
  ['Asia/Kolkata', 'America/New_York', 'Europe/Berlin', 'Africa/Cairo', 'Pacific/Apia', 'America/St_Johns', 'Pacific/Kiritimati', 'UTC'].map(zone => [
    zone,
    new ZoneCalendar(zone),
  ]),
)
const day = (zone: string, iso: string) => {
  const { name, endsAtMs } = calendars.get(zone)?.windowAt('day', at(iso)) ?? { name: '', endsAtMs: 0 }
  return [name, new Date(endsAtMs).toISOString()]
}
const instant = fc.integer({ min: at('2005-01-01T00:00:00Z'), max: at('2060-01-01T00:00:00Z') })

describe('the calendar of a time zone', () => {
  it('has the days and months of Indian time in the zone Asia/Kolkata', () => {
    const calendar = calendars.get('Asia/Kolkata') as ZoneCalendar
    fc.assert(
      fc.property(instant, ms => {
        expect(calendar.windowAt('day', ms)).toEqual({ name: istDay(ms), endsAtMs: endOfIstDayMs(ms) })
        expect(calendar.windowAt('month', ms)).toEqual({ name: istMonth(ms), endsAtMs: endOfIstMonthMs(ms) })
      }),
      { numRuns: propertyRuns(400) },
    )
  })

  it('follows a window by the next one at its end, in every zone and period', () => {
    fc.assert(
      fc.property(fc.constantFrom(...calendars.values()), fc.constantFrom('day', 'week', 'month'), instant, (calendar, period, ms) => {
        const { name, endsAtMs } = calendar.windowAt(period, ms)
        expect(endsAtMs).toBeGreaterThan(ms)
        expect(calendar.windowAt(period, endsAtMs - 1)).toEqual({ name, endsAtMs })
        const next = calendar.windowAt(period, endsAtMs)
        expect(next.name > name).toBe(true)
        expect(next.endsAtMs).toBeGreaterThan(endsAtMs)
      }),
      { numRuns: propertyRuns(400) },
    )
  })

  it('gives 23 hours to the day on which clocks go forward, and 25 to the day on which they go back', () => {
    expect(day('America/New_York', '2026-03-08T05:00:00Z')).toEqual(['2026-03-08@America/New_York', '2026-03-09T04:00:00.000Z'])
    expect(day('America/New_York', '2026-11-01T04:00:00Z')).toEqual(['2026-11-01@America/New_York', '2026-11-02T05:00:00.000Z'])
    expect(at('2026-03-09T04:00:00Z') - at('2026-03-08T05:00:00Z')).toBe(23 * hourMs)
    expect(at('2026-11-02T05:00:00Z') - at('2026-11-01T04:00:00Z')).toBe(25 * hourMs)
  })

  it('begins a day without a midnight when the clocks change, and leaves out a day that a zone skipped', () => {
    // Clocks in Cairo went from 00:00 to 01:00 on 24 April 2026.
    expect(day('Africa/Cairo', '2026-04-23T21:59:59Z')).toEqual(['2026-04-23@Africa/Cairo', '2026-04-23T22:00:00.000Z'])
    expect(day('Africa/Cairo', '2026-04-23T22:00:00Z')[0]).toBe('2026-04-24@Africa/Cairo')
    // Samoa had no 30 December 2011.
    expect(day('Pacific/Apia', '2011-12-30T09:59:59Z')).toEqual(['2011-12-29@Pacific/Apia', '2011-12-30T10:00:00.000Z'])
    expect(day('Pacific/Apia', '2011-12-30T10:00:00Z')[0]).toBe('2011-12-31@Pacific/Apia')
  })

  it('does not begin a day twice where clocks go back over midnight', () => {
    // Clocks in St. John's went from 00:01 on 7 November 2010 to 23:01 of the day before.
    expect(day('America/St_Johns', '2010-11-07T02:29:59Z')[0]).toBe('2010-11-06@America/St_Johns')
    for (const iso of ['2010-11-07T02:30:00Z', '2010-11-07T02:31:00Z', '2010-11-07T03:29:00Z', '2010-11-08T03:29:59Z'])
      expect(day('America/St_Johns', iso)[0], iso).toBe('2010-11-07@America/St_Johns')
  })

  it('names weeks as ISO 8601 does, from Monday', () => {
    const week = (iso: string) => calendars.get('UTC')?.windowAt('week', at(iso)).name
    expect(week('2026-11-22T23:59:59Z')).toBe('2026-W47@UTC')
    expect(week('2026-11-23T00:00:00Z')).toBe('2026-W48@UTC')
    expect(week('2027-01-01T12:00:00Z')).toBe('2026-W53@UTC')
    expect(week('2024-12-30T00:00:00Z')).toBe('2025-W01@UTC')
  })
})

describe('the time zone of budgets', () => {
  const calendar = new BudgetCalendar()
  const noon = at('2026-11-25T06:30:00Z')

  it('takes names of the IANA database and nothing else', () => {
    expect(['Asia/Kolkata', 'asia/calcutta', 'Europe/Berlin', 'europe/berlin', 'UTC'].map(zoneOfText)).toEqual([
      'Asia/Kolkata',
      'Asia/Kolkata',
      'Europe/Berlin',
      'Europe/Berlin',
      'UTC',
    ])
    for (const wrong of ['', '+05:30', 'Mars/Base', '../etc', 'Europe/Berlin ', `A${'b'.repeat(64)}`]) expect(zoneOfText(wrong), wrong).toBeNull()
  })

  it('holds from the next turn of each period, and back before it changes nothing', () => {
    const changed = calendar.changed(defaultZones, 'Europe/Berlin', noon)
    for (const [period, turn] of [
      ['day', '2026-11-25T18:30:00Z'],
      ['week', '2026-11-29T18:30:00Z'],
      ['month', '2026-11-30T18:30:00Z'],
    ] as const) {
      expect(calendar.windowAt(changed, period, at(turn) - 1)).toEqual(calendar.windowAt(defaultZones, period, noon))
      expect(calendar.windowAt(changed, period, at(turn)).name).toMatch(/@Europe\/Berlin$/)
    }
    expect(calendar.changed(changed, 'Asia/Kolkata', noon + hourMs)).toEqual(defaultZones)
    expect(calendar.windowAt(changed, 'ever', noon)).toEqual(calendar.windowAt(defaultZones, 'ever', noon))
  })

  it('waits for one more period when the change comes in the last minute of one', () => {
    const late = at('2026-11-25T18:29:30Z')
    const changed = calendar.changed(defaultZones, 'Europe/Berlin', late)
    expect([late, at('2026-11-25T18:30:00Z'), at('2026-11-26T18:29:59Z'), at('2026-11-26T18:30:00Z')].map(ms => zoneAt(changed, 'day', ms))).toEqual([
      'Asia/Kolkata',
      'Asia/Kolkata',
      'Asia/Kolkata',
      'Europe/Berlin',
    ])
  })

  it('never gives a counter the name of an earlier one, whatever the changes are', () => {
    const change = fc.record({
      zone: fc.constantFrom('Asia/Kolkata', 'Europe/Berlin', 'America/New_York', 'Pacific/Kiritimati'),
      afterMs: fc.nat({ max: 60 * hourMs }),
    })
    fc.assert(
      fc.property(fc.array(change, { maxLength: 8 }), changes => {
        let zones = defaultZones
        let ms = noon
        const ended = new Set<string>()
        let running = calendar.windowAt(zones, 'day', ms)
        const moveTo = (untilMs: number): void => {
          while (running.endsAtMs <= untilMs) {
            ended.add(running.name)
            ms = running.endsAtMs
            running = calendar.windowAt(zones, 'day', ms)
            expect(ended.has(running.name)).toBe(false)
          }
          ms = untilMs
        }
        for (const { zone, afterMs } of changes) {
          moveTo(ms + afterMs)
          zones = calendar.changed(zones, zone, ms)
          expect(calendar.windowAt(zones, 'day', ms)).toEqual(running)
        }
        moveTo(ms + 100 * hourMs)
      }),
      { numRuns: propertyRuns(200) },
    )
  })
})
