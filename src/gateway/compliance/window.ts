/** Windows of IST days that end today, for the compliance endpoints. */
import { fail } from '../../platform/errors.ts'
import { istDay, startOfIstDayMs } from '../../platform/values/ist-time.ts'

const dayMs = 24 * 3600_000
/** The longest window. The project chose it. */
const daysMax = 365
/** The window of a request that does not name a window. */
export const defaultWindow = '30d'

/** The last N IST days including today. */
export interface Window {
  /** The requested text, such as `30d`. */
  readonly text: string
  /** First and last IST day, both included. */
  readonly from: string
  readonly to: string
  /** The instant at which `from` begins. */
  readonly fromMs: number
}

/** Returns the window of `1d` to `365d` that ends with the IST day of `nowMs`. Throws `bad_request`. */
export function windowOf(text: string, nowMs: number): Window {
  const days = /^[1-9]\d{0,2}d$/.test(text) ? Number(text.slice(0, -1)) : 0
  if (days < 1 || days > daysMax)
    throw fail('bad_request', { message: `"${text.slice(0, 20)}" is no window; write a number of days from 1d to ${daysMax}d, such as ${defaultWindow}.` })
  const to = istDay(nowMs)
  const from = istDay(nowMs - (days - 1) * dayMs)
  return { text, from, to, fromMs: startOfIstDayMs(from) ?? nowMs }
}

/** The window in a document: IST days, and the instants of its bounds. */
export interface Period {
  readonly from: string
  readonly to: string
  readonly time_zone: 'Asia/Kolkata'
  readonly from_at: string
  readonly until_at: string
}

/** Returns the period of a window in a document that is created at `madeAtMs`. */
export function periodOf({ from, to, fromMs }: Window, madeAtMs: number): Period {
  const endMs = (startOfIstDayMs(to) ?? madeAtMs) + dayMs
  return { from, to, time_zone: 'Asia/Kolkata', from_at: iso(fromMs), until_at: iso(Math.min(madeAtMs, endMs)) }
}

/** Formats an instant for documents. */
export const iso = (ms: number): string => new Date(ms).toISOString()
