/**
 * Holds of work that a provider does for hours, such as a batch. A process may end in the meantime, so the database owns the hold: its rows belong to the
 * work, and `counters.leased` contains them as it contains the leases of processes. The transaction that charges the work gives its hold back. Decision 0882
 * gives the reasons.
 */
import type { Clock } from '../../../platform/clock.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import type { AdmissionRequest, ChargedEvent } from '../engine/admission.ts'
import type { Binding } from '../engine/bindings.ts'
import { SpendIds } from '../engine/counters/counter-rows.ts'
import type { Counter } from '../engine/counters/counter-state.ts'
import { findEvidence, type LockedCounterRow, lockCounters, notify } from '../engine/queries.ts'
import { refusalError } from '../engine/refusal.ts'
import { chargeLate, type FlushTools } from '../journal/flush-batch.ts'
import type { Charge } from '../journal/journal-records.ts'
import { deleteLastingHolds, findLastingHolds, insertLastingHolds, unspend } from './lasting-hold-queries.ts'

export interface LastingHoldsDeps<E extends ChargedEvent> {
  readonly db: Db
  readonly clock: Clock
  readonly tools: FlushTools<E>
  readonly processId: () => bigint
  readonly nowMs: () => number
  readonly silentMs: number
  readonly recallWaitMs: number
  readonly channel: string
  /** Returns the counters that bind a caller. */
  bind(request: AdmissionRequest): Promise<Binding>
  /** Makes the missing rows of counters. */
  ensure(counters: readonly Counter[]): Promise<void>
  /** Gives back what this process leases of counters and does not use. */
  giveBack(counters: readonly Counter[]): Promise<void>
}

/** What the work may cost at most, and how many requests it makes. */
export interface LastingNeed {
  readonly uinr: bigint
  readonly requests: number
}

/** Units of counters that a hold has spent, because they count when the work begins. */
export type SpentUnits = ReadonlyMap<bigint, bigint>

/** The holds of work that outlives its process. */
export class LastingHolds<E extends ChargedEvent> {
  readonly #deps: LastingHoldsDeps<E>

  constructor(deps: LastingHoldsDeps<E>) {
    this.#deps = deps
  }

  /**
   * Holds the whole need in every budget, in the caps of the run and in the prepaid balance, all or none, and counts the requests in the daily limit. A
   * budget never holds beyond its cap here, also when it is not strict. `alongside` writes the work in the same transaction. Returns what is spent
   * already. Throws the refusals of `Limits.admit` and the errors of `alongside`.
   */
  async hold(request: AdmissionRequest, owner: string, need: LastingNeed, alongside: (tx: Tx, charge: Charge) => Promise<void>): Promise<SpentUnits> {
    const { db, clock, recallWaitMs, channel, bind, ensure, giveBack } = this.#deps
    const binding = await bind(request)
    const counters = binding.counters.filter(counter => needOf(counter, need) > 0n)
    await ensure(counters)
    await giveBack(counters)
    for (let round = 0; ; round++) {
      const short = await this.#tryOnce(counters, owner, need, tx => alongside(tx, binding.charge))
      if (short === null) return new Map(counters.filter(isSpentFirst).flatMap(counter => (counter.id === null ? [] : [[counter.id, needOf(counter, need)]])))
      const isLast = round > 0 || short.leased === 0n || db.kind === 'embedded' || recallWaitMs === 0
      if (isLast) throw await this.#refusal(short, counters, request)
      // Other processes may lease room that they do not use.
      await db.exec(notify, channel, `recall:${counters.map(({ id }) => id).join(',')}`)
      await clock.sleep(recallWaitMs)
    }
  }

