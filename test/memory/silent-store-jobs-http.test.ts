/** The regular jobs of a process while a store never answers. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { movableClock } from '../harness/clock.ts'
import { type FaultyStore, startFaultyStore } from '../harness/faulty-store.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'
import { until } from '../harness/until.ts'

const clock = movableClock()
let server: S3TestServer
let proxy: FaultyStore
let app: TestApp
beforeAll(async () => {
  server = await startS3Server()
  proxy = await startFaultyStore(server)
  app = await startApp({ clock, env: { OUTBOUND_ALLOW: proxy.hostPort } })
}, 60_000)
afterAll(async () => {
  await proxy?.close()
  await app?.stop()
  await server?.close()
})

test('while a store of one organisation never answers, jobs that need no store still run: canaries, retention, webhooks, people', async () => {
  const store = { endpoint: proxy.endpoint, bucket: server.bucket, access_key: server.accessKey, secret_key: server.secretKey }
  expect((await app.call('PUT', '/v1/me/memory-store', store)).status).toBe(200)
  clock.advance(25 * 3_600_000)
  proxy.decide = () => ({ kind: 'silence' })
  proxy.calls.length = 0
  const { jobs } = app.gateway.app
  let isOver = false
  const reconcile = jobs.runOnce('memory.reconcile').finally(() => {
    isOver = true
  })
  await until(() => proxy.calls.length > 0, 'the reconcile asks the store')
  const others = ['collections.health', 'usage.retention', 'webhooks.sweep', 'access.sweep', 'audit.sweep', 'memory.changes']
  for (const name of others) expect(await jobs.runOnce(name), name).toBe(true)
  expect(isOver).toBe(false)
  expect((await app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: 'Hi' }] })).status).toBe(200)
  // The store closes its connections, which ends the wait.
  await proxy.close()
  expect(await reconcile).toBe(true)
})
