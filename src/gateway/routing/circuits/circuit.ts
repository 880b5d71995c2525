import { LRUCache } from 'lru-cache'
import type { Clock } from '../../../platform/clock.ts'
import type { RouteId } from '../../catalog/model.ts'

/**
 * The state of one circuit. The circuit is closed when `openUntilMs` is null, open until that time, and half-open after it. Decision 0044 gives the
 * reasons.
 */
export interface CircuitState {
  /** Consecutive failures. */
  readonly failures: number
  readonly openUntilMs: number | null
}

export interface CircuitRule {
  /** Consecutive failures that open the circuit (CIRCUIT_FAILURES). */
  readonly failuresToOpen: number
  /** How long the circuit stays open before a probe, in milliseconds (CIRCUIT_OPEN_MS). */
  readonly openMs: number
}

/** The assumed maximum delay of an event from another process, in milliseconds. */
const newsDelayMs = 2_000
/** Maximum number of routes whose failures are remembered. */
const routesMax = 20_000

export const closedCircuit: CircuitState = { failures: 0, openUntilMs: null }

/**
 * Returns the state after a failure. A closed circuit counts the failure and opens at the limit. A half-open circuit opens again immediately. An open
 * circuit keeps its end time: calls without another route may dial an open route, and such a failure must not delay the probe.
 */
export function afterFailure(state: CircuitState, nowMs: number, rule: CircuitRule): CircuitState {
  const failures = state.failures + 1
  if (state.openUntilMs !== null) return nowMs < state.openUntilMs ? { ...state, failures } : { failures, openUntilMs: nowMs + rule.openMs }
  return { failures, openUntilMs: failures >= rule.failuresToOpen ? nowMs + rule.openMs : null }
}

/** Returns the state after a success: closed, without failures. */
export const afterSuccess = (): CircuitState => closedCircuit

/** Returns whether the circuit is open, as opposed to closed or half-open. */
export const isCircuitOpen = (state: CircuitState, nowMs: number): boolean => state.openUntilMs !== null && nowMs < state.openUntilMs

/** `reopened` means that a failed probe has opened the circuit again. */
export type CircuitChange = 'opened' | 'reopened' | 'closed'

export interface CircuitsOptions {
  readonly clock: Clock
  readonly rule: CircuitRule
  /** Is called with the new state when a dial of this process opens or closes a circuit. Reports of other processes do not cause this call. */
  readonly onChange?: (routeId: RouteId, change: CircuitChange, state: CircuitState) => void
}

/**
 * The circuits of all routes as this process knows them, from its own dials and from reports of other processes. The caller decides which results
 * count. It does not report client errors, or calls that the client abandoned.
 */
export class Circuits {
  readonly #options: CircuitsOptions
  /** Contains only routes with failures. It needs a bound because organisations add and remove their own servers. */
  readonly #states = new LRUCache<RouteId, CircuitState>({ max: routesMax })
  /** The time in Unix milliseconds until which the probe of a half-open circuit may run. Until then, the circuit is open for all other calls. */
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
   * Must be called before each dial. The first dial of a half-open circuit is the probe. While the probe runs, this returns false for every other
   * dial, and those calls try another route first. A probe without a result ends after the open time. The next dial then becomes the probe.
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

  /** Reports that the dial gave no information about the route. If it was the probe, the next dial becomes the probe. */
  undecided(routeId: RouteId): void {
    if (this.#probes.size > 0) this.#probes.delete(routeId)
  }

  /** True when no route has failed recently, so that the caller can skip all checks. */
  get isQuiet(): boolean {
    return this.#states.size === 0 && this.#limitedOnce.size === 0
  }

  /** Returns whether the circuit is not closed: it is open or half-open. */
  isKnown(routeId: RouteId): boolean {
    return this.#stateOf(routeId).openUntilMs !== null
  }

  /** Opens the circuit, or opens it again when it is half-open. An open circuit stays as it is. */
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

  /** Records that another process has opened the circuit. The circuit stays open for `remainingMs` from now. */
  openedElsewhere(routeId: RouteId, remainingMs: number): void {
    const { clock, rule } = this.#options
    const openUntilMs = clock.nowMs() + Math.min(remainingMs, rule.openMs)
    const { failures, openUntilMs: known } = this.#stateOf(routeId)
    if (known !== null && known >= openUntilMs) return
    this.#states.set(routeId, { failures: Math.max(failures, rule.failuresToOpen), openUntilMs })
    this.#probes.delete(routeId)
  }

  /**
   * Records that another process has had a success on the route. The event is ignored when this process opened the circuit only a moment ago, because
   * the success is probably older than the opening.
   */
  closedElsewhere(routeId: RouteId): void {
    const { openMs } = this.#options.rule
    const openedAgoMs = openMs - this.remainingMs(routeId)
    if (openedAgoMs < Math.min(newsDelayMs, openMs / 2)) return
    this.#close(routeId)
  }

  /** Returns for how many milliseconds the circuit stays open. 0 when it is not open. */
  remainingMs(routeId: RouteId): number {
    return Math.max(0, (this.#stateOf(routeId).openUntilMs ?? 0) - this.#options.clock.nowMs())
  }

  /**
   * Reports a 429 of the provider. A single 429 is a sign of load and does not count. The second in a row, and each one after it, counts as a
   * failure. The function then returns true.
   */
  rateLimited(routeId: RouteId): boolean {
    const isFailure = this.#limitedOnce.has(routeId)
    if (isFailure) this.failure(routeId)
    else {
      this.#limitedOnce.set(routeId, true)
      this.undecided(routeId)
    }
    return isFailure
  }

  /** Returns whether a call should try other routes first. That is so when the circuit is open, or when it is half-open and its probe is running. */
  isOpen(routeId: RouteId, nowMs: number): boolean {
    const state = this.#states.get(routeId)
    return state !== undefined && state.openUntilMs !== null && (nowMs < state.openUntilMs || this.#isProbed(routeId, nowMs))
  }

  /** Returns the public flag. It is false while the circuit is open, and true while it is closed or half-open. */
  available(routeId: RouteId): boolean {
    return !isCircuitOpen(this.#stateOf(routeId), this.#options.clock.nowMs())
  }

  /** Returns the routes whose circuit is open now. */
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
