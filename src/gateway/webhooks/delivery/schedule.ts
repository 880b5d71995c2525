/** Decides when a failed delivery is tried again and how long a failing endpoint is paused. Pure. */
import { ConfigError } from '../../../platform/config.ts'

const secondMs = 1000
const hourMs = 3600 * secondMs
const waitMaxS = 30 * 24 * 3600
const waitsMax = 50
/** A retry is delayed by up to this share of its wait, so that a receiver that was down does not get all deliveries together. */
const jitterShare = 0.1
/** The longest Retry-After that is respected when every wait of the schedule is shorter than this. */
const retryAfterMinimumMaxMs = hourMs
/** The clocks of two processes differ by less than this. */
const skewMs = 60 * secondMs

const pauseFirstMs = secondMs
/** Longest pause of a failing endpoint, in milliseconds. */
export const pauseMaxMs = 300 * secondMs

export interface RetrySchedule {
  /** The waits after failed attempts. There is one more attempt after the last wait. When this attempt fails too, the delivery is dead. */
  readonly waitsMs: readonly number[]
  /** Longest Retry-After that is respected. */
  readonly retryAfterMaxMs: number
  /** The longest time from now until a retry. A retry with a later due time was written before the clock was set back. */
  readonly furthestMs: number
}

/** Reads WEBHOOK_RETRY_S. Throws ConfigError. */
export function retrySchedule(entries: readonly string[]): RetrySchedule {
  const waits = entries.map(entry => (/^\d{1,9}$/.test(entry) ? Number(entry) : Number.NaN))
  const wrong = entries[waits.findIndex(wait => !(wait >= 1 && wait <= waitMaxS))]
  if (wrong !== undefined) throw new ConfigError(`WEBHOOK_RETRY_S must list waits in whole seconds from 1 to ${waitMaxS}, such as 5,300,1800, not "${wrong}".`)
  if (waits.length === 0 || waits.length > waitsMax)
    throw new ConfigError(`WEBHOOK_RETRY_S must list from 1 to ${waitsMax} waits in seconds, such as 5,300,1800.`)
  const waitsMs = waits.map(wait => wait * secondMs)
  const retryAfterMaxMs = Math.max(retryAfterMinimumMaxMs, ...waitsMs)
  return { waitsMs, retryAfterMaxMs, furthestMs: Math.ceil(retryAfterMaxMs * (1 + jitterShare)) + skewMs }
}

/**
 * Returns how many milliseconds to wait after the failed attempt with this number (from 1). Returns null after the last attempt. `random` is in [0,
 * 1). A longer Retry-After is respected up to `retryAfterMaxMs`.
 */
export function retryWaitMs(schedule: RetrySchedule, attempt: number, random: number, retryAfterMs: number | null): number | null {
  const waitMs = schedule.waitsMs[attempt - 1]
  if (waitMs === undefined) return null
  return Math.ceil(Math.max(waitMs, Math.min(retryAfterMs ?? 0, schedule.retryAfterMaxMs)) * (1 + jitterShare * random))
}

/**
 * Returns for how many milliseconds an endpoint is paused after consecutive failures. One failure may be due to its delivery alone and causes no
 * pause. From the second failure on, the pause doubles from 1 s to 5 min. A Retry-After of the receiver counts from the first failure, also up to 5
 * min.
 */
export function pauseMs(failures: number, retryAfterMs: number | null): number {
  const ownMs = failures < 2 ? 0 : pauseFirstMs * 2 ** Math.min(failures - 2, 20)
  return Math.min(pauseMaxMs, Math.max(ownMs, retryAfterMs ?? 0))
}

/** Returns how many milliseconds from now a Retry-After header names. The header is seconds or a date. Returns null when it cannot be read. */
export function retryAfterOf(header: string | string[] | undefined, nowMs: number): number | null {
  const text = (Array.isArray(header) ? header[0] : header)?.trim() ?? ''
  if (/^\d{1,9}$/.test(text)) return Number(text) * secondMs
  // Only a text with letters is parsed as a date, because Date.parse reads some numbers as years.
  const atMs = /[A-Za-z]{3}/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(atMs) ? null : Math.max(0, atMs - nowMs)
}
