import { LRUCache } from 'lru-cache'
import type { Clock } from '../../../platform/clock.ts'
import type { RouteId } from '../../catalog/model.ts'

/** Weight of the newest sample in the moving averages. Ours: about the last 10 calls matter for latency, the last 20 for failures. */
const latencyWeight = 0.2
const failureWeight = 0.1
/** An average without a sample for so long says nothing any more. Ours. */
const staleMs = 15 * 60 * 1000
/** Most routes whose averages are kept: the catalog's, and organisations' own servers that were used of late. */
const routesMax = 20_000
/** Headroom is of the provider's current window, which is a minute nearly everywhere. */
const headroomFreshMs = 60 * 1000
/** Replies with tool calls that must have been seen before their outcome counts, its weight, and how long it counts. Ours. */
const toolCallsMin = 5
const toolCallWeight = 0.05
const toolCallsStaleMs = 60 * 60 * 1000
/** Every so many rankings an unmeasured route goes first, or it would never be measured. Ours. */
const probeEvery = 20

export interface DialResult {
  readonly routeId: RouteId
  /** Time to the reply's first byte; not used when the dial failed. */
  readonly latencyMs: number
  readonly ok: boolean
}

/** What is known of a route; null = not measured lately. */
export interface Measurements {
  readonly latencyMs: number | null
  /** 0 to 1. */
  readonly failureRate: number | null
  /** Share of the provider's rate limit that is left, 0 to 1. */
  readonly headroom: number | null
  /** Share of tool calls whose arguments were no JSON, 0 to 1; null = too few seen lately. */
  readonly brokenToolCalls: number | null
}

interface Entry {
  latencyMs: number | null
  failureRate: number
  sampledAtMs: number
  headroom: number | null
  headroomAtMs: number
}

interface ToolCalls {
  readonly seen: number
  readonly brokenShare: number
  readonly atMs: number
}

const nothingMeasured: Measurements = { latencyMs: null, failureRate: null, headroom: null, brokenToolCalls: null }

type ReplyHeaders = Readonly<Record<string, string | string[] | undefined>>

