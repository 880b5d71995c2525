import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { MemoryCall } from '../../src/memory/access/memory-call.ts'
import { statement } from '../../src/platform/db/db.ts'
import { type TestDatabase, testDatabase } from '../harness/database.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'
import { callFrom, errorCode, keyOf, type TestMemory, testMemory } from './service.ts'

const addOrg = statement<[orgId: number]>(
  'test.add_journal_org',
  `insert into orgs (id, name, kind, created_at) values ($1::int, 'Purge ' || $1::text, 'personal', now())`,
)
const addWorkspace = statement<[orgId: number], { id: number }>(
  'test.add_journal_workspace',
  `insert into workspaces (org_id, name, created_at) values ($1::int, 'Crew', now()) returning id`,
)
const dayMs = 86_400_000
const signal = new AbortController().signal

describe('expired journal entries', () => {
  let database: TestDatabase
  let server: S3TestServer
  let testing: TestMemory
  let orgId = 2000
  let call: MemoryCall
  let journal: string
  beforeAll(async () => {
    database = await testDatabase()
    server = await startS3Server()
    testing = await testMemory({ db: database.db, allow: [server.hostPort] })
  }, 60_000)
  beforeEach(async () => {
    orgId++
    await database.db.exec(addOrg, orgId)
    const { id: workspaceId } = await database.db.one(addWorkspace, orgId)
    journal = `workspaces/${workspaceId}/journal/`
    call = callFrom(keyOf(orgId, { userId: null, role: null, workspaceId }))
    const { endpoint, bucket, accessKey, secretKey } = server
    server.faults.beforeWrite = async () => {}
    server.faults.down = false
    await testing.memory.config.put(orgId, { endpoint, bucket, access_key: accessKey, secret_key: secretKey })
  })
  afterAll(async () => {
    await testing?.close()
    await server?.close()
    await database?.dispose()
  })

  const stored = (): string[] => [...server.objects.keys()].filter(key => key.startsWith(`org-${orgId}/`)).sort()
  const write = (key: string, text: string) => testing.memory.objects.write(call, key, Buffer.from(text))

  test('expired entries are removed from the store, the index and the quota, and everything else stays', async () => {
    await write(`${journal}old`, '12345')
    await write(`${journal}old`, '123456')
    await write('agents/journal/old', 'not a journal')
    testing.clock.advance(20 * dayMs)
    await write(`${journal}young`, '12')
    testing.clock.advance(11 * dayMs)
    expect(await testing.memory.purge.run(signal)).toBeGreaterThanOrEqual(1)
    expect(stored().filter(key => !key.includes('/.versions/'))).toEqual([`org-${orgId}/${journal}young`, `org-${orgId}/agents/journal/old`].sort())
    expect(await testing.usage(orgId)).toMatchObject({ usedBytes: 2n + 13n, reservedBytes: 0n })
    expect(await testing.memory.config.view(orgId)).toMatchObject({ history_bytes: 0 })
    expect(await testing.memory.purge.purge(orgId, signal)).toBe(0)
  })

  test('entries expire by the current journal_ttl_days: a lower number also applies to existing entries, and a higher number keeps them longer', async () => {
    await write(`${journal}a`, '1')
    await testing.memory.purge.run(signal)
    testing.clock.advance(3 * dayMs)
    await testing.memory.config.put(orgId, { journal_ttl_days: 2 })
    expect(await errorCode(() => testing.memory.objects.read(call, `${journal}a`))).toBe('not_found')
    await testing.memory.config.put(orgId, { journal_ttl_days: 30 })
    await testing.memory.purge.run(signal)
    expect((await testing.memory.objects.read(call, `${journal}a`)).bytes.toString()).toBe('1')
    await testing.memory.config.put(orgId, { journal_ttl_days: 2 })
    await testing.memory.purge.run(signal)
    expect(stored()).toEqual([])
    expect(await testing.usage(orgId)).toMatchObject({ usedBytes: 0n, objects: 0n })
  })

  test('an entry that is written again at the moment of its purge is kept', async () => {
    await write(`${journal}a`, 'old')
    testing.clock.advance(31 * dayMs)
    let letGo = (): void => {}
    const reached = new Promise<void>(resolve => {
      server.faults.beforeWrite = key =>
        key.endsWith('/journal/a')
          ? new Promise<void>(open => {
              letGo = open
              resolve()
            })
          : Promise.resolve()
    })
    const running = write(`${journal}a`, 'newer')
    await reached
    expect(await testing.memory.purge.purge(orgId, signal)).toBe(0)
    letGo()
    await running
    server.faults.beforeWrite = async () => {}
    expect(await testing.memory.purge.purge(orgId, signal)).toBe(0)
    expect((await testing.memory.objects.read(call, `${journal}a`)).bytes.toString()).toBe('newer')
    // Now the other order: the purge takes the key first, and the write comes after it.
    testing.clock.advance(31 * dayMs)
    const both = await Promise.all([testing.memory.purge.purge(orgId, signal), write(`${journal}a`, 'newest')])
    expect(both[0]).toBeLessThanOrEqual(1)
    expect((await testing.memory.objects.read(call, `${journal}a`)).bytes.toString()).toBe('newest')
    expect(await testing.usage(orgId)).toMatchObject({ usedBytes: 6n, reservedBytes: 0n, objects: 1n })
  })

  test('while a store is down, its expired entries wait and do not delay other organisations', async () => {
    await write(`${journal}a`, '1')
    testing.clock.advance(31 * dayMs)
    server.faults.down = true
    expect(await testing.memory.purge.run(signal)).toBe(0)
    server.faults.down = false
    testing.clock.advance(11 * 60_000)
    await testing.memory.sweep(testing.clock.nowMs())
    await testing.memory.purge.run(signal)
    expect(stored()).toEqual([])
    expect(await testing.usage(orgId)).toMatchObject({ usedBytes: 0n, reservedBytes: 0n, objects: 0n })
  })

  test('entries that were written directly into the bucket are also removed, after a comparison has found them', async () => {
    const key = `org-${orgId}/${journal}direct`
    server.put(key, '123')
    await testing.memory.reconcile.run(orgId, signal)
    testing.clock.advance(31 * dayMs)
    expect(await testing.memory.purge.purge(orgId, signal)).toBe(1)
    expect(server.objects.has(key)).toBe(false)
  })
})
