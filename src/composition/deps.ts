/** The parts of a gateway that come from outside. The composition root constructs everything else. */
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
import type { Terminal } from '../platform/observe/terminal/terminal.ts'
import type { Ids } from '../platform/values/ids.ts'

export interface AppDeps {
  readonly config: Config
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly db: Db
  readonly dataDir: string
  readonly masterKey: Buffer
  /** Is notified of the calls of memory stores. When it is left out, these calls are not counted. */
  readonly storeWatch?: StoreWatch | undefined
  /** Resolves the hosts of URLs that users give. The default is the resolver of the machine. */
  readonly lookup?: LookupFunction
  /** The other processes that share the port. When it is left out, there are none. */
  readonly workers?: Workers | undefined
  /** The disk for the usage journal. The default is the disk of the machine. */
  readonly journalDisk?: JournalDisk
  /** The terminal that gets a line for each request. */
  readonly requestsOn?: Terminal | null | undefined
  /** True: usage is flushed in the thread of the caller. For tests that replace the clock or run from source. Default: a thread of its own. */
  readonly flushesHere?: boolean | undefined
}

/** The other processes that share a port with this one, and the services that they offer to this one. */
export interface Workers {
  /** Serves connections that another process accepts, instead of listening. Returns the port. */
  listen(server: Server): number
  /** Registers the function that reads the metrics of this process. */
  offerFigures(own: () => Promise<readonly MetricSnapshot[]>): void
  /** Returns the metrics of all processes, including this one. */
  figuresOfAll(): Promise<readonly WorkerFigures[]>
}
