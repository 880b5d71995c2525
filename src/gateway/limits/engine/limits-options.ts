/** The options of limits. */
import type { Clock } from '../../../platform/clock.ts'
import type { Config } from '../../../platform/config.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import type { ControlLog } from '../../../platform/db/db-control-log.ts'
import type { Log } from '../../../platform/observe/log.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import type { ApplyEvents, Debited } from '../journal/flush-batch.ts'
import type { FlushPort, SpentScope } from '../journal/flush-work.ts'
import type { JournalDisk } from '../journal/journal-disk.ts'
import type { EventCodec } from '../journal/journal-records.ts'
import type { OrgLimits } from '../org-limits.ts'
import type { ChargedEvent } from './admission.ts'

/** The settings that limits read. */
export type LimitsConfig = Pick<
  Config,
  | 'ALLOWANCE_SECONDS'
  | 'RECALL_WAIT_MS'
  | 'BEAT_MS'
  | 'JANITOR_MS'
  | 'OFFLINE_MAX_MS'
  | 'JOURNAL_FLUSH_MS'
  | 'JOURNAL_MAX_BYTES'
  | 'JOURNAL_KEEP_MS'
  | 'JOURNAL_FSYNC_MS'
  | 'CACHE_TTL_MS'
  | 'SETTLE'
>

/** Is notified of what the flushes of this process write. */
export interface SpendFollower {
  /** Flushes name no scopes while it is false. */
  readonly isWanted: boolean
  /** These scopes have spent something, each named at least once. */
  spent(scopes: readonly SpentScope[]): void
  /** Something was spent, and nobody knows by whom. */
  unknown(): void
}

export interface LimitsOptions<E extends ChargedEvent> {
  readonly db: Db
  readonly config: LimitsConfig
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  /** The folder in which the journal folder is. */
  readonly dataDir: string
  /** The appliers of events. The first inserts events and returns the new ones, and the others get those. They run in the transaction of the flush. */
  readonly appliers: readonly ApplyEvents<E>[]
  /** Ends other work that a dead process had begun, in the transaction that closes the process. */
  readonly endOf?: (tx: Tx, processId: bigint) => Promise<void>
  /** Ends other work of a process that the operator gives up, in the transaction that gives it up. */
  readonly onGivenUp?: (tx: Tx, processId: bigint) => Promise<void>
  /** The disk of the journal. Default: the disk of this machine. */
  readonly disk?: JournalDisk
  /** Writes events to the journal and reads them. Default: JSON. */
  readonly codec?: EventCodec<E>
  /** The limits of whole organisations. Absent when there are none. */
  readonly orgLimits?: OrgLimits
  /**
   * Returns a number for the founder of an organisation, which is the same for all organisations of one person. Absent when each organisation counts for
   * itself.
   */
  readonly founderNumberOf?: (orgId: number) => Promise<number>
  /**
   * Makes the port that flushes the journals of a folder, for example in another thread. `nowMs` returns the time of the database's clock. Default:
   * this thread does the work.
   */
  readonly flushPort?: (folder: string, nowMs: () => number) => FlushPort<E>
  /** The composition root starts it. */
  readonly controlLog: ControlLog
  /** Is called with every organisation whose prepaid balance has just fallen, in the transaction in which it fell. */
  onDebited?(tx: Tx, debited: readonly Debited[]): Promise<void>
  /** True when periods follow the database's clock. By default that is so only on the machine's own clock; an injected clock is used as it is. */
  readonly followDatabaseClock?: boolean
}
