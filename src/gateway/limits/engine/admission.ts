/**
 * What the inference pipeline asks of limits and budgets. The rules behind it (leases, holds, journal) are in allowances.ts and
 * journal.ts; the pipeline sees only these types.
 */
import type { BearerPrincipal, CallPolicy } from '../../../platform/security/principal.ts'
import type { Scope } from './counters/counter-state.ts'

/** A charged event as limits needs it: the whole event goes through the journal as plain JSON values (bigint allowed). */
export interface ChargedEvent {
  /** UUIDv7, made at admission. */
  readonly id: string
  /** What budgets count. */
  readonly valueUinr: bigint
  /** What the prepaid balance is debited: 0 on the caller's own provider key. */
  readonly costUinr: bigint
}

export interface AdmissionRequest {
  readonly principal: BearerPrincipal
  readonly eventId: string
  /** The agent that is charged: the token's, or the registered one that x-br-agent-id names; null = none. */
  readonly agentId: number | null
  /** Ancestors of that agent, nearest first, at most 3. */
  readonly agentAncestorIds: readonly number[]
  /** The team that a `team` budget binds; absent or null = none. */
  readonly teamId?: number | null
  /** What is ruled for this call; limits read `maxConcurrency`. Absent = nothing. */
  readonly policies?: readonly CallPolicy[]
  /** The hold: what the dearest route of the plan may cost at first. */
  readonly needUinr: bigint
  /** The worst case of the call, which a strict budget holds in full. */
  readonly worstUinr: bigint
  /**
   * The least that a strict budget may hold instead where its rest does not cover the worst case: the call is then bound to `strictUinr` of its permit.
   * Left out: the call cannot be bound.
   */
  readonly leastUinr?: bigint | undefined
  /** What the dearest route that debits the prepaid balance may cost at first; null or absent: none of them does. */
  readonly debitUinr?: bigint | null
}

/** What refused to cover more of a call: a budget, or the prepaid balance. */
export type RefusedBy = Scope | 'prepaid'

/**
 * A call's hold in every counter that binds it. Exactly one of `settle` or `release` is called, once.
 * Amounts are totals of the call, never differences.
 */
export interface Permit<E extends ChargedEvent = ChargedEvent> {
  readonly eventId: string
  /** What the call may cost as things stand. After a refused `extendTo` it may be more than before and less than asked: what was left. */
  readonly heldUinr: bigint
  /** What refused the last `extendTo`; null when nothing did, for example because the database could not be asked. */
  readonly refusedBy: RefusedBy | null
  /** What the tightest strict budget holds, which the call must not come to more than; null: none of its budgets is strict. */
  readonly strictUinr: bigint | null
  /** What the charged agent's tightest budget has left as far as this process knows; null without one. */
  readonly agentRemainingUinr: bigint | null
  /** Wall-clock ms of admission: the call's charges belong to the IST day and month of this instant. */
  readonly admittedAtMs: number
  /** Writes the `open` record before a dial; it is in the journal when this resolves. Throws `journal_full`. Called again when failover dials another route. `draft` is the event as it would stand if the process died now. */
  open(draft: E): Promise<void>
  /** Makes the hold at least `totalUinr`, with `debits` that of the prepaid balance too. true: it is; false: refused, the call must end; a promise when the database has to be asked. */
  extendTo(totalUinr: bigint, debits?: boolean): boolean | Promise<boolean>
  /** Writes a `progress` record with what other calls write in this turn of the event loop (the caller paces them: first byte, then at most one a second). */
  progress(draft: E): void
  /** Ends the call with what it really cost. Resolves when the record is in the journal, or (SETTLE=postgres, full disk) committed. */
  settle(event: E): Promise<void>
  /** Ends a call that charged nothing and is not counted (nothing was dialed): the daily unit and the hold go back. */
  release(): void
}

export interface Limits<E extends ChargedEvent = ChargedEvent> {
  /** Takes one of the key's requests of this minute. Throws `rate_limit_exceeded` (retry-after to the minute's end) or `database_unavailable`. Returns nothing when decided locally. */
  takeRate(principal: BearerPrincipal): void | Promise<void>
  /** Holds in daily limit, every budget, the prepaid balance where a route debits it and every cap of concurrent calls, all or none. Throws `daily_limit_reached`, `concurrency_limit_reached`, `budget_exceeded`, `agent_budget_exceeded`, `insufficient_credits` (or their `…_held` kin) with BUDX-04 evidence, `database_unavailable`, `journal_full`. */
  admit(request: AdmissionRequest): Permit<E> | Promise<Permit<E>>
}
