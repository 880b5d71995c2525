/** Converts figures, names and times to values that the usage columns accept. A single refused record would block every later one. */
import { endOfIstDayMs, istDay } from '../../../platform/values/ist-time.ts'

/** The longest model id that fits into the primary keys of the sums. */
const modelMaxChars = 300
/** No call has a trillion tokens. A column of sums holds nine million times as much. */
const countMax = 1_000_000_000_000
const intMax = 2_147_483_647
const dayMs = 24 * 3600_000

/** Converts a count to a value for a bigint column. The count may be missing in journal records of an earlier version. */
export const countOf = (n: number | undefined): bigint => BigInt(tokensOf(n))

/** The same as a number: a flush adds thousands of them up. */
export const tokensOf = (n: number | undefined): number => (n === undefined ? 0 : n >= countMax ? countMax : n > 0 ? Math.trunc(n) : 0)

/** A figure as an int column takes it. */
export const intOf = (n: number | undefined): number => Math.min(intMax, Number(countOf(n)))

/** Whole milliseconds, at least 0. */
export const wholeMs = (ms: number): number => Math.min(intMax, Math.max(0, Math.round(ms)))

/** The id of a model as the tables take it. Half a character, as a cut may leave one, is no text: JSON for the database would refuse it. */
export const modelText = (id: string): string => id.slice(0, modelMaxChars).replaceAll('\u0000', '').toWellFormed()

/** The Monday of the week of an IST day: sums by week are stored under it. */
export function mondayOf(day: string): string {
  const utcMs = Date.parse(`${day}T00:00:00Z`)
  // 1970 began on a Thursday.
  return new Date(utcMs - ((((utcMs / dayMs + 3) % 7) + 7) % 7) * dayMs).toISOString().slice(0, 10)
}

/** The IST day of an instant, calculated again only when the instant before was on another day. */
export function istDays(): (ms: number) => string {
  let day = ''
  let fromMs = 0
  let endMs = 0
  return ms => {
    if (ms >= endMs || ms < fromMs) {
      day = istDay(ms)
      endMs = endOfIstDayMs(ms)
      fromMs = endMs - dayMs
    }
    return day
  }
}
