/** Keeps a conversation on the route whose cache has its prompt, and on the model that a preset has picked for it. Decision 0803 gives the reasons. */
import type { Clock } from '../../../platform/clock.ts'
import type { ControlLog } from '../../../platform/db/db-control-log.ts'
import { orgRoutingChanged } from '../../byok/org-credentials.ts'
import { type Route, type RouteId, stateKeyOf } from '../../catalog/model.ts'
import type { TokenUsage } from '../../wire/usage.ts'
import type { RouteCircuits } from '../circuits/route-circuits.ts'
import type { RouteHealth } from '../circuits/route-health.ts'
import type { Attempt, Plan, ResolveRequest } from '../plan.ts'
import type { Conversation } from './conversation.ts'
import { type StickyEntry, StickyTable } from './sticky-table.ts'

/** How long a provider keeps the beginning of a prompt when neither the catalog nor the request says more. */
const cacheTtlSeconds = 5 * 60
/** How long it keeps one that the request marks for longer. */
const longCacheTtlSeconds = 60 * 60
/** A warm route may be this much dearer than another one is expected to be. Our choice. */
const slack = 1.1

/** What a reply says about its conversation. `hit`: served where it was before. `new`: remembered from here on. `moved`: served elsewhere. */
export type StickyState = 'hit' | 'new' | 'moved'

export interface StickyRoutesDeps {
  readonly clock: Pick<Clock, 'nowMs'>
  readonly circuits: Pick<RouteCircuits, 'isOpen'>
  readonly health: Pick<RouteHealth, 'of' | 'inMaintenance'>
  readonly controlLog: Pick<ControlLog, 'on' | 'onGap'>
}

/** The part of a request that decides how its conversation is remembered. */
export type StickyRequest = Pick<ResolveRequest, 'modelId' | 'fields' | 'org'>

/** The conversations of this process. Those of an organisation are forgotten when its keys, servers or chains change. */
export class StickyRoutes {
  readonly #deps: StickyRoutesDeps
  readonly #table: StickyTable

  constructor(deps: StickyRoutesDeps, table = new StickyTable()) {
    this.#deps = deps
    this.#table = table
    deps.controlLog.on(news => {
      if (news.kind === orgRoutingChanged) table.forget(Number(news.ref))
    })
    deps.controlLog.onGap(() => table.clear())
  }

  /** Returns the call as a part of its conversation. `picksModel` says that a preset picks the model of the call. */
  begin(request: StickyRequest, conversation: Conversation, picksModel: boolean): StickyCall {
    return new StickyCall(this.#deps, this.#table, { request, conversation, picksModel })
  }
}

interface StickyCallInput {
  readonly request: StickyRequest
  readonly conversation: Conversation
  readonly picksModel: boolean
}

/** One call of a conversation. */
export class StickyCall {
  readonly #deps: StickyRoutesDeps
  readonly #table: StickyTable
  readonly #input: StickyCallInput
  readonly #orgId: number
  readonly #entry: StickyEntry | null
  /** True when the rules of this call keep it from the remembered route. The conversation itself stays there. */
  #isApart = false

  constructor(deps: StickyRoutesDeps, table: StickyTable, input: StickyCallInput) {
    this.#deps = deps
    this.#table = table
    this.#input = input
    this.#orgId = input.request.org.orgId
    const key = input.conversation.goesOn() ? this.#key() : null
    this.#entry = key === null ? null : table.get(this.#orgId, key, deps.clock.nowMs())
  }

  /** The model that a preset has picked for the conversation. Null when there is none yet, or the request names its model. */
  get keptModel(): string | null {
    return this.#input.picksModel ? (this.#entry?.modelId ?? null) : null
  }

