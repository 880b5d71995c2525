/** The fetch wrapper on a real gateway: which requests it signs, which it sends again, and which it leaves unchanged. */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, expectTypeOf, test } from 'vitest'
import { agentFetch } from '../../../src/agents/toolkit/agent-fetch.ts'
import { AgentRevokedError, BrigadeError } from '../../../src/agents/toolkit/brigade-error.ts'
import { type AgentBudget, connectAgent } from '../../../src/agents/toolkit/connect-agent.ts'
import { createAgentTokenProvider } from '../../../src/agents/toolkit/token-provider.ts'
import type { BudgetView } from '../../../src/gateway/limits/budgets/budget-view.ts'
import { startApp, type TestApp, until } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { postForm } from '../oauth-calls.ts'
import { type OidcIssuer, startOidcIssuer } from '../oidc-issuer.ts'
import { countedAgent, countingFetch, revoke } from './setup.ts'

const clock = movableClock()
const chat = JSON.stringify({ model: 'test-model', messages: [{ role: 'user', content: 'hello' }] })
const json = { 'content-type': 'application/json' }
let app: TestApp
let issuer: OidcIssuer
/** A server that is not the gateway. */
let elsewhere: Server
let seen: IncomingHttpHeaders[] = []
/** The bodies of its next 401 replies, in order. After them it answers 200. */
let refusals: object[] = []

beforeAll(async () => {
  issuer = await startOidcIssuer()
  await issuer.addKey('one')
  app = await startApp({ clock, env: { OUTBOUND_ALLOW: issuer.hostPort } })
  elsewhere = createServer((request, response) => {
    seen.push(request.headers)
    const refusal = refusals.shift()
    response.writeHead(refusal === undefined ? 200 : 401, json).end(JSON.stringify(refusal ?? {}))
  })
  elsewhere.listen(0, '127.0.0.1')
  await once(elsewhere, 'listening')
})
afterAll(async () => {
  elsewhere?.close()
  await app?.stop()
  await issuer?.close()
})
beforeEach(() => {
  app.alpha.reset()
  seen = []
  refusals = []
})

const elsewhereUrl = (): string => `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}`
const expire = (): void => clock.advance(20 * 60_000)
const codeOf = async (reply: Response): Promise<unknown> => ((await reply.json()) as { error: { code: string } }).error.code

