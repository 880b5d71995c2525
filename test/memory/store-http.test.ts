import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'

let app: TestApp
let server: S3TestServer
const o = (key: string): string => `/v1/me/memory/o?key=${encodeURIComponent(key)}`

beforeAll(async () => {
  server = await startS3Server()
  app = await startApp({ env: { OUTBOUND_ALLOW: server.hostPort } })
  const put = await app.call('PUT', '/v1/me/memory-store', {
    endpoint: server.endpoint,
    bucket: server.bucket,
    access_key: server.accessKey,
    secret_key: server.secretKey,
  })
  expect(put.status).toBe(200)
}, 60_000)
afterAll(async () => {
  await app?.stop()
  await server?.close()
})

const reconcile = (token: string = app.key) => app.call('POST', '/v1/me/memory/reconcile', undefined, { token })
const store = async () => (await app.call('GET', '/v1/me/memory-store')).json
const listed = async (): Promise<{ key: string; size: number }[]> => (await app.call('GET', '/v1/me/memory/list?prefix=agents/')).json.keys

describe('the bucket belongs to the organisation', () => {
  test('MEMX-09 a reconcile finds objects that were added, replaced and removed directly in the bucket, and list and quota then agree', async () => {
    for (const name of ['kept', 'replaced', 'removed']) await app.call('PUT', o(`agents/${name}`), name)
    const prefix = `org-${app.orgId}/agents/`
    server.put(`${prefix}replaced`, 'by hand, and longer')
    server.put(`${prefix}added`, '12345')
    server.objects.delete(`${prefix}removed`)
    const before = (await store()).bytes_used
    const sum = async (): Promise<number> => (await listed()).reduce((total, { size }) => total + size, 0)
    expect(before).not.toBe(await sum())
    const found = await reconcile()
    expect([found.status, found.json]).toMatchObject([200, { checked: 3, added: 1, changed: 1, removed: 1, skipped: 0, bytes_used: 4 + 19 + 5 }])
    expect((await store()).bytes_used).toBe(await sum())
    expect((await listed()).map(({ key, size }) => [key, size])).toEqual([
      ['agents/added', 5],
      ['agents/kept', 4],
      ['agents/replaced', 19],
    ])
    expect((await reconcile()).json).toMatchObject({ added: 0, changed: 0, removed: 0, bytes_used: 28 })
    await app.call('DELETE', o('agents/added'))
    expect((await store()).bytes_used).toBe(23)
    expect(await store()).toMatchObject({ reconciled_at: expect.stringMatching(/^20/) })
  })

  test('a reconcile needs an admin with a full key of their own, and a configured store', async () => {
    for (const token of [(await app.newKey({ scope: 'inference' })).key, (await app.newKey({ withUser: false })).key, (await app.newAgent('sweeper')).token])
      expect((await reconcile(token)).status).toBe(403)
    const other = await app.otherOrg('No Store')
    const none = await reconcile(other.key)
    expect([none.status, none.json.error.code]).toEqual([404, 'memory_not_configured'])
    server.faults.down = true
    const down = await reconcile()
    server.faults.down = false
    expect([down.status, down.json.error.code]).toEqual([502, 'memory_store_failed'])
  })

  test('the view shows the abilities of the store, and `reprobe` and the doctor check them again', async () => {
    expect((await store()).capabilities).toMatchObject({
      conditional_put: true,
      conditional_delete: true,
      copy: true,
      versioning: 'unknown',
      lists_at_once: true,
      etags_agree: true,
      metadata_bytes: 1900,
      probed_at: expect.stringMatching(/^20/),
    })
    server.faults.ignoreConditions = true
    const findings = await app.gateway.app.doctor()
    expect(findings.find(({ what }) => what === `memory store of organisation ${app.orgId}`)).toMatchObject({
      state: 'wrong',
      detail: expect.stringMatching(/conditional writes/),
    })
    expect((await store()).capabilities).toMatchObject({ conditional_put: false, conditional_delete: false })
    server.faults.ignoreConditions = false
    expect((await app.call('PUT', '/v1/me/memory-store', { reprobe: true })).status).toBe(200)
    expect((await store()).capabilities).toMatchObject({ conditional_put: true, conditional_delete: true })
  })
})

test('an overloaded store is 503 with retry-after, and a store that refuses the credentials is 502 with a message that says who must act', async () => {
  server.faults.slowDowns = 10
  const busy = await app.call('PUT', o('agents/busy'), 'x')
  server.faults.slowDowns = 0
  expect([busy.status, busy.json.error.code, busy.headers.get('retry-after'), busy.headers.get('x-should-retry')]).toEqual([
    503,
    'memory_store_failed',
    '2',
    'true',
  ])
})

test('a read under agents/ makes no round trip to the database, only a call to the store', async () => {
  await app.call('PUT', o('agents/hot'), 'x')
  await app.call('GET', o('agents/hot'))
  const least = await leastRoundTrips(() => app.call('GET', o('agents/hot')))
  expect(least).toBe(0)
})

/** Returns the lowest number of round trips of several tries, because background work also makes round trips. */
async function leastRoundTrips(work: () => Promise<unknown>): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let tries = 0; tries < 10; tries++) {
    const before = app.db.roundTrips
    await work()
    least = Math.min(least, app.db.roundTrips - before)
  }
  return least
}

test('a write makes two round trips to the database: one takes the key and reserves the bytes, and one settles', async () => {
  await app.call('PUT', '/v1/me/memory-store', { history_versions: 0 })
  await app.call('PUT', o('agents/cheap'), 'x')
  expect(await leastRoundTrips(() => app.call('PUT', o('agents/cheap'), 'y'))).toBeLessThanOrEqual(2)
})
