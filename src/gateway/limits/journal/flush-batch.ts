/**
 * Flushes a range of the journal into the database in one transaction, exactly once. The owner of the journal and its adopter use the same code.
 *
 * The byte offset in `beats` decides whether a range is already in the database. The primary key of an event decides whether its charge counts.
 * So nothing is lost and nothing counts twice, whatever the result of an earlier commit was.
 */
import type { StatementDb, Tx } from '../../../platform/db/db.ts'
import type { Log } from '../../../platform/observe/log.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import { type Crossed, crossed, emitCrossings, isAny, noMarks } from '../budgets/crossings.ts'
import type { ChargedEvent } from '../engine/admission.ts'
import { type SpendIds, spendAsksOf } from '../engine/counters/counter-rows.ts'
import { isSpend } from '../engine/counters/counter-state.ts'
import { advanceFlush, findFlushTo, insertDebits, type LockedCounterRow, lockCounters, settleCounters, shareProcess } from '../engine/queries.ts'
import type { Amounts, Charge, EventCodec, JournalRecord } from './journal-records.ts'

/** Inserts the events that are not in the database yet. Returns the ids of the inserted ones. */
export type ApplyEvents<E extends ChargedEvent> = (tx: Tx, events: readonly E[]) => Promise<readonly string[]>

/** Returns several appliers as one. The first decides which events are new, and the others get those. */
export function inOrder<E extends ChargedEvent>(appliers: readonly ApplyEvents<E>[]): ApplyEvents<E> {
  return async (tx, events) => {
    const [first, ...others] = appliers
    if (first === undefined) throw new Error('limits need an applier that keeps the events')
    const inserted = await first(tx, events)
    const isNew = new Set(inserted)
    const fresh = events.filter(event => isNew.has(event.id))
    for (const apply of others) await apply(tx, fresh)
    return inserted
  }
}

export interface FlushTools<E extends ChargedEvent> {
  readonly db: StatementDb
  readonly ids: Ids
  readonly log: Log
  readonly nowMs: () => number
  readonly spendIds: SpendIds
  readonly applyEvents: ApplyEvents<E>
  /** Reads the events in the journal. Null: they are JSON. */
  readonly codec: EventCodec<E> | null
  /** Is called with the balances that fell, in the transaction in which they fell. */
  onDebited(tx: Tx, debited: readonly Debited[]): Promise<void>
}

/** An organisation whose prepaid balance has fallen, with the new balance. */
export interface Debited {
  readonly orgId: number
  readonly balanceUinr: bigint
}

/**
 * A range of a process's journal. `to` is null for records that never reached the journal (full disk); then only the event ids guard against
 * double counting.
 */
export interface FlushRange {
  readonly processId: bigint
  readonly states: readonly string[]
  readonly from: number
  readonly to: number | null
}

export type FlushResult =
  | { readonly kind: 'done'; readonly released: ReadonlyMap<bigint, bigint>; readonly rows: readonly LockedCounterRow[] }
  /** The process may not write any more. */
  | { readonly kind: 'fenced' }
  /** The database has another offset: before `from` after a failover, or after it when an unknown commit had succeeded. */
  | { readonly kind: 'elsewhere'; readonly flushTo: number }

interface Charged<E extends ChargedEvent> {
  readonly event: E
  readonly charge: Charge
  readonly counts: Amounts
  readonly released: Amounts
}

/** The effect of a range on the database. */
export interface Batch<E extends ChargedEvent> {
  readonly charged: Charged<E>[]
  /** Amounts that are released and counted without an event. */
  readonly released: Sums
  readonly counts: Sums
}

/** Amounts by counter id. */
type Sums = Map<bigint, bigint>

function add<K>(sums: Map<K, bigint>, id: K, amount: bigint): void {
  sums.set(id, (sums.get(id) ?? 0n) + amount)
}

function addAll(sums: Sums, amounts: Amounts): void {
  for (const [id, amount] of amounts) add(sums, id, amount)
}

/** Returns the amounts that leave the leases with a batch whose range is in the database. */
export function releasedBy<E extends ChargedEvent>({ charged, released }: Batch<E>): ReadonlyMap<bigint, bigint> {
  const sums = new Map(released)
  for (const item of charged) addAll(sums, item.released)
  return sums
}

/** Adds up the records. `open` and `progress` have no effect here. */
export function batchOf<E extends ChargedEvent>(records: Iterable<JournalRecord<E>>): Batch<E> {
  const batch: Batch<E> = { charged: [], released: new Map(), counts: new Map() }
  for (const record of records) {
    switch (record.kind) {
      case 'settle':
        batch.charged.push(record)
        break
      case 'close':
      case 'return':
        addAll(batch.released, record.released)
        break
      case 'count':
        addAll(batch.counts, record.counts)
        addAll(batch.released, record.counts)
        addAll(batch.counts, record.over ?? [])
        break
      case 'open':
      case 'progress':
        break
    }
  }
  return batch
}

