import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorsOf } from '../../src/gateway/http/documents/openapi.ts'
import { bindingsOf, endpointTable } from '../../src/gateway/http/rows/endpoint-table.ts'
import { errorTable } from '../../src/platform/errors.ts'
import { startApp, type TestApp } from '../harness/app.ts'

const bindings = bindingsOf(endpointTable)
const parts = (at: string): { method: string; path: string } => ({ method: at.split(' ')[0] ?? '', path: at.split(' ')[1] ?? '' })
/** The path with a value in every parameter. */
const filled = (path: string): string => path.replace(/\{(\w+)\+?\}/g, '999999')

describe('the endpoint table', () => {
  let app: TestApp
  let inferenceKey: string
  let noUserKey: string
  let agentToken: string

  beforeAll(async () => {
    // Each row gets an anonymous request here.
    app = await startApp({ env: { ANON_RPM: '400' } })
    inferenceKey = (await app.newKey({ scope: 'inference' })).key
    noUserKey = (await app.newKey({ withUser: false })).key
    agentToken = (await app.newAgent('table-agent')).token
  })
  afterAll(() => app.stop())

  test('the list of endpoints and the table agree, and nothing is both here and later', () => {
    const lines = readFileSync(new URL('../endpoints.txt', import.meta.url), 'utf8')
      .split('\n')
      .filter(line => line !== '' && !line.startsWith('#'))
    const here = lines.filter(line => line.startsWith('here ')).map(line => line.slice(5))
    const later = lines.filter(line => line.startsWith('later ')).map(line => line.slice(6))
    expect([...bindings.map(binding => binding.at)].sort()).toEqual([...here].sort())
    expect(later.filter(at => here.includes(at))).toEqual([])
  })

  test('no two rows can match the same request', () => {
    const shape = (path: string): RegExp =>
      new RegExp(
        `^${path
          .replace(/[.]/g, '\\.')
          .replace(/\{\w+\+\}/g, '.+')
          .replace(/\{\w+\}/g, '[^/]+')}$`,
      )
    for (const a of bindings)
      for (const b of bindings) {
        if (a === b || parts(a.at).method !== parts(b.at).method || parts(b.at).path.includes('{')) continue
        // A literal path may also fit a pattern; then the literal one wins, which the router sorts for. Patterns must not fit each other.
        if (shape(parts(a.at).path).test(parts(b.at).path)) expect(parts(a.at).path, `${a.at} and ${b.at}`).toMatch(/\{/)
      }
    const patterns = bindings.filter(binding => binding.at.includes('{')).map(binding => binding.at.replace(/\{\w+\+?\}/g, '{}'))
    expect(new Set(patterns).size).toBe(patterns.length)
  })

  test('every error that a row declares is in the error table', () => {
    for (const binding of bindings) for (const name of errorsOf(binding)) expect(errorTable[name], `${binding.at} ${name}`).toBeDefined()
  })

  test('AUTH-01 every row that takes a bearer answers 401 invalid_api_key without one, in the envelope', async () => {
    for (const binding of bindings.filter(each => each.auth === 'key')) {
      const { method, path } = parts(binding.at)
      const reply = await app.call(method, filled(path), method === 'GET' || method === 'DELETE' ? undefined : {}, { token: null })
      expect(reply.status, binding.at).toBe(401)
      // An exception: OAuth libraries read nothing but the errors of their own standard.
      if (binding.row.clients === 'oauth') {
        expect(reply.json, binding.at).toEqual({ error: 'invalid_client', error_description: expect.any(String) })
        continue
      }
      // Clients of Google read its own envelope.
      if (binding.row.clients === 'gemini') {
        expect(reply.json.error, binding.at).toMatchObject({ code: 401, status: 'UNAUTHENTICATED', details: [{ reason: 'invalid_api_key' }] })
        continue
      }
      expect(reply.json.error, binding.at).toEqual({ message: expect.any(String), type: 'authentication_error', code: 'invalid_api_key' })
    }
  })

  test('a row for sessions answers 401 no_session to everybody who has none', async () => {
    for (const binding of bindings.filter(each => each.auth === 'session'))
      for (const token of [null, app.key]) {
        const { method, path } = parts(binding.at)
        const reply = await app.call(method, filled(path), method === 'GET' ? undefined : {}, { token })
        expect([reply.status, reply.json.error.code], binding.at).toEqual([401, 'no_session'])
      }
  })

  test('a row for full keys answers 403 to inference-scoped keys and agent tokens', async () => {
    const rows = bindings.filter(each => each.access.scope === 'full')
    expect(rows.length).toBeGreaterThan(3)
    for (const binding of rows)
      for (const token of [inferenceKey, agentToken]) {
        const { method, path } = parts(binding.at)
        const reply = await app.call(method, filled(path), method === 'GET' ? undefined : {}, { token })
        expect(reply.status, binding.at).toBe(403)
        expect(binding.row.clients === 'oauth' ? reply.json.error : reply.json.error.code).toBe(
          binding.row.clients === 'oauth' ? 'insufficient_scope' : 'forbidden',
        )
      }
  })

  test('a row for admins answers 403 to a key that no user backs', async () => {
    for (const binding of bindings.filter(each => each.auth === 'key' && each.access.role !== undefined)) {
      const { method, path } = parts(binding.at)
      const reply = await app.call(method, filled(path), {}, { token: noUserKey })
      expect(reply.status, binding.at).toBe(403)
    }
  })

  test('ERR-02 malformed JSON is 400 bad_request on every row that takes JSON', async () => {
    for (const binding of bindings.filter(
      each =>
        each.auth === 'key' &&
        each.row.input.body !== undefined &&
        !['raw', 'multipart', 'form'].includes(each.row.input.bodyKind ?? 'json') &&
        // A form that is streamed.
        each.at !== 'POST /v1/files',
    )) {
      const { method, path } = parts(binding.at)
      const token = binding.access.agentOnly ? agentToken : app.key
      const reply = await app.call(method, filled(path), '{"a":', { token, headers: { 'content-type': 'application/json' } })
      expect(reply.status, binding.at).toBe(400)
      expect(binding.row.clients === 'gemini' ? reply.json.error.details[0].reason : reply.json.error.code, binding.at).toBe('bad_request')
    }
  })

  test('DISC-08 a wrong method is 405 with Allow, in the envelope', async () => {
    const reply = await app.call('PATCH', '/v1/models')
    expect(reply.status).toBe(405)
    expect(reply.headers.get('allow')).toBe('GET')
    expect(reply.json.error.code).toBe('method_not_allowed')
    const hot = await app.call('GET', '/v1/chat/completions')
    expect([hot.status, hot.headers.get('allow')]).toEqual([405, 'POST'])
  })

  test('DISC-07 an unknown path is 404 in the envelope, as JSON, also under /.well-known', async () => {
    for (const path of ['/nowhere', '/.well-known/oauth-protected-resource', '/.well-known/oauth-authorization-server/mcp', '/%zz', '/v1/events']) {
      const reply = await app.call('GET', path)
      expect([404, 400], path).toContain(reply.status)
      expect(reply.headers.get('content-type')).toContain('application/json')
      expect(reply.json.error.code, path).toMatch(/not_found|bad_request/)
    }
  })

  test('SHAPE-43 there is no event feed beside the chat streams: such a path is 404 not_found', async () => {
    for (const path of ['/v1/events', '/v1/events/stream', '/v1/stream']) {
      const reply = await app.call('GET', path)
      expect([reply.status, reply.json.error.code], path).toEqual([404, 'not_found'])
    }
  })

  test('SHAPE-06 a list is an object with one named array, never a bare array', async () => {
    for (const [path, name] of [
      ['/v1/me/agents', 'agents'],
      ['/v1/models', 'data'],
      ['/v1/providers', 'data'],
      ['/v1/me/budgets', 'budgets'],
    ] as const) {
      const reply = await app.call('GET', path)
      expect(Array.isArray(reply.json), path).toBe(false)
      expect(Array.isArray(reply.json[name]), path).toBe(true)
    }
  })

  test('DISC-02 the OpenAPI document is 3.1 and lists every endpoint with its errors', async () => {
    const { json } = await app.call('GET', '/openapi.json', undefined, { token: null })
    expect(json.openapi).toMatch(/^3\.1\./)
    for (const binding of bindings) {
      const { method, path } = parts(binding.at)
      const operation = json.paths[path.replace('+}', '}')]?.[method.toLowerCase()]
      expect(operation?.operationId, binding.at).toBe(binding.name)
      for (const name of binding.row.errors as (keyof typeof errorTable)[])
        expect(operation.responses[String(errorTable[name].status)], `${binding.at} ${name}`).toBeDefined()
    }
  })

  test('the OpenAPI document says which body a form is, who may read at the console, and nothing of what browsers send by themselves', async () => {
    const { paths } = (await app.call('GET', '/openapi.json', undefined, { token: null })).json
    expect(Object.keys(paths['/auth/link'].post.requestBody.content)).toEqual(['application/x-www-form-urlencoded'])
    expect(Object.keys(paths['/v1/me/memory/o'].put.requestBody.content)).toEqual(['text/plain'])
    expect(paths['/me/keys'].get.security).toEqual([{ session: [] }, { bearer: [] }])
    expect(paths['/me/keys'].post.security).toEqual([{ session: [] }])
    const headers = Object.values<Record<string, { parameters: { in: string; name: string }[] }>>(paths)
      .flatMap(operations => Object.values(operations))
      .flatMap(({ parameters }) => parameters.flatMap(parameter => (parameter.in === 'header' ? [parameter.name] : [])))
    expect(headers).toContain('if-match')
    for (const name of ['accept', 'cookie', 'host', 'origin']) expect(headers).not.toContain(name)
  })

  test('DISC-03 llms.txt is plain text that names the base URL and every endpoint', async () => {
    const reply = await app.call('GET', '/llms.txt', undefined, { token: null })
    expect(reply.headers.get('content-type')).toContain('text/plain')
    expect(reply.text).toContain(app.baseUrl)
    for (const binding of bindings) expect(reply.text).toContain(binding.at)
  })

  test('DISC-01 health names the providers and the circuit of every route, and holds no secret', async () => {
    const reply = await app.call('GET', '/health', undefined, { token: null })
    expect(reply.status).toBe(200)
    expect(reply.json.providers).toContainEqual({ id: 'alpha', configured: true, residency: 'global' })
    expect(reply.json.routes).toContainEqual({ model: 'test-model', provider: 'alpha', available: true, circuit: 'closed' })
    expect(reply.text).not.toContain('platform-secret')
  })

  test('DISC-06 discovery asks for no credential and is not counted among anonymous /v1 traffic', async () => {
    for (let i = 0; i < 430; i++)
      expect((await app.call('GET', i % 2 === 0 ? '/health' : '/.well-known/mcp/server-card.json', undefined, { token: null })).status).toBe(200)
    for (const path of ['/openapi.json', '/llms.txt']) expect((await app.call('GET', path, undefined, { token: null })).status).toBe(200)
  })
})
