/**
 * The interface of limits and budgets for the inference pipeline. The rules of leases, holds and the journal are in allowances.ts and
 * journal.ts; the pipeline sees only these types.
 */
import type { BearerPrincipal, CallPolicy } from '../../../platform/security/principal.ts'
import type { RunCounter, Scope } from './counters/counter-state.ts'

/** The tokens that limits of tokens a minute count. */
export interface CountedUsage {
  readonly promptTokens?: number
  /** Part of the prompt tokens. */
  readonly cachedTokens?: number
  readonly completionTokens?: number
}

/** The fields of a charged event that limits need. The whole event goes through the journal as plain JSON values, with bigints allowed. */
export interface ChargedEvent extends CountedUsage {
  /** A UUIDv7, made at admission. */
  readonly id: string
  /** The amount that budgets count. */
  readonly valueUinr: bigint
  /** The amount that the prepaid balance is debited: 0 on the caller's own provider key. */
  readonly costUinr: bigint
}

/** The caps of the run of a call. The object stays the same while its caps do. */
export interface RunHold {
  /** The row of the run. */
  readonly number: bigint
  readonly runId: string
  readonly spend: RunCounter
  readonly calls: RunCounter
  /** True when no call may cost more than the rest of the run. */
  readonly strict: boolean
}

export interface AdmissionRequest {
  readonly principal: BearerPrincipal
  readonly eventId: string
  /** The charged agent: the agent of the token, or the registered agent that `x-br-agent-id` names. Null when there is none. */
  readonly agentId: number | null
  /** The ancestors of that agent, the nearest first, at most 3. */
  readonly agentAncestorIds: readonly number[]
  /** The team of a `team` budget. Absent or null when there is none. */
  readonly teamId?: number | null
  /** The policies of this call. Limits read only `maxConcurrency` and `tpmLimit`, and for a tool `toolRpm` and `toolDaily`. Absent when there are none. */
  readonly policies?: readonly CallPolicy[]
  /** The run of the call, when it has caps. Absent or null when it has none. */
  readonly run?: RunHold | null
  /** True for a further call of an image panel, whose first call has taken the unit of the run. Absent means false. */
  readonly isRunPart?: boolean
  /** The first hold: the most that the dearest route of the plan may cost at first. */
  readonly needUinr: bigint
  /** The estimated tokens of the prompt, for limits of tokens a minute. Absent means none. */
  readonly promptTokens?: number
  /** The tokens in the first slice of output, for the same limits. Absent means none. */
  readonly outputTokens?: number
  /** The worst case of the call. A strict budget holds all of it. */
  readonly worstUinr: bigint
  /**
   * The least amount that a strict budget may hold when its rest does not cover the worst case. The call is then bound to the `strictUinr` of
   * its permit. Absent when the call cannot be bound.
   */
  readonly leastUinr?: bigint | undefined
  /** True when the call may run on the platform's account free of charge, because its key is a trial key. Absent means false. */
  readonly isFree?: boolean
  /**
   * True for a call of a tool, whose price is known. No budget holds beyond its cap for it, also a budget that is not strict, and it takes no unit of the
   * key's daily limit. Absent means false.
   */
  readonly isTool?: boolean
  /**
   * True for a call that a stored reply serves. It takes a unit of every limit of calls. It costs nothing, so no budget, balance or limit of tokens binds it.
   * Absent means false.
   */
  readonly isCached?: boolean
  /** The most that the dearest route on the prepaid balance may cost at first. Null or absent when no route debits the balance. */
  readonly debitUinr?: bigint | null
}

/** The budget that refused to cover more of a call, or the cap of its run, or the prepaid balance. */
export type RefusedBy = Scope | 'run' | 'prepaid'

/**
 * The hold of a call in every counter that binds it. Either `settle` or `release` is called, exactly once. Amounts are totals of the call, never
 * differences.
 */
export interface Permit<E extends ChargedEvent = ChargedEvent> {
  readonly eventId: string
  /** The amount that the call may cost now. A refused `extendTo` may increase it to what was left. */
  readonly heldUinr: bigint
  /** The budget or balance that refused the last `extendTo`. Null when none refused, for example because the database could not be asked. */
  readonly refusedBy: RefusedBy | null
  /** The hold of the tightest strict budget. The call must not cost more. Null when none of its budgets is strict. */
  readonly strictUinr: bigint | null
  /** What was left of the prepaid balance for a last call, which holds more than that. Null when the balance covers the hold, or does not pay. */
  readonly balanceLeftUinr: bigint | null
  /** The remaining amount of the charged agent's tightest budget, as far as this process knows. Null without a budget. */
  readonly agentRemainingUinr: bigint | null
  /** What the cap of the run leaves, as far as this process knows. Null when the run has no such cap. */
  readonly runRemainingUinr: bigint | null
  /** What the calls of the run had cost at the admission of this one, as far as this process knows. Null when the run has no cap on its cost. */
  readonly runSpentUinr: bigint | null
  /** The calls that the cap of the run leaves, without this one. Null when the run has no such cap. */
  readonly runCallsRemaining: bigint | null
  /** The time of admission in Unix milliseconds. The call's charges belong to the IST day and month of this time. */
  readonly admittedAtMs: number
  /**
   * Writes the `open` record before a dial. When it resolves, the record is in the journal. It is called again when failover dials another
   * route. `draft` is the call's event if the process died now. Throws `journal_full`.
   */
  open(draft: E): Promise<void>
  /**
   * Extends the hold to at least `totalUinr`, with `debits` also in the prepaid balance. Returns true when it is covered, and false when it was
   * refused and the call must end. Returns a promise when the database must be asked. `usage` is what the call may use then. Its tokens beyond the hold count
   * in the minute that runs now, also above a limit of tokens: a rate cuts no call.
   */
  extendTo(totalUinr: bigint, debits?: boolean, usage?: CountedUsage): boolean | Promise<boolean>
  /**
   * Writes a `progress` record, together with the records of other calls in this turn of the event loop. The caller sets the pace: at the first
   * byte, then at most once a second. After the end of the call it does nothing, because the record matters only after a crash.
   */
  progress(draft: E): void
  /** Ends the call with its real cost. Resolves when the record is in the journal, or when it is committed (SETTLE=postgres, or a full disk). */
  settle(event: E): Promise<void>
  /** Ends a call without a charge that was never dialed. The daily unit and the hold go back. */
  release(): void
}

export interface Limits<E extends ChargedEvent = ChargedEvent> {
  /**
   * Takes one of the key's requests of this minute. Throws `rate_limit_exceeded` (retry-after to the minute's end) or `database_unavailable`.
   * Returns nothing when it is decided locally.
   */
  takeRate(principal: BearerPrincipal): void | Promise<void>
  /**
   * Holds in the daily limit, in the free calls of a trial, in the caps of the run, in every budget, in the prepaid balance when a route debits it, in every
   * limit of tokens a minute, and in every cap of concurrent calls, all or none.
   * Throws `daily_limit_reached`, `trial_limit_reached`, `rate_limit_exceeded`, `concurrency_limit_reached`, `run_budget_exceeded`, `run_calls_exceeded`,
   * `budget_exceeded`, `agent_budget_exceeded`,
   * `insufficient_credits` (or their `…_held` variants) with BUDX-04 evidence, `database_unavailable`, `journal_full`.
   */
  admit(request: AdmissionRequest): Permit<E> | Promise<Permit<E>>
}
