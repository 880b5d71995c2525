/**
 * Delivers changes of memory (`memory.changed`) to listeners in this process. Every settled write adds a row to memory_changes. Each process that has
 * listeners reads the new rows after a notification. It also polls, in case a notification is lost.
 */
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db/db.ts'
import { newsChannel } from '../../platform/db/db-control-log.ts'
import type { Log } from '../../platform/observe/log.ts'
import type { ChangeAction } from '../access/memory-call.ts'
import { type AuthorView, authorInRow } from '../provenance.ts'
import { type ChangeRow, deleteOldChanges, readChanges } from './changes-queries.ts'

/** The change of one object, without its content. The listener checks who may know about the key. */
export interface MemoryChange {
  readonly orgId: number
  readonly key: string
  readonly action: ChangeAction
  /** Null when the object was deleted. */
  readonly etag: string | null
  /** Null when the change did not come through the gateway, and for changes that the gateway makes by itself. */
  readonly author: AuthorView | null
  /** Time of the database. */
  readonly at: Date
}

export type ChangeListener = (change: MemoryChange) => void

export interface MemoryChangesDeps {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
}

/** The payload of a notification that memory has changed. */
const payload = 'm:'
/** Minimum time between two notifications of a process, whatever the number of writes. A notification takes an instance-wide lock at its commit. */
const notifyEveryMs = 250
/** Maximum delay of a change when notifications are lost. */
const pollMs = 1_000
/** Every read goes back this far before the last one, because transactions can commit in another order than their sequence numbers. */
const overlapMs = 5_000
const pageRows = 1_000

interface Audience {
  readonly listeners: Set<ChangeListener>
  /** The delivered changes that may be read again within the overlap. Null until the first read. */
  seen: Set<bigint> | null
}

/** Delivers every change of an organisation to its listeners in this process, at least once, whichever process made it. */
export class MemoryChanges {
  readonly #deps: MemoryChangesDeps
  readonly #audiences = new Map<number, Audience>()
  #readAt: Date | null = null
  #reading: Promise<void> | null = null
  #readAgain = false
  #stopPoll: (() => void) | null = null
  #isNotifyDue = false
  #notifyTimer: (() => void) | null = null
  #isStopped = false

  constructor(deps: MemoryChangesDeps) {
    this.#deps = deps
  }

  /**
   * Calls `listener` for every change after this promise resolves, until the returned function is called. After a failure of the database, a change may be
   * delivered twice. An exception of the listener is logged.
   */
  async on(orgId: number, listener: ChangeListener): Promise<() => void> {
    if (this.#audiences.size === 0) this.#readAt = null
    const audience = this.#audiences.get(orgId) ?? { listeners: new Set<ChangeListener>(), seen: null }
    this.#audiences.set(orgId, audience)
    this.#stopPoll ??= this.#deps.clock.every(pollMs, () => this.wake())
    const off = (): void => this.#off(orgId, audience, listener)
    try {
      // The first read finds changes that were made before the listener came. They are not delivered.
      while (audience.seen === null) await this.#read()
    } catch (error) {
      off()
      throw error
    }
    audience.listeners.add(listener)
    return off
  }

  #off(orgId: number, audience: Audience, listener: ChangeListener): void {
    audience.listeners.delete(listener)
    if (audience.listeners.size === 0) this.#audiences.delete(orgId)
    if (this.#audiences.size > 0) return
    this.#stopPoll?.()
    this.#stopPoll = null
  }

  /** Tells the listeners of this process, and the other processes, to read the changes after a settled write. Does so at most once in `notifyEveryMs`. */
  announce(): void {
    if (this.#isStopped) return
    if (this.#notifyTimer !== null) {
      this.#isNotifyDue = true
      return
    }
    this.#notify()
    this.#notifyTimer = this.#deps.clock.after(notifyEveryMs, () => {
      this.#notifyTimer = null
      if (!this.#isNotifyDue) return
      this.#isNotifyDue = false
      this.announce()
    })
  }

  /** Reads a notification of the channel and ignores notifications with another payload. */
  onNotification(text: string): void {
    if (text === payload) this.wake()
  }

  /** Reads new changes if this process has listeners. */
  wake(): void {
    if (this.#audiences.size === 0 || this.#isStopped) return
    if (this.#reading !== null) {
      // A read that is already running may have begun before the commit.
      this.#readAgain = true
      return
    }
    void this.#read().catch((error: unknown) => this.#deps.log.warn('memory.changes_unread', { error }))
  }

  /** Deletes rows that are older than an hour. Returns their number. */
  prune(): Promise<number> {
    return this.#deps.db.exec(deleteOldChanges)
  }

  stop(): void {
    this.#isStopped = true
    this.#stopPoll?.()
    this.#notifyTimer?.()
    this.#audiences.clear()
  }

  #notify(): void {
    this.wake()
    void this.#deps.db.notify(newsChannel, payload).catch((error: unknown) => this.#deps.log.warn('memory.changes_unannounced', { error }))
  }

  /** Runs one read at a time. A caller that arrives during a read waits for it. */
  #read(): Promise<void> {
    this.#reading ??= this.#readOnce().finally(() => {
      this.#reading = null
      if (!this.#readAgain) return
      this.#readAgain = false
      this.wake()
    })
    return this.#reading
  }

  async #readOnce(): Promise<void> {
    const audiences = new Map(this.#audiences)
    const inWindow = new Map<number, Set<bigint>>([...audiences.keys()].map(orgId => [orgId, new Set<bigint>()]))
    let now: Date | null = null
    let afterSeq: bigint | null = null
    for (;;) {
      const rows: ChangeRow[] = await this.#deps.db.many(readChanges, [...audiences.keys()], this.#readAt, overlapMs, afterSeq, pageRows)
      now ??= rows[0]?.now ?? null
      for (const row of rows) {
        if (row.seq === null) continue
        inWindow.get(row.orgId)?.add(row.seq)
        const audience = audiences.get(row.orgId)
        if (audience?.seen?.has(row.seq) === false) this.#deliver(audience, row)
      }
      if (rows.length < pageRows) break
      afterSeq = rows.at(-1)?.seq ?? null
    }
    // Rows outside the window cannot be read again, so only the numbers of this window are remembered.
    for (const [orgId, audience] of audiences) audience.seen = inWindow.get(orgId) ?? new Set()
    this.#readAt = now
  }

  #deliver(audience: Audience, row: ChangeRow): void {
    const change: MemoryChange = {
      orgId: row.orgId,
      key: row.key,
      action: row.action as ChangeAction,
      etag: row.etag,
      author: authorInRow(row),
      at: row.at,
    }
    for (const listener of [...audience.listeners]) {
      try {
        listener(change)
      } catch (error) {
        this.#deps.log.error('memory.change_listener_failed', { error })
      }
    }
  }
}
