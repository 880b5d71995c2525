/** The calendar of a time zone of the IANA database. Its days have 23, 24 or 25 hours where clocks change. */
import type { EndingPeriod, PeriodWindow } from './period.ts'
import { defaultZone } from './period.ts'

const dayMs = 24 * 3600_000
/** The largest difference of a zone from UTC is 14 hours. */
const aroundMs = 15 * 3600_000

/** A calendar. Days are counted from 1 January 1970, which was a Thursday. */
export class ZoneCalendar {
  readonly #zone: string
  readonly #format: Intl.DateTimeFormat

  /** Throws `RangeError` for a zone that this machine does not know. */
  constructor(zone: string) {
    this.#zone = zone
    this.#format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  }

  /** Returns the day, week or month of an instant. */
  windowAt(period: EndingPeriod, ms: number): PeriodWindow {
    const day = this.#dayAt(ms)
    const suffix = this.#zone === defaultZone ? '' : `@${this.#zone}`
    switch (period) {
      case 'day':
        return { name: `${dateOf(day)}${suffix}`, endsAtMs: this.#startOfDayMs(day + 1) }
      case 'week': {
        const monday = day - ((((day + 3) % 7) + 7) % 7)
        return { name: `${weekOf(monday)}${suffix}`, endsAtMs: this.#startOfDayMs(monday + 7) }
      }
      case 'month': {
        const date = new Date(day * dayMs)
        const next = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1) / dayMs
        return { name: `${dateOf(day).slice(0, 7)}${suffix}`, endsAtMs: this.#startOfDayMs(next) }
      }
    }
  }

  /** Returns the day of an instant. Days never run backwards: where clocks go back over midnight, the new day has begun at the first midnight. */
  #dayAt(ms: number): number {
    const day = Math.floor(this.#localMs(ms) / dayMs)
    return ms >= this.#startOfDayMs(day + 1) ? day + 1 : day
  }

  /** Returns the first instant of a day. It is later than midnight where clocks go forward over midnight. */
  #startOfDayMs(day: number): number {
    const midnight = day * dayMs
    const before = midnight - this.#offsetMs(midnight - aroundMs)
    const after = midnight - this.#offsetMs(midnight + aroundMs)
    let [low, high] = before < after ? [before, after] : [after, before]
    if (this.#localMs(low) === midnight) return low
    if (this.#localMs(high) === midnight) return high
    // There is no midnight. The day begins at the change of the clocks, which is between the two.
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2)
      if (this.#localMs(middle) >= midnight) high = middle
      else low = middle
    }
    return high
  }

  #offsetMs(ms: number): number {
    return this.#localMs(ms) - ms
  }

  /** Returns what clocks in the zone show at an instant, as if the zone were UTC. */
  #localMs(ms: number): number {
    const shown: Record<string, number> = {}
    for (const { type, value } of this.#format.formatToParts(ms)) shown[type] = Number(value)
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = shown
    return Date.UTC(year, month - 1, day, hour, minute, second) + (((ms % 1000) + 1000) % 1000)
  }
}

const dateOf = (day: number): string => new Date(day * dayMs).toISOString().slice(0, 10)

/** Returns the ISO week that begins at a Monday, for example `2026-W48`. Its year is the year of its Thursday. */
function weekOf(monday: number): string {
  const year = new Date((monday + 3) * dayMs).getUTCFullYear()
  const week = Math.floor((monday + 3 - Date.UTC(year, 0, 1) / dayMs) / 7) + 1
  return `${year}-W${String(week).padStart(2, '0')}`
}
