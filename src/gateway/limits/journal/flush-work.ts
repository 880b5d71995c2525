/**
 * The work on journals: it reads a range of the journal file and writes it to the database, and adopts the journals of dead processes. The flusher
 * decides when which range is flushed. The work keeps nothing that must survive, so the thread in which it runs may end at any time. Decision 0530
 * gives the reasons.
 */
import type { Clock } from '../../../platform/clock.ts'
import type { Tx } from '../../../platform/db/db.ts'
import type { ChargedEvent } from '../engine/admission.ts'
import { SpendIds } from '../engine/counters/counter-rows.ts'
import { isSpend } from '../engine/counters/counter-state.ts'
import { batchOf, type FlushResult, type FlushTools, releasedBy } from './flush-batch.ts'
import { flushEntries, PortionSize } from './flush-entries.ts'
import { type AdoptionRound, Janitor } from './janitor.ts'
import { RangeReader } from './journal-reader.ts'
import type { JournalRecord } from './journal-records.ts'

/** The most records of one transaction. */
export const batchRecords = 2000
/** The states in which a process may write its own journal. */
const ownStates = ['live', 'closing'] as const

/** Amounts by counter id. */
export type AmountsById = ReadonlyMap<bigint, bigint>

/** A part of a process's journal. Both offsets are ends of records. */
export interface JournalRange {
  readonly processId: bigint
  readonly from: number
  readonly to: number
  /** True when the answer names the scopes that have spent something, because somebody follows them. */
  readonly namesScopes?: boolean
}

/** A scope of an organisation that has spent something, such as the key 12. */
export interface SpentScope {
  readonly orgId: number
  readonly scope: string
  readonly scopeId: string
}

/** What is in the database after a flush. All values can be sent between threads. */
export interface Flushed {
  readonly kind: 'done'
  /** The offset up to which the journal is in the database. It may be before the end of the range. */
  readonly flushedTo: number
  readonly records: number
  /** The amounts that left the leases. */
  readonly released: AmountsById
  /** The whole spend of the counters that changed. */
  readonly spent: AmountsById
  /** Absent when the range asked for none. */
  readonly scopes?: readonly SpentScope[]
}

export type FlushAnswer =
  | Flushed
  /** The process may not write any more. */
  | { readonly kind: 'fenced' }
  /**
   * The database has another offset. `released` are the amounts of the records between that offset and the beginning of the range. The database
   * has them although this process did not know, or it has lost them.
   */
  | { readonly kind: 'elsewhere'; readonly flushTo: number; readonly released: AmountsById }

/** Works on request, in this thread or in another one. Only one request is made at a time, and one round of adoptions beside it. */
export interface FlushPort<E extends ChargedEvent> {
  /** Flushes the first records of a range. Throws when the database is away; the outcome is unknown then. */
  flush(range: JournalRange): Promise<FlushAnswer>
  /** Writes a record that never reached the journal. Only its event id guards against double counting. */
  write(processId: bigint, record: JournalRecord<E>): Promise<FlushAnswer>
  /** Returns the amounts of the records in a range that the database has lost. Known rows of counters are looked up again. */
  lost(range: JournalRange): Promise<AmountsById>
  /** Adopts the dead processes whose journal is in the folder. Returns their number. */
  adopt(round: AdoptionRound): Promise<number>
  close(): Promise<void>
}

export interface FlushWorkOptions<E extends ChargedEvent> {
  readonly tools: FlushTools<E>
  readonly clock: Clock
  /** The folder of the journals. */
  readonly folder: string
  /** Ends other work of a dead process, in the transaction that closes it. */
  readonly endOf?: ((tx: Tx, processId: bigint) => Promise<void>) | undefined
}

/** The work in the thread of its caller. */
export class FlushWork<E extends ChargedEvent> implements FlushPort<E> {
  readonly #tools: FlushTools<E>
  readonly #reader: RangeReader<E>
  readonly #portion = new PortionSize(batchRecords)
  readonly #janitor: Janitor<E>

  constructor({ tools, clock, folder, endOf }: FlushWorkOptions<E>) {
    this.#tools = tools
    this.#reader = new RangeReader<E>(folder, tools.codec)
    // Adoptions run beside flushes, and each forgets known rows when one of them is gone.
    this.#janitor = new Janitor<E>({ tools: { ...tools, spendIds: new SpendIds() }, clock, log: tools.log, folder, ...(endOf ? { endOf } : {}) })
  }

  async flush({ processId, from, to, namesScopes }: JournalRange): Promise<FlushAnswer> {
    for (;;) {
      const entries = this.#reader.read(processId, from, to, this.#portion.records)
      const last = entries.at(-1)
      if (last === undefined) throw new Error('the journal has bytes that no record explains')
      const result = await flushEntries(this.#tools, { processId, states: ownStates, from }, entries)
      if (this.#portion.follow(result) || result.kind === 'refused') continue
      if (result.kind !== 'elsewhere') return { ...answerOf(result, last.endOffset, entries.length), ...(namesScopes ? scopesOf(result) : {}) }
      const { flushTo } = result
      const released = flushTo < from ? await this.lost({ processId, from: flushTo, to: from }) : this.#releasedIn({ processId, from, to: flushTo })
      return { kind: 'elsewhere', flushTo, released }
    }
  }

  async write(processId: bigint, record: JournalRecord<E>): Promise<FlushAnswer> {
    const result = await flushEntries(this.#tools, { processId, states: ownStates, from: 0 }, [{ record, endOffset: null }])
    if (result.kind === 'done' || result.kind === 'fenced') return answerOf(result, 0, 1)
    throw new Error('a record without an offset was taken for one that has one')
  }

  async lost(range: JournalRange): Promise<AmountsById> {
    this.#tools.spendIds.clear()
    return this.#releasedIn(range)
  }

  adopt(round: AdoptionRound): Promise<number> {
    return this.#janitor.runOnce(round)
  }

  async close(): Promise<void> {
    // The caller owns the database.
  }

  #releasedIn({ processId, from, to }: JournalRange): AmountsById {
    const released = new Map<bigint, bigint>()
    for (let at = from; at < to; ) {
      const entries = this.#reader.read(processId, at, to, batchRecords)
      const last = entries.at(-1)
      if (last === undefined) break
      for (const [id, amount] of releasedBy(batchOf(entries.map(entry => entry.record)))) released.set(id, (released.get(id) ?? 0n) + amount)
      at = last.endOffset
    }
    return released
  }
}

function answerOf(result: Extract<FlushResult, { kind: 'done' | 'fenced' }>, flushedTo: number, records: number): FlushAnswer {
  if (result.kind === 'fenced') return result
  return { kind: 'done', flushedTo, records, released: result.released, spent: new Map(result.rows.map(row => [row.id, row.spent])) }
}

function scopesOf(result: Extract<FlushResult, { kind: 'done' | 'fenced' }>): { scopes?: readonly SpentScope[] } {
  if (result.kind === 'fenced') return {}
  const spending = result.rows.filter(row => isSpend(row.metric))
  return { scopes: spending.map(({ orgId, scope, scopeId }) => ({ orgId, scope, scopeId })) }
}
