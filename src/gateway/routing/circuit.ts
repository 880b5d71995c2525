import { LRUCache } from 'lru-cache'
import type { Clock } from '../../platform/clock.ts'
import type { RouteId } from '../catalog/model.ts'

/** Breaker of one route. Closed without an `openUntilMs`; half-open once that instant has passed. */
export interface CircuitState {
  /** Consecutive failures. */
  readonly failures: number
  readonly openUntilMs: number | null
}

export interface CircuitRule {
  /** Consecutive failures that open it (CIRCUIT_FAILURES). */
  readonly failuresToOpen: number
  /** How long it stays open before a probe (CIRCUIT_OPEN_MS). */
  readonly openMs: number
}

/** Most routes whose failures are remembered. */
const routesMax = 20_000

export const closedCircuit: CircuitState = { failures: 0, openUntilMs: null }

/**
 * The state after a failure: closed counts up and opens at the limit, half-open opens again at once, open stays as it is, because a
 * dial of a route whose circuit is open (nothing else was left) must not push its probe away.
 */
export function afterFailure(state: CircuitState, nowMs: number, rule: CircuitRule): CircuitState {
  const failures = state.failures + 1
  if (state.openUntilMs !== null) return nowMs < state.openUntilMs ? { ...state, failures } : { failures, openUntilMs: nowMs + rule.openMs }
  return { failures, openUntilMs: failures >= rule.failuresToOpen ? nowMs + rule.openMs : null }
}

/** A success closes any circuit and forgets its failures. */
export const afterSuccess = (): CircuitState => closedCircuit

/** Open, as opposed to closed or half-open. */
export const isCircuitOpen = (state: CircuitState, nowMs: number): boolean => state.openUntilMs !== null && nowMs < state.openUntilMs

export interface CircuitsOptions {
  readonly clock: Clock
  readonly rule: CircuitRule
  /** Called when a circuit goes from closed to open; not when a failed probe opens it again. */
  readonly onOpen?: (routeId: RouteId) => void
}

/**
 * The circuits of every route of this process. Who reports decides what counts: client errors and calls that the client abandoned are
 * reported as nothing at all.
 */
export class Circuits {
  readonly #options: CircuitsOptions
  /** Only routes with failures are kept. Organisations' own servers come and go, so the catalog alone does not bound them. */
  readonly #states = new LRUCache<RouteId, CircuitState>({ max: routesMax })
  readonly #limitedOnce = new LRUCache<RouteId, true>({ max: routesMax })

  constructor(options: CircuitsOptions) {
    this.#options = options
  }

  success(routeId: RouteId): void {
    this.#states.delete(routeId)
    this.#limitedOnce.delete(routeId)
  }

  failure(routeId: RouteId): void {
    const { clock, rule, onOpen } = this.#options
    const before = this.#stateOf(routeId)
    const after = afterFailure(before, clock.nowMs(), rule)
    this.#states.set(routeId, after)
    if (before.openUntilMs === null && after.openUntilMs !== null) onOpen?.(routeId)
  }

  /** A provider's 429: a single one is load, not sickness; from the second in a row on it is a failure. */
  rateLimited(routeId: RouteId): void {
    if (this.#limitedOnce.has(routeId)) this.failure(routeId)
    else this.#limitedOnce.set(routeId, true)
  }

  isOpen(routeId: RouteId, nowMs: number): boolean {
    return isCircuitOpen(this.#stateOf(routeId), nowMs)
  }

  /** The public flag: true while closed and again once the open time has passed. */
  available(routeId: RouteId): boolean {
    return !this.isOpen(routeId, this.#options.clock.nowMs())
  }

  /** Routes whose circuit is open now. */
  openRoutes(): readonly RouteId[] {
    const nowMs = this.#options.clock.nowMs()
    return [...this.#states].filter(([, state]) => isCircuitOpen(state, nowMs)).map(([id]) => id)
  }

  #stateOf(routeId: RouteId): CircuitState {
    return this.#states.get(routeId) ?? closedCircuit
  }
}