/**
 * Writes one range, and the writes of `alongside` in the same transaction. Throws the database's errors. The outcome is then unknown and the
 * same range is tried again.
 */
export async function flushBatch<E extends ChargedEvent>(
  tools: FlushTools<E>,
  range: FlushRange,
  batch: Batch<E>,
  alongside?: (tx: Tx) => Promise<void>,
): Promise<FlushResult> {
  try {
    return await flushOnce(tools, range, batch, alongside)
  } catch (error) {
    if (!(error instanceof CounterGoneError)) throw error
    tools.spendIds.clear()
    return flushOnce(tools, range, batch, alongside)
  }
}

/**
 * Charges one event outside of every journal, after the database refused it in its turn. Only the key of the event guards against double
 * counting. The event's leases and counts were settled when it was parked. `claim` runs first in the same transaction and throws when another
 * process was faster. Returns false when the event was already in the database. Throws the database's error when it still refuses the event;
 * nothing is changed then.
 */
export async function chargeLate<E extends ChargedEvent>(
  tools: FlushTools<E>,
  processId: bigint,
  { event, charge }: { readonly event: E; readonly charge: Charge },
  claim: (tx: Tx) => Promise<void>,
): Promise<boolean> {
  const batch: Batch<E> = { charged: [{ event, charge, counts: [], released: [] }], released: new Map(), counts: new Map() }
  // The counter ids that this process knows may be from before a failover.
  tools.spendIds.clear()
  await tools.spendIds.learn(tools.db, new Set([charge]))
  return tools.db.tx(async tx => {
    await claim(tx)
    return (await applyBatch(tools, tx, { processId, to: null }, batch)).fresh > 0
  })
}

/** A known counter is gone or belongs to another owner, because a failover has lost its row. Nothing was written. */
class CounterGoneError extends Error {
  override readonly name = 'CounterGoneError'
}

async function flushOnce<E extends ChargedEvent>(
  tools: FlushTools<E>,
  range: FlushRange,
  batch: Batch<E>,
  alongside?: (tx: Tx) => Promise<void>,
): Promise<FlushResult> {
  await tools.spendIds.learn(tools.db, new Set(batch.charged.map(c => c.charge)))
  return tools.db.tx(async (tx): Promise<FlushResult> => {
    if ((await tx.maybe(shareProcess, range.processId, range.states)) === null) return { kind: 'fenced' }
    if (range.to !== null) {
      const moved = await tx.exec(advanceFlush, range.processId, BigInt(range.from), BigInt(range.to))
      if (moved === 0) return { kind: 'elsewhere', flushTo: Number((await tx.one(findFlushTo, range.processId)).flushTo) }
    }
    const { released, rows } = await applyBatch(tools, tx, range, batch)
    await alongside?.(tx)
    return { kind: 'done', released, rows }
  })
}

/** Applies the effects of a batch, in a transaction in which the process row is locked. */
async function applyBatch<E extends ChargedEvent>(
  tools: FlushTools<E>,
  tx: Tx,
  range: Pick<FlushRange, 'processId' | 'to'>,
  batch: Batch<E>,
): Promise<{ released: ReadonlyMap<bigint, bigint>; rows: readonly LockedCounterRow[]; fresh: number }> {
  const touched = touchedBy(tools, batch)
  const locked = touched.length === 0 ? [] : await tx.many(lockCounters, touched)
  checkSpendRows(tools, batch, locked)
  const events = batch.charged.map(item => item.event)
  const inserted = events.length === 0 ? [] : await tools.applyEvents(tx, events)
  const isIn = new Set(inserted.length === events.length ? [] : inserted)
  const fresh = inserted.length === events.length ? batch.charged : batch.charged.filter(item => isIn.has(item.event.id))
  const counts = new Map(batch.counts)
  const released = new Map(batch.released)
  // Without a journal offset the event id is the only guard. So the amounts that an event releases count only when the event is new.
  for (const item of range.to === null ? fresh : batch.charged) addAll(released, item.released)
  // All calls of a caller share one charge object.
  const values = new Map<Charge, bigint>()
  for (const item of fresh) {
    add(values, item.charge, item.event.valueUinr)
    addAll(counts, item.counts)
  }
  const spent = counts
  for (const [charge, value] of values) for (const id of tools.spendIds.of(charge)) add(spent, id, value)
  const debits = fresh.filter(({ charge, event }) => charge.prepaid === true && event.costUinr > 0n)
  for (const { charge, event } of debits) {
    const balance = tools.spendIds.prepaidOf(charge)
    if (balance !== null) add(spent, balance, event.costUinr)
  }
  const rows = await settleRows(tools, tx, range.processId, locked, spent, released)
  await debit(tools, tx, debits, rows)
  return { released, rows, fresh: fresh.length }
}

