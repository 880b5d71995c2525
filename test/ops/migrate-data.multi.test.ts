/** The move of an embedded installation to PostgreSQL and a bucket. Also the backup and restore of PostgreSQL with its own tools. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { findPostgres } from '../../scripts/postgres.mjs'
import { systemClock } from '../../src/platform/clock.ts'
import type { Db, Statement } from '../../src/platform/db/db.ts'
import { openPostgres } from '../../src/platform/db/postgres/db-postgres.ts'
import { silentLog } from '../../src/platform/observe/log.ts'
import { Secret } from '../../src/platform/security/secret.ts'
import { bootUuid } from '../../src/platform/values/ids.ts'
import { runHere } from '../cli/run-here.ts'
import { onPostgres } from '../harness/database.ts'
import { databaseUrl, dropDatabase, runOnServer } from '../harness/postgres-server.ts'
import { chat, complaints, expectWhole, type Filled, fill, type Surroundings, spentOf, startOn, startSurroundings } from './installation.ts'

const run = promisify(execFile)
const count: Statement<[], { orgs: number; events: number }> = {
  name: 'test.count_moved',
  text: 'select (select count(*)::int from orgs) as "orgs", (select count(*)::int from usage_events) as "events"',
}

/** Returns the checksum of every file in a folder, without locks and sockets. */
function printOf(folder: string): Record<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile() && !/brigade\.lock|\.sock$/.test(entry.name))
  return Object.fromEntries(
    files.map(({ parentPath, name }) => [
      join(parentPath, name),
      createHash('sha256')
        .update(readFileSync(join(parentPath, name)))
        .digest('hex'),
    ]),
  )
}

