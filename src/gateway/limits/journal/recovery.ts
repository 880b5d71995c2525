/** What the operator sees and may do when a process died and its disk does not come back. */
import type { Db, Tx } from '../../../platform/db/db.ts'
import { lockLeasedCounters, returnAllLeases, setProcessState } from '../engine/queries.ts'
import { journalsIn } from './journal.ts'
import { countParked, listSilent, lockSilent, type SilentProcess } from './recovery-queries.ts'

export interface RecoveryOptions {
  readonly db: Db
  /** Folder of this process's journals. */
  readonly folder: string
  /** A process that was silent for so long may not serve any more. */
  readonly silentMs: number
  /** Lets go of what a process that is given up had begun elsewhere, in the same transaction. */
  readonly onGivenUp?: (tx: Tx, processId: bigint) => Promise<void>
}

/** Usage records that the database refused, and their money in micro-rupees. */
export interface Parked {
  readonly records: number
  readonly valueUinr: bigint
  /** What the database said of the last one; null without any. */
  readonly reason: string | null
}

/** Processes in doubt and records in doubt. */
export class Recovery {
  readonly #options: RecoveryOptions

  constructor(options: RecoveryOptions) {
    this.#options = options
  }

  /** A process that was silent for so long may not serve any more, in milliseconds. */
  get silentMs(): number {
    return this.#options.silentMs
  }

  /** Processes that hold parts of budgets or limits and have been silent for longer than they may serve. */
  silent(): Promise<SilentProcess[]> {
    return this.#options.db.many(listSilent, BigInt(this.#options.silentMs))
  }

  async parked(): Promise<Parked> {
    const { records, valueUinr, reason } = await this.#options.db.one(countParked)
    return { records, valueUinr: BigInt(valueUinr), reason }
  }

  /**
   * Gives up what a dead process holds, because its disk will not come back: from now on that can be spent again. Should the journal turn
   * up after all, it is replayed as always: its charges count once, and it has nothing left to give back. Returns how many counters
   * got something. Throws an Error of one line when the process lives, is known to be closed, or its journal is here.
   */
  async release(processId: bigint): Promise<number> {
    const { db, folder, silentMs, onGivenUp } = this.#options
    if (journalsIn(folder).includes(processId))
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
