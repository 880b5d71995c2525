/** What a whole gateway is made of, from outside: everything else is constructed by the composition root. */
import type { Server } from 'node:http'
import type { LookupFunction } from 'node:net'
import type { JournalDisk } from '../gateway/limits/journal/journal-disk.ts'
import type { StoreWatch } from '../memory/stores/watched-store.ts'
import type { WorkerFigures } from '../operations/workers/messages.ts'
import type { Clock } from '../platform/clock.ts'
import type { Config } from '../platform/config.ts'
import type { Db } from '../platform/db/db.ts'
import type { Log } from '../platform/observe/log.ts'
import type { MetricSnapshot } from '../platform/observe/metrics.ts'
import type { Ids } from '../platform/values/ids.ts'

export interface AppDeps {
  readonly config: Config
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly db: Db
  readonly dataDir: string
  readonly masterKey: Buffer
  /** Told of the calls of memory stores; left out: nobody counts. */
  readonly storeWatch?: StoreWatch | undefined
  /** Resolves the hosts of user-given URLs; default: the resolver of the machine. */
  readonly lookup?: LookupFunction
  /** The other processes behind the same port; left out: there are none. */
  readonly workers?: Workers | undefined
  /** Where the usage journal goes; default: the disk of the machine. */
  readonly journalDisk?: JournalDisk
}

/** The processes that share a port with this one, as far as this one asks them. */
export interface Workers {
  /** Serves connections that another process accepts, in place of listening. Returns its port. */
  listen(server: Server): number
  /** Says where the figures of this process are read. */
  offerFigures(own: () => Promise<readonly MetricSnapshot[]>): void
  /** Those of all, this one included. */
  figuresOfAll(): Promise<readonly WorkerFigures[]>
}
