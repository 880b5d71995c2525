/**
 * Writes records to the journal and has them flushed to the database in ranges. A flush begins at most JOURNAL_FLUSH_MS after a record, or at
 * `batchRecords` records. Only one flush runs at a time. The records themselves are only in the file, and another thread reads them there.
 * Decisions 0207 and 0530 give the reasons.
 */
import type { Clock } from '../../../platform/clock.ts'
import { DatabaseUnavailableError } from '../../../platform/db/db.ts'
import type { Log } from '../../../platform/observe/log.ts'
import type { ChargedEvent } from '../engine/admission.ts'
import { type AmountsById, batchRecords, type FlushAnswer, type Flushed, type FlushPort, type JournalRange } from './flush-work.ts'
import { type Journal, JournalWriteError } from './journal.ts'
import { readJournal } from './journal-reader.ts'
import type { EventCodec, JournalRecord } from './journal-records.ts'

/** The pause after a failed flush. */
const retryMs = 500

export interface FlusherOptions<E extends ChargedEvent> {
  readonly port: FlushPort<E>
  readonly clock: Clock
  readonly log: Log
  readonly folder: string
  readonly codec: EventCodec<E> | null
  readonly flushMs: number
  readonly maxBytes: number
  /** Is called after every commit. */
  readonly onFlushed: (flushed: Pick<Flushed, 'released' | 'spent' | 'scopes'>) => void
  /** Returns whether flushes name the scopes that have spent something. */
  readonly namesScopes: () => boolean
  /** Is called when the process is fenced. It registers the process again and gives the flusher a new journal. */
  readonly onFenced: () => Promise<void>
  /** Is called when the database has lost earlier flushes (a failover). It gets the released amounts of the lost records, which are flushed again. */
  readonly onRewound: (released: AmountsById) => void
  /** Is called when a new segment begins. It writes the running calls again. */
  readonly onRotated: () => void
}

/** The records that go to the journal together. */
interface Turn<E extends ChargedEvent> {
  readonly records: JournalRecord<E>[]
  /** Resolves when the records are in the page cache. Null while no caller waits for that. */
  written: Written | null
  /** The callers that wait for the commit. */
  readonly commits: Omit<Waiter, 'offset'>[]
}

interface Written {
  readonly promise: Promise<void>
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

interface Waiter {
  readonly offset: number
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** The journal writer and flusher of this process. */
export class Flusher<E extends ChargedEvent> {
  readonly #options: FlusherOptions<E>
  #journal: Journal<E>
  #processId: bigint
  /** The number of records that are not in the database. After a failover it is too low until all are flushed. */
  #waiting = 0
  /** Records that neither the disk nor the database has taken yet. Their event ids keep them from counting twice, whatever the result of an earlier try was. */
  #owed: JournalRecord<E>[] = []
  #turn: Turn<E> | null = null
  #flushedTo = 0
  #waiters: Waiter[] = []
  #running: Promise<void> | null = null
  #cancelTimer: (() => void) | null = null
  /** True between a failed flush and the next one. */
  #isPausing = false
  #isRotating = false
  readonly #backlogAge = new BacklogAge()
  readonly #now = (): number => this.#options.clock.monotonicMs()
  #failures = 0
  #chain: Promise<unknown> = Promise.resolve()

  constructor(options: FlusherOptions<E>, processId: bigint, journal: Journal<E>) {
    this.#options = options
    this.#processId = processId
    this.#journal = journal
  }

  /** The process that writes the journal. */
  get processId(): bigint {
    return this.#processId
  }

  /** The bytes of the journal that are not yet in the database. */
  get unflushedBytes(): number {
    return this.#journal.endOffset - this.#flushedTo
  }

  /** The waiting time of the oldest record that is not in the database, in milliseconds. It is exact to the time between two flushes. */
  get lagMs(): number {
    return this.#backlogAge.at(this.#now())
  }

  /** The number of failed flushes. */
  get failures(): number {
    return this.#failures
  }