/** Moving averages by route, fed by every dial of this process, and the routes that are withheld for maintenance. */
export class RouteHealth {
  readonly #clock: Clock
  readonly #entries = new LRUCache<RouteId, Entry>({ max: routesMax })
  readonly #toolCalls = new LRUCache<RouteId, ToolCalls>({ max: routesMax })
  readonly #withheldUntilMs = new Map<RouteId, number>()
  #rankings = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  record({ routeId, latencyMs, ok }: DialResult): void {
    const nowMs = this.#clock.nowMs()
    const entry = this.#fresh(routeId, nowMs)
    const failed = ok ? 0 : 1
    if (!entry) {
      this.#entries.set(routeId, { latencyMs: ok ? latencyMs : null, failureRate: failed, sampledAtMs: nowMs, headroom: null, headroomAtMs: 0 })
      return
    }
    if (ok) entry.latencyMs = entry.latencyMs === null ? latencyMs : blend(entry.latencyMs, latencyMs, latencyWeight)
    entry.failureRate = blend(entry.failureRate, failed, failureWeight)
    entry.sampledAtMs = nowMs
  }

  /** Reads the rate-limit headers of a provider's reply, when there are any. */
  noteHeaders(routeId: RouteId, headers: ReplyHeaders): void {
    const share = headroomOf(headers)
    const entry = this.#entries.get(routeId)
    if (share === null || !entry) return
    entry.headroom = share
    entry.headroomAtMs = this.#clock.nowMs()
  }

  /** The provider refused a call as one too many: nothing is left of its rate limit, whatever an earlier reply said. */
  noteLimited(routeId: RouteId): void {
    const entry = this.#entries.get(routeId)
    if (!entry) return
    entry.headroom = 0
    entry.headroomAtMs = this.#clock.nowMs()
  }

  measurements(routeId: RouteId): Measurements {
    const nowMs = this.#clock.nowMs()
    const entry = this.#fresh(routeId, nowMs)
    if (!entry) return this.#toolCalls.has(routeId) ? { ...nothingMeasured, brokenToolCalls: this.#brokenToolCalls(routeId, nowMs) } : nothingMeasured
    return {
      latencyMs: entry.latencyMs,
      failureRate: entry.failureRate,
      headroom: nowMs - entry.headroomAtMs < headroomFreshMs ? entry.headroom : null,
      brokenToolCalls: this.#brokenToolCalls(routeId, nowMs),
    }
  }

  /** A reply called tools; `sound` when the arguments of all of them are JSON. */
  recordToolCalls(routeId: RouteId, sound: boolean): void {
    const nowMs = this.#clock.nowMs()
    const known = this.#toolCalls.get(routeId)
    const before = known !== undefined && nowMs - known.atMs <= toolCallsStaleMs ? known : null
    const sample = sound ? 0 : 1
    const seen = (before?.seen ?? 0) + 1
    // The plain mean at first, so that one broken call among the first is no verdict, then a moving average.
    const brokenShare = before === null ? sample : blend(before.brokenShare, sample, Math.max(1 / seen, toolCallWeight))
    this.#toolCalls.set(routeId, { seen, brokenShare, atMs: nowMs })
  }

  #brokenToolCalls(routeId: RouteId, nowMs: number): number | null {
    const known = this.#toolCalls.get(routeId)
    return known === undefined || known.seen < toolCallsMin || nowMs - known.atMs > toolCallsStaleMs ? null : known.brokenShare
  }

  /** Counts a ranking by measured values; true when this one should try an unmeasured route first. */
  probeIsDue(): boolean {
    this.#rankings = (this.#rankings + 1) % probeEvery
    return this.#rankings === 0
  }

  /** Withholds the platform's route until that instant; a caller's own key is still served. */
  withhold(routeId: RouteId, untilMs: number): void {
    this.#withheldUntilMs.set(routeId, untilMs)
  }

  /** Serves the platform's route again. */
  release(routeId: RouteId): void {
    this.#withheldUntilMs.delete(routeId)
  }

  inMaintenance(routeId: RouteId): boolean {
    const untilMs = this.#withheldUntilMs.get(routeId)
    if (untilMs === undefined) return false
    if (this.#clock.nowMs() < untilMs) return true
    this.#withheldUntilMs.delete(routeId)
    return false
  }

  #fresh(routeId: RouteId, nowMs: number): Entry | undefined {
    const entry = this.#entries.get(routeId)
    if (entry && nowMs - entry.sampledAtMs > staleMs) {
      this.#entries.delete(routeId)
      return undefined
    }
    return entry
  }
}

const blend = (average: number, sample: number, weight: number): number => average + weight * (sample - average)

const limitHeaders = [
  ['x-ratelimit-remaining-requests', 'x-ratelimit-limit-requests'],
  ['x-ratelimit-remaining-tokens', 'x-ratelimit-limit-tokens'],
  ['anthropic-ratelimit-requests-remaining', 'anthropic-ratelimit-requests-limit'],
  ['anthropic-ratelimit-tokens-remaining', 'anthropic-ratelimit-tokens-limit'],
  ['anthropic-ratelimit-input-tokens-remaining', 'anthropic-ratelimit-input-tokens-limit'],
  ['anthropic-ratelimit-output-tokens-remaining', 'anthropic-ratelimit-output-tokens-limit'],
  ['x-ratelimit-remaining', 'x-ratelimit-limit'],
] as const

/** The tightest share that the provider states, 0 to 1; null when it states none. */
export function headroomOf(headers: ReplyHeaders): number | null {
  let tightest: number | null = null
  for (const [remainingName, limitName] of limitHeaders) {
    if (headers[remainingName] === undefined || headers[limitName] === undefined) continue
    const remaining = Number(headers[remainingName])
    const limit = Number(headers[limitName])
    if (!Number.isFinite(remaining) || !(limit > 0)) continue
    const share = Math.min(1, Math.max(0, remaining / limit))
    tightest = tightest === null ? share : Math.min(tightest, share)
  }
  return tightest
}
