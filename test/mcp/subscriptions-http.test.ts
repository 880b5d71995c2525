import type { Client } from '@modelcontextprotocol/client'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { accountPollMs } from '../../src/mcp/news/account-polls.ts'
import { keepAliveMs } from '../../src/mcp/news/listen-stream.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { startApp, type TestApp, until } from '../harness/app.ts'
import { closeClients, connectV1, connectV2, discoverJson, discoverPost } from './raw-clients.ts'

/** Shortens the intervals of seconds to milliseconds. */
const everyMs = new Map([
  [accountPollMs, 40],
  [keepAliveMs, 60],
])
let offsetMs = 0
const clock = {
  ...systemClock,
  nowMs: () => Date.now() + offsetMs,
  every: (ms: number, fn: () => void) => systemClock.every(everyMs.get(ms) ?? ms, fn),
}

let app: TestApp
let isStopped = false
beforeAll(async () => {
  app = await startApp({ env: { FOLDER_STORE: 'on', DRAIN_MS: '60000' }, clock })
  expect((await app.call('PUT', '/v1/me/memory-store', { store: 'folder' })).status).toBe(200)
})
afterEach(async () => {
  await closeClients()
  await until(() => app.gateway.app.inflight.size === 0)
})
afterAll(async () => {
  if (!isStopped) await app.stop()
})

const put = async (key: string, content = 'x', token = app.key) =>
  expect((await app.call('PUT', `/v1/me/memory/o?key=${encodeURIComponent(key)}`, content, { token })).status).toBe(200)
const remove = (key: string) => app.call('DELETE', `/v1/me/memory/o?key=${encodeURIComponent(key)}`)

// biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
type Update = { uri: string; _meta?: any }

async function listening(token: string, uris: string[], client?: Client) {
  const from = client ?? (await connectV2(app.baseUrl, token))
  const updates: Update[] = []
  from.setNotificationHandler('notifications/resources/updated', ({ params }) => void updates.push(params as Update))
  const subscription = await from.listen({ resourceSubscriptions: uris, toolsListChanged: true, resourcesListChanged: true })
  return { client: from, updates, subscription, honored: subscription.honoredFilter, keys: () => updates.map(({ uri }) => uri) }
}

test('MEMX-08 MCPX-06 a write in a readable scope is reported to the listeners of the key and of its folder, with action and author', async () => {
  const agent = await app.newAgent('writer')
  const listener = await listening(app.key, ['memory://agents/news/a.md', 'memory://agents/news/', 'memory://agents/elsewhere/'])
  expect(listener.honored).toEqual({ resourceSubscriptions: ['memory://agents/news/a.md', 'memory://agents/news/', 'memory://agents/elsewhere/'] })
  await put('agents/news/a.md', 'secret text', agent.token)
  await until(() => listener.updates.length === 2)
  expect(listener.keys().sort()).toEqual(['memory://agents/news/', 'memory://agents/news/a.md'])
  for (const { _meta } of listener.updates)
    expect(_meta).toMatchObject({
      'io.modelcontextprotocol/subscriptionId': expect.anything(),
      'brigade/changes': [{ key: 'agents/news/a.md', action: 'put', author: { user: String(app.userId), agent: String(agent.id) }, etag: expect.any(String) }],
    })
  expect(JSON.stringify(listener.updates)).not.toContain('secret')
  await remove('agents/news/a.md')
  await until(() => listener.updates.length === 4)
  expect(listener.updates[3]?._meta['brigade/changes']).toMatchObject([{ action: 'delete', etag: null }])
})

test('every change is reported, whether an endpoint or a client of the other era made it: appends, edits, writes by tools', async () => {
  const listener = await listening(app.key, ['memory://agents/log/'])
  const writer = await connectV1(app.baseUrl, app.key)
  await writer.callTool({ name: 'memory_write', arguments: { key: 'agents/log/by-tool.md', content: '1' } })
  expect((await app.call('POST', '/v1/me/memory/append', { path: 'agents/log', content: 'entry' })).status).toBe(201)
  const actions = () => listener.updates.flatMap(({ _meta }) => _meta['brigade/changes']).map(({ action }: { action: string }) => action)
  await until(() => actions().length === 2)
  expect(actions()).toEqual(['put', 'append'])
})

