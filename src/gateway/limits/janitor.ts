/**
 * Adopts dead processes whose journal lies in this folder: replays the journal to its end, writes one flagged event for every call
 * that was running, and only then gives the leases back.
 */
import type { Clock } from '../../platform/clock.ts'
import type { Tx } from '../../platform/db.ts'
import type { Log } from '../../platform/log.ts'
import type { ChargedEvent } from './admission.ts'
import { applyBatch, batchOf, type FlushTools, flushBatch } from './flush-batch.ts'
import { deleteJournal, type Entry, journalsIn, lastWriteMs, readJournal } from './journal.ts'
import type { Amounts, Charge, JournalRecord } from './journal-records.ts'
import { bootId, isSocketDead, removeSocket } from './liveness.ts'
import { findProcess, lockLeasedCounters, lockProcessForAdoption, returnAllLeases, setProcessState } from './queries.ts'

/** Records of one replay transaction. */
const replayRecords = 500

export interface JanitorOptions<E extends ChargedEvent> {
  readonly tools: FlushTools<E>
  readonly clock: Clock
  readonly log: Log
  readonly folder: string
  readonly keepMs: number
  /** A process of another boot must not have beaten for so long before it is taken for dead. */
  readonly silentMs: number
  readonly ownId: () => bigint
  /** Ends what the dead process had begun elsewhere; runs in the transaction that closes it, behind the events of its calls. */
  readonly endOf?: (tx: Tx, processId: bigint) => Promise<void>
}

interface RunningCall<E> {
  readonly event: E
  readonly charge: Charge
  readonly counts: Amounts
}

/** The janitor of one journal folder. */
export class Janitor<E extends ChargedEvent> {
  readonly #options: JanitorOptions<E>
  #running: Promise<number> | null = null

  constructor(options: JanitorOptions<E>) {
    this.#options = options
  }

  /** One round; how many processes were adopted. */
  runOnce(): Promise<number> {
    this.#running ??= this.#round().finally(() => {
      this.#running = null
    })
    return this.#running
  }

  async #round(): Promise<number> {
    const { tools, folder, silentMs, ownId } = this.#options
    let adopted = 0
    for (const id of journalsIn(folder)) {
      if (id === ownId()) continue
      const found = await tools.db.maybe(findProcess, id, BigInt(silentMs))
      if (found === null || found.state === 'closed') this.#discard(id)
      else if (await this.#isDead(id, found)) adopted += (await this.#adopt(id)) ? 1 : 0
    }
    return adopted
  }

  /** A refused connection proves death under the same kernel; under another boot silence is asked for as well. */
  async #isDead(id: bigint, found: { bootId: string; silent: boolean }): Promise<boolean> {
    const { tools, folder } = this.#options
    const isSameKernel = found.bootId === bootId() || tools.db.kind === 'embedded'
    return (isSameKernel || found.silent) && (await isSocketDead(folder, id))
  }

  #discard(id: bigint): void {
    const { folder, clock, keepMs } = this.#options
    if (lastWriteMs(folder, id) >= clock.nowMs() - keepMs) return
    deleteJournal(folder, id)
    removeSocket(folder, id)
  }

  async #adopt(id: bigint): Promise<boolean> {
    const { tools, log, folder } = this.#options
    const from = await tools.db.tx(async tx => {
      const row = await tx.maybe(lockProcessForAdoption, id)
      if (row === null) return null
      await tx.exec(setProcessState, id, ['live', 'closing'], 'lost')
      return Number(row.flushTo)
    })
    if (from === null) return false
    const endOffset = await this.#replay(id, from)
    const running = runningCalls(readJournal<E>(folder, id))
    const isClosed = await this.#close(id, endOffset, running)
    if (isClosed) {
      removeSocket(folder, id)
      log.warn('process_adopted', { processId: String(id), count: running.length, bytes: endOffset })
    }
    return isClosed
  }

  /** Everything behind `from` goes into the database; the offset of the end. */
  async #replay(id: bigint, from: number): Promise<number> {
    const { tools, folder } = this.#options
    let at = from
    let entries: Entry<E>[] = []
    const write = async (): Promise<boolean> => {
      const last = entries[entries.length - 1]
      if (last === undefined) return true
      const result = await flushBatch(tools, { processId: id, states: ['lost'], from: at, to: last.endOffset }, batchOf(entries.map(entry => entry.record)))
      if (result.kind !== 'done') return false
      at = last.endOffset
      entries = []
      return true
    }
    for (const entry of readJournal<E>(folder, id, from)) {
      entries.push(entry)
      if (entries.length >= replayRecords && !(await write())) throw new Error(`journal ${id} is replayed by another process`)
    }
    if (!(await write())) throw new Error(`journal ${id} is replayed by another process`)
    return at
  }

  async #close(id: bigint, endOffset: number, running: readonly RunningCall<E>[]): Promise<boolean> {
    const { tools } = this.#options
    const charged = running.map(call => ({ event: interrupted(call.event), charge: call.charge, counts: call.counts, released: [] }))
    await tools.spendIds.learn(
      tools.db,
      charged.map(item => item.charge),
    )
    return tools.db.tx(async tx => {
      const row = await tx.maybe(lockProcessForAdoption, id)
      if (row === null || row.state !== 'lost' || Number(row.flushTo) !== endOffset) return false
      await applyBatch(tools, tx, { processId: id, states: ['lost'], from: endOffset, to: endOffset }, { charged, released: new Map(), counts: new Map() })
      await this.#options.endOf?.(tx, id)
      await tx.many(lockLeasedCounters, id)
      await tx.exec(returnAllLeases, id)
      await tx.exec(setProcessState, id, ['lost'], 'closed')
      return true
    })
  }
}

/** The event of a call that was running when its process died. `outcome` and `estimated` are the only fields of an event that limits know beside its money. */
function interrupted<E extends ChargedEvent>(draft: E): E {
  return { ...draft, outcome: 'interrupted', estimated: true }
}

/** Calls with an `open` and no end, as their last draft says. */
function runningCalls<E extends ChargedEvent>(entries: Iterable<Entry<E>>): RunningCall<E>[] {
  const calls = new Map<string, RunningCall<E>>()
  for (const { record } of entries) note(calls, record)
  return [...calls.values()]
}

function note<E extends ChargedEvent>(calls: Map<string, RunningCall<E>>, record: JournalRecord<E>): void {
  if (record.kind === 'open' || record.kind === 'progress') calls.set(record.event.id, { event: record.event, charge: record.charge, counts: record.counts })
  else if (record.kind === 'settle') calls.delete(record.event.id)
  else if (record.kind === 'close') calls.delete(record.eventId)
}