describe.runIf(onPostgres)('the move from the embedded database to PostgreSQL', { timeout: 180_000 }, () => {
  let around: Surroundings
  let dataDir: string
  let filled: Filled
  const names: string[] = []
  const server = inject('postgres')?.url ?? ''
  const newDatabase = async (): Promise<string> => {
    const name = `brigade_move_${bootUuid().replaceAll('-', '')}`
    await runOnServer(server, `create database ${name}`)
    names.push(name)
    return databaseUrl(server, name)
  }
  const withDb = async <T>(url: string, work: (db: Db) => Promise<T>): Promise<T> => {
    const db = await openPostgres(new Secret(url), { poolMax: 2, clock: systemClock, log: silentLog })
    try {
      return await work(db)
    } finally {
      await db.close()
    }
  }
  const brigade = (...words: string[]) => runHere(words, { ...around.env, DATA_DIR: dataDir })
  const bucket = (): string[] => {
    const file = join(around.folder, 'secret')
    writeFileSync(file, `${around.s3.secretKey}\n`)
    return ['--bucket', around.s3.bucket, '--endpoint', around.s3.endpoint, '--access-key', around.s3.accessKey, '--secret-key-file', file]
  }
  const masterKey = (): string => readFileSync(join(dataDir, 'master.key'), 'utf8').trim()

  beforeAll(async () => {
    around = await startSurroundings()
    dataDir = join(around.folder, 'data')
    const started = await startOn(around, dataDir)
    filled = await fill(started, around, 'folder')
    // A copy of the folder as a killed process leaves it. The cost of the last call is in the journal and not yet in the database.
    expect((await chat(started, filled.key)).status).toBe(200)
    const killed = join(around.folder, 'killed')
    cpSync(dataDir, killed, { recursive: true, filter: path => !/\.sock$|brigade\.lock/.test(path) })
    await started.gateway.app.limits.flushNow()
    filled = { ...filled, spentInr: await spentOf(started.gateway, filled) }
    await started.gateway.stop()
    dataDir = killed
  }, 180_000)
  afterAll(async () => {
    for (const name of names) await dropDatabase(server, name)
    await around.close()
    rmSync(around.folder, { recursive: true, force: true })
  })

  test('MOVE-01 every row and object arrives in PostgreSQL and a bucket and is checked; the source does not change; keys, tokens, budgets, memory and history continue', async () => {
    const before = printOf(dataDir)
    const url = await newDatabase()
    const folders = await brigade('migrate-data', '--to', url)
    expect(folders.err).toMatch(/memory of organisation 1 is in a folder\. Give a bucket/i)
    // When the bucket fails during the move, the target has no rows, and the next run succeeds.
    let writes = 0
    around.s3.faults.beforeWrite = async () => {
      if (++writes > 8) around.s3.faults.down = true
    }
    const broken = await brigade('migrate-data', '--to', url, ...bucket())
    expect(broken.code).toBe(1)
    around.s3.faults.beforeWrite = async () => {}
    around.s3.faults.down = false
    expect(await withDb(url, db => db.one(count))).toEqual({ orgs: 0, events: 0 })

    const moved = await brigade('migrate-data', '--to', url, ...bucket(), '--json')
    expect(moved.code, moved.err).toBe(0)
    const report = JSON.parse(moved.out)
    expect(printOf(dataDir)).toEqual(before)
    expect(readdirSync(around.folder).filter(name => name.startsWith('.brigade-move'))).toEqual([])
    expect(report.masterKeyFrom).toBe(join(dataDir, 'master.key'))
    const table = (name: string) => report.tables.find((proof: { table: string }) => proof.table === name)
    expect(table('orgs').rows).toBe(1)
    expect(table('usage_events').rows).toBe(3)
    expect(Number(table('usage_events').sums.value_uinr)).toBeGreaterThan(0)
    expect(report.memory).toEqual([
      expect.objectContaining({ orgId: 1, objects: [...around.s3.objects.keys()].filter(key => key.startsWith('org-1/')).length }),
    ])

    const anew = await startOn(around, join(around.folder, 'new'), { DATABASE_URL: url, MASTER_KEY: masterKey() })
    expect(await complaints(anew.gateway)).toEqual([])
    await expectWhole(anew, filled)
    // New rows get ids above those that were moved, and etags of the bucket are valid.
    const read = await anew.call('GET', `/v1/me/memory/o?key=${filled.notes}`, undefined, { token: filled.key })
    const write = await anew.call('PUT', `/v1/me/memory/o?key=${filled.notes}`, 'fourth', {
      token: filled.key,
      headers: { 'if-match': read.headers.get('etag') ?? '' },
    })
    expect(write.status, write.text).toBe(200)
    expect((await anew.gateway.app.orgs.createOrg({ name: 'Next', ownerEmail: 'next@people.test' })).orgId).toBeGreaterThan(1)
    expect(await complaints(anew.gateway)).toEqual([])
    await anew.gateway.stop()

    const twice = await brigade('migrate-data', '--to', url, ...bucket())
    expect(twice.err).toContain('The target is not empty')
  })

  test('a move refuses a folder in use, incomplete flags, a bucket with other objects, and a missing or wrong key', async () => {
    const url = await newDatabase()
    expect((await brigade('migrate-data')).err).toContain('say where to')
    expect((await brigade('migrate-data', '--to', url, '--bucket', 'b')).err).toContain('a bucket needs')
    expect((await brigade('migrate-data', '--from', join(around.folder, 'none'), '--to', url)).err).toContain('There is no embedded database')
    around.s3.objects.clear()
    around.s3.put('org-1/users/1/strange.md', 'of somebody else')
    expect((await brigade('migrate-data', '--to', url, ...bucket())).err).toContain('org-1/users/1/strange.md')
    const copy = join(around.folder, 'copy')
    cpSync(dataDir, copy, { recursive: true })
    const running = await startOn(around, copy)
    expect((await brigade('migrate-data', '--from', copy, '--to', url, '--keep-folders')).err).toContain('Stop it for the time of the move')
    await running.gateway.stop()
    rmSync(join(copy, 'master.key'))
    expect((await brigade('migrate-data', '--from', copy, '--to', url, '--keep-folders')).err).toContain('There is no master key')
    writeFileSync(join(copy, 'master.key'), `${Buffer.alloc(32, 7).toString('base64')}\n`)
    expect((await brigade('migrate-data', '--from', copy, '--to', url, '--keep-folders')).err).toMatch(/opens nothing of what is sealed here/)
    expect(await withDb(url, async db => (await db.one(count)).orgs).catch(() => 0)).toBe(0)
  })

  test('BACK-01 after pg_dump and pg_restore of PostgreSQL, newer journals are replayed, and the doctor finds nothing wrong', async context => {
    const bin = findPostgres() ?? ''
    if (!existsSync(join(bin, 'pg_dump'))) return context.skip('pg_dump is not installed beside the server')
    const url = await newDatabase()
    around.s3.objects.clear()
    const home = join(around.folder, 'postgres-home')
    mkdirSync(home)
    const env = { DATABASE_URL: url, MASTER_KEY: Buffer.alloc(32, 5).toString('base64') }
    const first = await startOn(around, home, env)
    const safe = await fill(first, around, 's3')
    const file = join(around.folder, 'brigade.dump')
    await run(join(bin, 'pg_dump'), ['--format=custom', `--file=${file}`, url])
    const objects = new Map(around.s3.objects)
    // These changes come after the backup: usage, a write, and a revoked agent.
    expect((await chat(first, safe.key)).status).toBe(200)
    await first.call('PUT', `/v1/me/memory/o?key=${safe.notes}`, 'later', { token: safe.key })
    await first.call('POST', `/v1/me/agents/${safe.agentId}/revoke`, {}, { token: safe.key })
    await first.gateway.app.limits.flushNow()
    const spent = await spentOf(first.gateway, safe)
    await first.gateway.stop()

    const restored = await newDatabase()
    await run(join(bin, 'pg_restore'), ['--no-owner', '--exit-on-error', `--dbname=${restored}`, file])
    await runOnServer(restored, `select setval('processes_id_seq', (select last_value from processes_id_seq) + 1000)`)
    around.s3.objects.clear()
    for (const [key, object] of objects) around.s3.objects.set(key, object)
    const second = await startOn(around, home, { ...env, DATABASE_URL: restored })
    expect(await complaints(second.gateway)).toEqual([])
    // The journal has the usage since the backup. The revoke was only in the database, so the agent is not revoked any more.
    expect(await spentOf(second.gateway, safe)).toBe(spent)
    await expectWhole(second, { ...safe, spentInr: spent })
    expect(await complaints(second.gateway)).toEqual([])
    await second.gateway.stop()
  })
})
