/** Checks that one person's stores that hang or send wrong replies do not harm other organisations. Comparisons and searches are counted by founder. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'
import { until } from '../harness/until.ts'

let app: TestApp
let hanging: S3TestServer
let good: S3TestServer
let keys: string[]
let other: string

beforeEach(async () => {
  hanging = await startS3Server()
  good = await startS3Server()
  app = await startApp({ env: { OUTBOUND_ALLOW: `${hanging.hostPort},${good.hostPort}` } })
  const cookie = await app.signIn()
  keys = [app.key]
  for (const name of ['First', 'Second']) {
    const made = await app.call('POST', '/me/orgs', { name }, { cookie })
    expect((await app.call('POST', '/me/orgs/switch', { org_id: made.json.id }, { cookie })).status).toBe(200)
    keys.push((await app.call('POST', '/me/keys', { name }, { cookie })).json.key)
  }
  other = (await app.otherOrg('Neighbours')).key
  for (const token of keys) await configure(token, hanging)
  await configure(other, good)
}, 60_000)
afterEach(async () => {
  await hanging.close()
  await app.stop()
  await good.close()
})

async function configure(token: string, server: S3TestServer): Promise<void> {
  const store = { endpoint: server.endpoint, bucket: server.bucket, access_key: server.accessKey, secret_key: server.secretKey }
  expect((await app.call('PUT', '/v1/me/memory-store', store, { token })).status).toBe(200)
}
/** Lets the lists of the store never end from now on. The returned function gives their number. */
function hangLists(): () => number {
  let lists = 0
  hanging.faults.answer = (request, _response, url) => {
    const isList = request.method === 'GET' && url.searchParams.get('list-type') === '2'
    if (isList) lists++
    return isList
  }
  return () => lists
}
const compare = (token: string) => app.call('POST', '/v1/me/memory/reconcile', undefined, { token })
const search = (token: string) => app.call('GET', '/v1/me/memory/search?q=text', undefined, { token })

test('HARD-11 the organisations of one person together run one comparison at a time, while another person can also run one', async () => {
  const lists = hangLists()
  const running = compare(keys[0] ?? '')
  await until(() => lists() > 0, 'the comparison lists the store')
  const refused = await compare(keys[1] ?? '')
  expect([refused.status, refused.json.error.code, refused.headers.get('retry-after')]).toEqual([409, 'memory_conflict', '5'])
  expect(refused.json.error.message).toContain('founder')
  expect((await compare(other)).status).toBe(200)
  hanging.faults.answer = () => false
  await hanging.close()
  expect((await running).status).toBe(502)
}, 60_000)

test('HARD-11 while searches of one person wait for a store, other people can run as many searches as before', async () => {
  expect((await app.call('PUT', '/v1/me/memory/o?key=agents/a', 'text', { token: other })).status).toBe(200)
  const lists = hangLists()
  const waiting = keys.slice(0, 2).flatMap(token => [1, 2, 3, 4].map(() => search(token)))
  await until(() => lists() >= 8, 'all searches wait for the store')
  const refused = await search(keys[2] ?? '')
  expect([refused.status, refused.json.error.code]).toEqual([429, 'rate_limit_exceeded'])
  const found = await Promise.all([1, 2, 3, 4].map(() => search(other)))
  expect(found.map(({ status, json }) => [status, json.matches?.length])).toEqual(Array(4).fill([200, 1]))
  await hanging.close()
  expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(Array(8).fill(502))
}, 60_000)
