/** The bytes of lists: pages end before they are large, and whole lists have room by founder. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../harness/app.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'
import { until } from '../harness/until.ts'

const addAgents = statement<[orgId: number, count: number, models: readonly string[]]>(
  'test.add_ruled_agents',
  `insert into agents (org_id, name, status, epoch, created_at, allowed_models)
   select $1::int, 'ruled ' || n, 'active', 0, now(), $3::text[] from generate_series(1, $2::int) as n`,
)
let app: TestApp
let server: S3TestServer

beforeAll(async () => {
  server = await startS3Server()
  app = await startApp({ env: { OUTBOUND_ALLOW: server.hostPort, REPLIES_MAX_BYTES: String(4 * 1024 * 1024) } })
  const { endpoint, bucket, accessKey, secretKey } = server
  expect((await app.call('PUT', '/v1/me/memory-store', { endpoint, bucket, access_key: accessKey, secret_key: secretKey })).status).toBe(200)
}, 60_000)
afterAll(async () => {
  await app?.stop()
  await server?.close()
})
afterEach(() => {
  server.faults.answer = null
})

/** Puts objects with keys of nearly 1,000 bytes into the bucket, and returns the keys in order. */
function fill(count: number): string[] {
  const keys = Array.from({ length: count }, (_, at) => `agents/${'k'.repeat(900)}-${100_000 + at}`)
  for (const key of keys) server.put(`org-${app.orgId}/${key}`, '1')
  return keys
}
const keysOf = (reply: { json: { keys: readonly { key: string }[] } }): string[] => reply.json.keys.map(({ key }) => key)
const list = (query = '') => app.call('GET', `/v1/me/memory/list?prefix=agents/${query}`)

test('HARD-10 a page of long keys ends at half a megabyte, and its cursor leads to all keys; a list without pages has all', async () => {
  const keys = fill(1_200)
  const found: string[] = []
  let cursor = ''
  do {
    const page = await list(`&limit=1000${cursor}`)
    expect(page.text.length).toBeLessThan(600 * 1024)
    found.push(...keysOf(page))
    cursor = page.json.next_cursor === null ? '' : `&cursor=${page.json.next_cursor}`
  } while (cursor !== '')
  expect(found).toEqual(keys)
  const whole = await list()
  expect([whole.headers.get('content-type'), Object.keys(whole.json)]).toEqual(['application/json; charset=utf-8', ['keys']])
  expect(keysOf(whole)).toEqual(keys)
  expect(whole.json.keys[0]).toEqual((await list('&limit=1')).json.keys[0])
}, 60_000)

test('HARD-11 whole lists of one founder that do not fit into its room are refused, and pages still come', async () => {
  const keys = fill(2_500)
  // The last page of the first list waits, so the list keeps its room.
  let release = (): void => {}
  const isHeld = new Promise<void>(resolve => {
    release = resolve
  })
  let lasts = 0
  server.faults.answer = (_request, response, url) => {
    if (lasts > 0 || !(url.searchParams.get('start-after') ?? '').endsWith('101999')) return false
    lasts++
    void isHeld.then(() => response.destroy())
    return true
  }
  const first = list()
  await until(() => lasts > 0, 'the first list waits')
  const refused = await list()
  expect([refused.status, refused.json.error.code, refused.headers.get('retry-after')]).toEqual([429, 'rate_limit_exceeded', '1'])
  expect(refused.json.error.message).toMatch(/take too much memory now\. Ask for pages with limit/)
  expect(keysOf(await list('&limit=3'))).toEqual(keys.slice(0, 3))
  release()
  // The client of the store asks a second time after the cut.
  expect(keysOf(await first)).toEqual(keys)
}, 60_000)

test('HARD-10 a list of agents ends before their rules have more than a megabyte, and its cursor leads to all agents', async () => {
  await app.db.exec(
    addAgents,
    app.orgId,
    120,
    Array.from({ length: 100 }, (_, at) => `${'m'.repeat(195)}${at}`),
  )
  const names = new Set<string>()
  let cursor = ''
  do {
    const page = await app.call('GET', `/v1/me/agents${cursor}`)
    expect(page.text.length).toBeLessThan(1.2 * 1024 * 1024)
    for (const { name } of page.json.agents) names.add(name)
    cursor = page.json.next_cursor == null ? '' : `?limit=200&cursor=${page.json.next_cursor}`
  } while (cursor !== '')
  expect(names.size).toBe(120)
}, 60_000)
