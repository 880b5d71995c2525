/**
 * Adopts dead processes whose journal is in this folder. It replays the journal to its end, writes one flagged event for every call that was
 * running, and only then gives the leases back.
 */
import type { Clock } from '../../../platform/clock.ts'
import { DatabaseUnavailableError, type Tx } from '../../../platform/db/db.ts'
import type { Log } from '../../../platform/observe/log.ts'
import type { ChargedEvent } from '../engine/admission.ts'
import { askSocket, bootId, removeSocket } from '../engine/liveness.ts'
import { findProcess, lockLeasedCounters, lockProcessForAdoption, returnAllLeases, setProcessState } from '../engine/queries.ts'
import type { FlushRange, FlushTools } from './flush-batch.ts'
import { flushEntries, PortionSize } from './flush-entries.ts'
import { deleteJournal, journalsIn, lastWriteMs } from './journal.ts'
import { type Entry, readJournal } from './journal-reader.ts'
import type { Amounts, Charge, JournalRecord } from './journal-records.ts'
import { insertForgotten } from './restored-queries.ts'

/** The records of one replay transaction. */
const replayRecords = 500

export interface JanitorOptions<E extends ChargedEvent> {
  readonly tools: FlushTools<E>
  readonly clock: Clock
  readonly log: Log
  readonly folder: string
  /** Ends other work that the dead process had begun. It runs in the transaction that closes the process, after the events of its calls. */
  readonly endOf?: (tx: Tx, processId: bigint) => Promise<void>
}

/** What a round needs to know of the process that asks for it. */
export interface AdoptionRound {
  /** The process that asks. */
  readonly ownId: bigint
  /** A process of another boot counts as dead only after this time without a beat. */
  readonly silentMs: number
  /** The time for which the journal of a closed process stays. */
  readonly keepMs: number
}

