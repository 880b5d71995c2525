import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp, type TestReply } from '../../harness/app.ts'
import { type MovableClock, movableClock } from '../../harness/clock.ts'

const browser = { 'sec-fetch-mode': 'cors', 'sec-fetch-site': 'same-origin' }
const minuteMs = 60_000

describe('requests without a valid credential', () => {
  let app: TestApp
  let clock: MovableClock
  beforeAll(async () => {
    clock = movableClock()
    // The gateway trusts the loopback address as a proxy, so each test can use its own client addresses.
    app = await startApp({ clock, env: { TRUSTED_PROXIES: '127.0.0.1, ::1' } })
  })
  afterAll(() => app.stop())
  // Each test begins at the start of a new hour, so the counts of earlier tests do not matter.
  beforeEach(() => clock.moveTo(Math.ceil((clock.nowMs() + 1) / 3_600_000) * 3_600_000 + 5_000))

  const ask = (from: string, headers: Record<string, string> = {}, options: { method?: string; path?: string; token?: string | null; body?: unknown } = {}) =>
    app.call(options.method ?? 'GET', options.path ?? '/v1/models', options.body, {
      token: options.token ?? null,
      headers: { 'x-forwarded-for': from, ...headers },
    })

  const askTimes = async (count: number, from: string, headers: Record<string, string> = {}): Promise<TestReply[]> => {
    const replies: TestReply[] = []
    for (let i = 0; i < count; i++) replies.push(await ask(from, headers))
    return replies
  }
  const cookieOf = (reply: TestReply): string | null => /br_device=[^;]+/.exec(reply.headers.get('set-cookie') ?? '')?.[0] ?? null
  const statuses = (replies: readonly TestReply[]) => ({
    ok: replies.filter(reply => reply.status === 200).length,
    refused: replies.filter(reply => reply.status === 429).length,
  })

  test('LIM-01 the 121st anonymous call in a minute is 429 with the seconds to the end of the minute, and calls in the next minute pass', async () => {
    const replies = await askTimes(121, '198.51.100.1')
    expect(statuses(replies)).toEqual({ ok: 120, refused: 1 })
    const last = replies[120]
    expect(last?.json.error).toEqual({ message: expect.stringContaining('API key'), type: 'rate_limit_error', code: 'rate_limit_exceeded' })
    expect(Number(last?.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(Number(last?.headers.get('retry-after'))).toBeLessThanOrEqual(55)
    expect((await ask('198.51.100.2')).status).toBe(200)
    clock.advance(minuteMs)
    expect((await ask('198.51.100.1')).status).toBe(200)
  })

  test('LIM-01 calls with a wrong or missing credential count as anonymous, and above the limit they get 429 instead of 401', async () => {
    const tries = [null, 'br-wrong', 'a.b.c', `br-${'A'.repeat(32)}`]
    for (let i = 0; i < 120; i++) {
      const reply = await ask('198.51.100.3', {}, { path: i % 2 === 0 ? '/v1/me/whoami' : '/v1/usage', token: tries[i % tries.length] ?? null })
      expect([reply.status, reply.json.error.code]).toEqual([401, 'invalid_api_key'])
    }
    for (const token of tries) {
      const reply = await ask('198.51.100.3', {}, { path: '/v1/chat/completions', method: 'POST', body: { model: 'test-model' }, token })
      expect([reply.status, reply.json.error.code]).toEqual([429, 'rate_limit_exceeded'])
    }
    expect((await ask('198.51.100.3')).status).toBe(429)
    // A caller with a key at the same address is not affected.
    expect((await ask('198.51.100.3', {}, { path: '/v1/me/whoami', token: app.key })).status).toBe(200)
  })

  test('LIM-02 calls with a key never count as anonymous, and on public paths the rate limit of the key applies', async () => {
    for (let i = 0; i < 121; i++)
      expect((await ask('198.51.100.4', {}, { token: app.key, path: i % 2 === 0 ? '/v1/models' : '/v1/me/whoami' })).status).toBe(200)
    expect((await ask('198.51.100.4')).status).toBe(200)
    const { key } = await app.newKey({ rpm: 3 })
    const slow = [...Array(4).keys()].map(() => ask('198.51.100.4', {}, { token: key }))
    expect((await Promise.all(slow)).map(reply => reply.status).sort()).toEqual([200, 200, 200, 429])
  })

  test('LIM-02 calls with the token of a revoked agent always get 401 with the reason, never 429', async () => {
    const agent = await app.newAgent('runaway')
    await app.call('POST', `/v1/me/agents/${agent.id}/revoke`)
    for (let i = 0; i < 125; i++) {
      const reply = await ask('198.51.100.5', {}, { path: '/v1/me/whoami', token: agent.token })
      expect([reply.status, reply.json.reason]).toEqual([401, 'agent_revoked'])
    }
    expect((await ask('198.51.100.5')).status).toBe(200)
  })

  test('a call of a public path with an invalid credential is served and counted as anonymous', async () => {
    for (let i = 0; i < 120; i++) expect((await ask('198.51.100.6', {}, { token: 'br-wrong' })).status).toBe(200)
    expect((await ask('198.51.100.6', {}, { token: 'br-wrong' })).status).toBe(429)
  })

  test('LIM-03 a browser gets a signed cookie and is counted by it, and a browser with a forged cookie is counted by address', async () => {
    const first = await ask('198.51.100.7', browser)
    const cookie = cookieOf(first)
    expect(first.headers.get('set-cookie')).toMatch(/^br_device=[\w-]+\.[\w-]+; Max-Age=31536000; Path=\/; HttpOnly; SameSite=Lax$/)
    if (cookie === null) throw new Error('no cookie')
    // The request that received the cookie counts as the first of its 120.
    expect(statuses(await askTimes(120, '198.51.100.7', { ...browser, cookie }))).toEqual({ ok: 119, refused: 1 })
    expect((await ask('198.51.100.8', { ...browser, cookie })).status).toBe(429)
    // Another browser and a program at the same address are not affected.
    const other = cookieOf(await ask('198.51.100.7', browser))
    expect(statuses(await askTimes(110, '198.51.100.7', { ...browser, cookie: other ?? '' }))).toEqual({ ok: 110, refused: 0 })
    const [id, mac] = cookie.slice('br_device='.length).split('.')
    for (let i = 0; i < 118; i++) expect((await ask('198.51.100.7', { cookie: `br_device=${i}${id}.${mac}` })).status).toBe(200)
    expect((await ask('198.51.100.7', { cookie: `br_device=x${id}.${mac}` })).status).toBe(429)
    expect((await ask('198.51.100.7', { cookie: `br_device=${id}` })).status).toBe(429)
  })

  test('LIM-03 programs, pages of other sites, calls with a credential and calls outside /v1 get no cookie', async () => {
    expect(cookieOf(await ask('198.51.100.9'))).toBeNull()
    expect(cookieOf(await ask('198.51.100.9', { 'sec-fetch-site': 'cross-site' }))).toBeNull()
    expect(cookieOf(await ask('198.51.100.9', browser, { token: app.key }))).toBeNull()
    expect(cookieOf(await ask('198.51.100.9', browser, { path: '/health' }))).toBeNull()
    expect(cookieOf(await ask('198.51.100.9', browser, { path: '/v1/me/whoami' }))).not.toBeNull()
  })

  test('LIM-03 new cookies do not raise the limit of an address', async () => {
    const few = await startApp({ clock, env: { TRUSTED_PROXIES: '127.0.0.1, ::1', ANON_RPM: '12' } })
    const times = async (count: number, headers: Record<string, string>): Promise<TestReply[]> => {
      const replies: TestReply[] = []
      for (let i = 0; i < count; i++)
        replies.push(await few.call('GET', '/v1/models', undefined, { token: null, headers: { 'x-forwarded-for': '198.51.100.10', ...headers } }))
      return replies
    }
    try {
      const thrown = await times(15, browser)
      const cookies = thrown.flatMap(reply => cookieOf(reply) ?? [])
      expect(new Set(cookies).size).toBe(10)
      expect(statuses(thrown)).toEqual({ ok: 12, refused: 3 })
      clock.advance(minuteMs)
      // With ten cookies, and once without a cookie, the address could send 132 requests in a minute. Together they get at most 120.
      for (const cookie of cookies) expect(statuses(await times(13, { cookie }))).toEqual({ ok: 12, refused: 1 })
      expect((await times(1, {}))[0]?.status).toBe(429)
      clock.advance(60 * minuteMs)
      expect(cookieOf((await times(1, browser))[0] as TestReply)).not.toBeNull()
    } finally {
      await few.stop()
    }
  })

  test('an IPv6 sender is counted by its /64', async () => {
    for (let i = 0; i < 120; i++) expect((await ask(`2001:db8:0:7::${(i + 1).toString(16)}`)).status).toBe(200)
    expect((await ask('2001:db8:0:7:ffff::1')).status).toBe(429)
    expect((await ask('2001:db8:0:8::1')).status).toBe(200)
  })

  test('HARD-12 anonymous requests for public documents count, and a caller with a key can still read the documents', async () => {
    const paths = [
      '/openapi.json',
      '/llms.txt',
      '/mcp/server-card',
      '/.well-known/mcp/server-card.json',
      '/.well-known/mcp-server-card',
      '/.well-known/ai-catalog.json',
    ]
    for (let i = 0; i < 120; i++)
      expect((await ask('198.51.100.31', {}, { path: paths[i % paths.length] ?? '', method: i % 7 === 0 ? 'HEAD' : 'GET' })).status).toBe(200)
    for (const path of paths) {
      const refused = await ask('198.51.100.31', {}, { path })
      expect([refused.status, refused.json.error.code, Number(refused.headers.get('retry-after')) > 0], path).toEqual([429, 'rate_limit_exceeded', true])
      expect((await ask('198.51.100.31', {}, { path, token: app.key })).status, path).toBe(200)
      expect((await ask('198.51.100.32', {}, { path })).status, path).toBe(200)
    }
  })

  test('HARD-12 public documents have an ETag and always the same bytes, and a reader who has them gets 304', async () => {
    for (const path of ['/openapi.json', '/llms.txt', '/mcp/server-card', '/.well-known/mcp/server-card.json', '/.well-known/ai-catalog.json']) {
      const first = await ask('198.51.100.33', {}, { path })
      const etag = first.headers.get('etag') ?? ''
      expect(etag, path).toMatch(/^"[\w-]{22}"$/)
      const second = await ask('198.51.100.33', {}, { path })
      expect([second.text === first.text, second.headers.get('etag')], path).toEqual([true, etag])
      for (const tag of [etag, `W/${etag}`, `"other", ${etag}`]) {
        const known = await ask('198.51.100.33', { 'if-none-match': tag }, { path })
        expect([known.status, known.text, known.headers.get('etag')], path).toEqual([304, '', etag])
      }
      expect((await ask('198.51.100.33', { 'if-none-match': '"other"' }, { path })).status, path).toBe(200)
      const head = await ask('198.51.100.33', {}, { path, method: 'HEAD' })
      expect([head.status, head.text, head.headers.get('content-length')], path).toEqual([200, '', String(Buffer.byteLength(first.text))])
    }
  })

  test('anonymous calls of the health endpoints and of the console do not count', async () => {
    for (let i = 0; i < 122; i++) expect((await ask('198.51.100.11', {}, { path: '/health' })).status).toBe(200)
    expect((await ask('198.51.100.11', {}, { path: '/me/audit' })).status).toBe(401)
    expect((await ask('198.51.100.11')).status).toBe(200)
  })

  test('MCP-20 requests to /mcp and /v1 without a valid credential count together, and the 121st in a minute is 429 with retry-after', async () => {
    const initialize = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
    const mcp = (token: string | null) =>
      ask('198.51.100.12', { accept: 'application/json, text/event-stream' }, { method: 'POST', path: '/mcp', body: initialize, token })
    for (let i = 0; i < 60; i++) expect((await mcp(i % 2 === 0 ? null : 'br-wrong')).status).toBe(401)
    expect(statuses(await askTimes(60, '198.51.100.12'))).toEqual({ ok: 60, refused: 0 })
    const refused = await mcp(null)
    expect([refused.status, refused.json.error.code]).toEqual([429, 'rate_limit_exceeded'])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await mcp(app.key)).status).toBe(200)
  })

  test('anonymous starts of sign-ins count, because the gateway stores each of them for a while', async () => {
    const begin = () => ask('198.51.100.77', {}, { path: '/auth/google' })
    for (let count = 0; count < 120; count++) expect((await begin()).json.error.code).toBe('provider_not_configured')
    expect([(await begin()).status, (await ask('198.51.100.77', {}, { path: '/auth' })).status]).toEqual([429, 200])
  })
})
