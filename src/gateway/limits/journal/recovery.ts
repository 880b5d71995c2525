/** The operator's view and actions when a process died and its disk does not come back. */
import type { Db, Tx } from '../../../platform/db/db.ts'
import { lockLeasedCounters, returnAllLeases, setProcessState } from '../engine/queries.ts'
import { journalsIn } from './journal.ts'
import { countParked, listSilent, lockSilent, type SilentProcess } from './recovery-queries.ts'

export interface RecoveryOptions {
  readonly db: Db
  /** The folder of this process's journals. */
  readonly folder: string
  /** The silence after which a process may not serve any more, in milliseconds. */
  readonly silentMs: number
  /** Returns true when this version can read the whole journal of a process in the folder. */
  readonly isReadable: (processId: bigint) => Promise<boolean>
  /** Ends other work of a process that is given up, in the same transaction. */
  readonly onGivenUp?: (tx: Tx, processId: bigint) => Promise<void>
}

/** The parked records: their number and their money in micro-rupees. */
export interface Parked {
  readonly records: number
  readonly valueUinr: bigint
  /** The database's error message for the last one. Null when there is none. */
  readonly reason: string | null
}

/** The processes in doubt and the parked records. */
export class Recovery {
  readonly #options: RecoveryOptions

  constructor(options: RecoveryOptions) {
    this.#options = options
  }

  /** The silence after which a process may not serve any more, in milliseconds. */
  get silentMs(): number {
    return this.#options.silentMs
  }

  /** Returns the processes that lease parts of budgets or limits and have been silent for longer than they may serve. */
  silent(): Promise<SilentProcess[]> {
    return this.#options.db.many(listSilent, BigInt(this.#options.silentMs))
  }

  async parked(): Promise<Parked> {
    const { records, valueUinr, reason } = await this.#options.db.one(countParked)
    return { records, valueUinr: BigInt(valueUinr), reason }
  }

  /**
   * Gives up the leases of a dead process whose disk will not come back, or whose journal cannot be read, so that their amounts can be spent again.
   * When the journal appears or can be read later, it is replayed as usual: its charges count once, and it has nothing left to give back. Returns the
   * number of counters that got an amount back. Throws an Error of one line when the process lives, when it is closed, or when this folder has its
   * journal and it can be read.
   */
  async release(processId: bigint): Promise<number> {
    const { db, folder, silentMs, isReadable, onGivenUp } = this.#options
    if (journalsIn(folder).includes(processId) && (await isReadable(processId)))
      throw new Error(`the journal of process ${processId} is in ${folder}: it is read by itself within seconds, nothing has to be given up`)
    return db.tx(async tx => {
      const found = await tx.maybe(lockSilent, processId, BigInt(silentMs))
      if (found === null) throw new Error(`there is no process ${processId}; brigade doctor lists those that are in doubt`)
      if (found.state === 'closed') throw new Error(`process ${processId} is closed and holds nothing`)
      if (!found.isSilent)
        throw new Error(
          `process ${processId} was heard ${found.silentSeconds} s ago: it may still serve. It can be given up after ${Math.ceil(silentMs / 1000)} s of silence (OFFLINE_MAX_MS and a margin)`,
        )
      const counters = await tx.many(lockLeasedCounters, processId)
      await tx.exec(returnAllLeases, processId)
      await tx.exec(setProcessState, processId, ['live', 'closing'], 'lost')
      await onGivenUp?.(tx, processId)
      return counters.length
    })
  }
}
