/** Spans of IST days that callers request. */
import { fail } from '../../../platform/errors.ts'
import { istDay, startOfIstDayMs } from '../../../platform/values/ist-time.ts'
import { mondayOf } from '../events/columns.ts'

const dayMs = 24 * 3600_000

/** A span of IST days. Both ends are included. */
export interface DaySpan {
  readonly from: string
  readonly to: string
}

/** Default length of a span in the console, in days. */
export const usualDays = 30
/** Maximum length of the span of an activity report, in days: a leap year. */
export const activityDaysMax = 366

/** Returns the requested span. `to` defaults to today, and `from` to the first day of the IST month of `to`. Throws `bad_request`. */
export function monthSpan(from: string | undefined, to: string | undefined, nowMs: number): DaySpan {
  const last = to ?? istDay(nowMs)
  return checkedSpan({ from: from ?? `${last.slice(0, 7)}-01`, to: last })
}

/** Returns the last `count` days, today included. */
export function lastDays(count: number, nowMs: number): DaySpan {
  return { from: istDay(nowMs - (count - 1) * dayMs), to: istDay(nowMs) }
}

/** Returns the requested span, at most 366 days long. `to` defaults to today, and `from` to the 29th day before `to`. Throws `bad_request`. */
export function activitySpan(from: string | undefined, to: string | undefined, nowMs: number): DaySpan {
  const last = to ?? istDay(nowMs)
  const span = checkedSpan({ from: from ?? daysBefore(last, usualDays - 1) ?? last, to: last })
  if ((daysBefore(span.to, activityDaysMax - 1) ?? '') > span.from)
    throw fail('bad_request', { message: `A span has at most ${activityDaysMax} days, both ends included; ask for less, or page by years.` })
  return span
}

/**
 * Splits a span into whole weeks and the days around them. The parts are the days from `from` to `headTo`, the weeks whose Monday is after `headTo`
 * and before `tailFrom`, and the days from `tailFrom` to `to`. The last day is never part of a week. When the span contains no whole week, `headTo`
 * is `to`.
 */
export function weeksIn({ from, to }: DaySpan): { readonly headTo: string; readonly tailFrom: string } {
  const [firstMonday, lastMonday] = [mondayOf(from), mondayOf(to)]
  const first = firstMonday === from || firstMonday === lastMonday ? firstMonday : (daysBefore(firstMonday, -7) ?? lastMonday)
  const headTo = first < lastMonday && first >= from ? daysBefore(first, 1) : null
  return headTo === null ? { headTo: to, tailFrom: 'infinity' } : { headTo, tailFrom: lastMonday }
}

/** Returns the day that is `count` days earlier. Returns null when `day` is not a calendar day. */
function daysBefore(day: string, count: number): string | null {
  const startMs = startOfIstDayMs(day)
  return startMs === null ? null : istDay(startMs - count * dayMs)
}

/** Returns the span. Throws `bad_request` for a day that does not exist, or an end before the start. */
export function checkedSpan({ from, to }: DaySpan): DaySpan {
  for (const day of [from, to])
    if (startOfIstDayMs(day) === null) throw fail('bad_request', { message: `"${day.slice(0, 40)}" is no calendar day; write YYYY-MM-DD.` })
  if (from > to) throw fail('bad_request', { message: '"from" lies after "to".' })
  return { from, to }
}

/** Returns the number of days of a span. */
export function daysIn({ from, to }: DaySpan): number {
  return Math.round(((startOfIstDayMs(to) ?? 0) - (startOfIstDayMs(from) ?? 0)) / dayMs) + 1
}