describe('a token that has expired', () => {
  const bytes = new TextEncoder().encode(chat)
  const request = () => new Request(`${app.baseUrl}/v1/chat/completions`, { method: 'POST', headers: json, body: chat })
  test.each<[name: string, argumentsOf: () => [target: string | URL | Request, init?: RequestInit]]>([
    ['a text', () => ['/v1/chat/completions', { method: 'POST', headers: json, body: chat }]],
    ['bytes', () => ['/v1/chat/completions', { method: 'POST', headers: json, body: bytes }]],
    ['a Blob', () => ['/v1/chat/completions', { method: 'POST', headers: json, body: new Blob([chat]) }]],
    ['a Request', () => [request()]],
    ['a Request whose body is a stream', () => [new Request(request(), { body: new Blob([chat]).stream(), duplex: 'half' } as RequestInit)]],
    ['a URL without a body', () => [new URL(`${app.baseUrl}/v1/me/whoami`)]],
  ])('an expired token is replaced once, and %s is sent again', async (_name, argumentsOf) => {
    const { agent, sent } = await countedAgent(app)
    await agent.whoami()
    expire()
    const before = sent.length
    const reply = await agent.fetch(...argumentsOf())
    expect(reply.status).toBe(200)
    await reply.json()
    expect(sent.slice(before).map(line => line.slice(0, 3))).toEqual(['401', '200', '200'])
    expect(sent.slice(before)[1]).toBe('200 /v1/me/agents/:id/token')
  })

  test('an expired token is replaced once for ten concurrent calls', async () => {
    const { agent, sent } = await countedAgent(app)
    await agent.whoami()
    expire()
    const before = sent.length
    await Promise.all(Array.from({ length: 10 }, () => agent.whoami()))
    expect(sent.slice(before).filter(line => line.endsWith('/token'))).toHaveLength(1)
  })

  test('an expired token is replaced, but a stream is not sent again, and the next call has the new token', async () => {
    const { agent } = await countedAgent(app)
    await agent.whoami()
    expire()
    const send = (): Promise<Response> => {
      const init = { method: 'POST', headers: json, body: new Blob([chat]).stream(), duplex: 'half' }
      return agent.fetch('/v1/chat/completions', init as RequestInit)
    }
    const refused = await send()
    expect([refused.status, await refused.json()]).toMatchObject([401, { reason: 'token_expired' }])
    expect((await send()).status).toBe(200)
  })

  test('a token is replaced too when only this token was revoked', async () => {
    const { agent, sent } = await countedAgent(app)
    expect((await postForm(app, '/oauth/revoke', { token: await agent.tokens.getToken() }, { token: app.key })).status).toBe(200)
    expect(await agent.whoami()).toMatchObject({ principal: { kind: 'agent' } })
    expect(sent.filter(line => line.endsWith('/token'))).toHaveLength(2)
  })

  test("an expired token is recognised by the reply's body when a browser hides the header", async () => {
    const given: unknown[] = []
    const source = {
      getToken(params?: object) {
        given.push(params)
        return Promise.resolve(`token-${given.length}`)
      },
    }
    refusals = [{ reason: 'token_expired' }]
    expect((await agentFetch(source)(elsewhereUrl())).status).toBe(200)
    expect(given).toEqual([undefined, { forceRefresh: true, refused: 'token-1' }])
    expect(seen.map(headers => headers.authorization)).toEqual(['Bearer token-1', 'Bearer token-2'])
    refusals = [{ reason: 'token_expired' }, { reason: 'token_expired' }]
    expect((await agentFetch(source)(elsewhereUrl())).status, 'once, not for ever').toBe(401)
    refusals = [{ error: { code: 'byok_required' } }]
    expect(await codeOf(await agentFetch(source)(elsewhereUrl())), 'about another credential').toBe('byok_required')
    expect(seen).toHaveLength(5)
  })

  test('an expired API key is not replaced, because a second try would not help', async () => {
    const sent: string[] = []
    const signed = agentFetch('br-not-a-key', countingFetch(sent), { baseUrl: app.baseUrl })
    expect(await codeOf(await signed('/v1/me/whoami'))).toBe('invalid_api_key')
    expect(sent).toEqual(['401 /v1/me/whoami'])
  })
})

describe('refusals', () => {
  test('the refusal of a spent budget is returned unchanged, after one request', async () => {
    const { id, agent, sent } = await countedAgent(app)
    await app.setBudget('agent', id, 0.000001)
    const ask = (): Promise<Response> => agent.fetch('/v1/chat/completions', { method: 'POST', headers: json, body: chat })
    // A call is settled shortly after its reply.
    await until(async () => (await ask()).headers.get('x-should-retry') === 'false')
    const before = sent.length
    const reply = await ask()
    expect([reply.status, reply.headers.get('x-should-retry'), await codeOf(reply)]).toEqual([429, 'false', 'agent_budget_exceeded'])
    expect(sent.slice(before)).toEqual(['429 /v1/chat/completions'])
  })

  test('a refused mint becomes a reply in the envelope that every SDK reads, and says whether to retry', async () => {
    const agent = connectAgent({ baseUrl: app.baseUrl, agent: 'nobody', credential: app.key })
    const reply = await agent.fetch('/v1/models')
    expect(reply.status).toBe(404)
    expect(reply.headers.get('x-should-retry')).toBe('false')
    expect(await reply.json()).toMatchObject({
      type: 'error',
      error: { type: 'not_found_error', code: 'not_found', message: expect.stringContaining('There is no agent "nobody". Make it with') },
    })
    await expect(agent.whoami()).rejects.toMatchObject({ name: 'BrigadeError', code: 'not_found', status: 404 })
  })

  test('a revoked agent gets a 401 that names the reason, and the client throws AgentRevokedError', async () => {
    const { id, agent } = await countedAgent(app)
    await agent.whoami()
    await revoke(app, id)
    for (let turn = 0; turn < 2; turn++) {
      const reply = await agent.fetch('/v1/me/whoami')
      expect(reply.headers.get('x-should-retry')).toBe('false')
      expect([reply.status, await reply.json()]).toMatchObject([
        401,
        { reason: 'agent_revoked', error: { code: 'agent_revoked', message: 'agent_revoked: This agent has been revoked. Stop: its tokens work no more.' } },
      ])
    }
    await expect(agent.budget()).rejects.toBeInstanceOf(AgentRevokedError)
    await expect(agent.memory.read('notes/x')).rejects.toBeInstanceOf(BrigadeError)
  })
})

