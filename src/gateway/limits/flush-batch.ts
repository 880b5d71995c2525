/**
 * One flush: a range of the journal goes into the database in one transaction, exactly once. Owner and adopter use the same code.
 *
 * The byte offset in `beats` decides whether a range is in, the primary key of an event decides whether its charge counts: so
 * nothing is lost and nothing counts twice, whatever became of an earlier commit.
 */
import type { Db, Tx } from '../../platform/db.ts'
import type { Ids } from '../../platform/ids.ts'
import type { ChargedEvent } from './admission.ts'
import type { SpendIds } from './counter-rows.ts'
import { type Crossed, crossed, emitCrossings } from './crossings.ts'
import type { Charge, JournalRecord } from './journal-records.ts'
import { advanceFlush, findFlushTo, insertDebits, type LockedCounterRow, lockCounters, settleCounters, shareProcess } from './queries.ts'

/** Inserts the events that are not there yet and returns the ids of those it really inserted. */
export type ApplyEvents<E extends ChargedEvent> = (tx: Tx, events: readonly E[]) => Promise<readonly string[]>

export interface FlushTools<E extends ChargedEvent> {
  readonly db: Db
  readonly ids: Ids
  readonly nowMs: () => number
  readonly spendIds: SpendIds
  readonly applyEvents: ApplyEvents<E>
  /** True: events with a cost debit the ledger and the prepaid counter. */
  readonly billing: boolean
}

/** Which range of whose journal. `to` null: records that never reached the journal (disk full); then only the event ids guard. */
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
  /** The database stands elsewhere in the journal: behind `from` after a failover, beyond it when an unknown commit had succeeded. */
  | { readonly kind: 'elsewhere'; readonly flushTo: number }

interface Charged<E extends ChargedEvent> {
  readonly event: E
  readonly charge: Charge
  readonly counts: ReadonlyMap<bigint, bigint>
  readonly released: ReadonlyMap<bigint, bigint>
}

/** What a range means for the database. */
export interface Batch<E extends ChargedEvent> {
  readonly charged: Charged<E>[]
  /** Released and counted without an event. */
  readonly released: Map<bigint, bigint>
  readonly counts: Map<bigint, bigint>
}

const add = (sums: Map<bigint, bigint>, id: bigint, amount: bigint): void => {
  sums.set(id, (sums.get(id) ?? 0n) + amount)
}

const toMap = (amounts: readonly (readonly [string, string])[]): Map<bigint, bigint> => {
  const sums = new Map<bigint, bigint>()
  for (const [id, amount] of amounts) add(sums, BigInt(id), BigInt(amount))
  return sums
}

/** Adds records up. `open` and `progress` have no effect here. */
export function batchOf<E extends ChargedEvent>(records: Iterable<JournalRecord<E>>): Batch<E> {
  const batch: Batch<E> = { charged: [], released: new Map(), counts: new Map() }
  for (const record of records) {
    switch (record.kind) {
      case 'settle':
        batch.charged.push({ event: record.event, charge: record.charge, counts: toMap(record.counts), released: toMap(record.released) })
        break
      case 'close':
      case 'return':
        for (const [id, amount] of record.released) add(batch.released, BigInt(id), BigInt(amount))
        break
      case 'count':
        for (const [id, amount] of record.counts) {
          add(batch.counts, BigInt(id), BigInt(amount))
          add(batch.released, BigInt(id), BigInt(amount))
        }
        break
      case 'open':
      case 'progress':
        break
    }
  }
  return batch
}

/** Writes one range. Throws what the database throws; then the outcome is unknown and the same range is tried again. */
export async function flushBatch<E extends ChargedEvent>(tools: FlushTools<E>, range: FlushRange, batch: Batch<E>): Promise<FlushResult> {
  await tools.spendIds.learn(
    tools.db,
    batch.charged.map(c => c.charge),
  )
  return tools.db.tx(async (tx): Promise<FlushResult> => {
    if ((await tx.maybe(shareProcess, range.processId, range.states)) === null) return { kind: 'fenced' }
    if (range.to !== null) {
      const moved = await tx.exec(advanceFlush, range.processId, BigInt(range.from), BigInt(range.to))
      if (moved === 0) return { kind: 'elsewhere', flushTo: Number((await tx.one(findFlushTo, range.processId)).flushTo) }
    }
    return { kind: 'done', ...(await applyBatch(tools, tx, range, batch)) }
  })
}

/** The effects of a batch inside a transaction whose process row is locked. */
export async function applyBatch<E extends ChargedEvent>(
  tools: FlushTools<E>,
  tx: Tx,
  range: FlushRange,
  batch: Batch<E>,
): Promise<{ released: ReadonlyMap<bigint, bigint>; rows: readonly LockedCounterRow[] }> {
  const touched = new Set<bigint>([...batch.released.keys(), ...batch.counts.keys()])
  for (const item of batch.charged) {
    for (const id of tools.spendIds.of(item.charge)) touched.add(id)
    for (const id of [...item.counts.keys(), ...item.released.keys()]) touched.add(id)
  }
  const locked = touched.size === 0 ? [] : await tx.many(lockCounters, [...touched])
  const inserted = new Set(
    batch.charged.length === 0
      ? []
      : await tools.applyEvents(
          tx,
          batch.charged.map(c => c.event),
        ),
  )
  const spent = new Map(batch.counts)
  const released = new Map(batch.released)
  for (const item of batch.charged) {
    const isNew = inserted.has(item.event.id)
    // Without a journal offset the event id is the only guard, so what it releases counts with it.
    if (isNew || range.to !== null) for (const [id, amount] of item.released) add(released, id, amount)
    if (!isNew) continue
    for (const id of tools.spendIds.of(item.charge)) add(spent, id, item.event.valueUinr)
    for (const [id, amount] of item.counts) add(spent, id, amount)
  }
  const rows = await settleRows(tools, tx, range.processId, locked, spent, released)
  if (tools.billing)
    await debit(
      tools,
      tx,
      batch.charged.filter(item => inserted.has(item.event.id) && item.event.costUinr > 0n),
    )
  return { released, rows }
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
  const marks = rows.map((row): Crossed => (row.metric === 'spend' ? crossed(row.spent, row.cap, row) : { warn: false, block: false }))
  await tx.exec(
    settleCounters,
    processId,
    rows.map(row => row.id),
    rows.map(row => spent.get(row.id) ?? 0n),
    rows.map(row => released.get(row.id) ?? 0n),
    marks.map(mark => mark.warn),
    marks.map(mark => mark.block),
    new Date(tools.nowMs()),
  )
  for (const [index, row] of rows.entries()) {
    const mark = marks[index]
    if (mark !== undefined && (mark.warn || mark.block) && row.cap !== null) await emitCrossings(tx, tools.ids, tools.nowMs(), { ...row, cap: row.cap }, mark)
  }
  return rows
}

async function debit<E extends ChargedEvent>(tools: FlushTools<E>, tx: Tx, charged: readonly Charged<E>[]): Promise<void> {
  if (charged.length === 0) return
  await tx.exec(
    insertDebits,
    charged.map(c => c.charge.orgId),
    charged.map(c => c.event.id),
    charged.map(c => c.event.costUinr),
    new Date(tools.nowMs()),
  )
}
