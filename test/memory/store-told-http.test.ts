/** Who can see which details about the addresses that an organisation configured: its store, its own servers, its webhooks. */
import { createServer, type Server } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type OwnServer, startOwnServer } from '../gateway/byok/own-server.ts'
import { startApp, type TestApp, type TestReply } from '../harness/app.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../harness/webhook-receiver.ts'

let app: TestApp
let store: S3TestServer
let receiver: WebhookReceiver
let server: OwnServer
/** Accepts connections and never answers. */
let silent: Server
let silentPort = 0
let owner: string
let member: { userId: number; cookie: string }
const closedPort = 1

beforeAll(async () => {
  store = await startS3Server('bucket-of-ours')
  receiver = await startWebhookReceiver()
  server = await startOwnServer()
  server.behave(null)
  silent = createServer(() => undefined)
  await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve))
  silentPort = (silent.address() as { port: number }).port
  const allowed = [store.hostPort, server.hostPort, receiver.hostPort, `127.0.0.1:${silentPort}`, `127.0.0.1:${closedPort}`]
  app = await startApp({ env: { OUTBOUND_ALLOW: allowed.join(','), STORE_TIMEOUT_MS: '400' } })
  owner = await app.signIn()
  member = await app.newMember('member')
}, 60_000)
afterAll(async () => {
  await app?.stop()
  silent?.close()
  await receiver?.close()
  await server?.close()
  await store?.close()
})
afterEach(() => {
  store.faults.answer = null
})

const o = '/v1/me/memory/o?key=agents%2Fa'
const inputOf = (more: object = {}) => ({ endpoint: store.endpoint, bucket: store.bucket, access_key: store.accessKey, secret_key: store.secretKey, ...more })
const configure = (more: object = {}, token = app.key): Promise<TestReply> => app.call('PUT', '/v1/me/memory-store', inputOf(more), { token })

describe('HARD-19 the place of a store', () => {
  test('HARD-19 owners and admins see the place of the store, and agents and keys that cannot configure it see only the free room', async () => {
    expect((await configure()).status).toBe(200)
    const view = (token: string) => app.call('GET', '/v1/me/memory-store', undefined, { token })
    expect((await view(app.key)).json).toMatchObject({ bucket: store.bucket, endpoint: store.endpoint, access_key_masked: expect.any(String) })
    const keyOfMember = await app.gateway.app.keys.create({ orgId: app.orgId, userId: member.userId, workspaceId: null, name: 'member key', scope: 'full' })
    const others = [
      keyOfMember.key,
      (await app.newKey({ scope: 'inference' })).key,
      (await app.newKey({ withUser: false })).key,
      (await app.newAgent('reader')).token,
    ]
    const room = { configured: true, quota_mb: 1024, journal_ttl_days: 30, bytes_used: 0, history_versions: 10, history_days: 30 }
    for (const token of others) expect((await view(token)).json).toEqual(room)
    const stranger = await app.otherOrg('Stranger')
    expect((await view(stranger.key)).json).toEqual({ configured: false })
  })

  test('HARD-19 the error of a call that the store refuses names neither bucket nor endpoint nor key nor cause', async () => {
    const agent = await app.newAgent('caller')
    const refusals = new Set<string>()
    for (const [status, code] of [
      [403, 'InvalidAccessKeyId'],
      [404, 'NoSuchBucket'],
    ] as const) {
      store.faults.answer = (_request, response) => {
        response.writeHead(status, { 'content-type': 'application/xml' }).end(`<Error><Code>${code}</Code><Message>bucket-of-ours</Message></Error>`)
        return true
      }
      const failed = await app.call('GET', o, undefined, { token: agent.token })
      expect([failed.status, failed.json.error.code]).toEqual([502, 'memory_store_failed'])
      refusals.add(failed.json.error.message)
      for (const secret of [store.bucket, store.hostPort, store.accessKey, code]) expect(failed.text).not.toContain(secret)
    }
    expect(refusals.size).toBe(1)
  })

  test('HARD-19 the person who configures a store can distinguish a refused connection, a TLS error, a timeout and an error status', async () => {
    const causeOf = async (more: object): Promise<string> => {
      const failed = await configure({ ...more, confirm_path_change: true })
      expect([failed.status, failed.json.error.code]).toEqual([400, 'unavailable'])
      return failed.json.error.message
    }
    expect(await causeOf({ endpoint: `http://127.0.0.1:${closedPort}` })).toMatch(/connection was refused/)
    expect(await causeOf({ endpoint: store.endpoint.replace('http:', 'https:') })).toMatch(/TLS failed/)
    expect(await causeOf({ endpoint: `http://127.0.0.1:${silentPort}` })).toMatch(/in time/)
    expect(await causeOf({ bucket: 'no-such-bucket' })).toMatch(/bucket does not exist/)
    store.faults.answer = (_request, response) => {
      response.writeHead(405).end()
      return true
    }
    expect(await causeOf({ secret_key: 'another' })).toMatch(/answered 405/)
  })
})

