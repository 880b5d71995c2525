/**
 * Writes records to the journal and flushes them to the database in ranges. A flush begins at most JOURNAL_FLUSH_MS after a record, or at
 * `batchRecords` records. Only one flush runs at a time. Decision 0207 gives the reasons.
 */
import type { Clock } from '../../../platform/clock.ts'
import { DatabaseUnavailableError } from '../../../platform/db/db.ts'
import type { Log } from '../../../platform/observe/log.ts'
import type { ChargedEvent } from '../engine/admission.ts'
import { batchOf, type FlushResult, type FlushTools, releasedBy } from './flush-batch.ts'
import { flushEntries, PortionSize } from './flush-entries.ts'
import { type Entry, type Journal, readJournal } from './journal.ts'
import type { JournalRecord } from './journal-records.ts'

/** The most records of one transaction. */
const batchRecords = 2000
/** The most records in memory. Further records are read back from the journal. */
const queueMax = 20_000
/** The states in which a process may write its own journal. */
const ownStates = ['live', 'closing'] as const
/** The pause after a failed flush. */
const retryMs = 500

/** Replaces records in the queue that only an adopter needs, so that their events are not kept in memory until the next flush. */
const withoutEffect: Extract<JournalRecord<ChargedEvent>, { readonly kind: 'return' }> = { kind: 'return', released: [] }

export interface FlusherOptions<E extends ChargedEvent> {
  readonly tools: FlushTools<E>
  readonly clock: Clock
  readonly log: Log
  readonly folder: string
  readonly flushMs: number
  readonly maxBytes: number
  /** Is called after every commit, with the released amounts and the rows of the counters. */
  readonly onFlushed: (result: Extract<FlushResult, { kind: 'done' }>) => void
  /** Is called when the process is fenced. It registers the process again and gives the flusher a new journal. */
  readonly onFenced: () => Promise<void>
  /** Is called when the database has lost earlier flushes (a failover). It gets the released amounts of the records that are flushed again. */
  readonly onRewound: (released: ReadonlyMap<bigint, bigint>) => void
  /** Is called when a new segment begins. It writes the running calls again. */
  readonly onRotated: () => void
}

