/**
 * This process as the others see it: its row, its beat, the socket that proves it alive, how many live processes there are and what
 * the database's clock says. Decision 0020 says why.
 */
import type { Server } from 'node:net'
import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import { journalsIn } from '../journal/journal.ts'
import { bootId, holdSocket, removeSocket } from './liveness.ts'
import { beat, insertProcess, setProcessState } from './queries.ts'

/** A process without a beat for so long is not counted when slices are sized. Ours. */
const aliveMs = 15_000n

export interface RegistryOptions {
  readonly db: Db
  readonly clock: Clock
  readonly folder: string
  /** True: periods follow the database's clock, so that processes with skewed clocks agree. False: the injected clock is the truth. */
  readonly followDatabaseClock: boolean
  readonly offlineMaxMs: number
}

/** Registration, beats and the offline rule of one process. */
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

  /** Live processes on this database, this one included. */
  get live(): number {
    return this.#live
  }

  /** How far the journal was in the database at the last beat. */
  get flushTo(): number {
    return Number(this.#flushTo)
  }

  /** Unix ms by the database's clock, as far as it is known. */
  nowMs(): number {
    return this.#options.clock.nowMs() + this.#offsetMs
  }

  /** False when the last answered beat is OFFLINE_MAX ago, by the monotonic or the wall clock: then nothing may be served. */
  get isInTouch(): boolean {
    const { clock, offlineMaxMs } = this.#options
    return clock.monotonicMs() - this.#contactMonotonicMs < offlineMaxMs && clock.nowMs() - this.#contactWallMs < offlineMaxMs
  }

  /** Makes a new row, its beat and its socket. Called at start and again when the old row was fenced off. */
  async register(): Promise<void> {
    const { db, folder } = this.#options
    let { id } = await db.one(insertProcess, bootId(), folder)
    // The database was brought back to an earlier moment, and another process has had this id since: the row is for its journal, which is replayed.
    for (const taken = new Set(journalsIn(folder)); taken.has(id); ) id = (await db.one(insertProcess, bootId(), folder)).id
    removeSocket(folder, id)
    const server = await holdSocket(folder, id)
    this.#closeSocket()
    this.#id = id
    this.#server = server
    await this.beat()
  }

  /** One beat. false: this process was fenced off and has to register again. Throws when the database is away. */
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

  /** Gives the socket up: from now on an adopter may take what is left. */
  release(): void {
    this.#closeSocket()
  }

  #closeSocket(): void {
    this.#server?.close()
    this.#server = null
    removeSocket(this.#options.folder, this.#id)
  }
}