  /** Returns the plan with the warm route first, if staying is worth it. It adds no attempt and removes none. */
  order(plan: Plan): Plan {
    const entry = this.#entry
    const [first] = plan.attempts
    if (entry === null || first === undefined) return plan
    if (!plan.attempts.some(attempt => isOf(attempt, entry))) {
      this.#isApart = isConstrained(this.#input.request) && !this.#isBroken(entry.stateKey)
      return plan
    }
    if (entry.stateKey === null || isOf(first, entry) || this.#isBroken(entry.stateKey)) return plan
    const warm = plan.attempts.filter(attempt => isOf(attempt, entry))
    const [sticky] = warm
    // A conversation never changes from a credential of its own to the platform's account.
    if (sticky === undefined || sticky.byok !== first.byok || sticky.afterRateLimit === true || first.forwarded === true) return plan
    if (!isWorthStaying(sticky.route, first.route, entry.cachedShare)) return plan
    return { ...plan, attempts: [...warm, ...plan.attempts.filter(attempt => !isOf(attempt, entry))] }
  }

  /** The plan of the conversation cannot serve this call, so the call goes its own way. The conversation follows it. */
  leave(): void {
    this.#isApart = false
  }

  /** Returns what the head of a reply says. `usage` is null for a stream, whose usage is not known yet. */
  stateOf(attempt: Attempt, usage: TokenUsage | null): StickyState | null {
    if (this.#isApart) return null
    if (this.#entry !== null) return isOf(attempt, this.#entry) ? 'hit' : 'moved'
    return (this.#input.picksModel || this.#keepsRoute(attempt.route, usage)) && this.#key() !== null ? 'new' : null
  }

  /** The route has served the call. `asksLongCache` returns true when the request wants its prompt kept for longer. */
  served({ route, model }: Attempt, usage: TokenUsage, asksLongCache: () => boolean): void {
    if (this.#isApart) return
    const { picksModel } = this.#input
    const keepsRoute = this.#keepsRoute(route, usage)
    // Most calls without an id end here, and no id is made for them.
    const key = keepsRoute || picksModel || this.#entry !== null ? this.#key() : null
    if (key === null) return
    const nowMs = this.#deps.clock.nowMs()
    const stateKey = stateKeyOf(route)
    const current = this.#table.get(this.#orgId, key, nowMs)
    // Another call of the conversation has moved meanwhile. This one was served at the old place and must not move it back.
    if (current !== null && current.stateKey !== stateKey && this.#entry?.stateKey === stateKey) return
    if (!keepsRoute && !picksModel) {
      if (current !== null && current.stateKey !== stateKey) this.#table.delete(this.#orgId, key)
      return
    }
    const ttlSeconds = ttlSecondsOf(route, asksLongCache)
    this.#table.set(this.#orgId, key, {
      modelId: model.id,
      stateKey: keepsRoute ? stateKey : null,
      cachedShare: cachedShareOf(usage),
      expiresAtMs: nowMs + ttlSeconds * 1000,
    })
  }

  /** The key of the conversation in the table. Null when the call belongs to none. */
  #key(): string | null {
    const { request, conversation } = this.#input
    const id = conversation.id()
    return id === null ? null : `${request.modelId}\n${id}`
  }

  /** A conversation without a name of its own is kept once the cache of the route was used. */
  #keepsRoute(route: Route, usage: TokenUsage | null): boolean {
    if (!gainsByStaying(route)) return false
    const usesCache = usage !== null && usage.cachedTokens + usage.cacheWriteTokens > 0
    return this.#input.conversation.named !== null || usesCache || this.#entry?.stateKey === stateKeyOf(route)
  }

  /** Returns true when the route must be left: its circuit is open, it is withheld, or its provider has refused this organisation with 429 in the last minute. */
  #isBroken(stateKey: RouteId | null): boolean {
    if (stateKey === null) return false
    const { clock, circuits, health } = this.#deps
    if (health.inMaintenance(stateKey) || circuits.isOpen(stateKey, this.#orgId, clock.nowMs())) return true
    return health.of(this.#orgId).measurements(stateKey).headroom === 0
  }
}

const isOf = ({ route, model }: Attempt, { modelId, stateKey }: StickyEntry): boolean =>
  model.id === modelId && (stateKey === null || stateKeyOf(route) === stateKey)

/** Returns true when fields of this one request may exclude a route that other calls of the conversation may use. */
const isConstrained = ({ fields }: StickyRequest): boolean =>
  fields.indiaOnly || fields.exclude.length > 0 || fields.provider !== null || fields.upstreamKey !== null

/** Returns true when a warm cache saves money, or time on a server of one's own. */
export const gainsByStaying = ({ provider, price: { inputUinrPerMtok, cachedInputUinrPerMtok } }: Route): boolean =>
  provider.userGiven === true || provider.forwards === 'all' || (cachedInputUinrPerMtok !== null && cachedInputUinrPerMtok < inputUinrPerMtok)

/** Returns true when the prompt is expected to cost at most a tenth more on the warm route than on the other one. */
function isWorthStaying(warm: Route, other: Route, cachedShare: number): boolean {
  const input = Number(warm.price.inputUinrPerMtok)
  const cached = Number(warm.price.cachedInputUinrPerMtok ?? warm.price.inputUinrPerMtok)
  return cachedShare * cached + (1 - cachedShare) * input <= Number(other.price.inputUinrPerMtok) * slack
}

/** Returns the share of the prompt that the cache of the route has after the call. */
function cachedShareOf({ promptTokens, cachedTokens, cacheWriteTokens }: TokenUsage): number {
  return promptTokens > 0 ? Math.min(1, (cachedTokens + cacheWriteTokens) / promptTokens) : 0
}

function ttlSecondsOf({ price, cacheTtlSeconds: known = cacheTtlSeconds }: Route, asksLongCache: () => boolean): number {
  // Only such routes keep a prompt for longer, so only their requests are searched for the mark.
  return price.cacheWriteLongUinrPerMtok !== undefined && asksLongCache() ? Math.max(known, longCacheTtlSeconds) : known
}
