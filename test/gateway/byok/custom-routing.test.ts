import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { isStream, type OwnServer, startOwnServer } from './own-server.ts'

const secret = 'own-server-key-0123456789-TAIL'
const lastEvent = statement<
  [orgId: number],
  { provider: string; model: string; byok: boolean; residency: string; promptTokens: bigint; valueUinr: bigint; costUinr: bigint }
>(
  'test.last_usage_event',
  `select provider, model, byok, residency, prompt_tokens as "promptTokens", value_uinr as "valueUinr", cost_uinr as "costUinr"
   from usage_events where org_id = $1::int order by id desc limit 1`,
)

describe('calls on custom endpoints', () => {
  let app: TestApp
  let server: OwnServer
  let second: OwnServer
  let owner: string

  beforeAll(async () => {
    server = await startOwnServer()
    second = await startOwnServer()
    app = await startApp({ env: { OUTBOUND_ALLOW: `${server.hostPort},${second.hostPort}`, CIRCUIT_FAILURES: '2', CIRCUIT_OPEN_MS: '60000' } })
    owner = await app.signIn()
  })
  afterAll(async () => {
    await app.stop()
    await server.close()
    await second.close()
  })
  beforeEach(async () => {
    for (const own of [server, second]) own.behave()
    for (const { id } of (await app.call('GET', '/me/endpoints', undefined, { cookie: owner })).json.endpoints) await remove(id)
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })

  const remove = (id: number) => app.call('DELETE', `/me/endpoints/${id}`, undefined, { cookie: owner })
  const register = async (name: string, more: object = {}, cookie = owner): Promise<number> => {
    const params = { name, model: 'test-model', base_url: server.url, upstream_model: 'own-model', key: secret, ...more }
    const made = await app.call('POST', '/me/endpoints', params, { cookie })
    expect(made.status, made.text).toBe(201)
    server.requests.length = 0
    second.requests.length = 0
    return made.json.endpoint.id
  }
  const chat = (more: object, options?: { token: string }) =>
    app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: [{ role: 'user', content: 'Hi' }], ...more }, options)
  const dialed = () => [app.alpha, app.beta, app.indus].reduce((sum, upstream) => sum + upstream.requests.length, 0)

  test('ENDP-07 a call on byoe:slug goes to that base URL with its key and its model, streamed or not, and debits nothing', async () => {
    await register('Ours')
    for (const stream of [false, true]) {
      server.requests.length = 0
      const reply = await chat({ provider: 'byoe:ours', stream })
      expect([reply.status, reply.headers.get('x-br-provider')]).toEqual([200, 'byoe:ours'])
      expect(reply.text).toContain(stream ? '[DONE]' : 'Hello from the test upstream')
      expect(server.requests.length).toBe(1)
      const [request] = server.requests
      expect([request?.path, request?.headers.authorization, request?.json?.['model']]).toEqual(['/v1/chat/completions', `Bearer ${secret}`, 'own-model'])
      expect(request?.json).not.toHaveProperty('provider')
      await app.gateway.app.limits.flushNow()
      expect(await app.db.one(lastEvent, app.orgId)).toEqual({
        provider: 'byoe:ours',
        model: 'test-model',
        byok: true,
        residency: 'global',
        promptTokens: 12n,
        valueUinr: 0n,
        costUinr: 0n,
      })
    }
    expect(dialed()).toBe(0)
    await register('Open', { key: null, base_url: second.url })
    expect((await chat({ provider: 'byoe:open' })).status).toBe(200)
    expect(second.requests[0]?.headers).not.toHaveProperty('authorization')
    expect(app.logLines.join('\n')).not.toContain(secret)
  })

  test('ROUTE-25 provider "byoe:slug" pins one of several endpoints of a model; when it serves another model, is unknown or belongs to another organisation, no provider is called', async () => {
    await register('One')
    await register('Two', { base_url: second.url })
    await register('Elsewhere', { model: 'alpha-only' })
    expect((await chat({ provider: 'byoe:two' })).headers.get('x-br-provider')).toBe('byoe:two')
    expect([server.requests.length, second.requests.length]).toEqual([0, 1])
    second.misbehave(() => ({ status: 500 }))
    expect((await chat({ provider: 'byoe:two' })).json.error.code).toBe('all_routes_failed')
    expect([server.requests.length, dialed()]).toEqual([0, 0])
    second.requests.length = 0

    const other = await app.otherOrg('Other Owners')
    for (const [provider, token] of [
      ['byoe:elsewhere', app.key],
      ['byoe:unknown', app.key],
      ['byoe:', app.key],
      ['byoe:one', other.key],
    ] as const) {
      const reply = await chat({ provider }, { token })
      expect([reply.status, reply.json.error.code], provider).toEqual([400, 'no_route'])
    }
    expect([server.requests.length, second.requests.length, dialed()]).toEqual([0, 0, 0])
    // Without the pin, no call goes to the endpoint.
    expect((await chat({})).headers.get('x-br-provider')).toBe('alpha')
  })

  test('a step of a chain may name an endpoint; when the endpoint fails, the next step serves, and exclude removes the endpoint', async () => {
    await register('Ours')
    const fallbacks = [
      { model: 'test-model', provider: 'byoe:ours' },
      { model: 'test-model', provider: 'alpha' },
    ]
    expect((await chat({ fallbacks })).headers.get('x-br-provider')).toBe('byoe:ours')
    server.misbehave(() => ({ status: 503 }))
    expect((await chat({ fallbacks })).headers.get('x-br-provider')).toBe('alpha')
    server.behave()
    expect((await chat({ fallbacks, exclude: ['byoe:ours'] })).headers.get('x-br-provider')).toBe('alpha')
    expect(server.requests.length).toBe(0)
  })

  test('ROUTE-54 an endpoint is global unless the organisation declares that it is in India; a global endpoint never serves india_only calls, by pin or by chain', async () => {
    for (const residency of ['unknown', 'IN', '', null]) {
      const refused = await app.call(
        'POST',
        '/me/endpoints',
        { name: 'Odd', model: 'test-model', base_url: server.url, upstream_model: 'm', residency },
        { cookie: owner },
      )
      expect([refused.status, refused.json.error.code], String(residency)).toEqual([400, 'bad_request'])
    }
    await register('Silent')
    await register('Abroad', { residency: 'global' })
    await register('At home', { residency: 'india', base_url: second.url })
    const indiaOnly = { data_policy: 'india_only' }
    for (const provider of ['byoe:silent', 'byoe:abroad'])
      for (const stream of [false, true]) {
        const refused = await chat({ provider, stream, ...indiaOnly })
        expect([refused.status, refused.json.error.code], provider).toEqual([422, 'no_route'])
      }
    expect((await app.call('POST', '/me/route/preview', { model: 'test-model', provider: 'byoe:silent', ...indiaOnly })).status).toBe(422)
    // Global endpoints in a chain are skipped, whether the chain is in the request or saved, and also when every route in India fails.
    const steps = ['byoe:silent', 'byoe:abroad', 'byoe:at-home', 'indus'].map(provider => ({ model: 'test-model', provider }))
    expect((await chat({ fallbacks: steps, ...indiaOnly })).headers.get('x-br-provider')).toBe('byoe:at-home')
    expect((await app.call('PUT', '/me/routing/test-model', { steps }, { cookie: owner })).status).toBe(200)
    second.misbehave(() => ({ status: 500 }))
    expect((await chat(indiaOnly)).headers.get('x-br-provider')).toBe('indus')
    app.indus.script({ status: 500 })
    expect((await chat(indiaOnly)).json.error.code).toBe('all_routes_failed')
    expect((await app.call('DELETE', '/me/routing/test-model', undefined, { cookie: owner })).status).toBe(200)
    expect([server.requests.length, app.alpha.requests.length, app.beta.requests.length]).toEqual([0, 0, 0])
    // Usage shows the organisation's declaration as `declared`. The public residency of a model comes only from the operator's routes.
    second.behave()
    for (const [provider, residency] of [
      ['byoe:at-home', 'declared'],
      ['byoe:silent', 'global'],
    ] as const) {
      await app.call('DELETE', '/me/routing/test-model', undefined, { cookie: owner })
      expect((await chat({ provider })).status, provider).toBe(200)
      await app.gateway.app.limits.flushNow()
      expect((await app.db.one(lastEvent, app.orgId)).residency).toBe(residency)
    }
    await register('Global model', { model: 'alpha-only', residency: 'india', base_url: second.url })
    expect((await app.call('GET', '/v1/models/alpha-only')).json.residency).toBe('global')
    expect((await chat({ model: 'alpha-only', ...indiaOnly })).status).toBe(422)
  })

  test('a removed endpoint gets no further calls; a new endpoint with the same name gets them', async () => {
    const id = await register('Ours')
    expect((await chat({ provider: 'byoe:ours' })).status).toBe(200)
    await remove(id)
    expect((await chat({ provider: 'byoe:ours' })).json.error.code).toBe('no_route')
    expect(server.requests.length).toBe(1)
    await register('Ours', { base_url: second.url })
    expect((await chat({ provider: 'byoe:ours' })).status).toBe(200)
    expect([server.requests.length, second.requests.length]).toEqual([0, 1])
  })

  test('a key in the request goes to a custom endpoint only when the call pins that endpoint', async () => {
    await register('Ours')
    const upstream_key = 'somebodys-own-key'
    expect((await chat({ provider: 'byoe:ours', upstream_key })).status).toBe(200)
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([`Bearer ${upstream_key}`])
    server.requests.length = 0
    const fallbacks = [
      { model: 'test-model', provider: 'byoe:ours' },
      { model: 'test-model', provider: 'alpha' },
    ]
    expect((await chat({ fallbacks, upstream_key })).headers.get('x-br-provider')).toBe('alpha')
    expect(server.requests.length).toBe(0)
  })

  test('the circuit of a failing endpoint opens only for that endpoint: the same slug of another organisation and a new endpoint are not affected', async () => {
    const neighbour = await app.otherOrg('Same Slug')
    const cookie = await app.signIn(neighbour.userId, neighbour.orgId)
    const id = await register('Shared')
    const theirs = await register('Shared', { base_url: second.url }, cookie)
    server.misbehave(request => (isStream(request) ? { reset: true } : { status: 500 }))
    await chat({ provider: 'byoe:shared' })
    await chat({ provider: 'byoe:shared', stream: true })
    expect(app.gateway.app.circuits.openRoutes()).toEqual([`byoe#${id}`])
    expect((await chat({ provider: 'byoe:shared' }, { token: neighbour.key })).status).toBe(200)
    expect(app.gateway.app.circuits.isOpen(`byoe#${theirs}`, app.orgId, Date.now())).toBe(false)
    await remove(id)
    server.behave()
    expect(app.gateway.app.circuits.openRoutes()).not.toContain(`byoe#${await register('Shared')}`)
  })

  test('a reply that exceeds the size limit is refused', async () => {
    await register('Endless')
    server.misbehave(() => ({ body: { id: 'x', object: 'chat.completion', created: 1, model: 'm', choices: [], padding: 'x'.repeat(9 * 1024 * 1024) } }))
    const reply = await chat({ provider: 'byoe:endless' })
    expect([reply.status, reply.json.error.code]).toEqual([502, 'all_routes_failed'])
  })
})