/** Checks that every counter of every charge exists and still belongs to the same owner. Otherwise spend would not be counted. */
function checkSpendRows<E extends ChargedEvent>({ spendIds }: FlushTools<E>, { charged }: Batch<E>, locked: readonly LockedCounterRow[]): void {
  const rows = new Map(locked.map(row => [row.id, row]))
  for (const charge of new Set(charged.map(item => item.charge))) {
    const asks = spendAsksOf(charge)
    for (const [i, id] of spendIds.of(charge).entries()) {
      const row = rows.get(id)
      const ask = asks[i]
      if (row?.orgId !== charge.orgId || row.scope !== ask?.scope || row.scopeId !== ask.scopeId || row.period !== ask.period)
        throw new CounterGoneError(`counter ${id} is gone`)
    }
    const balance = spendIds.prepaidOf(charge)
    const row = balance === null ? undefined : rows.get(balance)
    if (balance !== null && (row?.orgId !== charge.orgId || row.metric !== 'prepaid')) throw new CounterGoneError(`counter ${balance} is gone`)
  }
}

/** Returns the ids of the counters that a batch may change. */
function touchedBy<E extends ChargedEvent>({ spendIds }: FlushTools<E>, { charged, released, counts }: Batch<E>): bigint[] {
  const ids = new Set([...released.keys(), ...counts.keys()])
  const charges = new Set<Charge>()
  for (const item of charged) {
    charges.add(item.charge)
    for (const [id] of item.counts) ids.add(id)
    for (const [id] of item.released) ids.add(id)
  }
  for (const charge of charges) {
    for (const id of spendIds.of(charge)) ids.add(id)
    const balance = spendIds.prepaidOf(charge)
    if (balance !== null) ids.add(balance)
  }
  return [...ids]
}

async function settleRows<E extends ChargedEvent>(
  tools: FlushTools<E>,
  tx: Tx,
  processId: bigint,
  locked: readonly LockedCounterRow[],
  spent: ReadonlyMap<bigint, bigint>,
  released: ReadonlyMap<bigint, bigint>,
): Promise<LockedCounterRow[]> {
  if (locked.length === 0) return []
  const rows = locked.map(row => ({ ...row, spent: row.spent + (spent.get(row.id) ?? 0n) }))
  const marks = rows.map((row): Crossed => (isSpend(row.metric) ? crossed(row.spent, row.cap, row) : noMarks))
  await tx.exec(
    settleCounters,
    processId,
    rows.map(row => row.id),
    rows.map(row => spent.get(row.id) ?? 0n),
    rows.map(row => released.get(row.id) ?? 0n),
    marks.map(mark => mark.warn),
    marks.map(mark => mark.block),
    new Date(tools.nowMs()),
    marks.map(mark => `{${mark.marked.join(',')}}`),
  )
  for (const [index, row] of rows.entries()) {
    const mark = marks[index]
    if (mark !== undefined && isAny(mark) && row.cap !== null)
      await emitCrossings(tx, tools.ids, crossedAtMs(row, tools.nowMs()), { ...row, cap: row.cap }, mark)
  }
  return rows
}

/**
 * Returns the time of a crossing. A call that ends after midnight may cross the budget of the period in which it began. The crossing is then
 * reported in that period, not in the new one.
 */
function crossedAtMs({ endsAt }: LockedCounterRow, nowMs: number): number {
  return endsAt === null ? nowMs : Math.min(nowMs, endsAt.getTime() - 1000)
}

/** Inserts one ledger row for each call with a cost. The balance itself has already fallen with its counter. */
async function debit<E extends ChargedEvent>(tools: FlushTools<E>, tx: Tx, charged: readonly Charged<E>[], rows: readonly LockedCounterRow[]): Promise<void> {
  if (charged.length === 0) return
  await tx.exec(
    insertDebits,
    charged.map(c => c.charge.orgId),
    charged.map(c => c.event.id),
    charged.map(c => c.event.costUinr),
    new Date(tools.nowMs()),
  )
  const orgs = new Set(charged.map(c => c.charge.orgId))
  const fallen = rows.filter(row => row.metric === 'prepaid' && orgs.has(row.orgId))
  await tools.onDebited(
    tx,
    fallen.map(({ orgId, cap, spent }) => ({ orgId, balanceUinr: (cap ?? 0n) - spent })),
  )
}
