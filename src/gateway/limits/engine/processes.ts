/**
 * The state of this process that the others see: its row, its beat and its socket. It also reads the number of live processes and the database's
 * clock. Decision 0020 gives the reasons.
 */
import type { Server } from 'node:net'
import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import { journalsIn } from '../journal/journal.ts'
import { bootId, holdSocket, removeSocket } from './liveness.ts'
import { beat, insertProcess, setProcessState } from './queries.ts'

/** A process without a beat for this time does not count in the size of slices. The project chose the number. */
const aliveMs = 15_000n

export interface RegistryOptions {
  readonly db: Db
  readonly clock: Clock
  readonly folder: string
  /** True when periods follow the database's clock, so that processes with different clocks agree. False when the injected clock is used as it is. */
  readonly followDatabaseClock: boolean
  readonly offlineMaxMs: number
}

/** The registration, the beats and the offline rule of one process. */
export class ProcessRegistry {
  readonly #options: RegistryOptions
  #id = 0n
  #server: Server | null = null
  #live = 1
  #offsetMs = 0
  #flushTo = 0n
  #contactMonotonicMs: number
  #contactWallMs: number

  constructor(options: RegistryOptions) {
    this.#options = options
    this.#contactMonotonicMs = options.clock.monotonicMs()
    this.#contactWallMs = options.clock.nowMs()
  }

  get id(): bigint {
    return this.#id
  }

  /** The number of live processes on this database, including this one. */
  get live(): number {
    return this.#live
  }

  /** The journal offset in the database at the last beat. */
  get flushTo(): number {
    return Number(this.#flushTo)
  }

  /** Returns the time of the database's clock in Unix milliseconds, as far as it is known. */
  nowMs(): number {
    return this.#options.clock.nowMs() + this.#offsetMs
  }

  /** False when the last answered beat is OFFLINE_MAX ago, by the monotonic or the wall clock. No call may then be served. */
  get isInTouch(): boolean {
    const { clock, offlineMaxMs } = this.#options
    return clock.monotonicMs() - this.#contactMonotonicMs < offlineMaxMs && clock.nowMs() - this.#contactWallMs < offlineMaxMs
  }

  /** Makes a new row, its beat and its socket. It is called at the start and again after a fence. */
  async register(): Promise<void> {
    const { db, folder } = this.#options
    let { id } = await db.one(insertProcess, bootId(), folder)
    // The database was restored to an earlier moment, and another process has used this id since. The row is left to the replay of that process's
    // journal.
    for (const taken = new Set(journalsIn(folder)); taken.has(id); ) id = (await db.one(insertProcess, bootId(), folder)).id
    removeSocket(folder, id)
    const server = await holdSocket(folder, id)
    this.#closeSocket()
    this.#id = id
    this.#server = server
    await this.beat()
  }

  /** Makes one beat. Returns false when this process was fenced and must register again. Throws when the database is away. */
  async beat(): Promise<boolean> {
    const { db, clock, followDatabaseClock } = this.#options
    const sentMs = clock.nowMs()
    const row = await db.one(beat, this.#id, aliveMs)
    this.#live = Math.max(1, row.live)
    this.#flushTo = row.flushTo ?? 0n
    this.touch()
    if (followDatabaseClock) this.#offsetMs = Math.round(row.nowMs - (sentMs + clock.nowMs()) / 2)
    return row.beating > 0
  }

  /** Notes that the database answered. */
  touch(): void {
    this.#contactMonotonicMs = this.#options.clock.monotonicMs()
    this.#contactWallMs = this.#options.clock.nowMs()
  }

  async setState(from: readonly string[], to: 'closing'): Promise<void> {
    await this.#options.db.exec(setProcessState, this.#id, from, to)
  }

  /** Closes the socket. From then on an adopter may take over the rest of this process. */
  release(): void {
    this.#closeSocket()
  }

  #closeSocket(): void {
    this.#server?.close()
    this.#server = null
    removeSocket(this.#options.folder, this.#id)
  }
}