/** The number of records after which the scan for running calls lets other work run. */
const scanRecords = 5000

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

  /** Runs one round, or waits for the one that runs. Returns the number of adopted processes. */
  runOnce(round: AdoptionRound): Promise<number> {
    this.#running ??= this.#round(round).finally(() => {
      this.#running = null
    })
    return this.#running
  }

  async #round(round: AdoptionRound): Promise<number> {
    const { folder, log } = this.#options
    let adopted = 0
    for (const id of journalsIn(folder)) {
      if (id === round.ownId) continue
      try {
        if (await this.#look(id, round)) adopted++
      } catch (error) {
        // A database that is away stops the whole round. One unreadable journal must not delay the others.
        if (error instanceof DatabaseUnavailableError) throw error
        log.error('journal_not_adopted', { error, processId: String(id) })
      }
    }
    return adopted
  }

  /** Checks one process. Returns true when the process was adopted. */
  async #look(id: bigint, { silentMs, keepMs }: AdoptionRound): Promise<boolean> {
    const { tools } = this.#options
    let found = await tools.db.maybe(findProcess, id, BigInt(silentMs))
    if (found === null) {
      // Rows of processes are never deleted. So the database was restored to a moment before this process registered.
      await tools.db.one(insertForgotten, id, this.#options.folder)
      found = await tools.db.maybe(findProcess, id, BigInt(silentMs))
    }
    if (found === null || found.state === 'closed') {
      this.#discard(id, keepMs)
      return false
    }
    return (await this.#isDead(id, found)) && (await this.#adopt(id))
  }

  /**
   * Returns true when the process is dead. Under the same kernel a refused connection proves death. Under another boot the process must also be
   * silent. A missing socket proves nothing when the owner kept its journal in another folder. This journal may then be a copy of the journal of
   * a living process.
   */
  async #isDead(id: bigint, found: { bootId: string; journal: string; silent: boolean }): Promise<boolean> {
    const { tools, folder } = this.#options
    const answer = await askSocket(folder, id)
    if (answer === 'alive') return false
    if (found.silent || tools.db.kind === 'embedded') return true
    return found.bootId === bootId() && (answer === 'refused' || found.journal === folder)
  }

  #discard(id: bigint, keepMs: number): void {
    const { folder, clock } = this.#options
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
    const states = ['lost']
    const endOffset = await this.#write({ processId: id, states, from }, readJournal<E>(folder, id, from, tools.codec))
    if (endOffset === null) return false
    // These rows are written before the leases go back, so that the running calls are counted before their holds are free.
    const running = await runningCalls(readJournal<E>(folder, id, 0, tools.codec))
    if (
      (await this.#write(
        { processId: id, states, from: endOffset },
        running.map(call => interrupted(call, endOffset)),
      )) === null
    )
      return false
    const isClosed = await this.#close(id, endOffset)
    if (isClosed) {
      removeSocket(folder, id)
      log.warn('process_adopted', { processId: String(id), count: running.length, bytes: endOffset })
    }
    return isClosed
  }

  /**
   * Writes all entries to the database. Returns the offset of the end, or null when another adopter works on this journal. When an entry cannot be
   * read, the entries before it are written, and then the reader's error is thrown.
   */
  async #write(range: Omit<FlushRange, 'to'>, entries: Iterable<Entry<E>>): Promise<number | null> {
    const portion = new PortionSize(replayRecords)
    let at = range.from
    let waiting: Entry<E>[] = []
    const write = async (): Promise<boolean> => {
      while (waiting.length > 0) {
        const next = waiting.slice(0, portion.records)
        const result = await flushEntries(this.#options.tools, { ...range, from: at }, next)
        if (portion.follow(result)) continue
        if (result.kind !== 'done') return false
        at = next[next.length - 1]?.endOffset ?? at
        waiting = waiting.slice(next.length)
      }
      return true
    }
    for (const entry of withoutThrow(entries)) {
      if (entry instanceof Unreadable) {
        await write()
        throw entry.cause
      }
      waiting.push(entry)
      if (waiting.length >= replayRecords && !(await write())) return null
    }
    return (await write()) ? at : null
  }

  #close(id: bigint, endOffset: number): Promise<boolean> {
    const { tools, endOf } = this.#options
    return tools.db.tx(async tx => {
      const row = await tx.maybe(lockProcessForAdoption, id)
      if (row === null || row.state !== 'lost' || Number(row.flushTo) !== endOffset) return false
      await endOf?.(tx, id)
      await tx.many(lockLeasedCounters, id)
      await tx.exec(returnAllLeases, id)
      await tx.exec(setProcessState, id, ['lost'], 'closed')
      return true
    })
  }
}

/** Takes the place of an entry that cannot be read. */
class Unreadable {
  readonly cause: unknown

  constructor(cause: unknown) {
    this.cause = cause
  }
}

/** Yields the entries, and the reader's error as the last one instead of throwing it. */
function* withoutThrow<T>(entries: Iterable<T>): Generator<T | Unreadable> {
  try {
    yield* entries
  } catch (cause) {
    yield new Unreadable(cause)
  }
}

/**
 * Returns the end of a call that was running when its process died. `outcome` and `estimated` are the only fields of an event that limits set
 * beside its money.
 */
function interrupted<E extends ChargedEvent>({ event, charge, counts }: RunningCall<E>, endOffset: number): Entry<E> {
  return { record: { kind: 'settle', event: { ...event, outcome: 'interrupted', estimated: true }, charge, counts, released: [] }, endOffset }
}

/** Returns the calls with an `open` record and no end, with their last draft. The journal may have an hour of calls, so other work runs in between. */
async function runningCalls<E extends ChargedEvent>(entries: Iterable<Entry<E>>): Promise<RunningCall<E>[]> {
  const calls = new Map<string, RunningCall<E>>()
  let read = 0
  for (const { record } of entries) {
    note(calls, record)
    read++
    if (read % scanRecords === 0) await new Promise(resolve => setImmediate(resolve))
  }
  return [...calls.values()]
}

function note<E extends ChargedEvent>(calls: Map<string, RunningCall<E>>, record: JournalRecord<E>): void {
  if (record.kind === 'open' || record.kind === 'progress') calls.set(record.event.id, { event: record.event, charge: record.charge, counts: record.counts })
  else if (record.kind === 'settle') calls.delete(record.event.id)
  else if (record.kind === 'close') calls.delete(record.eventId)
}
