/** Finds organisations whose last hour is unusual, and writes one webhook event for each anomaly. */

import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import type { Flushable } from '../../../platform/flushable.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import { endOfIstDayMs, istDay } from '../../../platform/values/ist-time.ts'
import type { EventData } from '../../webhooks/events/event-catalog.ts'
import { emit, eventId } from '../../webhooks/events/events.ts'
import {
  type AnomalyMetric,
  anomalyFloor,
  anomalyMetrics,
  baselineHoursMax,
  type HourAgainstWeek,
  judgeHour,
  meanHour,
  ratioOf,
  type UsageSums,
} from './anomaly.ts'
import { beginAnomaly, deleteOldHours, endAnomaly, lastSummedHour, listAnomalies, sumBaseline, sumLastHour, sumUpHours, usedBefore } from './anomaly-queries.ts'

/** Pause between two sweeps, in milliseconds. */
export const anomalySweepMs = 5 * 60_000
const hourMs = 3600_000
const baselineMs = baselineHoursMax * hourMs
/** How long the sums of hours are kept. It is a day longer than the baseline needs. */
const keepMs = baselineMs + 24 * hourMs

export interface AnomalySweepDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  /** Writes the records that this process has settled to the database. */
  readonly journal: Flushable
}

const none: UsageSums = { spend: 0n, errors: 0n, tokens: 0n }

/** The observed hour, and the whole hours of the baseline, in Unix milliseconds. The end of each span is exclusive. */
interface Windows {
  readonly hour: { readonly fromMs: number; readonly toMs: number }
  readonly baseline: { readonly fromMs: number; readonly toMs: number }
}

/**
 * Checks all organisations once. It reads the events of the last hour, and computes the sums of each new whole hour from the events. For
 * organisations above a floor, it also reads the sums of the hours.
 */
export async function sweepAnomalies(deps: AnomalySweepDeps, signal: AbortSignal): Promise<void> {
  const { db, clock, journal } = deps
  await journal.flushNow()
  const windows = windowsAt(clock.nowMs())
  await sumUp(db, windows.baseline)
  const open = new Map<number, Set<AnomalyMetric>>()
  for (const { orgId, metric } of await db.many(listAnomalies)) open.set(orgId, (open.get(orgId) ?? new Set()).add(metric))
  const { spend, errors, tokens } = anomalyFloor
  const { hour } = windows
  const busy = await db.many(sumLastHour, daysOf(hour), firstIdAt(hour.fromMs), firstIdAt(hour.toMs), spend, errors, tokens, [...open.keys()])
  const observed = new Map<number, UsageSums>(busy.map(row => [row.orgId, row]))
  const orgIds = [...new Set([...observed.keys(), ...open.keys()])]
  const weeks = await baselines(db, orgIds, windows)
  for (const orgId of orgIds) {
    if (signal.aborted) return
    const week = weeks.get(orgId) ?? { sums: none, hours: 0 }
    for (const metric of anomalyMetrics) {
      const figures = { observed: (observed.get(orgId) ?? none)[metric], total: week.sums[metric], hours: week.hours }
      await settle(deps, { orgId, metric, figures, windows }, open.get(orgId)?.has(metric) ?? false)
    }
  }
}

interface Look {
  readonly orgId: number
  readonly metric: AnomalyMetric
  readonly figures: HourAgainstWeek
  readonly windows: Windows
}

async function settle({ db, ids }: AnomalySweepDeps, { orgId, metric, figures, windows: { hour } }: Look, goesOn: boolean): Promise<void> {
  const verdict = judgeHour(metric, figures, goesOn)
  if (verdict === 'over') await db.exec(endAnomaly, orgId, metric)
  if (verdict !== 'begins') return
  const atMs = hour.toMs
  await db.tx(async tx => {
    // The insert has no effect when another process has already written the event. That can happen after this process has lost the lock of the job.
    if ((await tx.exec(beginAnomaly, orgId, metric, new Date(atMs))) === 0) return
    await emit(tx, { id: eventId(ids, atMs), orgId, type: 'request.anomaly', atMs, data: dataOf(metric, figures, hour) })
  })
}

/** Returns the data of the event. Spend is in rupees, errors and tokens are counts. */
function dataOf(metric: AnomalyMetric, figures: HourAgainstWeek, { fromMs, toMs }: Windows['hour']): EventData['request.anomaly'] {
  const unit = metric === 'spend' ? 1e6 : 1
  return {
    metric,
    observed: Number(figures.observed) / unit,
    baseline: Math.round((meanHour(figures) / unit) * 100) / 100,
    ratio: ratioOf(figures),
    window_start: Math.floor(fromMs / 1000),
    window_end: Math.floor(toMs / 1000),
  }
}

/**
 * Returns the observed hour and the baseline. The baseline ends with the last whole hour before the observed hour. No call is therefore in both, and
 * late records still have time to arrive.
 */
function windowsAt(nowMs: number): Windows {
  const fromMs = nowMs - hourMs
  const toMs = Math.floor(fromMs / hourMs) * hourMs
  return { hour: { fromMs, toMs: nowMs }, baseline: { fromMs: toMs - baselineMs, toMs } }
}

/** Computes the sums of the baseline's hours that have none yet. */
async function sumUp(db: Db, { fromMs, toMs }: Windows['baseline']): Promise<void> {
  const { hour } = await db.one(lastSummedHour)
  const next = hour === null ? fromMs : Math.max(fromMs, hour.getTime() + hourMs)
  if (next >= toMs) return
  await db.exec(sumUpHours, daysOf({ fromMs: next, toMs }), firstIdAt(next), firstIdAt(toMs))
  await db.exec(deleteOldHours, new Date(toMs - keepMs))
}

interface Week {
  readonly sums: UsageSums
  readonly hours: number
}

/**
 * Returns the sums and the number of hours for the baseline of each organisation. An organisation with usage before the baseline has all hours. A
 * newer one has the hours since its first usage.
 */
async function baselines(db: Db, orgIds: readonly number[], { baseline: { fromMs, toMs } }: Windows): Promise<ReadonlyMap<number, Week>> {
  if (orgIds.length === 0) return new Map()
  const rows = new Map((await db.many(sumBaseline, orgIds, new Date(fromMs), new Date(toMs))).map(row => [row.orgId, row]))
  const settled = new Set((await db.many(usedBefore, orgIds, istDay(fromMs))).map(({ orgId }) => orgId))
  return new Map(
    orgIds.map((orgId): [number, Week] => {
      const row = rows.get(orgId)
      const sinceFirst = row === undefined ? 0 : (toMs - row.firstHour.getTime()) / hourMs
      return [orgId, { sums: row ?? none, hours: settled.has(orgId) ? baselineHoursMax : sinceFirst }]
    }),
  )
}

/** Returns the IST days that a span touches. */
function daysOf({ fromMs, toMs }: { readonly fromMs: number; readonly toMs: number }): string[] {
  const days: string[] = []
  for (let ms = fromMs; ms < toMs; ms = endOfIstDayMs(ms)) days.push(istDay(ms))
  return days
}

/**
 * Returns a text between two groups of ids. It is smaller than the id of every call admitted at this instant or later, and larger than every earlier
 * id.
 */
function firstIdAt(ms: number): string {
  const time = Math.trunc(ms).toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`
}