test('MCPX-06 the account resources are reported when they change, and not otherwise', async () => {
  const agent = await app.newAgent('spender')
  const uris = ['brigade://budget', 'brigade://usage', 'brigade://whoami']
  const listener = await listening(agent.token, uris)
  expect([...(listener.honored.resourceSubscriptions ?? [])].sort()).toEqual(uris)
  await app.setBudget('agent', agent.id, 50)
  await until(() => listener.keys().includes('brigade://budget'))
  const before = listener.updates.length
  expect(listener.keys()).not.toContain('brigade://usage')
  await app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }, { token: agent.token })
  await until(() => listener.keys().slice(before).includes('brigade://usage') && listener.keys().slice(before).includes('brigade://budget'))
})

test('a subscription to scopes of others, unknown places or lists that never change is not granted', async () => {
  const stranger = await app.newMember('member')
  const listener = await listening(app.key, [
    `memory://users/${stranger.userId}/`,
    'memory://shared/nowhere/',
    'test://x',
    'memory://agents/ok',
    'memory://%zz',
  ])
  expect(listener.honored).toEqual({ resourceSubscriptions: ['memory://agents/ok'] })
  const memoryLess = await app.call('POST', `/v1/me/agents/${(await app.newAgent('no-memory')).id}/token`, { scope: 'usage:read' })
  const nothing = await listening(memoryLess.json.access_token, ['memory://agents/ok'])
  expect(nothing.honored).toEqual({})
  expect(await nothing.subscription.closed).toBe('graceful')
})

test('a share that ends during a stream ends its notifications, and nobody is notified of objects that they may not read', async () => {
  const guest = await app.newMember('member')
  const key = await app.gateway.app.keys.create({
    orgId: app.orgId,
    userId: guest.userId,
    workspaceId: null,
    name: 'g',
    scope: 'full',
    rpmLimit: null,
    dailyLimit: null,
  })
  expect((await app.call('POST', '/v1/me/memory/shares', { space: 'plans', member_uids: [guest.userId] })).status).toBe(201)
  const space = 'shared/plans/'
  const listener = await listening(key.key, ['memory://', `memory://${space}`])
  expect(listener.honored.resourceSubscriptions).toHaveLength(2)
  await put(`${space}one.md`)
  await put(`users/${app.userId}/private.md`)
  await until(() => listener.updates.length >= 2)
  expect((await app.call('DELETE', `/v1/me/memory/shares/plans/members/${guest.userId}`)).status).toBe(200)
  await put(`${space}two.md`)
  await put('agents/marker')
  await until(() => JSON.stringify(listener.updates).includes('agents/marker'))
  const told = JSON.stringify(listener.updates)
  expect(told).toContain('one.md')
  expect(told).not.toContain('two.md')
  expect(told).not.toContain('private.md')
})

test('changes of another organisation are never reported', async () => {
  const other = await app.otherOrg('Neighbours')
  await app.call('PUT', '/v1/me/memory-store', { store: 'folder' }, { token: other.key })
  const listener = await listening(app.key, ['memory://agents/'])
  await put('agents/theirs.md', 'x', other.key)
  await put('agents/ours.md')
  await until(() => listener.updates.length > 0)
  expect(JSON.stringify(listener.updates)).not.toContain('theirs')
})

test('the revocation of an agent ends its stream in good order, and its next stream is refused', async () => {
  const agent = await app.newAgent('short lived')
  const listener = await listening(agent.token, ['memory://agents/'])
  expect((await app.call('POST', `/v1/me/agents/${agent.id}/revoke`)).status).toBe(200)
  expect(await listener.subscription.closed).toBe('graceful')
  expect((await discoverPost(app.baseUrl, agent.token, 'subscriptions/listen', { notifications: {} })).status).toBe(401)
})

