import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/platform/clock.ts'
import { startApp, type TestApp, until } from '../../harness/app.ts'
import { discoverPost } from '../../mcp/raw-clients.ts'

let app: TestApp
let other: { orgId: number; userId: number; key: string; keyId: number }
beforeAll(async () => {
  // A point at the start of a minute, so that the minute does not end during a test.
  const nowMs = Date.now()
  const env = { ORG_RPM: '12', ORG_RUNNING: '2', ORG_KEYS: '4', ORG_AGENTS: '2', ORG_STREAMS: '2' }
  app = await startApp({ clock: { ...systemClock, nowMs: () => nowMs }, env })
  other = await app.otherOrg('Tenants')
})
afterAll(() => app?.stop())

const keyOf = async (orgId: number, name: string, rpmLimit: number | null = null): Promise<string> =>
  (await app.gateway.app.keys.create({ orgId, userId: null, workspaceId: null, name, scope: 'full', rpmLimit, dailyLimit: null })).key
const set = (orgId: number, params: object) => app.gateway.app.orgLimits.set(orgId, params, false)
const models = (token: string) => app.call('GET', '/v1/models', undefined, { token })

describe('the limits of an organisation as a whole', () => {
  test('HARD-20 all keys of an organisation share its requests per minute, and the refusal names the limit', async () => {
    const { orgId, key } = await app.otherOrg('Rated')
    const second = await keyOf(orgId, 'second', 1000)
    const statuses: number[] = []
    for (let n = 0; n < 12; n++) statuses.push((await models(n % 2 === 0 ? key : second)).status)
    expect(new Set(statuses)).toEqual(new Set([200]))
    for (const token of [key, second]) {
      const refused = await models(token)
      expect([refused.status, refused.json.error.code, refused.json.error.message]).toEqual([429, 'rate_limit_exceeded', expect.stringContaining('ORG_RPM')])
      expect([refused.json.scope, refused.json.limit, Number(refused.headers.get('retry-after')) > 0]).toEqual(['org', 12, true])
      const message = { jsonrpc: '2.0', id: 1, method: 'ping' }
      expect((await app.call('POST', '/mcp', message, { token, headers: { accept: 'application/json, text/event-stream' } })).status).toBe(429)
    }
    // Another organisation is not affected, nor is the oldest one, which has no limit of its own.
    expect((await models(other.key)).status).toBe(200)
    for (let n = 0; n < 15; n++) expect((await models(app.key)).status).toBe(200)
  })

  test('HARD-20 the operator can set and reset limits of any organisation, including the oldest one', async () => {
    const { orgId, key } = await app.otherOrg('Ruled')
    await set(orgId, { rpm: 3 })
    const statuses = async (token: string, count: number) => {
      const seen: number[] = []
      for (let n = 0; n < count; n++) seen.push((await models(token)).status)
      return seen
    }
    expect(await statuses(key, 4)).toEqual([200, 200, 200, 429])
    await set(orgId, { rpm: 0 })
    expect(new Set(await statuses(key, 20))).toEqual(new Set([200]))
    expect(await app.gateway.app.orgLimits.set(orgId, {}, true)).toEqual({ rpm: 12, running: 2, keys: 4, agents: 2, streams: 2 })
    expect(await set(app.orgId, { agents: 900 })).toEqual({ rpm: null, running: null, keys: null, agents: 900, streams: null })
  })

  test('HARD-20 concurrent calls of all keys of an organisation share one cap', async () => {
    const { orgId, key } = await app.otherOrg('Busy')
    const second = await keyOf(orgId, 'second')
    app.alpha.reset()
    app.alpha.script(() => ({ hold: true }))
    const chat = (token: string) => app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: [{ role: 'user', content: 'hello' }] }, { token })
    const running = [chat(key), chat(second)]
    await until(() => app.alpha.requests.length === 2)
    const refused = await chat(second)
    expect([refused.status, refused.json.error.code, refused.json.error.message]).toEqual([
      429,
      'concurrency_limit_reached',
      expect.stringContaining('ORG_RUNNING'),
    ])
    app.alpha.release()
    for (const reply of await Promise.all(running)) expect(reply.status).toBe(200)
    const after = chat(second)
    await until(() => app.alpha.requests.length === 3)
    app.alpha.release()
    expect((await after).status).toBe(200)
    app.alpha.reset()
  })

  test('HARD-20 the number of keys and agents of an organisation is limited, and the refusal names the limit', async () => {
    const { orgId, key } = await app.otherOrg('Many')
    for (const name of ['b', 'c', 'd']) await keyOf(orgId, name)
    await expect(keyOf(orgId, 'e')).rejects.toMatchObject({ errorName: 'org_limit_reached', message: expect.stringContaining('ORG_KEYS') })
    const agent = (name: string) => app.call('POST', '/v1/me/agents', { name }, { token: key })
    const made = await agent('one')
    expect(made.status).toBeLessThan(300)
    expect((await agent('two')).status).toBeLessThan(300)
    const refused = await agent('three')
    expect([refused.status, refused.json.error.code, refused.json.limit]).toEqual([409, 'org_limit_reached', 2])
    expect((await agent('one')).status).toBe(200)
    expect((await app.call('POST', `/v1/me/agents/${made.json.id}/revoke`, {}, { token: key })).status).toBe(200)
    expect((await agent('three')).status).toBeLessThan(300)
  })

  test('HARD-20 change streams of an organisation are limited without an effect on other organisations, and closing one makes room', async () => {
    const listen = async (token: string) => {
      const cut = new AbortController()
      const reply = await discoverPost(
        app.baseUrl,
        token,
        'subscriptions/listen',
        { notifications: { resourceSubscriptions: ['brigade://whoami'] } },
        cut.signal,
      )
      const isStream = reply.headers.get('content-type')?.startsWith('text/event-stream') === true
      return { isStream, close: () => cut.abort(), refusal: isStream ? null : await reply.text() }
    }
    const { orgId, key } = await app.otherOrg('Listeners')
    const second = await keyOf(orgId, 'second')
    const first = await listen(key)
    expect([first.isStream, (await listen(second)).isStream]).toEqual([true, true])
    const refused = await listen(second)
    expect(JSON.parse(refused.refusal ?? '')).toMatchObject({
      error: { code: -32000, data: { code: 'rate_limit_exceeded', status: 429, limit_name: 'ORG_STREAMS' } },
    })
    const stranger = await listen((await app.otherOrg('Stranger')).key)
    expect(stranger.isStream).toBe(true)
    stranger.close()
    first.close()
    await until(async () => (await listen(second)).isStream)
  })
})
