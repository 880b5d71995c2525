import { LRUCache } from 'lru-cache'
import type { Clock } from '../../../platform/clock.ts'
import type { RouteId } from '../../catalog/model.ts'
import { type Measurements, nothingMeasured, OwnAverages } from './averages.ts'
import { SharedAverages } from './shared-averages.ts'

export type { Measurements } from './averages.ts'

/** Maximum number of routes whose shared averages are kept: the routes of the catalog, and recently used servers of organisations. */
const routesMax = 20_000
/** Maximum number of organisations whose own averages are kept, and of routes for each organisation. */
const orgsMax = 20_000
const orgRoutesMax = 500
/** In one of this many rankings, unmeasured routes come first. Otherwise they would never be measured. Our choice. */
const probeEvery = 20

export interface DialResult {
  readonly routeId: RouteId
  readonly orgId: number
  /** Milliseconds until the first byte of the reply. It is ignored when the dial failed. */
  readonly latencyMs: number
  readonly ok: boolean
}

/** The measurements of routes as one organisation sees them. */
export interface HealthView {
  measurements(routeId: RouteId): Measurements
  inMaintenance(routeId: RouteId): boolean
  probeIsDue(): boolean
}

type ReplyHeaders = Readonly<Record<string, string | string[] | undefined>>

/**
 * Moving averages for each route, updated by every dial of this process, and the quarantined routes. The ranking for an organisation uses its own
 * measurements and those that several founders agree on. A founder is the person who created an organisation. The calls of one founder therefore do
 * not affect other founders. Decision 0465 gives the reasons.
 */
export class RouteHealth {
  readonly #clock: Clock
  readonly #founderOf: (orgId: number) => string
  readonly #own = new LRUCache<number, Map<RouteId, OwnAverages>>({ max: orgsMax })
  readonly #shared = new LRUCache<RouteId, SharedAverages>({ max: routesMax })
  readonly #withheldUntilMs = new Map<RouteId, number>()
  #rankings = 0

  /** `founderOf` returns the founder of an organisation. When absent, each organisation is its own founder. */
  constructor(clock: Clock, founderOf: (orgId: number) => string = String) {
    this.#clock = clock
    this.#founderOf = founderOf
  }

  /** Returns the measurements of routes as one organisation sees them. */
  of(orgId: number): HealthView {
    return {
      measurements: routeId => this.#measurements(routeId, this.#own.get(orgId)?.get(routeId)),
      inMaintenance: routeId => this.inMaintenance(routeId),
      probeIsDue: () => this.probeIsDue(),
    }
  }

  /** Adds the result of a dial. */
  record({ routeId, orgId, latencyMs, ok }: DialResult): void {
    const nowMs = this.#clock.nowMs()
    this.#ownOf(orgId, routeId).add(ok ? latencyMs : null, nowMs)
    this.#sharedOf(routeId).add(this.#founderOf(orgId), ok ? latencyMs : null, nowMs)
  }

  /** Reads the rate-limit headers of a provider's reply, if there are any. */
  noteHeaders(routeId: RouteId, orgId: number, headers: ReplyHeaders): void {
    const share = headroomOf(headers)
    if (share === null) return
    this.#ownOf(orgId, routeId).limitedAtMs = Number.NEGATIVE_INFINITY
    this.#sharedOf(routeId).noteHeadroom(share, this.#clock.nowMs())
  }

  /** Records that the provider refused a call with 429. For this organisation nothing is left of the rate limit, even if an earlier reply stated more. */
  noteLimited(routeId: RouteId, orgId: number): void {
    const nowMs = this.#clock.nowMs()
    this.#ownOf(orgId, routeId).limitedAtMs = nowMs
    this.#sharedOf(routeId).noteLimited(this.#founderOf(orgId), nowMs)
  }

  /** Records a reply that called tools. `sound` is true when all arguments are valid JSON. */
  recordToolCalls(routeId: RouteId, orgId: number, sound: boolean): void {
    const nowMs = this.#clock.nowMs()
    this.#ownOf(orgId, routeId).toolCalls.add(sound, nowMs)
    this.#sharedOf(routeId).toolCalls.of(this.#founderOf(orgId)).add(sound, nowMs)
  }

  /** Counts one ranking by measured values. Returns true when unmeasured routes should come first in this ranking. */
  probeIsDue(): boolean {
    this.#rankings = (this.#rankings + 1) % probeEvery
    return this.#rankings === 0
  }

  /** Removes the platform's route from all plans until the given time. Calls on own keys still use the route. */
  withhold(routeId: RouteId, untilMs: number): void {
    this.#withheldUntilMs.set(routeId, untilMs)
  }

  /** Puts the platform's route back into plans. */
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

  /**
   * Uses the organisation's own latency if there is one. For failures and broken tool calls, uses the larger of the organisation's own share and the
   * shared one.
   */
  #measurements(routeId: RouteId, own: OwnAverages | undefined): Measurements {
    const shared = this.#shared.get(routeId)
    if (shared === undefined) return nothingMeasured
    const nowMs = this.#clock.nowMs()
    return {
      latencyMs: own?.latencyMs(nowMs) ?? shared.latency.value(nowMs),
      failureRate: larger(own?.failureRate(nowMs) ?? null, shared.failureRate(nowMs)),
      headroom: shared.headroom(own?.limitedAtMs ?? Number.NEGATIVE_INFINITY, nowMs),
      brokenToolCalls: larger(own?.toolCalls.of(nowMs) ?? null, shared.toolCalls.value(nowMs)),
    }
  }

  #ownOf(orgId: number, routeId: RouteId): OwnAverages {
    const routes = this.#own.get(orgId) ?? new Map<RouteId, OwnAverages>()
    const known = routes.get(routeId)
    if (known !== undefined) return known
    const made = new OwnAverages()
    const [first] = routes.keys()
    if (routes.size >= orgRoutesMax && first !== undefined) routes.delete(first)
    this.#own.set(orgId, routes.set(routeId, made))
    return made
  }

  #sharedOf(routeId: RouteId): SharedAverages {
    const known = this.#shared.get(routeId)
    if (known !== undefined) return known
    const made = new SharedAverages()
    this.#shared.set(routeId, made)
    return made
  }
}

const larger = (a: number | null, b: number | null): number | null => (a === null || b === null ? (a ?? b) : Math.max(a, b))

const limitHeaders = [
  ['x-ratelimit-remaining-requests', 'x-ratelimit-limit-requests'],
  ['x-ratelimit-remaining-tokens', 'x-ratelimit-limit-tokens'],
  ['anthropic-ratelimit-requests-remaining', 'anthropic-ratelimit-requests-limit'],
  ['anthropic-ratelimit-tokens-remaining', 'anthropic-ratelimit-tokens-limit'],
  ['anthropic-ratelimit-input-tokens-remaining', 'anthropic-ratelimit-input-tokens-limit'],
  ['anthropic-ratelimit-output-tokens-remaining', 'anthropic-ratelimit-output-tokens-limit'],
  ['x-ratelimit-remaining', 'x-ratelimit-limit'],
] as const

/** Returns the smallest remaining share that the headers state, 0 to 1. Returns null when they state none. */
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