test('HARD-19 only owners and admins see why a test of a model server failed', async () => {
  const params = { model: 'test-model', upstream_model: 'm', key: 'k-0123456789' }
  const tested = await app.call('POST', '/me/endpoints/test', { ...params, base_url: `http://127.0.0.1:${closedPort}/v1` }, { cookie: owner })
  expect(tested.json).toMatchObject({
    ok: false,
    compliance: { checks: expect.arrayContaining([expect.objectContaining({ detail: expect.stringMatching(/ECONNREFUSED/) })]) },
  })
  const refused = await app.call('POST', '/me/endpoints/test', { ...params, base_url: `http://127.0.0.1:${closedPort}/v1` }, { cookie: member.cookie })
  expect(refused.status).toBe(403)
  const own = { ...params, name: 'Own', base_url: server.url }
  const made = await app.call('POST', '/me/endpoints', own, { cookie: owner })
  expect(made.status).toBe(201)
  server.misbehave(() => ({ status: 500, body: { error: { message: 'the words of the server' } } }))
  expect((await app.call('POST', `/me/endpoints/${made.json.endpoint.id}/retest`, {}, { cookie: owner })).json.ok).toBe(false)
  const chatCheck = async (cookie: string) => (await app.call('GET', '/me/endpoints', undefined, { cookie })).json.endpoints[0].compliance.checks[0]
  expect(await chatCheck(owner)).toMatchObject({ name: 'chat', pass: false, detail: expect.stringMatching(/500/) })
  expect(await chatCheck(member.cookie)).toEqual({ name: 'chat', required: true, pass: false, latency_ms: 0, detail: 'failed; owners and admins see why' })
})

test('HARD-19 an organisation has one rate limit for tests of all kinds of addresses together', async () => {
  const busy = await app.otherOrg('Busy')
  const cookie = await app.signIn(busy.userId, busy.orgId)
  const hook = await app.call('POST', '/me/webhooks', { url: `${receiver.url}/hook` }, { cookie })
  const params = { model: 'test-model', base_url: `http://127.0.0.1:${closedPort}/v1`, upstream_model: 'm' }
  const kinds = [
    () => configure({ endpoint: `http://127.0.0.1:${closedPort}` }, busy.key),
    () => app.call('POST', '/me/endpoints/test', params, { cookie }),
    () => app.call('POST', `/me/webhooks/${hook.json.id}/test`, {}, { cookie }),
  ]
  const refused = new Map<number, TestReply>()
  for (let n = 0; n < 300 && refused.size < kinds.length; n++) {
    const at = n % kinds.length
    const reply = await kinds[at]?.()
    if (reply?.status === 429) refused.set(at, reply)
  }
  expect(refused.size).toBe(kinds.length)
  for (const reply of refused.values()) {
    expect(reply.json.error.code).toBe('rate_limit_exceeded')
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0)
  }
  const other = await app.otherOrg('Calm')
  expect((await configure({}, other.key)).status).toBe(200)
})