  get isFull(): boolean {
    return this.unflushedBytes > this.#options.maxBytes
  }

  /** Writes a record. The record is in the page cache on return. Throws `JournalWriteError`. */
  append(record: JournalRecord<E>): void {
    this.#writeTurn()
    this.#appendAll([record])
  }

  /**
   * Writes a record together with all others of this turn of the event loop, so that many connections need one system call. Resolves when the
   * record is in the page cache. Rejects with `JournalWriteError`.
   */
  appendSoon(record: JournalRecord<E>): Promise<void> {
    const turn = this.#addToTurn(record)
    turn.written ??= newWritten()
    return turn.written.promise
  }

  /**
   * Writes a record as `appendSoon` does, and resolves when it is committed, however long the database is away. A fence does not end the wait,
   * because the record is then committed by the new registration. Rejects with `JournalWriteError`, and with `DatabaseUnavailableError` when the
   * process ends or when the disk does not take the record after a fence.
   */
  appendCommitted(record: JournalRecord<E>): Promise<void> {
    const turn = this.#addToTurn(record)
    return new Promise((resolve, reject) => turn.commits.push({ resolve, reject }))
  }

  /** The committed bytes of the journal, as far as this process knows. */
  get flushedTo(): number {
    return this.#flushedTo
  }

  /** Sends the records after this offset again, because the database has lost their commit. `processId` guards against a new journal. */
  rewind(processId: bigint, flushTo: number): Promise<void> {
    return this.exclusive(async () => {
      if (processId !== this.#processId || flushTo >= this.#flushedTo) return
      this.#moveTo(flushTo, await this.#options.port.lost({ processId, from: flushTo, to: this.#flushedTo }))
    })
  }

  /** Flushes all records in the journal. Throws when the database is away. */
  async flushNow(): Promise<void> {
    this.#writeTurn()
    let journal = this.#journal
    let target = journal.endOffset
    while (this.#flushedTo < target || this.#owed.length > 0) {
      await (this.#running ?? this.#run())
      if (journal === this.#journal) continue
      // The process was fenced in the meantime. The rest is in a new journal, whose offsets begin at 0.
      journal = this.#journal
      target = journal.endOffset
    }
  }

  /** Runs `fn` while no flush runs. */
  exclusive<T>(fn: () => Promise<T>): Promise<T> {
    const next = this.#chain.then(fn, fn)
    this.#chain = next.catch(() => undefined)
    return next
  }

  /**
   * Writes a record that the disk did not take directly to the database. Resolves when it is committed. When this fails as well it throws, and
   * the record is kept in memory and tried again until the database takes it.
   */
  async writeDirect(record: JournalRecord<E>): Promise<void> {
    this.#owed.push(record)
    try {
      await this.exclusive(() => this.#payOwed(record))
    } catch (error) {
      this.#failed(error)
      throw error
    }
  }

  /**
   * Takes over a new process id and journal. The settlements that are not in the database yet are written again, and who waits for their commit
   * waits for the new journal. A settlement that the new journal does not take is owed, and its waiters get `DatabaseUnavailableError`.
   */
  renew(processId: bigint, journal: Journal<E>): void {
    this.#writeTurn()
    const rest = [...readJournal<E>(this.#options.folder, this.#processId, this.#flushedTo, this.#options.codec)]
    const waiters = this.#waiters
    this.#waiters = []
    this.#journal.close()
    this.#journal = journal
    this.#processId = processId
    this.#waiting = 0
    this.#flushedTo = 0
    this.#backlogAge.clear()
    // The process that fenced this one owns their leases. Their charges are still written by this process.
    this.#owed = this.#owed.map(record => ('released' in record ? { ...record, released: [] } : record))
    const settled = rest.flatMap(({ record }) => (record.kind === 'settle' ? [{ ...record, released: [] }] : []))
    if (this.#writeAgain(settled)) for (const waiter of waiters) this.#waiters.push({ ...waiter, offset: journal.endOffset })
    else for (const waiter of waiters) waiter.reject(new DatabaseUnavailableError('the process was fenced'))
    // When all of them are in the database already, no flush would end these waits.
    this.#advance(this.#flushedTo)
  }

  /** Returns false when the disk did not take the records, which are owed then. */
  #writeAgain(settled: JournalRecord<E>[]): boolean {
    try {
      for (const record of settled) this.#appendAll([record])
      return true
    } catch (error) {
      if (!(error instanceof JournalWriteError)) throw error
      // Those that were written are owed too, because their event ids keep them from counting twice.
      this.#owed.push(...settled)
      this.#failed(error)
      return false
    }
  }

  /** Writes the journal from the page cache to the disk. */
  sync(): Promise<void> {
    return this.#journal.sync()
  }

  /** Deletes old segments. */
  expire(keepMs: number): void {
    this.#journal.expire(this.#flushedTo, keepMs, this.#options.clock.nowMs())
  }

  /** Closes the journal and ends the work of flushes. */
  async close(): Promise<void> {
    this.#writeTurn()
    this.#cancelTimer?.()
    this.#cancelTimer = null
    for (const waiter of this.#waiters.splice(0)) waiter.reject(new DatabaseUnavailableError('the process ends'))
    this.#journal.close()
    await this.#options.port.close()
  }

  #writeTurn(): void {
    const turn = this.#turn
    if (turn === null) return
    this.#turn = null
    try {
      const offset = this.#appendAll(turn.records)
      turn.written?.resolve()
      // They wait from here on, so a fence in the same turn of the event loop finds them.
      for (const commit of turn.commits) this.#waiters.push({ offset, ...commit })
      // A flush begins immediately, and all that come while it runs share the next one. After a failed flush it waits for the pause.
      if (turn.commits.length > 0 && !this.#isPausing) this.#start()
    } catch (error) {
      turn.written?.reject(error)
      for (const commit of turn.commits) commit.reject(error)
    }
  }

  #addToTurn(record: JournalRecord<E>): Turn<E> {
    if (this.#turn === null) {
      this.#turn = { records: [], written: null, commits: [] }
      setImmediate(() => this.#writeTurn())
    }
    this.#turn.records.push(record)
    return this.#turn
  }

  #appendAll(records: readonly JournalRecord<E>[]): number {
    if (this.#journal.isSegmentFull && !this.#isRotating) this.#rotate()
    this.#journal.append(records)
    this.#backlogAge.appended(this.#now)
    this.#waiting += records.length
    if (this.#waiting >= batchRecords) this.#start()
    else this.#cancelTimer ??= this.#options.clock.after(this.#options.flushMs, () => this.#start())
    return this.#journal.endOffset
  }

  #rotate(): void {
    // All running calls are written again into the new segment, even when they fill it.
    this.#isRotating = true
    try {
      if (this.#journal.rotate()) this.#options.onRotated()
    } finally {
      this.#isRotating = false
    }
  }

  #start(): void {
    this.#isPausing = false
    this.#cancelTimer?.()
    this.#cancelTimer = null
    if (this.#running === null) this.#run().catch(error => this.#failed(error))
  }

  #failed(error: unknown): void {
    this.#failures++
    if (!(error instanceof DatabaseUnavailableError)) this.#options.log.error('flush_failed', { error, processId: String(this.#processId) })
    this.#isPausing = true
    this.#cancelTimer ??= this.#options.clock.after(retryMs, () => this.#start())
  }

  #run(): Promise<void> {
    this.#running = this.exclusive(() => this.#drain()).then(
      () => {
        this.#running = null
        // The timer of these records fired while this flush ran.
        if (this.#cancelTimer === null && this.unflushedBytes > 0) this.#start()
      },
      error => {
        this.#running = null
        throw error
      },
    )
    return this.#running
  }

  /**
   * Flushes batch by batch. Records that come in the meantime wait for their own timer, unless they fill a batch or a caller waits for their
   * commit. Flushing them immediately would make a transaction of every few calls, as fast as the database takes them.
   */
  async #drain(): Promise<void> {
    await this.#payOwed()
    const target = this.#journal.endOffset
    while (this.#flushedTo < this.#journal.endOffset) {
      if (this.#flushedTo >= target && this.#waiting < batchRecords && this.#waiters.length === 0) break
      const answer = await this.#options.port.flush(this.#range())
      if (answer.kind === 'fenced') await this.#options.onFenced()
      else if (answer.kind === 'elsewhere') this.#moveTo(answer.flushTo, answer.released)
      else {
        this.#waiting = Math.max(0, this.#waiting - answer.records)
        this.#advance(answer.flushedTo)
        this.#options.onFlushed(answer)
      }
    }
  }

  #range(): JournalRange {
    const range = { processId: this.#processId, from: this.#flushedTo, to: this.#journal.endOffset }
    return this.#options.namesScopes() ? { ...range, namesScopes: true } : range
  }

  /** Writes the owed records in their order. When `last` is given, it stops after that record. */
  async #payOwed(last?: JournalRecord<E>): Promise<void> {
    for (let record = this.#owed[0]; record !== undefined; record = this.#owed[0]) {
      const answer: FlushAnswer = await this.#options.port.write(this.#processId, record)
      if (answer.kind === 'fenced') await this.#options.onFenced()
      else if (answer.kind === 'done') {
        this.#owed.shift()
        this.#options.onFlushed(answer)
        if (record === last) return
      }
    }
  }

  /** Adopts the database's offset. Records before it are in the database. Records after it are sent again from the kept segments. */
  #moveTo(flushTo: number, released: AmountsById): void {
    if (flushTo > this.#flushedTo) this.#options.onFlushed({ released, spent: new Map() })
    else this.#options.onRewound(released)
    this.#advance(flushTo)
  }

  #advance(offset: number): void {
    this.#flushedTo = offset
    if (offset >= this.#journal.endOffset) this.#waiting = 0
    this.#backlogAge.flushed(offset, this.#journal.endOffset, this.#now())
    const ready = this.#waiters.filter(waiter => waiter.offset <= offset)
    if (ready.length === 0) return
    this.#waiters = this.#waiters.filter(waiter => waiter.offset > offset)
    for (const waiter of ready) waiter.resolve()
  }
}

function newWritten(): Written {
  let resolve = (): void => {}
  let reject = (_error: unknown): void => {}
  const promise = new Promise<void>((done, failed) => {
    resolve = done
    reject = failed
  })
  return { promise, resolve, reject }
}

/**
 * Measures how long the records of the journal wait for the database, without a time for each record. The result is exact to the time between
 * two flushes. It shows a flusher that stays behind although each of its flushes succeeds.
 */
export class BacklogAge {
  /** The time of the oldest waiting record, or of the flush before it. Null when no record waits. */
  #sinceMs: number | null = null
  /** The ends of the journal at earlier flushes. A record after such an end came after the time of that flush. */
  #marks: { readonly offset: number; readonly atMs: number }[] = []

  /** Notes that a record was written. It reads the clock only when no record was waiting. */
  appended(nowMs: () => number): void {
    this.#sinceMs ??= nowMs()
  }

  /** Notes that everything before `offset` is in the database and that the journal ends at `endOffset`. */
  flushed(offset: number, endOffset: number, nowMs: number): void {
    if (offset >= endOffset) {
      this.clear()
      return
    }
    while ((this.#marks[0]?.offset ?? Number.POSITIVE_INFINITY) <= offset) this.#sinceMs = this.#marks.shift()?.atMs ?? null
    this.#marks.push({ offset: endOffset, atMs: nowMs })
  }

  /** Notes that no record waits. */
  clear(): void {
    this.#sinceMs = null
    this.#marks = []
  }

  /** Returns the waiting time in milliseconds, or 0 when no record waits. */
  at(nowMs: number): number {
    return this.#sinceMs === null ? 0 : nowMs - this.#sinceMs
  }
}
