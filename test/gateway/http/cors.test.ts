import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadConfig } from '../../../src/platform/config.ts'
import { startApp, type TestApp } from '../../harness/app.ts'

const page = 'https://app.example.test'
const console_ = 'https://console.example.test'
const stranger = 'https://elsewhere.example.test'
const chat = { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }
const corsOf = (headers: Headers): string[] => [...headers].flatMap(([name]) => (name.startsWith('access-control-') ? [name] : []))

describe('pages of other origins', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ env: { CORS_ORIGINS: page, CONSOLE_ORIGINS: console_, ANON_RPM: '20' } })
  })
  afterAll(() => app.stop())
  const preflight = (path: string, origin: string, asks: Record<string, string> = {}) =>
    fetch(app.baseUrl + path, { method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'POST', ...asks } })

  test('CORS-01 a page of an allowed origin may call /v1 with a key and read the headers, also of errors and streams, but not with cookies', async () => {
    for (const path of ['/v1/chat/completions', '/v1/models', '/v1/me/agents']) {
      const asked = 'Authorization, content-type, X-BR-Agent-Id, anthropic-beta, idempotency-key, x-stainless-os, x-evil'
      const answer = await preflight(path, page, { 'access-control-request-headers': asked })
      expect([answer.status, await answer.text(), answer.headers.get('access-control-allow-origin'), answer.headers.get('vary')]).toEqual([
        204,
        '',
        page,
        'origin',
      ])
      const allowed = answer.headers.get('access-control-allow-headers')?.split(', ') ?? []
      for (const name of ['authorization', 'content-type', 'x-api-key', 'x-br-agent-id', 'anthropic-beta', 'idempotency-key', 'x-stainless-os'])
        expect(allowed).toContain(name)
      expect(allowed).not.toContain('x-evil')
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) expect(answer.headers.get('access-control-allow-methods')).toContain(method)
      expect(answer.headers.get('access-control-allow-credentials')).toBeNull()
    }
    const headers = { origin: page }
    const replies = [
      await app.call('POST', '/v1/chat/completions', chat, { headers }),
      await app.call('POST', '/v1/chat/completions', { ...chat, stream: true }, { headers }),
      await app.call('POST', '/v1/chat/completions', { ...chat, model: 'nothing' }, { headers }),
      await app.call('POST', '/v1/chat/completions', chat, { headers, token: 'br-nope' }),
      await app.call('GET', '/v1/models', undefined, { headers, token: null }),
      await app.call('GET', '/v1/nowhere', undefined, { headers }),
      await app.call('GET', '/v1/chat/completions', undefined, { headers }),
    ]
    expect(replies.map(reply => reply.status)).toEqual([200, 200, 404, 401, 200, 404, 405])
    for (const reply of replies) {
      expect(reply.headers.get('access-control-allow-origin')).toBe(page)
      expect(reply.headers.get('access-control-allow-credentials')).toBeNull()
      const exposed = reply.headers.get('access-control-expose-headers')
      for (const name of ['x-br-provider', 'x-br-cost-inr', 'retry-after', 'x-request-id', 'x-should-retry']) expect(exposed).toContain(name)
      for (const name of ['x-ratelimit-reset-requests', 'anthropic-ratelimit-requests-remaining', 'ratelimit', 'ratelimit-policy'])
        expect(exposed?.split(', ')).toContain(name)
    }
  })

  test('an origin that is not allowed for the path gets no CORS header, and its preflight is 405', async () => {
    for (const [path, origin] of [
      ['/v1/chat/completions', stranger],
      ['/v1/chat/completions', console_],
      ['/v1/chat/completions', 'null'],
      ['/me/keys', page],
      ['/health', page],
    ] as const) {
      const answer = await preflight(path, origin)
      expect([answer.status, corsOf(answer.headers)], `${path} ${origin}`).toEqual([405, []])
    }
    const reply = await app.call('POST', '/v1/chat/completions', chat, { headers: { origin: stranger } })
    expect([reply.status, corsOf(reply.headers)]).toEqual([200, []])
  })

  test('a preflight needs no credential, is not counted and reaches no provider', async () => {
    const dialed = app.alpha.requests.length
    for (let count = 0; count < 40; count++) expect((await preflight('/v1/chat/completions', page)).status).toBe(204)
    expect((await app.call('GET', '/v1/models', undefined, { token: null })).status).toBe(200)
    expect(app.alpha.requests).toHaveLength(dialed)
  })

  test('pages of every origin can read the server card, also with a conditional request', async () => {
    for (const path of ['/.well-known/mcp/server-card.json', '/mcp/server-card']) {
      const reply = await app.call('GET', path, undefined, { token: null, headers: { origin: stranger } })
      expect([reply.status, reply.headers.get('access-control-allow-origin')]).toEqual([200, '*'])
      const answer = await preflight(path, stranger, { 'access-control-request-headers': 'if-none-match' })
      expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([204, '*'])
      expect(answer.headers.get('access-control-allow-headers')).toContain('if-none-match')
    }
  })

  test('a console on another origin may send the session cookie, for reads and writes', async () => {
    const cookie = await app.signIn()
    const headers = { origin: console_ }
    for (const reply of [
      await preflight('/me/keys', console_),
      await app.call('GET', '/me', undefined, { cookie, headers }),
      await app.call('POST', '/me/keys', { name: 'from the console' }, { cookie, headers }),
      await app.call('GET', '/me/nowhere', undefined, { cookie, headers }),
    ]) {
      expect(reply.headers.get('access-control-allow-origin')).toBe(console_)
      expect(reply.headers.get('access-control-allow-credentials')).toBe('true')
    }
  })
})

describe('CORS_ORIGINS', () => {
  test('CORS_ORIGINS allows no origin by default, and * allows all origins', async () => {
    for (const [env, status, origin] of [
      [{}, 405, null],
      [{ CORS_ORIGINS: '*' }, 204, '*'],
    ] as const) {
      const app = await startApp({ env })
      try {
        const answer = await fetch(`${app.baseUrl}/v1/models`, { method: 'OPTIONS', headers: { origin: page, 'access-control-request-method': 'GET' } })
        expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([status, origin])
        expect(answer.headers.get('access-control-allow-credentials')).toBeNull()
      } finally {
        await app.stop()
      }
    }
  })

  test('an invalid origin is refused at the start, with the expected form', () => {
    expect(() => loadConfig({ CORS_ORIGINS: 'https://app.example.test/' })).toThrow('https://app.example.test, not')
    expect(() => loadConfig({ CORS_ORIGINS: 'app.example.test' })).toThrow('CORS_ORIGINS must list origins')
    expect(() => loadConfig({ CONSOLE_ORIGINS: '*' })).toThrow('CONSOLE_ORIGINS must list origins')
    expect(loadConfig({ CORS_ORIGINS: '*, http://localhost:3000' }).CORS_ORIGINS).toEqual(['*', 'http://localhost:3000'])
  })
})
