/** Latencies of the calls of an activity report: the median and the 95th percentile, in total and by day or hour. */
import type { Queryable } from '../../../platform/db/db.ts'
import { type LatencyCount, quantileMs } from '../../../platform/observe/latency-buckets.ts'
import { type LatencyRow, sumDayLatencies, sumEventLatencies, sumHourLatencies } from './activity-queries.ts'
import { type ActivityAsk, eventParams } from './activity-sum-queries.ts'

interface Percentiles {
  /** Number of served calls. */
  calls: number
  p50_ms: number | null
  p95_ms: number | null
}

export interface ActivityLatency extends Percentiles {
  /** Oldest first. `hour` is null in a report by day. Days and hours without served calls are absent. */
  by: (Percentiles & { day: string; hour: number | null })[]
}

/** Returns the latencies. `isOfEvents` says that no sums answer the filters. */
export async function latencyOf(db: Queryable, of: ActivityAsk, isOfEvents: boolean): Promise<ActivityLatency> {
  const rows = await read(db, of, isOfEvents)
  const spans = new Map<string, LatencyRow[]>()
  for (const row of rows) {
    const name = `${row.day} ${row.hour}`
    const known = spans.get(name)
    if (known === undefined) spans.set(name, [row])
    else known.push(row)
  }
  const by = [...spans.values()].flatMap(([first, ...others]) =>
    first === undefined ? [] : [{ day: first.day, hour: first.hour, ...percentilesOf([first, ...others]) }],
  )
  return { ...percentilesOf(rows), by }
}

function read(db: Queryable, of: ActivityAsk, isOfEvents: boolean): Promise<LatencyRow[]> {
  const { orgId, span, group, filters } = of
  if (isOfEvents) return db.many(sumEventLatencies, ...eventParams(of, 1), group === 'hour')
  return db.many(group === 'hour' ? sumHourLatencies : sumDayLatencies, orgId, span.from, span.to, filters.model ?? '', filters.provider ?? '')
}

function percentilesOf(rows: readonly LatencyRow[]): Percentiles {
  const counts = new Map<number, number>()
  for (const { bucket, requests } of rows) counts.set(bucket, (counts.get(bucket) ?? 0) + Number(requests))
  const list: LatencyCount[] = [...counts].map(([bucket, count]) => ({ bucket, count }))
  return { calls: list.reduce((sum, { count }) => sum + count, 0), p50_ms: quantileMs(list, 0.5), p95_ms: quantileMs(list, 0.95) }
}
