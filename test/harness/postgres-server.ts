import { systemClock } from '../../src/platform/clock.ts'
import { openPostgres } from '../../src/platform/db/postgres/db-postgres.ts'
import { silentLog } from '../../src/platform/observe/log.ts'
import { Secret } from '../../src/platform/security/secret.ts'

/** Returns the URL of another database on the same server. */
export function databaseUrl(serverUrl: string, database: string): string {
  const url = new URL(serverUrl)
  url.pathname = `/${database}`
  return url.href
}

/** Runs one command outside a transaction, such as CREATE DATABASE. */
export async function runOnServer(serverUrl: string, sql: string): Promise<void> {
  const db = await openPostgres(new Secret(serverUrl), { poolMax: 1, clock: systemClock, log: silentLog })
  try {
    await db.script(sql)
  } finally {
    await db.close()
  }
}

/** Drops a database, even if clients are still connected. */
export async function dropDatabase(serverUrl: string, database: string): Promise<void> {
  await runOnServer(serverUrl, `drop database if exists ${database} with (force)`)
}
