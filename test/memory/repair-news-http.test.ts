/** What comparisons of one organisation's bucket with the index put into the table of changes, which all processes read. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../harness/app.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'

const changesOf = statement<[orgId: number], { count: number }>(
  'test.count_memory_changes',
  `select count(*)::int as count from memory_changes where org_id = $1::int`,
)
let app: TestApp
let server: S3TestServer

beforeAll(async () => {
  server = await startS3Server()
  app = await startApp({ env: { OUTBOUND_ALLOW: server.hostPort } })
  const { endpoint, bucket, accessKey, secretKey } = server
  expect((await app.call('PUT', '/v1/me/memory-store', { endpoint, bucket, access_key: accessKey, secret_key: secretKey })).status).toBe(200)
}, 60_000)
afterAll(async () => {
  await app?.stop()
  await server?.close()
})

const changes = async () => (await app.db.one(changesOf, app.orgId)).count
const compare = async () => (await app.call('POST', '/v1/me/memory/reconcile')).json

test('HARD-11 a store that gives an unchanged object another etag again and again makes no news', async () => {
  expect((await app.call('PUT', '/v1/me/memory/o?key=agents/a', 'text')).status).toBe(200)
  const before = await changes()
  for (let round = 0; round < 3; round++) {
    for (const [key, object] of server.objects) if (key.endsWith('agents/a')) server.objects.set(key, { ...object, etag: `"${round}"` })
    expect(await compare()).toMatchObject({ changed: 1 })
  }
  expect(await changes()).toBe(before)
  server.put(`org-${app.orgId}/agents/a`, 'by somebody else')
  expect(await compare()).toMatchObject({ changed: 1 })
  expect(await changes()).toBe(before + 1)
}, 60_000)

test('HARD-11 corrections of one organisation become at most 1,000 news in ten minutes', async () => {
  const before = await changes()
  for (let at = 0; at < 1_100; at++) server.put(`org-${app.orgId}/agents/${at}`, '1')
  expect(await compare()).toMatchObject({ added: 1_100 })
  const made = (await changes()) - before
  expect(made).toBeLessThanOrEqual(1_000)
  expect(made).toBeGreaterThan(900)
}, 60_000)
