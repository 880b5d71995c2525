/** The change of the master key: with two settings and without downtime, and with the key file of an embedded installation. */
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sealedValues } from '../../src/operations/master-keys.ts'
import { systemClock } from '../../src/platform/clock.ts'
import type { Db, Statement } from '../../src/platform/db/db.ts'
import { openEmbedded } from '../../src/platform/db/embedded/db-embedded.ts'
import { silentLog } from '../../src/platform/observe/log.ts'
import { keyIdOf, makeSealer, parseMasterKey } from '../../src/platform/security/secrets.ts'
import { runHere } from '../cli/run-here.ts'
import { chat, complaints, expectWhole, type Filled, fill, type Started, type Surroundings, startOn, startSurroundings } from './installation.ts'

interface Column {
  readonly table: string
  readonly column: string
}
const columnsOf: Statement<[], Column> = {
  name: 'test.every_column',
  text: `select c.table_name as "table", c.column_name as "column" from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
         where c.table_schema = 'public' and t.table_type = 'BASE TABLE' and c.data_type in ('text', 'json', 'jsonb', 'ARRAY', 'character varying') order by 1, 2`,
}

/** Returns all columns that have a value sealed under that key. It searches the whole schema. */
async function sealedUnder(db: Db, keyId: string): Promise<string[]> {
  const found: string[] = []
  for (const { table, column } of await db.many(columnsOf)) {
    const look: Statement<[pattern: string], { n: number }> = {
      name: `test.look_${table}_${column}`,
      text: `select count(*)::int as n from "${table}" where "${column}"::text like $1::text`,
    }
    if ((await db.one(look, `%v1.${keyId}.%`)).n > 0) found.push(`${table}.${column}`)
  }
  return found
}

const everywhere = sealedValues.map(({ table, column }) => `${table}.${column}`).sort()

