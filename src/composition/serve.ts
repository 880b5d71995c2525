import type { AddressInfo, LookupFunction } from 'node:net'
import type { JournalDisk } from '../gateway/limits/journal/journal-disk.ts'
import { serveAdmin } from '../operations/admin/admin-socket.ts'
import { adminHandler } from '../operations/admin/commands/admin-commands.ts'
import { type FirstRun, makeFirstOrg } from '../operations/admin/first-run.ts'
import { type Clock, systemClock } from '../platform/clock.ts'
import type { Config } from '../platform/config.ts'
import { type Log, makeLog } from '../platform/observe/log.ts'
import type { Progress } from '../platform/observe/terminal/progress.ts'
import type { Terminal } from '../platform/observe/terminal/terminal.ts'
import { publicBaseUrl } from '../platform/public-base-url.ts'
import { type Ids, systemIds } from '../platform/values/ids.ts'
import type { Workers } from './deps.ts'
import { type Foundation, openFoundation } from './foundation.ts'
import { type App, createApp } from './gateway.ts'

export interface RunningGateway {
  readonly baseUrl: string
  readonly app: App
  readonly database: 'embedded' | 'postgres'
  /** Secrets from the first start of an embedded database. Null on every later start. */
  readonly firstRun: FirstRun | null
  /** Stops accepting calls, waits for running calls for at most DRAIN_MS, flushes usage, returns leases, and closes the database. */
  stop(): Promise<void>
}

export interface ServeOptions {
  readonly clock?: Clock
  readonly ids?: Ids
  readonly log?: Log
  /** An opened and migrated database with its folder and key. When it is given, the configured database is not opened. */
  readonly foundation?: Foundation
  /** Resolves the hosts of URLs that users give. The default is the resolver of the machine. */
  readonly lookup?: LookupFunction
  /** The disk for the usage journal. The default is the disk of the machine. */
  readonly journalDisk?: JournalDisk
  /** True when usage is flushed in this thread. The default is a thread of its own. */
  readonly flushesHere?: boolean
  /** The other processes that share the port. When it is left out, there are none. */
  readonly workers?: Workers
  /** Whether the first organisation is created in an empty embedded database. The default is true. */
  readonly makesFirstOrg?: boolean
  /** Shows on a terminal what the start does. */
  readonly progress?: Progress
  /** The terminal that gets a line for each request. When it is left out, requests are not shown. */
  readonly requestsOn?: Terminal | null
  /** Is called when the gateway cannot serve any more and the process must end. The journal keeps the records that are not in the database yet. */
  readonly onGivenUp?: (error: Error) => void
}

/** Starts a whole gateway in this process. Tests use it too, with their own clock. */
export async function startGateway(config: Config, options: ServeOptions = {}): Promise<RunningGateway> {
  const clock = options.clock ?? systemClock
  const ids = options.ids ?? systemIds
  const log = options.log ?? makeLog(config.LOG_LEVEL)
  const foundation = options.foundation ?? (await openFoundation(config, clock, log, options))
  options.progress?.now('Starting the services')
  let app: App
  try {
    const { lookup, journalDisk, flushesHere, workers, requestsOn } = options
    app = await createApp({
      config,
      clock,
      ids,
      log,
      ...foundation,
      ...(lookup ? { lookup } : {}),
      ...(journalDisk ? { journalDisk } : {}),
      flushesHere,
      workers,
      requestsOn,
    })
  } catch (error) {
    await foundation.db.close()
    throw error
  }
  try {
    const port = options.workers === undefined ? await listen(app, config) : options.workers.listen(app.server)
    app.setBaseUrl(publicBaseUrl(config, port))
    const admin = foundation.db.kind === 'embedded' ? await serveAdmin(foundation.dataDir, adminHandler(app)) : null
    const firstRun = foundation.db.kind === 'embedded' && options.makesFirstOrg !== false ? await makeFirstOrg(app) : null
    let stopping: Promise<void> | null = null
    return {
      baseUrl: app.baseUrl(),
      database: foundation.db.kind,
      app,
      firstRun,
      stop: () => {
        stopping ??= (admin?.close() ?? Promise.resolve()).then(() => app.stop())
        return stopping
      },
    }
  } catch (error) {
    await app.stop()
    throw error
  }
}

/**
 * The number of connections that may wait to be accepted. Thousands of agents may reconnect concurrently after a restart. The kernel may reduce this
 * number.
 */
const listenBacklog = 4096

function listen(app: App, config: Config): Promise<number> {
  return new Promise((done, failed) => {
    app.server.once('error', failed)
    app.server.listen({ port: config.PORT, host: config.HOST, backlog: listenBacklog }, () => done((app.server.address() as AddressInfo).port))
  })
}
