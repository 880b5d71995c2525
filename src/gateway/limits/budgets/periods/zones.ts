/**
 * The time zone of an organisation's budgets. A change holds from the next turn of each period, because the running one has spent money in it.
 * Decision 0798 gives the reasons.
 */
import { LRUCache } from 'lru-cache'
import { type BudgetPeriod, defaultZone, type EndingPeriod, ever, type PeriodWindow } from './period.ts'
import { ZoneCalendar } from './zone-calendar.ts'

/** The zone that a period keeps until it ends. */
export interface FormerZone {
  readonly zone: string
  readonly untilMs: number
}

/** The zones of an organisation. Null for `before` means that the period follows `zone`. */
export interface BudgetZones {
  readonly zone: string
  readonly before: Readonly<Record<EndingPeriod, FormerZone | null>>
}

/** The zones of an organisation that has set none. */
export const defaultZones: BudgetZones = { zone: defaultZone, before: { day: null, week: null, month: null } }

const endingPeriods = ['day', 'week', 'month'] as const
/** Every process knows of a change before this time has passed. */
const knownAfterMs = 60_000
const calendarsMax = 200
const windowsMax = 2_000
/** The longest name in the database of time zones has fewer characters. */
const zoneCharsMax = 64

/** Returns the zone of a period at an instant. */
export function zoneAt({ zone, before }: BudgetZones, period: EndingPeriod, ms: number): string {
  const former = before[period]
  return former !== null && ms < former.untilMs ? former.zone : zone
}

/** Returns the name under which a zone is kept, or null for a text that names no zone. Differences from UTC such as `+05:30` are no zones. */
export function zoneOfText(text: string): string | null {
  if (text.length > zoneCharsMax || !/^[A-Za-z][A-Za-z0-9_+\-/]*$/.test(text)) return null
  try {
    const { timeZone } = new Intl.DateTimeFormat('en-US', { timeZone: text }).resolvedOptions()
    if (timeZone === 'Asia/Calcutta' || timeZone === defaultZone) return defaultZone
    return timeZone.toLowerCase() === text.toLowerCase() ? timeZone : text
  } catch (error) {
    if (error instanceof RangeError) return null
    throw error
  }
}

/** Finds the running windows of budgets. Each window is computed once. */
export class BudgetCalendar {
  readonly #calendars = new LRUCache<string, ZoneCalendar>({ max: calendarsMax })
  readonly #windows = new LRUCache<string, { readonly window: PeriodWindow; readonly fromMs: number }>({ max: windowsMax })

  /** Returns the window of a period at an instant. */
  windowAt(zones: BudgetZones, period: BudgetPeriod, ms: number): PeriodWindow {
    return period === 'ever' ? ever : this.#windowIn(zoneAt(zones, period, ms), period, ms)
  }

  /**
   * Returns the zones after a change to `zone` at an instant. A period that ends within a minute is followed by one more period in the former zone, because
   * other processes may not know of the change yet.
   */
  changed(zones: BudgetZones, zone: string, ms: number): BudgetZones {
    const formerOf = (period: EndingPeriod): FormerZone | null => {
      const former = zoneAt(zones, period, ms)
      return former === zone ? null : { zone: former, untilMs: this.#windowIn(former, period, ms + knownAfterMs).endsAtMs }
    }
    const [day, week, month] = endingPeriods.map(formerOf) as [FormerZone | null, FormerZone | null, FormerZone | null]
    return { zone, before: { day, week, month } }
  }

  #windowIn(zone: string, period: EndingPeriod, ms: number): PeriodWindow {
    const key = `${period}@${zone}`
    const known = this.#windows.get(key)
    if (known !== undefined && ms >= known.fromMs && ms < known.window.endsAtMs) return known.window
    let calendar = this.#calendars.get(zone)
    if (calendar === undefined) {
      calendar = new ZoneCalendar(zone)
      this.#calendars.set(zone, calendar)
    }
    const window = calendar.windowAt(period, ms)
    this.#windows.set(key, { window, fromMs: ms })
    return window
  }
}