test('a stream ends when its token expires or its key is revoked', async () => {
  const agent = await app.newAgent('expiring')
  const mine = await listening(agent.token, ['memory://agents/'])
  const { key, keyId } = await app.newKey()
  const theirs = await listening(key, ['memory://agents/'])
  await app.gateway.app.keys.revoke(app.orgId, keyId)
  expect(await theirs.subscription.closed).toBe('graceful')
  offsetMs += 3_600_000
  try {
    expect(await mine.subscription.closed).toBe('graceful')
  } finally {
    offsetMs = 0
  }
})

test('a credential may have sixteen streams, and one stream may have a hundred resources', async () => {
  const { key } = await app.newKey()
  const client = await connectV2(app.baseUrl, key)
  for (let n = 0; n < 16; n++) await client.listen({ resourceSubscriptions: ['memory://agents/'] })
  await expect(client.listen({ resourceSubscriptions: ['memory://agents/'] })).rejects.toThrow(/16 streams/)
  const fresh = await connectV2(app.baseUrl, app.key)
  const many = Array.from({ length: 101 }, (_, n) => `memory://agents/${n}`)
  await expect(fresh.listen({ resourceSubscriptions: many })).rejects.toThrow(/at most 100/)
  const long = `memory://agents/${'x'.repeat(5_000)}`
  const wrong = [[1], 'memory://agents/', null, [long]].map(resourceSubscriptions => ({ resourceSubscriptions }))
  for (const params of [...[...wrong, null, [], 'x'].map(notifications => ({ notifications })), {}]) {
    const { error } = await discoverJson(app.baseUrl, app.key, 'subscriptions/listen', params)
    expect(error?.code, JSON.stringify(params).slice(0, 100)).toBe(-32602)
  }
})

test('opening a stream counts against the rate of the key, and later notifications do not', async () => {
  // The client's discovery takes one unit, and each stream takes one.
  const { key } = await app.newKey({ rpm: 4 })
  const { client, updates } = await listening(key, ['memory://agents/rate/', 'brigade://whoami', 'brigade://usage'])
  for (let n = 0; n < 6; n++) await put(`agents/rate/${n}`)
  await until(() => JSON.stringify(updates).includes('agents/rate/5'))
  await client.listen({ resourceSubscriptions: ['memory://agents/'] })
  await client.listen({ resourceSubscriptions: ['memory://agents/'] })
  await expect(client.listen({ resourceSubscriptions: ['memory://agents/'] })).rejects.toThrow(/rate_limit_exceeded/)
})

test('an idle stream sends keep-alives, and every frame contains the id of its request', async () => {
  const abort = new AbortController()
  const response = await discoverPost(
    app.baseUrl,
    app.key,
    'subscriptions/listen',
    { notifications: { resourceSubscriptions: ['memory://agents/burst/'] } },
    abort.signal,
  )
  expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
  const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  const readUntil = async (what: RegExp) => {
    while (!what.test(text)) text += (await reader.read()).value ?? ''
  }
  await readUntil(/subscriptions\/acknowledged/)
  await readUntil(/: keepalive/)
  await put('agents/burst/a')
  await readUntil(/resources\/updated/)
  const first = /data: (\{.*resources\/updated.*\})/.exec(text)?.[1] ?? '{}'
  expect(JSON.parse(first).params).toMatchObject({ uri: 'memory://agents/burst/', _meta: { 'io.modelcontextprotocol/subscriptionId': 'one' } })
  abort.abort()
})

test('the initialize era has no such stream and says so', async () => {
  const reply = await app.call('POST', '/mcp', JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'subscriptions/listen', params: { notifications: {} } }), {
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
  })
  expect(reply.text).toContain('-32601')
})

// This test must be the last one, because it stops the gateway.
test('a shutdown ends the streams immediately and in good order, and does not wait for their readers', async () => {
  const { subscription } = await listening(app.key, ['memory://agents/'])
  const startMs = systemClock.monotonicMs()
  await app.stop()
  isStopped = true
  expect(await subscription.closed).toBe('graceful')
  expect(systemClock.monotonicMs() - startMs).toBeLessThan(15_000)
})
