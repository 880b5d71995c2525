/**
 * Whole replies of a store and of a registered server that stop before the last byte. The organisations of one founder may use only a share of the process.
 */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp, type TestReply } from '../../harness/app.ts'
import { type S3TestServer, startS3Server } from '../../harness/s3-server.ts'
import { until } from '../../harness/until.ts'
import { wholeChat } from '../../harness/whole-chat.ts'
import { type OwnServer, startOwnServer } from '../byok/own-server.ts'

const mib = 1024 * 1024
const limitBytes = 2 * mib
const replyBytes = mib
const many = 12

interface Stalled {
  readonly response: ServerResponse
  readonly end: () => void
}

/** Sends a reply without its last byte. */
function stall(response: ServerResponse, bytes: Buffer, headers: object): void {
  response.writeHead(200, { ...headers, 'content-length': bytes.length })
  response.write(bytes.subarray(0, -1))
  stalled.push({ response, end: () => response.end(bytes.subarray(-1)) })
}

let app: TestApp
let store: S3TestServer
let good: OwnServer
/** Passes a request to the working server, or stalls. */
const proxy = createServer((request, response) => {
  const parts: Buffer[] = []
  request.on('data', part => parts.push(part))
  request.on('end', () => {
    if (isStalling) return stall(response, longReply, { 'content-type': 'application/json' })
    const { method = '', headers } = request
    const asked = { method, headers: { 'content-type': 'application/json' }, ...(method === 'POST' ? { body: Buffer.concat(parts) } : {}) }
    void fetch(`http://${good.hostPort}${request.url}`, { ...asked, headers: { ...asked.headers, authorization: headers.authorization ?? '' } }).then(
      async reply => response.writeHead(reply.status, { 'content-type': reply.headers.get('content-type') ?? '' }).end(Buffer.from(await reply.arrayBuffer())),
    )
  })
})
let stalled: Stalled[] = []
let isStalling = false
const longReply = Buffer.from(wholeChat(replyBytes))

beforeAll(async () => {
  store = await startS3Server()
  good = await startOwnServer()
  good.behave()
  await new Promise<void>(listening => proxy.listen(0, '127.0.0.1', listening))
  const port = (proxy.address() as AddressInfo).port
  app = await startApp({
    env: { OUTBOUND_ALLOW: `${store.hostPort},127.0.0.1:${port}`, REPLIES_MAX_BYTES: String(limitBytes), CIRCUIT_FAILURES: '1000' },
  })
})
afterEach(() => {
  store.faults.answer = null
  isStalling = false
  stalled = []
})
afterAll(async () => {
  proxy.closeAllConnections()
  proxy.close()
  await app.stop()
  await good.close()
  await store.close()
})

async function figure(name: string): Promise<number> {
  const { text } = await app.call('GET', '/metrics')
  const line = text.split('\n').find(each => each.startsWith(`${name} `))
  return Number(line?.split(' ')[1] ?? Number.NaN)
}

const object = '/v1/me/memory/o?key=agents/x'
async function withStore(token: string): Promise<string> {
  const { endpoint, bucket, accessKey, secretKey } = store
  const made = await app.call('PUT', '/v1/me/memory-store', { endpoint, bucket, access_key: accessKey, secret_key: secretKey }, { token })
  expect(made.status, made.text).toBe(200)
  return token
}

/** Waits until all replies have begun and none continues, checks the number of kept bytes, and lets the replies end. */
async function expectBounded(calls: readonly Promise<TestReply>[], bytes: number): Promise<void> {
  await until(() => stalled.length === many, 'all replies have begun')
  await until(async () => (await figure('brigade_replies_waits_total')) > 0, 'replies wait for room')
  let before = -1
  await until(async () => {
    const now = await figure('brigade_replies_held_bytes')
    const isStill = now === before
    before = now
    return isStill
  }, 'nothing more is read')
  expect(before).toBeGreaterThan(replyBytes / 2)
  expect(before).toBeLessThanOrEqual(limitBytes)
  for (const { end } of stalled) end()
  for (const reply of await Promise.all(calls)) expect([reply.status, reply.text.length >= bytes], reply.text.slice(0, 300)).toEqual([200, true])
  expect(await figure('brigade_replies_held_bytes')).toBe(0)
}

test('HARD-11 objects from a store that stalls use only a share of the process, other founders can read, and all reads end when the store continues', async () => {
  const [evil, other] = [await withStore(app.key), await withStore((await app.otherOrg('Neighbour')).key)]
  expect((await app.call('PUT', object, 'y'.repeat(replyBytes), { token: other })).status).toBe(200)
  const bytes = Buffer.alloc(replyBytes, 120)
  store.faults.answer = (request, response, url) => {
    if (request.method !== 'GET' || !url.pathname.includes(`/org-${app.orgId}/`)) return false
    stall(response, bytes, { etag: '"e"' })
    return true
  }
  const calls = Array.from({ length: many }, () => app.call('GET', object, undefined, { token: evil }))
  await until(() => stalled.length === many, 'all replies have begun')
  expect((await app.call('GET', object, undefined, { token: other })).text.length).toBe(replyBytes)
  await expectBounded(calls, replyBytes)
})

test('HARD-11 whole replies from a registered server that stalls use only a share of the process, and all callers get theirs when it continues', async () => {
  const cookie = await app.signIn()
  const base_url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}${new URL(good.url).pathname}`
  const made = await app.call('POST', '/me/endpoints', { name: 'Stops', model: 'test-model', base_url, upstream_model: 'm' }, { cookie })
  expect(made.status, made.text).toBe(201)
  isStalling = true
  const asked = { model: 'test-model', provider: made.json.endpoint.provider_ref, messages: [{ role: 'user', content: 'hello' }] }
  await expectBounded(
    Array.from({ length: many }, () => app.call('POST', '/v1/chat/completions', asked)),
    replyBytes,
  )
})

test('a reply that waits for room takes no room after its caller has disconnected', async () => {
  const evil = await withStore((await app.otherOrg('Leaver')).key)
  store.faults.answer = (request, response, url) => {
    if (request.method !== 'GET' || url.searchParams.has('list-type')) return false
    stall(response, Buffer.alloc(replyBytes, 120), { etag: '"e"' })
    return true
  }
  const leave = new AbortController()
  const calls = Array.from({ length: many }, () =>
    fetch(`${app.baseUrl}${object}`, { headers: { authorization: `Bearer ${evil}` }, signal: leave.signal }).catch(() => null),
  )
  await until(async () => (await figure('brigade_replies_held_bytes')) > replyBytes / 2, 'replies are read')
  leave.abort()
  await Promise.all(calls)
  await until(async () => (await figure('brigade_replies_held_bytes')) === 0, 'all room is free')
})