describe('a request', () => {
  test('a request is signed only when it goes to the gateway', async () => {
    const { agent } = await countedAgent(app)
    await agent.fetch(`${elsewhereUrl()}/`, { headers: { authorization: 'Bearer mine' } })
    await agent.fetch(new Request(`${elsewhereUrl()}/`))
    expect(seen.map(headers => headers.authorization)).toEqual(['Bearer mine', undefined])
  })

  test('when the gateway has a path, only requests below that path are signed', async () => {
    const signed = agentFetch('br-key', fetch, { baseUrl: `${elsewhereUrl()}/gateway/` })
    for (const path of ['/gateway/v1/models', '/gatewayed', '/gateway/../other']) await signed(`${elsewhereUrl()}${path}`)
    await signed('/v1/models')
    expect(seen.map(headers => headers.authorization)).toEqual(['Bearer br-key', undefined, undefined, 'Bearer br-key'])
  })

  test('a request has a user agent if the caller sets none, an agent name if a key signs it, and never the placeholder key', async () => {
    const signed = agentFetch('br-key', fetch, { agentLabel: 'deploys' })
    await signed(elsewhereUrl(), { headers: { 'x-api-key': 'set-by-brigade-fetch', authorization: 'Bearer set-by-brigade-fetch' } })
    await signed(elsewhereUrl(), { headers: { 'x-api-key': 'mine', 'user-agent': 'mine/1', 'x-br-agent-id': 'mine' } })
    expect(seen).toMatchObject([
      { authorization: 'Bearer br-key', 'user-agent': 'brigade-agents/0.1', 'x-br-agent-id': 'deploys' },
      { authorization: 'Bearer br-key', 'user-agent': 'mine/1', 'x-br-agent-id': 'mine', 'x-api-key': 'mine' },
    ])
    expect(seen[0]).not.toHaveProperty('x-api-key')
  })

  test('a request ends when its caller aborts while it waits for a token', async () => {
    const waiting = agentFetch({ getToken: () => new Promise(() => undefined) })
    const stop = new AbortController()
    const call = waiting(`${app.baseUrl}/v1/models`, { signal: stop.signal })
    stop.abort()
    await expect(call).rejects.toMatchObject({ name: 'AbortError' })
    await expect(waiting(`${app.baseUrl}/v1/models`, { signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' })
  })
})

describe('a connection', () => {
  test('a connection returns its identity and its budget', async () => {
    expectTypeOf<BudgetView>().toExtend<AgentBudget>()
    expectTypeOf<keyof BudgetView>().toEqualTypeOf<keyof AgentBudget>()
    const { id, name, agent } = await countedAgent(app, { scope: 'usage:read', ttlS: 60 })
    await app.setBudget('agent', id, 25)
    expect(await agent.whoami()).toMatchObject({ agent: { id, name }, scope: 'usage:read', budget: { scope: 'agent', cap_inr: 25, remaining_inr: 25 } })
    expect(await agent.budget()).toMatchObject([{ scope: 'agent', cap_inr: 25 }])
    expect(agent.baseUrl).toBe(app.baseUrl)
  })

  test('a connection accepts a key, a token, and any source of tokens', async () => {
    const { name, agent } = await countedAgent(app)
    expect(await connectAgent({ baseUrl: app.baseUrl, credential: async () => `${app.key}\n` }).whoami()).toMatchObject({ agent: null })
    const token = await agent.tokens.getToken()
    expect(await connectAgent({ baseUrl: `${app.baseUrl}/v1/`, credential: token }).whoami()).toMatchObject({ agent: { name } })
    expect(await connectAgent({ baseUrl: app.baseUrl, credential: agent.tokens }).whoami()).toMatchObject({ agent: { name } })
    expect(() => connectAgent({ baseUrl: app.baseUrl, credential: agent.tokens, agent: name })).toThrow('leave agent and exchange out')
  })

  test('a connection finds its agent by id or name, and creates the agent only when `create` is set', async () => {
    const { id, name } = await countedAgent(app)
    const tokens = (agent: string | number, create = false) => createAgentTokenProvider({ baseUrl: app.baseUrl, agent, create, credential: app.key })
    expect((await tokens(id).get()).agentId).toBe(id)
    expect((await tokens(String(id)).get()).agentId).toBe(id)
    expect((await tokens(name).get()).agentId).toBe(id)
    await expect(tokens('made by need').get()).rejects.toMatchObject({ code: 'not_found' })
    const { agentId: newId } = await tokens('made by need', true).get()
    expect((await tokens('made by need', true).get()).agentId, 'the second time it is there').toBe(newId)
    await revoke(app, newId ?? 0)
    await expect(tokens('made by need').get()).rejects.toMatchObject({ name: 'AgentRevokedError', message: expect.stringContaining('is revoked') })
    await expect(tokens(99_999).get()).rejects.toMatchObject({ code: 'not_found', status: 404 })
  })

  test('a connection reads its key again at each mint', async () => {
    const first = await app.newKey()
    const second = await app.newKey()
    let key = first.key
    const { id, agent } = await countedAgent(app, { credential: () => key })
    expect(await agent.whoami()).toMatchObject({ agent: { id } })
    expect((await app.call('DELETE', `/me/keys/${first.keyId}`, undefined, { cookie: await app.signIn() })).status).toBe(200)
    await expect(agent.whoami()).rejects.toMatchObject({ code: 'invalid_api_key', status: 401 })
    key = second.key
    expect(await agent.whoami()).toMatchObject({ agent: { id }, key: { id: second.keyId } })
  })
})

/** Creates an agent with a trust rule for a subject, and returns functions for the platform tokens, which live two minutes. */
async function trusted(name: string, subject = name) {
  const { id } = (await app.call('POST', '/v1/me/agents', { name })).json
  const rule = { name, issuer: issuer.url, subject, agent_id: id, key_id: app.keyId }
  expect((await app.call('POST', '/me/agent-trust', rule, { cookie: await app.signIn() })).status).toBe(201)
  const now = (): number => Math.floor(clock.nowMs() / 1000)
  const credential = () => issuer.token({ sub: subject, aud: `${app.baseUrl}/orgs/${app.orgId}`, iat: now(), nbf: now(), exp: now() + 120 })
  return { id: Number(id), credential }
}

describe('an agent of a job or pod, by a token of another issuer', () => {
  test('a connection reads the platform token at each mint, and ends when the agent is revoked', async () => {
    const { id, credential } = await trusted('deployer')
    const sent: string[] = []
    let asked = 0
    const agent = connectAgent({
      baseUrl: app.baseUrl,
      exchange: true,
      fetch: countingFetch(sent),
      scope: 'usage:read',
      credential() {
        asked++
        return credential()
      },
    })
    expect(await agent.whoami()).toMatchObject({ agent: { id, name: 'deployer' }, scope: 'usage:read' })
    clock.advance(20 * 60_000)
    expect(await agent.whoami()).toMatchObject({ agent: { id } })
    expect(asked).toBe(2)
    await revoke(app, id)
    const before = sent.length
    for (let turn = 0; turn < 3; turn++) await expect(agent.whoami()).rejects.toMatchObject({ name: 'AgentRevokedError', code: 'agent_revoked' })
    expect(sent.slice(before)).toEqual(['401 /v1/me/whoami'])
  })

  test('when rules for several agents accept a token, an id chooses the agent. A name is compared with the agent of the issued token', async () => {
    const { id, credential } = await trusted('first', 'shared')
    const tokens = (agent?: string | number) => createAgentTokenProvider({ baseUrl: app.baseUrl, exchange: true, credential, agent })
    expect(await tokens('first').get()).toMatchObject({ agentId: id })
    await expect(tokens('second').get()).rejects.toMatchObject({ message: expect.stringContaining('a token of the agent "first", not of "second"') })
    const second = await trusted('second', 'shared')
    expect(await tokens(second.id).get()).toMatchObject({ agentId: second.id })
    await expect(tokens().get()).rejects.toMatchObject({ code: 'invalid_request', status: 400, message: expect.stringContaining('Name one') })
  })

  test("the error for a refused platform token contains the gateway's message", async () => {
    const tokens = createAgentTokenProvider({ baseUrl: app.baseUrl, exchange: true, credential: 'no-token' })
    await expect(tokens.getToken()).rejects.toMatchObject({ name: 'BrigadeError', code: 'invalid_request', message: expect.stringMatching(/\w+ \w+/) })
  })
})
