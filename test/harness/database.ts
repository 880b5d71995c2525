import { readFileSync } from 'node:fs'
import { inject } from 'vitest'
import { systemClock } from '../../src/platform/clock.ts'
import type { Db } from '../../src/platform/db/db.ts'
import { openEmbedded } from '../../src/platform/db/embedded/db-embedded.ts'
import { openPostgres } from '../../src/platform/db/postgres/db-postgres.ts'
import { silentLog } from '../../src/platform/observe/log.ts'
import { Secret } from '../../src/platform/security/secret.ts'
import { bootUuid } from '../../src/platform/values/ids.ts'
import { borrowEmbedded } from './embedded-pool.ts'
import { databaseUrl, dropDatabase, runOnServer } from './postgres-server.ts'

export interface TestDatabase {
  readonly db: Db
  readonly kind: 'postgres' | 'embedded'
  /** The URL of the database. Null for the embedded database. */
  readonly url: string | null
  /** Opens another connection pool on the same database, as a second process would. Only on PostgreSQL. */
  open(): Promise<Db>
  /** Closes every pool and drops the database. */
  dispose(): Promise<void>
}

/** True in runs against a PostgreSQL server. */
export const onPostgres: boolean = inject('postgres') !== null

/** Returns a new migrated database. It is a copy of the database that the run migrated at its start. */
export async function testDatabase(): Promise<TestDatabase> {
  const server = inject('postgres')
  return server === null ? await embeddedCopy() : await postgresCopy(server)
}

async function embeddedCopy(): Promise<TestDatabase> {
  const db = await borrowEmbedded(() => openEmbedded('memory', { clock: systemClock, log: silentLog, load: readFileSync(inject('embeddedDump')) }))
  return {
    db,
    kind: 'embedded',
    url: null,
    open: () => Promise.reject(new Error('the embedded database has one session; this test needs TEST_DATABASE=postgres')),
    dispose: () => db.close(),
  }
}

async function postgresCopy(server: { readonly url: string; readonly template: string }): Promise<TestDatabase> {
  const name = `brigade_test_${bootUuid().replaceAll('-', '')}`
  await runOnServer(server.url, `create database ${name} template ${server.template}`)
  const url = databaseUrl(server.url, name)
  const opened: Db[] = []
  const open = async (): Promise<Db> => {
    const db = await openPostgres(new Secret(url), { poolMax: 5, clock: systemClock, log: silentLog })
    opened.push(db)
    return db
  }
  return {
    db: await open(),
    kind: 'postgres',
    url,
    open,
    async dispose() {
      await Promise.all(opened.map(db => db.close()))
      await dropDatabase(server.url, name)
    },
  }
}
