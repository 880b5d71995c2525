/** Converts numbers, names and times to values that the usage columns accept. One refused record would block all later ones. */
import { endOfIstDayMs, istDay } from '../../../platform/values/ist-time.ts'

/** Maximum length of a model id that fits into the primary keys of the sums. */
const modelMaxChars = 300
/** Maximum count of one call. No real call reaches it. A column of sums can hold nine million times as much. */
const countMax = 1_000_000_000_000
const intMax = 2_147_483_647
const dayMs = 24 * 3600_000

/** Converts a count to a value for a bigint column. The count may be missing in journal records of an earlier version. */
export const countOf = (n: number | undefined): bigint => BigInt(tokensOf(n))

/** Converts a count as `countOf` does, but returns a number. A flush adds thousands of counts, and numbers are faster. */
export const tokensOf = (n: number | undefined): number => (n === undefined ? 0 : n >= countMax ? countMax : n > 0 ? Math.trunc(n) : 0)

/** Converts a count to a value for an int column. */
export const intOf = (n: number | undefined): number => Math.min(intMax, Number(countOf(n)))

/** Returns whole milliseconds, at least 0. */
export const wholeMs = (ms: number): number => Math.min(intMax, Math.max(0, Math.round(ms)))

/**
 * Returns a model id that the tables accept. It is cut to its maximum length, and has no U+0000 and no unpaired surrogates. The cut can produce an
 * unpaired surrogate, and the database refuses those in JSON.
 */
export const modelText = (id: string): string => id.slice(0, modelMaxChars).replaceAll('\u0000', '').toWellFormed()

/** Returns the Monday of the week of an IST day. Sums by week are stored under their Monday. */
export function mondayOf(day: string): string {
  const utcMs = Date.parse(`${day}T00:00:00Z`)
  // 1970 began on a Thursday.
  return new Date(utcMs - ((((utcMs / dayMs + 3) % 7) + 7) % 7) * dayMs).toISOString().slice(0, 10)
}

/** Returns a function that converts an instant to its IST day. It remembers the last day, so many instants of one day are converted quickly. */
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
