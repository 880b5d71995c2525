/**
 * Takes records into the journal and moves them to the database in ranges: at most JOURNAL_FLUSH_MS after a record, or at
 * `batchRecords`. Only one flush runs at a time. Decision 0207 says why.
 */
import type { Clock } from '../../../platform/clock.ts'
import { DatabaseUnavailableError } from '../../../platform/db/db.ts'
import type { Log } from '../../../platform/observe/log.ts'
import type { ChargedEvent } from '../engine/admission.ts'
import { batchOf, type FlushResult, type FlushTools, releasedBy } from './flush-batch.ts'
import { flushEntries, PortionSize } from './flush-entries.ts'
import { type Entry, type Journal, readJournal } from './journal.ts'
import type { JournalRecord } from './journal-records.ts'

/** Most records of one transaction. */
const batchRecords = 2000
/** Records kept in memory; beyond it they are read back from the journal. */
const queueMax = 20_000
/** In which states a process may write its own journal. */
const ownStates = ['live', 'closing'] as const
/** Pause after a failed flush. */
const retryMs = 500

/** Takes the place in the queue of records that matter to an adopter only, so that their events need not be kept until the next flush. */
const withoutEffect: Extract<JournalRecord<ChargedEvent>, { readonly kind: 'return' }> = { kind: 'return', released: [] }

export interface FlusherOptions<E extends ChargedEvent> {
  readonly tools: FlushTools<E>
  readonly clock: Clock
  readonly log: Log
  readonly folder: string
  readonly flushMs: number
  readonly maxBytes: number
  /** Called after every commit, with what left the leases and how the counters stand. */
  readonly onFlushed: (result: Extract<FlushResult, { kind: 'done' }>) => void
  /** Called when the process is fenced: it registers again and gives the flusher a new journal. */
  readonly onFenced: () => Promise<void>
  /** Called when the database has lost what was flushed before (a failover), with what the records that are flushed again release. */
  readonly onRewound: (released: ReadonlyMap<bigint, bigint>) => void
  /** Called when a new segment begins: running calls are written again. */
  readonly onRotated: () => void
}

/** Records that go to the journal together. */
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

/** Journal writer and flusher of this process. */
export class Flusher<E extends ChargedEvent> {
  readonly #options: FlusherOptions<E>
  #journal: Journal<E>
  #processId: bigint
  #queue: Entry<E>[] = []
  /** Records that neither the disk nor the database has taken yet. Their event ids keep them single, whatever became of an earlier try. */
  #owed: JournalRecord<E>[] = []
  /** True when records behind the queue are only in the file. */
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

  /** Whose journal it writes. */
  get processId(): bigint {
    return this.#processId
  }

  /** Bytes that are in the journal and not yet in the database. */
  get unflushedBytes(): number {
    return this.#journal.endOffset - this.#flushedTo
  }

  /** How long the oldest record that is not in the database has been waiting, exact to the time between two flushes. */
  get lagMs(): number {
    return this.#backlogAge.at(this.#now())
  }

  /** Flushes that have failed so far. */
  get failures(): number {
    return this.#failures
  }

  get isFull(): boolean {
    return this.unflushedBytes > this.#options.maxBytes
  }

  /** Writes a record; it is in the page cache on return. Throws JournalWriteError. */
  append(record: JournalRecord<E>): void {
    this.#writeTurn()
    this.#appendAll([record])
  }

  /**
   * Writes a record together with all others of this turn of the event loop: one system call for all that many connections bring at
   * once. Resolves to an offset behind the record when it is in the page cache; rejects with JournalWriteError.
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

  /** Bytes of the journal that were committed, as far as this process knows. */
  get flushedTo(): number {
    return this.#flushedTo
  }

  /** The database has lost what was committed behind this offset: it is sent again. `processId` guards against a new journal. */
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

  /** Flushes what is in the journal now. Throws when the database is away. */
  async flushNow(): Promise<void> {
    this.#writeTurn()
    let journal = this.#journal
    let target = journal.endOffset
    while (this.#flushedTo < target || this.#owed.length > 0) {
      await (this.#running ?? this.#run())
      if (journal === this.#journal) continue
      // Fenced meanwhile: the rest is in a new journal, whose offsets begin at 0.
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
   * A record that the disk did not take goes straight to the database; resolves when it is committed. When that fails as well it throws,
   * and the record is kept in memory and tried again until the database takes it.
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

  /** Takes over with a new process id and journal; records that are not in the database yet are returned for the caller to write again. */
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
    // What they leased belongs to whoever fenced this process; the charges are still this process's to write.
    this.#owed = this.#owed.map(record => ('released' in record ? { ...record, released: [] } : record))
    for (const waiter of this.#waiters.splice(0)) waiter.reject(new DatabaseUnavailableError('the process was fenced'))
    return rest.map(entry => entry.record)
  }

  /** Brings the journal to the disk itself. */
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
    // The running calls are written again into the new segment, however many they are.
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
        // Records whose timer fired while this flush ran.
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
   * Flushes batch by batch. What is written meanwhile waits for its own timer unless it fills a batch or somebody waits for its
   * commit: flushing it immediately would make a transaction of every few calls, as fast as the database takes them.
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

  /** Writes what is owed, in its order; up to one record when one is named. */
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

  /** The database knows another offset: what is before it is in the database, what is behind it is sent again from the kept segments. */
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
 * How long the records of the journal have been waiting for the database, without a note of each record: exact to the time between two
 * flushes. A flusher that is behind all the time shows how far, although each of its flushes succeeds.
 */
export class BacklogAge {
  /** When the oldest record that waits came, or the flush before it; null: nothing waits. */
  #sinceMs: number | null = null
  /** Ends of the journal at earlier flushes: what is behind one of them came after its time. */
  #marks: { readonly offset: number; readonly atMs: number }[] = []

  /** Something was written. Asks the time only when nothing was waiting. */
  appended(nowMs: () => number): void {
    this.#sinceMs ??= nowMs()
  }

  /** Everything before `offset` is in the database; the journal ends at `endOffset`. */
  flushed(offset: number, endOffset: number, nowMs: number): void {
    if (offset >= endOffset) {
      this.clear()
      return
    }
    while ((this.#marks[0]?.offset ?? Number.POSITIVE_INFINITY) <= offset) this.#sinceMs = this.#marks.shift()?.atMs ?? null
    this.#marks.push({ offset: endOffset, atMs: nowMs })
  }

  /** Nothing waits any more. */
  clear(): void {
    this.#sinceMs = null
    this.#marks = []
  }

  /** In milliseconds; 0: nothing waits. */
  at(nowMs: number): number {
    return this.#sinceMs === null ? 0 : nowMs - this.#sinceMs
  }
}
