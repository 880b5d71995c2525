/** The process parses large list pages of stores in turns. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { HeavyTurns } from '../../src/platform/loop/heavy-turns.ts'
import { type TestDatabase, testDatabase } from '../harness/database.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'
import { until } from '../harness/until.ts'
import { callFrom, keyOf, type TestMemory, testMemory } from './service.ts'
import { s3Store } from './stores.ts'

let database: TestDatabase
let server: S3TestServer
let testing: TestMemory
/** The work that waits for a turn, with its organisation. */
const waiting: { orgId: number; run(): void }[] = []
const heavyTurns: Pick<HeavyTurns, 'runWithSequel'> = {
  runWithSequel: (orgId, work) => new Promise(resolve => waiting.push({ orgId, run: () => resolve(work()) })),
}

beforeAll(async () => {
  database = await testDatabase()
  server = await startS3Server()
  testing = await testMemory({ db: database.db, allow: [server.hostPort], heavyTurns })
  const { endpoint, bucket, accessKey, secretKey } = server
  for (const orgId of [1, 2]) await testing.memory.config.put(orgId, { store: 's3', endpoint, bucket, access_key: accessKey, secret_key: secretKey })
}, 60_000)
afterAll(async () => {
  await testing?.close()
  await server?.close()
  await database?.dispose()
})
beforeEach(() => server.objects.clear())

function fill(orgId: number, count: number): void {
  for (let at = 0; at < count; at++) server.put(`org-${orgId}/agents/${at}`, '1')
}

test('HARD-11 a large list page of a store waits for the turn of its organisation, and a small page does not wait', async () => {
  fill(1, 900)
  fill(2, 20)
  const list = (orgId: number) => testing.memory.objects.list(callFrom(keyOf(orgId)), 'agents/')
  const large = list(1)
  await until(() => waiting.length > 0, 'the large page waits')
  expect(await list(2)).toHaveLength(20)
  expect(waiting.map(({ orgId }) => orgId)).toEqual([1])
  waiting.shift()?.run()
  expect(await large).toHaveLength(900)
})

test('a page is scanned and parsed in the same turn', async () => {
  fill(3, 900)
  const order: string[] = []
  const store = s3Store({
    ...server,
    inTurn: async work => {
      const value = work()
      setImmediate(() => order.push('turn ended'))
      return value
    },
  })
  order.push(`${(await store.list({ prefix: 'org-3/' })).objects.length} objects`)
  await until(() => order.length > 1, 'the turn ended')
  expect(order).toEqual(['900 objects', 'turn ended'])
  store.close()
})
