import { LRUCache } from 'lru-cache'
import type { Clock } from '../../../platform/clock.ts'
import type { RouteId } from '../../catalog/model.ts'
import { type Measurements, nothingMeasured, OwnAverages } from './averages.ts'
import { SharedAverages } from './shared-averages.ts'

export type { Measurements } from './averages.ts'

/** Most routes whose averages are kept: the catalog's, and organisations' own servers that were used of late. */
const routesMax = 20_000
/** Most organisations whose own averages are kept, and routes of each. */
const orgsMax = 20_000
const orgRoutesMax = 500
/** Every so many rankings an unmeasured route goes first, or it would never be measured. Ours. */
const probeEvery = 20

export interface DialResult {
  readonly routeId: RouteId
  readonly orgId: number
  /** Time to the reply's first byte; not used when the dial failed. */
  readonly latencyMs: number
  readonly ok: boolean
}

/** What is known of routes to one organisation. */
export interface HealthView {
  measurements(routeId: RouteId): Measurements
  inMaintenance(routeId: RouteId): boolean
  probeIsDue(): boolean
}

type ReplyHeaders = Readonly<Record<string, string | string[] | undefined>>

/**
 * Moving averages by route, fed by every dial of this process, and the routes that are withheld for maintenance. An organisation goes by what
 * it has seen itself and by what several founders have seen: the calls of one founder move nobody else. Decision 0465 says why.
 */
export class RouteHealth {
  readonly #clock: Clock
  readonly #founderOf: (orgId: number) => string
  readonly #own = new LRUCache<number, Map<RouteId, OwnAverages>>({ max: orgsMax })
  readonly #shared = new LRUCache<RouteId, SharedAverages>({ max: routesMax })
  readonly #withheldUntilMs = new Map<RouteId, number>()
  #rankings = 0

  /** `founderOf` says who founded an organisation. Left out: each organisation has a founder of its own. */
  constructor(clock: Clock, founderOf: (orgId: number) => string = String) {
    this.#clock = clock
    this.#founderOf = founderOf
  }

  /** What is known of routes to one organisation. */
  of(orgId: number): HealthView {
    return {
      measurements: routeId => this.#measurements(routeId, this.#own.get(orgId)?.get(routeId)),
      inMaintenance: routeId => this.inMaintenance(routeId),
      probeIsDue: () => this.probeIsDue(),
    }
  }

  /** Adds what a dial came to. */
  record({ routeId, orgId, latencyMs, ok }: DialResult): void {
    const nowMs = this.#clock.nowMs()
    this.#ownOf(orgId, routeId).add(ok ? latencyMs : null, nowMs)
    this.#sharedOf(routeId).add(this.#founderOf(orgId), ok ? latencyMs : null, nowMs)
  }

  /** Reads the rate-limit headers of a provider's reply, when there are any. */
  noteHeaders(routeId: RouteId, orgId: number, headers: ReplyHeaders): void {
    const share = headroomOf(headers)
    if (share === null) return
    this.#ownOf(orgId, routeId).limitedAtMs = Number.NEGATIVE_INFINITY
    this.#sharedOf(routeId).noteHeadroom(share, this.#clock.nowMs())
  }

  /** The provider refused a call as one too many: nothing is left of its rate limit for this organisation, whatever an earlier reply said. */
  noteLimited(routeId: RouteId, orgId: number): void {
    const nowMs = this.#clock.nowMs()
    this.#ownOf(orgId, routeId).limitedAtMs = nowMs
    this.#sharedOf(routeId).noteLimited(this.#founderOf(orgId), nowMs)
  }

  /** A reply called tools; `sound` when the arguments of all of them are JSON. */
  recordToolCalls(routeId: RouteId, orgId: number, sound: boolean): void {
    const nowMs = this.#clock.nowMs()
    this.#ownOf(orgId, routeId).toolCalls.add(sound, nowMs)
    this.#sharedOf(routeId).toolCalls.of(this.#founderOf(orgId)).add(sound, nowMs)
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

  /** Its own latency where it has measured one; of failures and broken tool calls whatever is worse, its own share or that of all. */
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
