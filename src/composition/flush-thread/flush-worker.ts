/** The thread that flushes the usage journal. It has its own connection to PostgreSQL. The embedded database is served by the main thread. */
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import type { OnDebited } from '../../gateway/billing/low-balance.ts'
import { SpendIds } from '../../gateway/limits/engine/counters/counter-rows.ts'
import { inOrder } from '../../gateway/limits/journal/flush-batch.ts'
import { FlushWork } from '../../gateway/limits/journal/flush-work.ts'
import type { FlushFacts, FlushThreadStart } from '../../gateway/limits/journal/thread/messages.ts'
import { logOver, serveFlushes } from '../../gateway/limits/journal/thread/serve-flushes.ts'
import type { UsageEvent } from '../../gateway/usage/events/record.ts'
import { systemClock } from '../../platform/clock.ts'
import type { StatementDb } from '../../platform/db/db.ts'
import { openPostgres } from '../../platform/db/postgres/db-postgres.ts'
import { dbOverPort } from '../../platform/db/thread/db-of-thread.ts'
import type { Log } from '../../platform/observe/log.ts'
import { Secret } from '../../platform/security/secret.ts'
import { systemIds } from '../../platform/values/ids.ts'
import { usageAccount } from '../usage-account.ts'

/** One for the flush, and one for the adoption of a dead process. The statements of each run one after the other. */
const connectionsMax = 2

/**
 * The priority (nice value) of this thread on Linux, where each thread has its own. On a processor that has no free time, calls go first. This thread
 * then still gets about a quarter of the processor, which is twice what its work for that many calls needs.
 */
const niceness = 5

/** The database of the thread. `close` closes the connections that the thread itself has opened. */
interface Opened {
  readonly db: StatementDb
  close(): Promise<void>
}

async function openDb({ address, database }: FlushThreadStart, log: Log): Promise<Opened> {
  if (address !== null)
    return openPostgres(new Secret(address), { poolMax: connectionsMax, clock: systemClock, log }).then(db => ({ db, close: () => db.close() }))
  if (database === null) throw new Error('the flush thread has no database')
  return { db: dbOverPort(database, 'embedded'), close: async () => database.close() }
}

/** Low balances are rare and their mails need much code, so it is loaded with the first debit. */
function onDebitedIn(db: StatementDb, facts: () => FlushFacts): OnDebited {
  let made: Promise<OnDebited> | null = null
  return async (tx, fallen) => {
    made ??= import('./low-balance-of-thread.ts').then(module => module.lowBalanceOf(db, facts))
    await (await made)(tx, fallen)
  }
}

if (parentPort !== null) {
  // Elsewhere, the priority of the whole process would change.
  if (process.platform === 'linux') setPriority(niceness)
  const start = workerData as FlushThreadStart
  const log = logOver(parentPort)
  serveFlushes<UsageEvent>(parentPort, {
    async open(facts) {
      const { db, close } = await openDb(start, log)
      const { appliers, codec, endOf } = usageAccount(systemIds)
      const tools = {
        db,
        log,
        ids: systemIds,
        nowMs: () => facts().nowMs,
        spendIds: new SpendIds(),
        applyEvents: inOrder(appliers),
        codec,
        onDebited: onDebitedIn(db, facts),
      }
      const work = new FlushWork<UsageEvent>({ tools, clock: systemClock, folder: start.folder, endOf })
      return {
        flush: range => work.flush(range),
        write: (id, record) => work.write(id, record),
        lost: range => work.lost(range),
        adopt: round => work.adopt(round),
        close,
      }
    },
  })
}
