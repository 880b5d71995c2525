/** A PostgreSQL server for one run of a bench, and a folder beside its data. Both are removed at the end, also after a signal. */
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { startPostgres } from '../scripts/postgres.mjs'
import { killAll } from './child.mjs'

/** Runs `work` with the server and a folder. Returns its result. */
export async function onPostgres(work) {
  const postgres = await startPostgres()
  const folder = mkdtempSync(join(postgres.folder, 'bench-'))
  const clear = async () => {
    killAll()
    await postgres.stop()
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void clear().finally(() => process.exit(1)))
  try {
    return await work(postgres, folder)
  } finally {
    await clear()
  }
}

/** Makes an empty database on the server. Returns its URL. */
export async function newDatabase(server, name) {
  const { default: pg } = await import('pg')
  const admin = new pg.Client({ connectionString: server })
  await admin.connect()
  await admin.query(`create database ${name}`)
  await admin.end()
  return Object.assign(new URL(server), { pathname: `/${name}` }).href
}
