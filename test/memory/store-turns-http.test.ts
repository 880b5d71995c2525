/** Large pages of stores that wait for their turn in the process. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp, until } from '../harness/app.ts'
import { heldTurnsClock } from '../harness/held-turns.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'

const clock = heldTurnsClock()
/** One call to a store may take 2 * STORE_TIMEOUT_MS and 1.5 s. */
const storeTimeoutMs = 500
const storeCallMs = 2 * storeTimeoutMs + 1_500
let app: TestApp
let server: S3TestServer

beforeAll(async () => {
  server = await startS3Server()
  app = await startApp({ clock, env: { OUTBOUND_ALLOW: server.hostPort, STORE_TIMEOUT_MS: String(storeTimeoutMs) } })
  const { endpoint, bucket, accessKey, secretKey } = server
  expect((await app.call('PUT', '/v1/me/memory-store', { endpoint, bucket, access_key: accessKey, secret_key: secretKey })).status).toBe(200)
  for (let at = 0; at < 900; at++) server.put(`org-${app.orgId}/agents/${at}`, '1')
}, 60_000)
afterAll(async () => {
  clock.release()
  await app?.stop()
  await server?.close()
})

const list = (signal?: AbortSignal) => app.call('GET', '/v1/me/memory/list?prefix=agents/', undefined, signal === undefined ? {} : { signal })
const listsAt = () => server.requests.filter(({ method, key }) => method === 'GET' && key === '').length

test('HARD-11 the time that a large page waits for its turn does not count as time of the store', async () => {
  clock.hold()
  expect((await list()).status).toBe(200)
  const before = listsAt()
  const waiting = list()
  await until(() => listsAt() > before)
  const sinceMs = Date.now()
  await until(() => Date.now() - sinceMs > storeCallMs + 500)
  clock.release()
  const { status, json } = await waiting
  expect([status, json.keys?.length]).toEqual([200, 900])
}, 60_000)

test('HARD-11 a caller who leaves while a large page waits for its turn gives up the place', async () => {
  clock.hold()
  expect((await list()).status).toBe(200)
  const before = listsAt()
  const leaving = new AbortController()
  const left = list(leaving.signal).catch(() => 'left')
  await until(() => listsAt() > before)
  // By the end of another call, the page of the store has arrived.
  expect((await app.call('GET', `/v1/me/memory/list?prefix=users/${app.userId}/`)).status).toBe(200)
  expect(app.gateway.app.inflight.size).toBe(1)
  leaving.abort()
  expect(await left).toBe('left')
  await until(() => app.gateway.app.inflight.size === 0)
  clock.release()
  expect((await list()).status).toBe(200)
}, 60_000)
