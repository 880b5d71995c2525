/** When a delivery that failed is tried again, and how long an endpoint that fails is left alone. Pure. */
import { ConfigError } from '../../../platform/config.ts'

const secondMs = 1000
const hourMs = 3600 * secondMs
const waitMaxS = 30 * 24 * 3600
const waitsMax = 50
/** Retries are late by up to this share of their wait, so that a receiver that was down does not get everything together. */
const jitterShare = 0.1
/** What a receiver may ask for when every wait of the schedule is shorter. */
const retryAfterMinimumMaxMs = hourMs
/** Clocks of processes differ by less. */
const skewMs = 60 * secondMs

const pauseFirstMs = secondMs
/** The longest that a failing endpoint is left alone. */
export const pauseMaxMs = 300 * secondMs

export interface RetrySchedule {
  /** After each failed attempt; after the last one the delivery is dead. */
  readonly waitsMs: readonly number[]
  /** The longest that a Retry-After counts for. */
  readonly retryAfterMaxMs: number
  /** No retry is further away; a later one was written under a clock that has since been set back. */
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
 * How long to wait after the failed attempt with that number (from 1) of the schedule; null: it was the last. `random` is in [0, 1). A
 * receiver that names a later time gets it, within bounds.
 */
export function retryWaitMs(schedule: RetrySchedule, attempt: number, random: number, retryAfterMs: number | null): number | null {
  const waitMs = schedule.waitsMs[attempt - 1]
  if (waitMs === undefined) return null
  return Math.ceil(Math.max(waitMs, Math.min(retryAfterMs ?? 0, schedule.retryAfterMaxMs)) * (1 + jitterShare * random))
}

/**
 * How long an endpoint is left alone after a number of failures in a row: not at all after one, which may be that delivery's own, then doubled from 1 s
 * to 5 min. The wait that its receiver asks for counts from the first failure on, up to the same bound.
 */
export function pauseMs(failures: number, retryAfterMs: number | null): number {
  const ownMs = failures < 2 ? 0 : pauseFirstMs * 2 ** Math.min(failures - 2, 20)
  return Math.min(pauseMaxMs, Math.max(ownMs, retryAfterMs ?? 0))
}

/** A Retry-After header, seconds or a date, as milliseconds from now; null: none that can be read. */
export function retryAfterOf(header: string | string[] | undefined, nowMs: number): number | null {
  const text = (Array.isArray(header) ? header[0] : header)?.trim() ?? ''
  if (/^\d{1,9}$/.test(text)) return Number(text) * secondMs
  // A date has letters: Date.parse takes other numbers for years.
  const atMs = /[A-Za-z]{3}/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(atMs) ? null : Math.max(0, atMs - nowMs)
}
