/** What limits are made with. */
import type { Clock } from '../../../platform/clock.ts'
import type { Config } from '../../../platform/config.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import type { ControlLog } from '../../../platform/db/db-control-log.ts'
import type { Log } from '../../../platform/observe/log.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import type { ApplyEvents, Debited } from '../journal/flush-batch.ts'
import type { JournalDisk } from '../journal/journal-disk.ts'
import type { EventText } from '../journal/journal-records.ts'
import type { OrgLimits } from '../org-limits.ts'
import type { ChargedEvent } from './admission.ts'

/** Settings that limits read. */
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

export interface LimitsOptions<E extends ChargedEvent> {
  readonly db: Db
  readonly config: LimitsConfig
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  /** Folder of the journal's folder. */
  readonly dataDir: string
  /** The first inserts events and says which were new; the others get those. They run in the transaction of the flush. */
  readonly appliers: readonly ApplyEvents<E>[]
  /** Ends what a dead process had begun elsewhere, in the transaction that closes it. */
  readonly endOf?: (tx: Tx, processId: bigint) => Promise<void>
  /** Lets go of what a process that the operator gives up had begun elsewhere, in the transaction that gives it up. */
  readonly onGivenUp?: (tx: Tx, processId: bigint) => Promise<void>
  /** Where the journal goes. Default: the disk of this machine. */
  readonly disk?: JournalDisk
  /** How events are written to the journal. Default: field by field. */
  readonly eventText?: EventText<E>
  /** Limits of whole organisations. Left out: there are none. */
  readonly orgLimits?: OrgLimits
  /** Started by the composition root. */
  readonly controlLog: ControlLog
  /** Told of every organisation whose prepaid balance has just fallen, in the transaction in which it fell. */
  onDebited?(tx: Tx, debited: readonly Debited[]): Promise<void>
  /** Whether periods follow the database's clock. Default: only on the machine's own clock; an injected clock is the truth. */
  readonly followDatabaseClock?: boolean
}