  /**
   * Charges the work and gives its hold back, in one transaction. `claim` runs first in it and throws when the work was settled before. `write` runs
   * when the counters are locked. Returns false when the event was in the database already.
   */
  async settle(owner: string, event: E, charge: Charge, claim: (tx: Tx) => Promise<void>, write: (tx: Tx) => Promise<void>): Promise<boolean> {
    const { processId } = this.#deps
    // Several pieces of work may be settled concurrently, and each forgets known ids of counters first.
    const spendIds = new SpendIds()
    return chargeLate({ ...this.#deps.tools, spendIds }, processId(), { event, charge }, async tx => {
      await claim(tx)
      const balance = spendIds.prepaidOf(charge)
      await this.release(tx, owner, balance === null ? spendIds.of(charge) : [...spendIds.of(charge), balance])
      await write(tx)
    })
  }

  /** Gives the hold of work back that is not charged. `others` are counters that the transaction changes after that: all are locked in one order. */
  async release(tx: Tx, owner: string, others: readonly bigint[] = []): Promise<void> {
    const held = (await tx.many(findLastingHolds, owner)).map(({ counterId }) => counterId)
    await tx.many(lockCounters, [...new Set([...held, ...others])])
    await tx.exec(deleteLastingHolds, owner)
  }

  /** Gives back everything of work that was not done: its hold, and the requests of the day. */
  async undo(tx: Tx, owner: string, spent: SpentUnits): Promise<void> {
    await this.release(tx, owner, [...spent.keys()])
    if (spent.size > 0) await tx.exec(unspend, [...spent.keys()], [...spent.values()])
  }

  /** Returns null when everything is held, or the row of the first counter that has too little. */
  async #tryOnce(counters: readonly Counter[], owner: string, need: LastingNeed, alongside: (tx: Tx) => Promise<void>): Promise<LockedCounterRow | null> {
    return this.#deps.db.tx(async tx => {
      const rows = counters.length === 0 ? [] : await tx.many(lockCounters, idsOf(counters))
      const needs = new Map(counters.map(counter => [counter.id, needOf(counter, need)]))
      for (const { id } of counters) {
        const row = rows.find(each => each.id === id)
        if (row === undefined) throw new Error('a counter vanished while a hold was taken')
        if (row.cap !== null && row.cap - row.spent - row.leased < (needs.get(id) ?? 0n)) return row
      }
      const [spent, held] = [rows.filter(isSpentFirst), rows.filter(row => !isSpentFirst(row))]
      const amounts = (of: readonly LockedCounterRow[]): bigint[] => of.map(row => needs.get(row.id) ?? 0n)
      await tx.exec(insertLastingHolds, owner, idsOf(held), amounts(held), idsOf(spent), amounts(spent))
      await alongside(tx)
      return null
    })
  }

  async #refusal({ id }: LockedCounterRow, counters: readonly Counter[], { run }: AdmissionRequest): Promise<Error> {
    const { db, nowMs, silentMs } = this.#deps
    const counter = counters.find(each => each.id === id)
    const [row] = await db.many(findEvidence, [id], BigInt(silentMs))
    if (counter === undefined || row === undefined) throw new Error('a counter vanished while a hold was taken')
    const held = row.leased - row.inDoubt
    const note = { untilMs: 0, needFrom: 0n, cap: row.cap ?? 0n, spent: row.spent, held: held > 0n ? held : 0n, inDoubt: row.inDoubt }
    return refusalError({ counter, note }, nowMs(), counters, run)
  }
}

/** The requests of a day count when they are sent, whatever becomes of them. */
const isSpentFirst = ({ metric }: { readonly metric: string }): boolean => metric === 'daily'

/** Returns what the work needs of a counter. Work of hours is neither a request of a minute nor a concurrent call. */
function needOf({ metric }: Counter, { uinr, requests }: LastingNeed): bigint {
  switch (metric) {
    case 'spend':
    case 'budget':
    case 'prepaid':
    case 'run_spend':
      return uinr
    case 'daily':
      return BigInt(requests)
    case 'run_calls':
      return 1n
    case 'rpm':
    case 'tpm':
    case 'running':
      return 0n
  }
}

const idsOf = (rows: readonly { readonly id: bigint | null }[]): bigint[] => rows.flatMap(({ id }) => (id === null ? [] : [id]))
