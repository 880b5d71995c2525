/** The hold of a call in every counter that binds it, from admission to settle or release. */
import { DatabaseUnavailableError } from '../../../platform/db/db.ts'
import { fail } from '../../../platform/errors.ts'
import type { Flusher } from '../journal/flusher.ts'
import { JournalWriteError } from '../journal/journal.ts'
import type { Amounts, Charge, JournalRecord } from '../journal/journal-records.ts'
import type { Acquirer } from './acquire.ts'
import { FencedError } from './acquire.ts'
import type { ChargedEvent, CountedUsage, Permit, RefusedBy } from './admission.ts'
import { agentRemainingOf } from './agent-remaining.ts'
import { type Counter, type CounterTable, isMoney, isValue } from './counters/counter-state.ts'
import { countedTokens } from './counters/token-rates.ts'
import { TokenUse } from './counters/token-use.ts'
import { runCallsRemainingOf, runRemainingOf, runSpentOf } from './run-remaining.ts'

export interface PermitTools<E extends ChargedEvent> {
  readonly flusher: Flusher<E>
  readonly acquirer: Acquirer
  readonly counters: Pick<CounterTable, 'spendOf' | 'get'>
  /** Returns the time of the database's clock in Unix milliseconds. */
  readonly nowMs: () => number
  /** Returns a number that increases when any cap may have changed. */
  readonly capsVersion: () => number
  /** The opened calls. They are written again when the journal begins a new segment. */
  readonly opened: Set<CallPermit<E>>
  /** False when every hold goes back to the database in full at the end of its call (ALLOWANCE_SECONDS=0). */
  readonly keepsSlices: boolean
  /** True when `settle` waits for the commit (SETTLE=postgres). */
  readonly waitsForCommit: boolean
  readonly monotonicMs: () => number
}

interface Hold {
  readonly counters: readonly Counter[]
  readonly amounts: readonly bigint[]
  readonly beyondUinr: readonly bigint[] | null
  readonly charge: Charge
  /** The `capsVersion` at the time when the counters were found. */
  readonly capsVersion: number
  /** The counters whose rest the reply shows. */
  readonly shown: readonly Counter[]
  /** True when a limit of tokens a minute is among the counters. */
  readonly countsTokens: boolean
  /** True when caps of a run are among the counters. */
  readonly hasRun: boolean
}

/** The permit of one call. */
export class CallPermit<E extends ChargedEvent> implements Permit<E> {
  readonly eventId: string
  readonly admittedAtMs: number
  readonly #tools: PermitTools<E>
  readonly #counters: readonly Counter[]
  readonly #shown: readonly Counter[]
  readonly #amounts: bigint[]
  readonly #charge: Charge
  readonly balanceLeftUinr: bigint | null
  readonly runSpentUinr: bigint | null
  readonly #capsVersion: number
  readonly #generation: number
  #heldUinr: bigint
  #ended = false
  #draft: E | null = null
  #extending: Promise<boolean> | null = null
  #refusedBy: RefusedBy | null = null
  readonly #tokens: TokenUse | null

  constructor(tools: PermitTools<E>, eventId: string, admittedAtMs: number, heldUinr: bigint, hold: Hold) {
    this.#tools = tools
    this.eventId = eventId
    this.admittedAtMs = admittedAtMs
    this.#heldUinr = heldUinr
    this.#counters = hold.counters
    this.#shown = hold.shown
    this.#amounts = [...hold.amounts]
    this.#charge = hold.charge
    this.balanceLeftUinr = balanceLeftOf(hold)
    this.runSpentUinr = hold.hasRun ? runSpentOf(hold.shown) : null
    this.#capsVersion = hold.capsVersion
    this.#generation = tools.acquirer.generation
    this.#tokens = hold.countsTokens ? new TokenUse(this.#counters, this.#amounts, counter => this.#minuteOf(counter)) : null
  }

  get heldUinr(): bigint {
    return this.#heldUinr
  }

  get refusedBy(): RefusedBy | null {
    return this.#refusedBy
  }

  get strictUinr(): bigint | null {
    let least: bigint | null = null
    for (const [i, { metric, strict }] of this.#counters.entries()) {
      if (!isValue(metric) || !strict) continue
      const amount = this.#amountAt(i)
      if (least === null || amount < least) least = amount
    }
    return least
  }

