/** Checks that lists of one person's stores that are large, hang or send wrong replies do not harm other organisations. */
import type { ServerResponse } from 'node:http'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'
import { until } from '../harness/until.ts'

let app: TestApp
let theirs: S3TestServer
let good: S3TestServer
let keys: string[]
let other: string

beforeEach(async () => {
  theirs = await startS3Server()
  good = await startS3Server()
  app = await startApp({ env: { OUTBOUND_ALLOW: `${theirs.hostPort},${good.hostPort}` } })
  const cookie = await app.signIn()
  const made = await app.call('POST', '/me/orgs', { name: 'Second' }, { cookie })
  expect((await app.call('POST', '/me/orgs/switch', { org_id: made.json.id }, { cookie })).status).toBe(200)
  keys = [app.key, (await app.call('POST', '/me/keys', { name: 'Second' }, { cookie })).json.key]
  other = (await app.otherOrg('Neighbours')).key
  for (const token of keys) await configure(token, theirs)
  await configure(other, good)
}, 60_000)
afterEach(async () => {
  await theirs.close()
  await app.stop()
  await good.close()
})

async function configure(token: string, server: S3TestServer): Promise<void> {
  const store = { endpoint: server.endpoint, bucket: server.bucket, access_key: server.accessKey, secret_key: server.secretKey }
  expect((await app.call('PUT', '/v1/me/memory-store', store, { token })).status).toBe(200)
}
const list = (token: string, query = '') => app.call('GET', `/v1/me/memory/list?prefix=agents/${query}`, undefined, { token })

/** Lets `answer` reply to all lists of the store from now on. */
function onLists(answer: (response: ServerResponse, query: URLSearchParams) => void): void {
  theirs.faults.answer = (request, response, url) => {
    const isList = request.method === 'GET' && url.searchParams.get('list-type') === '2'
    if (isList) answer(response, url.searchParams)
    return isList
  }
}

/** Answers lists with the requested number of keys, up to `total`. The returned function gives the number of keys listed since its last call. */
function listMany(total: number, nameOf: (number: number) => string): () => number {
  const names = Array.from({ length: total }, (_, at) => nameOf(at + 1))
  let listed = 0
  onLists((response, query) => {
    const folder = (query.get('prefix') ?? '').replace(/agents\/.*$/, '')
    const from = names.findIndex(name => `${folder}${name}` > (query.get('start-after') ?? ''))
    const page = from < 0 ? [] : names.slice(from, from + Number(query.get('max-keys')))
    listed += page.length
    const entries = page.map(name => `<Contents><Key>${folder}${name}</Key><ETag>e</ETag><Size>1</Size></Contents>`).join('')
    const isTruncated = from >= 0 && from + page.length < total
    response.writeHead(200, { 'content-type': 'application/xml' })
    response.end(`<?xml version="1.0"?><ListBucketResult><IsTruncated>${isTruncated}</IsTruncated>${entries}</ListBucketResult>`)
  })
  return () => {
    const count = listed
    listed = 0
    return count
  }
}

test('HARD-11 the number of lists of one person that wait for a store is bounded, and other people can run as many lists as before', async () => {
  expect((await app.call('PUT', '/v1/me/memory/o?key=agents/a', 'text', { token: other })).status).toBe(200)
  let lists = 0
  onLists(() => lists++)
  const waiting = Array.from({ length: 16 }, (_, at) => list(keys[at % 2] ?? '', at < 8 ? '' : '&limit=10'))
  await until(() => lists >= 16, 'all lists wait for the store')
  const refused = await list(keys[0] ?? '')
  expect([refused.status, refused.json.error.code, refused.headers.get('retry-after')]).toEqual([429, 'rate_limit_exceeded', '1'])
  expect(refused.json.error.message).toBe("The organisations of this one's founder run 16 lists of memory concurrently. Try again in a second.")
  expect((await list(keys[1] ?? '', '&author=user:1')).status).toBe(429)
  const found = await Promise.all(Array.from({ length: 16 }, () => list(other)))
  expect(found.map(({ status, json }) => [status, json.keys?.length])).toEqual(Array(16).fill([200, 1]))
  await theirs.close()
  expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(Array(16).fill(502))
}, 60_000)

test.each([
  ['keys', '&author=user:999', (at: number) => `agents/${at}`],
  ['keys that the gateway does not serve', '&limit=5&modified_since=2026-01-31', (at: number) => `agents//${at}`],
  ['folders', '&delimiter=/', (at: number) => `agents/folder-${Math.ceil((at - 100_000) / 1500)}/${at}`],
])(
  'HARD-11 a page with a filter or a delimiter examines at most 2,000 objects, and its cursor leads to the end: %s',
  async (_what, query, nameOf) => {
    const listed = listMany(4_500, at => nameOf(100_000 + at))
    const prefixes: string[] = []
    let pages = 0
    for (let cursor = ''; ; pages++) {
      const { status, json } = await list(keys[0] ?? '', `${query}${cursor}`)
      expect([status, json.keys]).toEqual([200, []])
      expect(listed()).toBeLessThanOrEqual(2_000)
      prefixes.push(...(json.prefixes ?? []))
      if (json.next_cursor === null) break
      cursor = `&cursor=${json.next_cursor}`
    }
    expect(pages).toBeLessThan(4)
    expect(prefixes).toEqual(query.includes('delimiter') ? ['agents/folder-1/', 'agents/folder-2/', 'agents/folder-3/'] : [])
  },
  60_000,
)
