/** The public pages about usage. They are built from sums in the background, so their cost does not grow with the number of events or requests. */
import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import { fail } from '../../../platform/errors.ts'
import { Snapshot } from '../../../platform/loop/snapshot.ts'
import { type LatencyCount, quantileMs } from '../../../platform/observe/latency-buckets.ts'
import type { Log } from '../../../platform/observe/log.ts'
import { type PublicPage, publicPage } from '../../../platform/public-page.ts'
import { istDay } from '../../../platform/values/ist-time.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import { countModelUsers, type ModelSumsRow, sumLatencies, sumModels } from './model-stats-queries.ts'
import { hasPlatformRoute, longRankingDays, rankingsOf } from './rankings.ts'

export interface PublicUsageOptions {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly catalog: Catalog
  /** The setting PUBLIC_STATS. */
  readonly isPublic: boolean
}

/** Age at which the pages are built again, in milliseconds. */
const maxAgeMs = 2 * 60_000
/** How long HTTP caches may keep the pages, in seconds. */
const pageSeconds = 60
const dayMs = 24 * 3600_000

interface Pages {
  readonly rankings: PublicPage
  readonly stats: ReadonlyMap<string, ModelStats>
}

/** Builds and caches the rankings and statistics of models. */
export class PublicUsage {
  /** When false, only callers with a credential may read the pages. */
  readonly isPublic: boolean
  readonly #options: PublicUsageOptions
  readonly #pages: Snapshot<Pages>

  constructor(options: PublicUsageOptions) {
    this.#options = options
    this.isPublic = options.isPublic
    const empty = { rankings: publicPage(rankingsOf([], [], options.catalog.snapshot), pageSeconds), stats: new Map<string, ModelStats>() }
    this.#pages = new Snapshot({ name: 'usage.public', clock: options.clock, log: options.log, maxAgeMs, empty, load: () => this.#load() })
  }

  /** Returns the page of rankings. The lists are empty when no model is ranked, or when the database was never reachable. */
  async rankings(): Promise<PublicPage> {
    return (await this.#pages.get()).rankings
  }

  /** Returns the statistics of a model of the catalog. Values are null without usage. Throws `model_not_found`. */
  async stats(modelId: string): Promise<PublicPage> {
    if (!this.#options.catalog.snapshot.models.has(modelId)) throw fail('model_not_found', { message: unknownModel })
    const { stats } = await this.#pages.get()
    return publicPage(stats.get(modelId) ?? statsOf(modelId, undefined, []), pageSeconds)
  }

  async #load(): Promise<Pages> {
    const { db, clock, catalog } = this.#options
    const nowMs = clock.nowMs()
    const from = (days: number): string => istDay(nowMs - (days - 1) * dayMs)
    const today = istDay(nowMs)
    // Usage is recorded for the model that served the call. Virtual ids therefore have no usage.
    const models = [...catalog.snapshot.models.values()].flatMap(({ id, kind }) => (kind === 'virtual' ? [] : [id]))
    const sums = await db.many(sumModels, from(longRankingDays), from(statsDays), today, models)
    const ofOwnKeys = sums.flatMap(({ model, longTokens }) => (longTokens > 0n && !hasPlatformRoute(catalog.snapshot, model) ? [model] : []))
    const users = ofOwnKeys.length === 0 ? [] : await db.many(countModelUsers, from(longRankingDays), from(statsDays), today, ofOwnKeys)
    const latencies = new Map<string, LatencyCount[]>()
    for (const { model, bucket, requests } of await db.many(sumLatencies, from(statsDays), today, models))
      latencies.set(model, [...(latencies.get(model) ?? []), { bucket, count: Number(requests) }])
    return {
      rankings: publicPage(rankingsOf(sums, users, catalog.snapshot), pageSeconds),
      stats: new Map(sums.map(row => [row.model, statsOf(row.model, row, latencies.get(row.model) ?? [])])),
    }
  }
}

const unknownModel = 'Unknown model id. There are stats of the ids that GET /v1/models lists without a credential.'

/** Days of the statistics, today included. */
export const statsDays = 7

/** The statistics of one model as clients see them. A value is null when there is no data. */
export interface ModelStats {
  readonly model: string
  readonly window: '7d'
  /** Served calls as a share of all served and failed calls, 0 to 1. */
  readonly success_rate: number | null
  readonly p50_latency_ms: number | null
  readonly p95_latency_ms: number | null
  /** Completion tokens per second of served calls. The time is from the arrival of the request to the end of the reply. */
  readonly tokens_per_second: number | null
  readonly requests: number
}

/** Returns the statistics of a model. */
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
