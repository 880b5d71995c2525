import { afterAll, beforeAll, expect, test } from 'vitest'
import type { MemoryChange } from '../../src/memory/changes/changes.ts'
import type { StoreInput } from '../../src/memory/config/store-input.ts'
import { statement } from '../../src/platform/db/db.ts'
import { onPostgres, type TestDatabase, testDatabase } from '../harness/database.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'
import { until } from '../harness/until.ts'
import { agentOf, callFrom, keyOf, type TestMemory, testMemory } from './service.ts'

let database: TestDatabase
let server: S3TestServer
/** Two processes on one database, where the database allows it. */
let here: TestMemory
let there: TestMemory
let input: StoreInput
let orgId = 3000

const ageChanges = statement<[orgId: number]>('test.age_changes', `update memory_changes set at = at - interval '2 hours' where org_id = $1::int`)
const countChanges = statement<[orgId: number], { count: bigint }>('test.count_changes', `select count(*) as count from memory_changes where org_id = $1::int`)

beforeAll(async () => {
  database = await testDatabase()
  server = await startS3Server()
  const allow = [server.hostPort]
  here = await testMemory({ db: database.db, allow })
  there = onPostgres ? await testMemory({ db: await database.open(), allow }) : here
  input = { endpoint: server.endpoint, bucket: server.bucket, access_key: server.accessKey, secret_key: server.secretKey, history_versions: 0 }
}, 60_000)
afterAll(async () => {
  if (there !== here) await there?.close()
  await here?.close()
  await server?.close()
  await database?.dispose()
})

const listen = async (testing: TestMemory, org: number): Promise<{ seen: MemoryChange[]; off: () => void }> => {
  const seen: MemoryChange[] = []
  return { seen, off: await testing.memory.changes.on(org, change => seen.push(change)) }
}
const named = (changes: readonly MemoryChange[]) => changes.map(({ action, key }) => `${action} ${key}`)

test('every process receives every change of an organisation with key, action, etag, author and time, but without the content', async () => {
  orgId++
  const call = callFrom(keyOf(orgId))
  await here.memory.config.put(orgId, input)
  await here.memory.config.put(orgId + 500, input)
  await here.memory.objects.write(call, 'agents/before', Buffer.from('1'))
  const [mine, theirs] = [await listen(here, orgId), await listen(there, orgId)]
  const { etag } = await here.memory.objects.write(callFrom(agentOf(orgId)), 'agents/a', Buffer.from('secret text'))
  await there.memory.objects.write(call, 'agents/a', Buffer.from('22'))
  await here.memory.objects.write(callFrom(keyOf(orgId + 500)), 'agents/foreign', Buffer.from('1'))
  await here.memory.objects.remove(call, 'agents/a')
  const expected = ['put agents/a', 'put agents/a', 'delete agents/a']
  for (const { seen } of [mine, theirs]) {
    await until(() => seen.length >= 3, 'three changes')
    expect(named(seen)).toEqual(expected)
    expect(seen[0]).toMatchObject({ orgId, etag, author: { user: '7', agent: '9', verified: true }, at: expect.any(Date) })
    expect(seen[2]).toMatchObject({ etag: null, author: { user: '7' } })
    expect(JSON.stringify(seen)).not.toContain('secret')
  }
  mine.off()
  await here.memory.objects.write(call, 'agents/later', Buffer.from('1'))
  await until(() => theirs.seen.length === 4, 'one more change')
  expect(mine.seen).toHaveLength(3)
  theirs.off()
})

test('many concurrent writes cause few notifications, and each write is reported exactly once', async () => {
  orgId++
  const call = callFrom(keyOf(orgId))
  await here.memory.config.put(orgId, input)
  const { seen, off } = await listen(there, orgId)
  let notifications = 0
  const stop = await database.db.listen('br', payload => {
    if (payload === 'm:') notifications++
  })
  await Promise.all(Array.from({ length: 60 }, (_, n) => here.memory.objects.write(call, `agents/${n}`, Buffer.from(String(n)))))
  await until(() => seen.length >= 60, 'sixty changes')
  expect(new Set(seen.map(({ key }) => key)).size).toBe(60)
  expect(seen).toHaveLength(60)
  expect(notifications).toBeLessThan(30)
  await stop()
  off()
})

test('changes by promotions, comparisons and the purge are also reported, and a listener that throws does not stop the others', async () => {
  orgId++
  const call = callFrom(keyOf(orgId))
  await here.memory.config.put(orgId, input)
  const broken = await here.memory.changes.on(orgId, () => {
    throw new Error('a listener of this test')
  })
  const { seen, off } = await listen(here, orgId)
  await here.memory.objects.write(call, 'org/records/a', Buffer.from('1'), {}, { action: 'promote' })
  await here.memory.objects.write(call, 'agents/a', Buffer.from('1'))
  server.put(`org-${orgId}/agents/direct`, '123')
  server.objects.delete(`org-${orgId}/agents/a`)
  await here.memory.reconcile.run(orgId, new AbortController().signal)
  await until(() => seen.length >= 4, 'four changes')
  expect(named(seen).sort()).toEqual(['delete agents/a', 'promote org/records/a', 'put agents/a', 'put agents/direct'])
  expect(seen.find(({ key }) => key === 'agents/direct')?.author).toBeNull()
  broken()
  off()
})

test('rows of changes are deleted when they are old, and recent rows stay', async () => {
  orgId++
  const call = callFrom(keyOf(orgId))
  await here.memory.config.put(orgId, input)
  await here.memory.objects.write(call, 'agents/a', Buffer.from('1'))
  await database.db.exec(ageChanges, orgId)
  await here.memory.objects.write(call, 'agents/b', Buffer.from('1'))
  await here.memory.changes.prune()
  expect((await database.db.one(countChanges, orgId)).count).toBe(1n)
})
