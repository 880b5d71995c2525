import { LRUCache } from 'lru-cache'
import type { Clock } from '../../../platform/clock.ts'
import type { RouteId } from '../../catalog/model.ts'

/** Breaker of one route. Closed without an `openUntilMs`; half-open once that instant has passed. Decision 0044 says why. */
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

/** How old news of another process may be. */
const newsDelayMs = 2_000
/** Most routes whose failures are remembered. */
const routesMax = 20_000

export const closedCircuit: CircuitState = { failures: 0, openUntilMs: null }

/**
 * The state after a failure: closed counts up and opens at the limit, half-open opens again immediately, open stays as it is, because a
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

/** `reopened`: a failed probe has opened it again. */
export type CircuitChange = 'opened' | 'reopened' | 'closed'

export interface CircuitsOptions {
  readonly clock: Clock
  readonly rule: CircuitRule
  /** Called with the new state when a dial of this process has opened or closed a circuit, never for what another process told. */
  readonly onChange?: (routeId: RouteId, change: CircuitChange, state: CircuitState) => void
}

/**
 * The circuits of every route as this process knows them: from its own dials and from what other processes tell. Who reports decides what
 * counts: client errors and calls that the client abandoned are reported as nothing at all.
 */
export class Circuits {
  readonly #options: CircuitsOptions
  /** Only routes with failures are kept. Organisations' own servers come and go, so the catalog alone does not bound them. */
  readonly #states = new LRUCache<RouteId, CircuitState>({ max: routesMax })
  /** Until when the probe of a half-open circuit may take; until then it is open for all others. */
  readonly #probes = new Map<RouteId, number>()
  readonly #limitedOnce = new LRUCache<RouteId, true>({ max: routesMax })

  constructor(options: CircuitsOptions) {
    this.#options = options
  }

  success(routeId: RouteId): void {
    this.#limitedOnce.delete(routeId)
    const before = this.#states.get(routeId)
    if (before === undefined) return
    this.#close(routeId)
    if (before.openUntilMs !== null) this.#options.onChange?.(routeId, 'closed', closedCircuit)
  }

  failure(routeId: RouteId): void {
    const { clock, rule, onChange } = this.#options
    const before = this.#stateOf(routeId)
    const after = afterFailure(before, clock.nowMs(), rule)
    this.#states.set(routeId, after)
    if (after.openUntilMs === before.openUntilMs) return
    this.#probes.delete(routeId)
    onChange?.(routeId, before.openUntilMs === null ? 'opened' : 'reopened', after)
  }

  /**
   * A dial is about to begin. Of a half-open circuit the first one is the probe, and false tells every other that a probe is under way:
   * dial something else first. A probe that reports nothing loses its right after the open time.
   */
  begins(routeId: RouteId): boolean {
    const openUntilMs = this.#states.get(routeId)?.openUntilMs ?? null
    if (openUntilMs === null) return true
    const nowMs = this.#options.clock.nowMs()
    if (nowMs < openUntilMs) return true
    if (this.#isProbed(routeId, nowMs)) return false
    this.#probes.set(routeId, nowMs + this.#options.rule.openMs)
    return true
  }

  /** The dial said nothing of the route: if it was the probe, the next one is. */
  undecided(routeId: RouteId): void {
    if (this.#probes.size > 0) this.#probes.delete(routeId)
  }

  /** Nothing has failed lately: there is no circuit to look at. */
  get isQuiet(): boolean {
    return this.#states.size === 0 && this.#limitedOnce.size === 0
  }

  /** Whether its circuit has opened and not closed since: it is open or half-open. */
  isKnown(routeId: RouteId): boolean {
    return this.#stateOf(routeId).openUntilMs !== null
  }

  /** Opens the circuit now, or again when it is half-open; one that is open stays as it is. */
  open(routeId: RouteId): void {
    const { clock, rule, onChange } = this.#options
    const { failures, openUntilMs } = this.#stateOf(routeId)
    const nowMs = clock.nowMs()
    if (openUntilMs !== null && nowMs < openUntilMs) return
    const state = { failures: Math.max(failures, rule.failuresToOpen), openUntilMs: nowMs + rule.openMs }
    this.#states.set(routeId, state)
    this.#probes.delete(routeId)
    onChange?.(routeId, openUntilMs === null ? 'opened' : 'reopened', state)
  }

  /** Another process has opened the circuit, for so long from now. */
  openedElsewhere(routeId: RouteId, remainingMs: number): void {
    const { clock, rule } = this.#options
    const openUntilMs = clock.nowMs() + Math.min(remainingMs, rule.openMs)
    const { failures, openUntilMs: known } = this.#stateOf(routeId)
    if (known !== null && known >= openUntilMs) return
    this.#states.set(routeId, { failures: Math.max(failures, rule.failuresToOpen), openUntilMs })
    this.#probes.delete(routeId)
  }

  /** Another process has seen the route serve: before this one opened the circuit, if that was only just now, as news take a moment. */
  closedElsewhere(routeId: RouteId): void {
    const { openMs } = this.#options.rule
    const openedAgoMs = openMs - this.remainingMs(routeId)
    if (openedAgoMs < Math.min(newsDelayMs, openMs / 2)) return
    this.#close(routeId)
  }

  /** How long it stays open from now on; 0 when it is not. */
  remainingMs(routeId: RouteId): number {
    return Math.max(0, (this.#stateOf(routeId).openUntilMs ?? 0) - this.#options.clock.nowMs())
  }

  /** A provider's 429: a single one is load, not sickness; from the second in a row on it is a failure, and the answer is true. */
  rateLimited(routeId: RouteId): boolean {
    const isFailure = this.#limitedOnce.has(routeId)
    if (isFailure) this.failure(routeId)
    else {
      this.#limitedOnce.set(routeId, true)
      this.undecided(routeId)
    }
    return isFailure
  }

  /** Whether a call should go elsewhere first: open, or half-open with its one probe under way. */
  isOpen(routeId: RouteId, nowMs: number): boolean {
    const state = this.#states.get(routeId)
    return state !== undefined && state.openUntilMs !== null && (nowMs < state.openUntilMs || this.#isProbed(routeId, nowMs))
  }

  /** The public flag: true while closed and again once the open time has passed. */
  available(routeId: RouteId): boolean {
    return !isCircuitOpen(this.#stateOf(routeId), this.#options.clock.nowMs())
  }

  /** Routes whose circuit is open now. */
  openRoutes(): readonly RouteId[] {
    const nowMs = this.#options.clock.nowMs()
    return [...this.#states].filter(([, state]) => isCircuitOpen(state, nowMs)).map(([id]) => id)
  }

  #close(routeId: RouteId): void {
    this.#states.delete(routeId)
    this.#probes.delete(routeId)
  }

  #isProbed(routeId: RouteId, nowMs: number): boolean {
    const untilMs = this.#probes.get(routeId)
    return untilMs !== undefined && nowMs < untilMs
  }

  #stateOf(routeId: RouteId): CircuitState {
    return this.#states.get(routeId) ?? closedCircuit
  }
}
