/** What a whole gateway is made of, from outside: everything else is constructed by the composition root. */
import type { LookupFunction } from 'node:net'
import type { JournalDisk } from '../gateway/limits/journal/journal-disk.ts'
import type { StoreWatch } from '../memory/stores/watched-store.ts'
import type { Clock } from '../platform/clock.ts'
import type { Config } from '../platform/config.ts'
import type { Db } from '../platform/db/db.ts'
import type { Log } from '../platform/observe/log.ts'
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
  /** Where the usage journal goes; default: the disk of the machine. */
  readonly journalDisk?: JournalDisk
}
