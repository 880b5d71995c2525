/** How models did in the last days, over all organisations: what anybody may read. */
import { type LatencyCount, quantileMs } from '../../platform/latency-buckets.ts'
import type { ModelSumsRow } from './model-stats-queries.ts'

/** Days of the stats, today included. */
export const statsDays = 7

/** The stats of one model as the wire has them; null where there is nothing to tell. */
export interface ModelStats {
  readonly model: string
  readonly window: '7d'
  /** Share of calls that were served, of those that were served or failed: 0 to 1. */
  readonly success_rate: number | null
  readonly p50_latency_ms: number | null
  readonly p95_latency_ms: number | null
  /** Completion tokens a second of served calls, from the arrival of the request to the end of the reply. */
  readonly tokens_per_second: number | null
  readonly requests: number
}

/** The stats of a model. */
export function statsOf(model: string, sums: ModelSumsRow | undefined, latencies: readonly LatencyCount[]): ModelStats {
  const judged = sums === undefined ? 0 : Number(sums.succeeded + sums.failed)
  return {
    model,
    window: '7d',
    success_rate: sums === undefined || judged === 0 ? null : rounded(Number(sums.succeeded) / judged, 4),
    p50_latency_ms: quantileMs(latencies, 0.5),
    p95_latency_ms: quantileMs(latencies, 0.95),
    tokens_per_second: sums === undefined || sums.writtenMs === 0n ? null : rounded((Number(sums.writtenTokens) * 1000) / Number(sums.writtenMs), 2),
    requests: sums === undefined ? 0 : Number(sums.requests),
  }
}

const rounded = (value: number, decimals: number): number => Math.round(value * 10 ** decimals) / 10 ** decimals