describe('the master key of an embedded installation', { timeout: 180_000 }, () => {
  let around: Surroundings
  let dataDir: string
  let started: Started
  let inFolder: Filled
  let inBucket: Filled
  const keyFile = (name: string) => join(dataDir, name)
  const idIn = (name: string) => keyIdOf(parseMasterKey(readFileSync(keyFile(name), 'utf8').trim()) ?? Buffer.alloc(0))
  const brigade = (...words: string[]) => runHere(words, { ...around.env, DATA_DIR: dataDir })
  const withDb = async <T>(work: (db: Db) => Promise<T>): Promise<T> => {
    const db = await openEmbedded(join(dataDir, 'db'), { clock: systemClock, log: silentLog })
    try {
      return await work(db)
    } finally {
      await db.close()
    }
  }

  beforeAll(async () => {
    around = await startSurroundings()
    dataDir = join(around.folder, 'data')
    started = await startOn(around, dataDir)
    inFolder = await fill(started, around, 'folder')
    inBucket = await fill(started, around, 's3')
  }, 180_000)
  afterAll(() => around.close())

  test('BACK-01 when a change of the master key is killed, the next run continues with the same new key; afterwards no value is sealed under the old key, and everything works', async () => {
    const before = idIn('master.key')
    const refused = await brigade('master-key', 'change')
    expect(refused.code).toBe(1)
    expect(refused.err).toMatch(/in use by process .* stop that process/)
    await started.gateway.stop()
    expect(idIn('master.key')).toBe(before)

    expect((await brigade('master-key', 'change')).code).toBe(0)
    const after = idIn('master.key')
    expect(after).not.toBe(before)
    // Puts the database into the state of a change that was killed when only some values were sealed again.
    await withDb(async db => {
      const [old, current] = ['master.key.old', 'master.key'].map(name => parseMasterKey(readFileSync(keyFile(name), 'utf8').trim()) ?? Buffer.alloc(0))
      for (const values of sealedValues.slice(3)) await values.reseal(db, makeSealer(old ?? Buffer.alloc(0), [current ?? Buffer.alloc(0)]), before)
      expect(await sealedUnder(db, before)).not.toEqual([])
    })
    const halfway = await startOn(around, dataDir)
    expect(await complaints(halfway.gateway)).toEqual([expect.stringContaining('change of the master key: is not finished')])
    // In this state too, everything works and people stay signed in.
    await expectWhole(halfway, inFolder)
    const status = JSON.parse((await brigade('master-key', 'status', '--json')).out)
    expect(status).toMatchObject({ current: after, others: [before] })
    await halfway.gateway.stop()

    const again = await brigade('master-key', 'change')
    expect(again.code, again.err).toBe(0)
    expect(idIn('master.key')).toBe(after)
    await withDb(async db => {
      expect(await sealedUnder(db, before)).toEqual([])
      // The same columns as before have sealed values, so the change knows every such column.
      expect(await sealedUnder(db, after)).toEqual(everywhere)
    })

    expect((await brigade('master-key', 'forget')).out).toContain('Backups that were made before the change need it')
    expect(existsSync(keyFile('master.key.old'))).toBe(false)
    const done = await startOn(around, dataDir)
    expect(await complaints(done.gateway)).toEqual([])
    expect((await done.call('GET', `/v1/me/memory/o?key=${inBucket.notes}`, undefined, { token: inBucket.key })).text).toBe('third ✓')
    expect((await done.call('POST', `/v1/me/agents/${inFolder.agentId}/token`, {}, { token: inFolder.key })).status).toBeLessThan(300)
    // The session is refused, because the key that signed its cookie no longer exists.
    expect((await done.call('GET', '/me/byok', undefined, { cookie: inFolder.cookie })).status).toBe(401)
    await done.gateway.stop()
  })

  test("BACK-01 with settings, processes with both keys accept each other's values, reseal moves all values to the new key, and the old key can be removed", async () => {
    const oldKey = readFileSync(keyFile('master.key'), 'utf8').trim()
    const newKey = randomBytes(32).toString('base64')
    const at = (env: Record<string, string>) => startOn(around, dataDir, env)
    // Step 1: every process seals with the old key and can also open values of the new key.
    const first = await at({ MASTER_KEY: oldKey, MASTER_KEY_OTHER: newKey })
    const cookieOfOld = (await first.gateway.app.sessions.create(inFolder.userId, inFolder.orgId)).cookie
    expect((await chat(first, inFolder.key, { 'idempotency-key': 'over-the-change' })).status).toBe(200)
    await first.gateway.app.limits.flushNow()
    await first.gateway.stop()
    // Step 2: the two keys are swapped.
    const second = await at({ MASTER_KEY: newKey, MASTER_KEY_OTHER: oldKey })
    expect((await second.call('GET', '/me/byok', undefined, { cookie: cookieOfOld })).status).toBe(200)
    expect((await chat(second, inFolder.key, { 'idempotency-key': 'over-the-change' })).json.error.code).toBe('idempotency_replayed')
    const cookieOfNew = (await second.gateway.app.sessions.create(inFolder.userId, inFolder.orgId)).cookie
    expect((await second.call('GET', '/me/byok', undefined, { cookie: cookieOfNew })).status).toBe(200)
    // Step 3: the values are sealed again while the gateway runs.
    const resealed = JSON.parse((await brigade('master-key', 'reseal', '--json')).out)
    expect(resealed.unopened).toBe(0)
    expect(resealed.inUse).toEqual([expect.objectContaining({ keyId: resealed.current, state: 'current' })])
    expect(resealed.next).toContain('Take MASTER_KEY_OTHER away')
    expect(await complaints(second.gateway)).toEqual([])
    await second.gateway.stop()
    // Step 4: the old key is removed.
    const third = await at({ MASTER_KEY: newKey })
    expect(await complaints(third.gateway)).toEqual([])
    expect((await third.call('GET', '/me/byok', undefined, { cookie: cookieOfNew })).status).toBe(200)
    expect((await third.call('GET', `/v1/me/memory/o?key=${inBucket.notes}`, undefined, { token: inBucket.key })).text).toBe('third ✓')
    await third.gateway.stop()
    const wrong = await runHere(['master-key', 'change'], { ...around.env, DATA_DIR: dataDir, MASTER_KEY: newKey })
    expect(wrong.err).toContain('Set MASTER_KEY_OTHER to a new one')
  })
})