/** The records that go to the journal together. */
interface Turn<E extends ChargedEvent> {
  readonly records: JournalRecord<E>[]
  readonly written: Promise<number>
  readonly resolve: (endOffset: number) => void
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
  #queue: Entry<E>[] = []
  /** Records that neither the disk nor the database has taken yet. Their event ids keep them from counting twice, whatever the result of an earlier try was. */
  #owed: JournalRecord<E>[] = []
  /** True when records after the queue are only in the file. */
  #spilled = false
  #turn: Turn<E> | null = null
  #flushedTo = 0
  #waiters: Waiter[] = []
  #running: Promise<void> | null = null
  #cancelTimer: (() => void) | null = null
  #isRotating = false
  readonly #backlogAge = new BacklogAge()
  readonly #now = (): number => this.#options.clock.monotonicMs()
  #failures = 0
  readonly #portion = new PortionSize(batchRecords)
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
   * Writes a record together with all others of this turn of the event loop, so that many connections need one system call. Resolves to an
   * offset at or after the record's end when the record is in the page cache. Rejects with `JournalWriteError`.
   */
  appendSoon(record: JournalRecord<E>): Promise<number> {
    if (this.#turn === null) {
      let resolve = (_endOffset: number): void => {}
      let reject = (_error: unknown): void => {}
      const written = new Promise<number>((done, failed) => {
        resolve = done
        reject = failed
      })
      this.#turn = { records: [], written, resolve, reject }
      setImmediate(() => this.#writeTurn())
    }
    this.#turn.records.push(record)
    return this.#turn.written
  }

  /** The committed bytes of the journal, as far as this process knows. */
  get flushedTo(): number {
    return this.#flushedTo
  }

  /** Sends the records after this offset again, because the database has lost their commit. `processId` guards against a new journal. */
  rewind(processId: bigint, flushTo: number): Promise<void> {
    return this.exclusive(async () => {
      if (processId === this.#processId && flushTo < this.#flushedTo) this.#moveTo(flushTo)
    })
  }

  /** Resolves when everything up to the offset is committed, however long the database is away. */
  whenFlushed(offset: number): Promise<void> {
    if (offset <= this.#flushedTo) return Promise.resolve()
    return new Promise((resolve, reject) => this.#waiters.push({ offset, resolve, reject }))
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

  /** Takes over a new process id and journal. Returns the records that are not in the database yet, so that the caller writes them again. */
  renew(processId: bigint, journal: Journal<E>): readonly JournalRecord<E>[] {
    this.#writeTurn()
    const rest = this.#spilled ? [...readJournal<E>(this.#options.folder, this.#processId, this.#flushedTo)] : this.#queue
    this.#journal.close()
    this.#journal = journal
    this.#processId = processId
    this.#queue = []
    this.#spilled = false
    this.#flushedTo = 0
    this.#backlogAge.clear()
    // The process that fenced this one owns their leases. Their charges are still written by this process.
    this.#owed = this.#owed.map(record => ('released' in record ? { ...record, released: [] } : record))
    for (const waiter of this.#waiters.splice(0)) waiter.reject(new DatabaseUnavailableError('the process was fenced'))
    return rest.map(entry => entry.record)
  }

  /** Writes the journal from the page cache to the disk. */
  sync(): Promise<void> {
    return this.#journal.sync()
  }

  /** Deletes old segments. */
  expire(keepMs: number): void {
    this.#journal.expire(this.#flushedTo, keepMs, this.#options.clock.nowMs())
  }

  close(): void {
    this.#writeTurn()
    this.#cancelTimer?.()
    this.#cancelTimer = null
    this.#journal.close()
  }

  #writeTurn(): void {
    const turn = this.#turn
    if (turn === null) return
    this.#turn = null
    try {
      turn.resolve(this.#appendAll(turn.records))
    } catch (error) {
      turn.reject(error)
    }
  }

  #appendAll(records: readonly JournalRecord<E>[]): number {
    if (this.#journal.isSegmentFull && !this.#isRotating) this.#rotate()
    const endOffsets = this.#journal.append(records)
    this.#backlogAge.appended(this.#now)
    for (let index = 0; index < records.length; index++) {
      const record = records[index] as JournalRecord<E>
      if (this.#spilled || this.#queue.length >= queueMax) this.#spilled = true
      else this.#queue.push({ record: record.kind === 'open' || record.kind === 'progress' ? withoutEffect : record, endOffset: endOffsets[index] ?? 0 })
    }
    if (this.#queue.length >= batchRecords) this.#start()
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
    this.#cancelTimer?.()
    this.#cancelTimer = null
    if (this.#running === null) this.#run().catch(error => this.#failed(error))
  }

  #failed(error: unknown): void {
    this.#failures++
    if (!(error instanceof DatabaseUnavailableError)) this.#options.log.error('flush_failed', { error, processId: String(this.#processId) })
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
      if (this.#flushedTo >= target && this.#queue.length < batchRecords && this.#waiters.length === 0) break
      this.#refill()
      const entries = this.#queue.slice(0, this.#portion.records)
      const last = entries[entries.length - 1]
      if (last === undefined) throw new Error('the journal has bytes that no record explains')
      const range = { processId: this.#processId, states: ownStates, from: this.#flushedTo }
      const result = await flushEntries(this.#options.tools, range, entries)
      if (this.#portion.follow(result)) continue
      if (result.kind === 'fenced') await this.#options.onFenced()
      else if (result.kind === 'elsewhere') this.#moveTo(result.flushTo)
      else if (result.kind === 'done') {
        this.#queue.splice(0, entries.length)
        this.#advance(last.endOffset)
        this.#options.onFlushed(result)
      }
    }
  }

  /** Writes the owed records in their order. When `last` is given, it stops after that record. */
  async #payOwed(last?: JournalRecord<E>): Promise<void> {
    for (let record = this.#owed[0]; record !== undefined; record = this.#owed[0]) {
      const range = { processId: this.#processId, states: ownStates, from: 0 }
      const result = await flushEntries(this.#options.tools, range, [{ record, endOffset: null }])
      if (result.kind === 'fenced') await this.#options.onFenced()
      else if (result.kind === 'done') {
        this.#owed.shift()
        this.#options.onFlushed(result)
        if (record === last) return
      } else throw new Error('a record without an offset was taken for one that has one')
    }
  }

  /** Adopts the database's offset. Records before it are in the database. Records after it are sent again from the kept segments. */
  #moveTo(flushTo: number): void {
    if (flushTo > this.#flushedTo) {
      const known = this.#queue.filter(entry => entry.endOffset <= flushTo)
      this.#queue = this.#queue.filter(entry => entry.endOffset > flushTo)
      this.#options.onFlushed({ kind: 'done', released: releasedBy(batchOf(known.map(entry => entry.record))), rows: [] })
    } else {
      this.#queue = []
      this.#spilled = true
      const again = [...readJournal<E>(this.#options.folder, this.#processId, flushTo)].map(entry => entry.record)
      this.#options.onRewound(releasedBy(batchOf(again)))
    }
    this.#flushedTo = flushTo
    this.#advance(flushTo)
  }

  #refill(): void {
    if (this.#queue.length > 0 || !this.#spilled) return
    const from = this.#flushedTo
    for (const entry of readJournal<E>(this.#options.folder, this.#processId, from)) {
      if (this.#queue.length >= queueMax) return
      this.#queue.push(entry)
    }
    this.#spilled = false
  }

  #advance(offset: number): void {
    this.#flushedTo = offset
    this.#backlogAge.flushed(offset, this.#journal.endOffset, this.#now())
    const ready = this.#waiters.filter(waiter => waiter.offset <= offset)
    if (ready.length === 0) return
    this.#waiters = this.#waiters.filter(waiter => waiter.offset > offset)
    for (const waiter of ready) waiter.resolve()
  }
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