  get agentRemainingUinr(): bigint | null {
    return agentRemainingOf(this.#shown)
  }

  get runRemainingUinr(): bigint | null {
    return runRemainingOf(this.#shown)
  }

  get runCallsRemaining(): bigint | null {
    return runCallsRemainingOf(this.#counters)
  }

  open(draft: E): Promise<void> {
    if (this.#ended) throw new Error('the call has ended')
    this.#draft = draft
    this.#tools.opened.add(this)
    // A call must not be dialed without its record.
    return this.#tools.flusher.appendSoon({ kind: 'open', event: draft, charge: this.#charge, counts: this.#counts() }).then(nothing, throwFull)
  }

  progress(draft: E): void {
    if (this.#ended) return
    this.#draft = draft
    // The record is written together with the records of other calls in this turn. A lost `progress` record costs only accuracy after a crash.
    void this.#tools.flusher.appendSoon(this.#progressOf(draft)).catch(ignoreFull)
  }

  #progressOf(draft: E): JournalRecord<E> {
    return { kind: 'progress', event: draft, charge: this.#charge, counts: this.#counts() }
  }

  /** Writes the call again into a new segment, so that a replay never needs a deleted segment. */
  repeat(): void {
    if (this.#draft === null || this.#ended) return
    try {
      this.#tools.flusher.append(this.#progressOf(this.#draft))
    } catch (error) {
      ignoreFull(error)
    }
  }

  extendTo(totalUinr: bigint, debits = false, usage?: CountedUsage): boolean | Promise<boolean> {
    if (this.#ended) return false
    if (this.#tokens !== null && usage !== undefined) this.#tokens.extendTo(BigInt(countedTokens(usage)))
    if (!debits && totalUinr <= this.#heldUinr) return true
    if (this.#extending !== null) return this.#extending.then(() => this.extendTo(totalUinr, debits))
    if (this.#generation !== this.#tools.acquirer.generation) return totalUinr <= this.#heldUinr
    const short = this.#shortOf(totalUinr, debits)
    if (short.length > 0) {
      const needs = short.map(i => totalUinr - this.#amountAt(i))
      const counters = short.map(i => this.#counters[i] as Counter)
      if (!this.#tools.acquirer.take(counters, needs, this.#tools.monotonicMs())) return this.#extend(totalUinr, short, counters, needs, debits)
      for (const [n, i] of short.entries()) this.#amounts[i] = this.#amountAt(i) + (needs[n] as bigint)
    }
    if (totalUinr > this.#heldUinr) this.#heldUinr = totalUinr
    return true
  }

  /** Returns the counter of the same limit in the minute that runs now. It has the limit of today, which the owner may have changed. */
  #minuteOf(counter: Counter): Counter {
    const { counters, nowMs } = this.#tools
    return counters.get(counter, 'tpm', nowMs(), counter.cap)
  }

  settle(event: E): Promise<void> {
    this.#end()
    this.#absorb(event)
    const used = this.#tokens === null ? null : this.#tokens.end(BigInt(countedTokens(event)), this.#tools.nowMs())
    const charged = { event, charge: this.#charge, counts: this.#counts(used) }
    const parts = this.#counters.map((counter, i) => this.#outOf(counter, this.#amountAt(i), used?.get(i) ?? spentOf(counter, event)))
    const record: JournalRecord<E> = { kind: 'settle', ...charged, released: this.#released(parts) }
    this.#noteSpend(event)
    const { flusher, waitsForCommit } = this.#tools
    const written = waitsForCommit ? flusher.appendCommitted(record) : flusher.appendSoon(record)
    this.#leave(parts)
    return written.then(nothing, (error: unknown) => {
      if (!(error instanceof JournalWriteError)) throw error
      return flusher.writeDirect(record)
    })
  }

  /** Adds the cost of this call to the known spend of its counters, and the call itself to the requests of the day. */
  #noteSpend(event: E): void {
    for (let i = 0; i < this.#counters.length; i++) {
      const counter = this.#counters[i] as Counter
      if (counter.metric === 'daily' || counter.metric === 'rpm' || counter.metric === 'run_calls') counter.knownSpent += 1n
      if (!isMoney(counter.metric)) continue
      const spent = spentOf(counter, event)
      counter.knownSpent += spent
      if (this.#amountAt(i) < spent) counter.untold = true
    }
    if (this.#capsVersion !== this.#tools.capsVersion()) this.#noteNewCaps(event)
  }

  /** Adds the cost to budgets that were set while this call ran. The call holds nothing in them, and they do not count its cost yet. */
  #noteNewCaps({ valueUinr }: E): void {
    const { orgId, month, scopes } = this.#charge
    for (const [scope, scopeId] of scopes) {
      const counter = this.#tools.counters.spendOf(orgId, scope, scopeId, month)
      if (counter === undefined || this.#counters.includes(counter)) continue
      counter.knownSpent += valueUinr
      if (valueUinr > 0n) counter.untold = true
    }
  }

  release(): void {
    const wasOpened = this.#draft !== null
    this.#end()
    const parts = this.#counters.map((counter, i) => this.#outOf(counter, this.#amountAt(i), 0n))
    const released = this.#released(parts)
    try {
      if (wasOpened) this.#tools.flusher.append({ kind: 'close', eventId: this.eventId, released })
      else if (released.length > 0) this.#tools.flusher.append({ kind: 'return', released })
      this.#leave(parts)
    } catch (error) {
      if (!(error instanceof JournalWriteError)) throw error
      // The disk is full. The hold stays leased in this process as an idle rest, which goes back when the journal can be written.
      this.#leave(parts.map(() => 0n))
    }
  }

  async #extend(totalUinr: bigint, short: readonly number[], counters: readonly Counter[], needs: readonly bigint[], debits: boolean): Promise<boolean> {
    this.#refusedBy = null
    const asked = this.#tools.acquirer.obtain(counters, needs, true).then(
      answer => {
        if (!('counter' in answer)) return this.#extended(totalUinr, short, answer.amounts, debits)
        this.#refused(answer.counter)
        return false
      },
      error => {
        if (error instanceof FencedError) return false
        throw error instanceof DatabaseUnavailableError ? fail('database_unavailable', { cause: error }) : error
      },
    )
    this.#extending = asked
    try {
      return await asked
    } finally {
      this.#extending = null
    }
  }

  #extended(totalUinr: bigint, short: readonly number[], got: readonly bigint[], debits: boolean): boolean {
    const before = short.map(i => this.#amountAt(i))
    for (const [n, i] of short.entries()) this.#amounts[i] = (before[n] as bigint) + (got[n] as bigint)
    let level = this.#ended ? 0n : totalUinr
    let tightest: Counter | null = null
    for (const [i, counter] of this.#counters.entries()) {
      if (!covers(counter, debits) || this.#amountAt(i) >= level) continue
      level = this.#amountAt(i)
      tightest = counter
    }
    // An amount above the tightest counter's is of no use to this call, so it becomes idle again.
    for (const [n, i] of short.entries()) this.#lower(i, max(before[n] as bigint, level))
    if (this.#ended) return false
    if (level > this.#heldUinr) this.#heldUinr = level
    if (tightest !== null) this.#refused(tightest)
    return level >= totalUinr
  }

  /**
   * Notes the refusal. When the balance refuses, the hold may become smaller than before, because a dearer route of the plan that does not debit
   * the balance had set it.
   */
  #refused(counter: Counter): void {
    this.#refusedBy = refuserOf(counter)
    const amount = this.#amountAt(this.#counters.indexOf(counter))
    if (counter.metric === 'prepaid' && amount < this.#heldUinr) this.#heldUinr = amount
  }

  #lower(index: number, amount: bigint): void {
    const counter = this.#counters[index] as Counter
    const beyond = this.#amountAt(index) - amount
    counter.held -= beyond
    counter.idle += beyond
    this.#amounts[index] = amount
  }

  #shortOf(totalUinr: bigint, debits: boolean): number[] {
    const short: number[] = []
    for (const [i, counter] of this.#counters.entries()) if (covers(counter, debits) && this.#amountAt(i) < totalUinr) short.push(i)
    return short
  }

  #amountAt(index: number): bigint {
    return this.#amounts[index] ?? 0n
  }

  /** Takes the excess of a call that cost more than its hold out of the idle lease, so that this amount cannot serve another call. */
  #absorb(event: E): void {
    if (this.#generation !== this.#tools.acquirer.generation) return
    for (let i = 0; i < this.#counters.length; i++) {
      const counter = this.#counters[i] as Counter
      if (!isMoney(counter.metric)) continue
      const over = spentOf(counter, event) - this.#amountAt(i)
      if (over <= 0n) continue
      const extra = counter.idle < over ? counter.idle : over
      counter.idle -= extra
      counter.held += extra
      this.#amounts[i] = this.#amountAt(i) + extra
      if (extra < over) counter.overdrawn = true
    }
  }

  /** Returns the amount that leaves the lease at the end: the spend, or the whole hold when nothing may be kept for the next call. */
  #outOf(counter: Counter, amount: bigint, spent: bigint): bigint {
    // A refused need may fit now, or be refused for another reason. So the remembered refusal is out of date.
    counter.refusal = null
    return !this.#tools.keepsSlices || counter.overdrawn || spent > amount || this.#tools.acquirer.returnsAtOnce(counter) ? amount : spent
  }

  /**
   * Returns the units of the call: one for the day of its key, one for the free calls of a trial, one for each limit of calls of tools, and its tokens of
   * the minute. `used` are the tokens at the end. Before that, they are those that it holds. What a run has used is counted where its events are added up.
   */
  #counts(used: ReadonlyMap<number, bigint> | null = null): Amounts {
    let counts = noAmounts
    for (let i = 0; i < this.#counters.length; i++) {
      const { metric, id } = this.#counters[i] as Counter
      if (id === null || (metric !== 'daily' && metric !== 'rpm' && metric !== 'tpm')) continue
      const units = metric === 'tpm' ? (used?.get(i) ?? this.#amountAt(i)) : 1n
      if (units > 0n) counts = [...counts, [id, units]]
    }
    return counts
  }

  #released(parts: readonly bigint[]): Amounts {
    if (this.#generation !== this.#tools.acquirer.generation) return noAmounts
    const released: (readonly [bigint, bigint])[] = []
    for (let i = 0; i < parts.length; i++) {
      const part = parts[i] as bigint
      const { id } = this.#counters[i] as Counter
      if (part > 0n && id !== null) released.push([id, part])
    }
    return released
  }

  #leave(parts: readonly bigint[]): void {
    if (this.#generation !== this.#tools.acquirer.generation) return
    const nowMs = this.#tools.monotonicMs()
    for (let i = 0; i < parts.length; i++) {
      const counter = this.#counters[i] as Counter
      const amount = this.#amountAt(i)
      const part = parts[i] as bigint
      counter.held -= amount
      counter.idle += amount - part
      counter.unflushed += part
      counter.usedAtMs = nowMs
    }
  }

  #end(): void {
    if (this.#ended) throw new Error('a permit ends once')
    this.#ended = true
    this.#tools.opened.delete(this)
  }
}

/** Returns what the balance had for a call whose hold it does not cover, otherwise null. */
function balanceLeftOf({ counters, amounts, beyondUinr }: Hold): bigint | null {
  if (beyondUinr === null) return null
  const at = counters.findIndex(({ metric }) => metric === 'prepaid')
  const beyond = beyondUinr[at] ?? 0n
  return beyond > 0n ? (amounts[at] ?? 0n) - beyond : null
}

const nothing = (): void => {}
const noAmounts: Amounts = []

const max = (a: bigint, b: bigint): bigint => (a > b ? a : b)

function ignoreFull(error: unknown): void {
  if (!(error instanceof JournalWriteError)) throw error
}

function throwFull(error: unknown): never {
  throw error instanceof JournalWriteError ? fail('journal_full', { cause: error }) : error
}

/**
 * Returns the amount that a call takes out of a counter for good: its value from a budget, its cost from the balance, one request from the daily
 * limit or the calls of a run, and nothing from concurrent calls. `TokenUse` knows the tokens.
 */
function spentOf({ metric }: Counter, { valueUinr, costUinr }: ChargedEvent): bigint {
  switch (metric) {
    case 'spend':
    case 'budget':
    case 'run_spend':
      return valueUinr
    case 'prepaid':
      return costUinr
    case 'running':
    case 'tpm':
      return 0n
    case 'daily':
    case 'rpm':
    case 'run_calls':
      return 1n
  }
}

/** Returns true when the counter must cover the cost of a call. */
const covers = ({ metric }: Counter, debits: boolean): boolean => isValue(metric) || (debits && metric === 'prepaid')

const refuserOf = ({ metric, scope }: Counter): RefusedBy => (metric === 'prepaid' ? 'prepaid' : metric === 'run_spend' ? 'run' : scope)
