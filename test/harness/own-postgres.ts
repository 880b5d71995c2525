import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startPostgres } from '../../scripts/postgres.mjs'
import { systemClock } from '../../src/platform/clock.ts'
import type { Db } from '../../src/platform/db/db.ts'
import { migrate, migrationsFolder } from '../../src/platform/db/migrate.ts'
import { openPostgres } from '../../src/platform/db/postgres/db-postgres.ts'
import { silentLog } from '../../src/platform/observe/log.ts'
import { Secret } from '../../src/platform/security/secret.ts'
import type { TestDatabase } from './database.ts'

/** A PostgreSQL server of one test, with a migrated database. */
export interface OwnPostgres extends TestDatabase {
  readonly url: string
  /** Suspends all processes of the server. Its connections stay open and carry nothing. */
  freeze(): void
  /** Lets them continue. */
  thaw(): void
}

/** Starts a server with the programs of the machine. `dispose` ends it. */
export async function startOwnPostgres(): Promise<OwnPostgres> {
  const server = await startPostgres()
  const opened: Db[] = []
  const open = async (): Promise<Db> => {
    const db = await openPostgres(new Secret(server.url), { poolMax: 5, clock: systemClock, log: silentLog })
    opened.push(db)
    return db
  }
  const signal = (name: 'SIGSTOP' | 'SIGCONT'): void => {
    const main = Number(readFileSync(join(server.folder, 'data', 'postmaster.pid'), 'utf8').split('\n')[0])
    // The main process comes first, so that it makes no process while the others are suspended.
    process.kill(main, name)
    const children = readFileSync(`/proc/${main}/task/${main}/children`, 'utf8').split(' ').filter(Boolean)
    for (const pid of children) {
      try {
        process.kill(Number(pid), name)
      } catch (error) {
        // The process of a closed connection may end after the list was read.
        if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
      }
    }
  }
  try {
    const db = await open()
    await migrate(db, migrationsFolder, silentLog)
    return {
      db,
      kind: 'postgres',
      url: server.url,
      open,
      freeze: () => signal('SIGSTOP'),
      thaw: () => signal('SIGCONT'),
      async dispose() {
        signal('SIGCONT')
        await Promise.all(opened.map(each => each.close()))
        await server.stop()
      },
    }
  } catch (error) {
    await server.stop()
    throw error
  }
}
