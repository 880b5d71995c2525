import { createLocalJWKSet, createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestReply } from '../harness/app.ts'
import { movableClock } from '../harness/clock.ts'

const insertWorkspace = statement<[orgId: number, name: string], { id: number }>(
  'test.insert_workspace',
  'insert into workspaces (org_id, name, created_at) values ($1::int, $2::text, now()) returning id',
)
const hello = [{ role: 'user', content: 'Hello there' }]
/** 09:15 on 21 November 2026 in India. */
const morning = Date.UTC(2026, 10, 21, 3, 45, 1)
const isoUtc = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$/

describe('agents over HTTP', () => {
  const clock = movableClock(morning)
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ clock, env: { FOLDER_STORE: 'on' } })
    await app.gateway.app.memory.useFolder(app.orgId)
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    clock.moveTo(morning)
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })

  const create = (name: unknown, token = app.key) => app.call('POST', '/v1/me/agents', { name }, { token })
  const mint = (id: number, token = app.key) => app.call('POST', `/v1/me/agents/${id}/token`, {}, { token })
  const revoke = (id: number, token = app.key) => app.call('POST', `/v1/me/agents/${id}/revoke`, {}, { token })
  const budget = (id: number, inr: unknown, token = app.key) => app.call('POST', `/v1/me/agents/${id}/budget`, { monthly_budget_inr: inr }, { token })
  const tokenOf = async (id: number, key = app.key): Promise<string> => (await mint(id, key)).json.access_token
  const agents = async (token = app.key) => (await app.call('GET', '/v1/me/agents', undefined, { token })).json.agents
  const agentById = async (id: number) => (await agents()).find((agent: { id: number }) => agent.id === id)
  const chat = (token: string, body: object = {}, headers: Record<string, string> = {}) =>
    app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: hello, max_tokens: 50, ...body }, { token, headers })
  const said = ({ status, json }: TestReply) => [status, json?.error?.code]
  /** Sends chats until one is refused, at most 60. */
  const chatUntilRefused = async (token: string, headers: Record<string, string> = {}): Promise<TestReply> => {
    let reply = await chat(token, {}, headers)
    for (let i = 0; i < 60 && reply.status === 200; i++) reply = await chat(token, {}, headers)
    return reply
  }

  test('AGENT-01 SHAPE-40 a new name creates an agent with 201, and the same name again returns that agent with 200', async () => {
    const made = await create('researcher')
    expect(made.status).toBe(201)
    const again = await create('  researcher ')
    expect([again.status, again.json.id, again.json.name]).toEqual([200, made.json.id, 'researcher'])
    for (const action of [mint, revoke]) expect((await action(made.json.id)).status).toBe(200)
  })

  test('AGENT-02 SHAPE-31 the list shows every agent with its budget and its spending in the current month', async () => {
    const made = await create('listed')
    expect(made.json).toMatchObject({
      id: expect.any(Number),
      name: 'listed',
      status: 'active',
      monthly_budget_inr: null,
      spend_month_inr: 0,
      created_at: expect.stringMatching(isoUtc),
    })
    await budget(made.json.id, 250.5)
    expect((await chat(await tokenOf(made.json.id))).status).toBe(200)
    await app.gateway.app.limits.flushNow()
    const listed = await agentById(made.json.id)
    expect(listed).toMatchObject({ id: made.json.id, name: 'listed', status: 'active', monthly_budget_inr: 250.5, created_at: made.json.created_at })
    expect(listed.spend_month_inr).toBeGreaterThan(0)
  })

  test('AGENT-03 a token is a JWT that lives 900 seconds, and the reply has every field that OAuth clients need', async () => {
    const { json: agent } = await create('minted')
    const reply = await mint(agent.id)
    expect(reply.status).toBe(200)
    const { access_token, token, token_type, expires_in, expires_at, agent_id, scope } = reply.json
    expect({ token, token_type, expires_in, agent_id }).toEqual({ token: access_token, token_type: 'Bearer', expires_in: 900, agent_id: agent.id })
    expect(scope).toEqual(expect.any(String))
    expect(expires_at).toMatch(isoUtc)
    expect(access_token.split('.')).toHaveLength(3)
    expect(reply.headers.get('cache-control')).toBe('no-store')
    expect((await chat(access_token)).status).toBe(200)
    clock.advance(900_000)
    const late = await chat(access_token)
    expect([...said(late), late.json.reason]).toEqual([401, 'invalid_api_key', 'token_expired'])
  })

  test('JWKS-01 the current and the next signing key are published, and any JOSE library can verify a token offline', async () => {
    const { json: agent } = await create('verified')
    const token = await tokenOf(agent.id)
    const published = await app.call('GET', '/.well-known/jwks.json', undefined, { token: null })
    expect(published.status).toBe(200)
    const { keys } = published.json
    expect(keys.length).toBeGreaterThanOrEqual(2)
    for (const key of keys) {
      expect(key).toMatchObject({ kty: 'EC', crv: 'P-256', alg: 'ES256', use: 'sig', kid: expect.any(String) })
      expect(key.d).toBeUndefined()
    }
    const header = decodeProtectedHeader(token)
    expect(header.typ).toBe('at+jwt')
    expect(keys.map((key: { kid: string }) => key.kid)).toContain(header.kid)
    const rules = { issuer: app.baseUrl, audience: app.baseUrl, algorithms: ['ES256'], typ: 'at+jwt', currentDate: new Date(clock.nowMs()) }
    for (const keySet of [createLocalJWKSet(published.json), createRemoteJWKSet(new URL('/.well-known/jwks.json', app.baseUrl))]) {
      const { payload } = await jwtVerify(token, keySet, rules)
      expect(payload).toMatchObject({ sub: `agent:${agent.id}`, org: app.orgId, agent: { id: agent.id, name: 'verified' } })
    }
    const others = { keys: keys.filter((key: { kid: string }) => key.kid !== header.kid) }
    await expect(jwtVerify(token, createLocalJWKSet(others), rules)).rejects.toThrow()
  })

  test('AGENT-04 a token is accepted for chat, memory, usage and MCP', async () => {
    const { token } = await app.newAgent('worker')
    expect((await chat(token)).status).toBe(200)
    const key = encodeURIComponent('agents/worker/notes.md')
    expect((await app.call('PUT', `/v1/me/memory/o?key=${key}`, 'remember this', { token })).status).toBeLessThan(300)
    const read = await app.call('GET', `/v1/me/memory/o?key=${key}`, undefined, { token })
    expect([read.status, read.text]).toEqual([200, 'remember this'])
    expect((await app.call('GET', '/v1/usage', undefined, { token })).status).toBe(200)
    const mcp = await app.call(
      'POST',
      '/mcp',
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'whoami', arguments: {} } },
      { token, headers: { accept: 'application/json, text/event-stream' } },
    )
    expect(mcp.status).toBe(200)
    expect(mcp.text).toContain('worker')
  })

  test('AGENT-05 after a revocation every issued token is refused immediately, and a second revocation succeeds too', async () => {
    const { id, token } = await app.newAgent('doomed')
    const second = await tokenOf(id)
    expect((await chat(token)).status).toBe(200)
    const revoked = await revoke(id)
    expect([revoked.status, revoked.json.status]).toEqual([200, 'revoked'])
    for (const dead of [token, second]) {
      for (const reply of [await chat(dead), await app.call('GET', '/v1/usage', undefined, { token: dead })]) {
        expect([...said(reply), reply.json.reason]).toEqual([401, 'invalid_api_key', 'agent_revoked'])
        expect(reply.headers.get('www-authenticate')).toContain('agent_revoked')
      }
    }
    const again = await revoke(id)
    expect([again.status, again.json.status]).toEqual([200, 'revoked'])
  })

  test('AGENT-06 AGENT-07 LIFE-09 a revoked agent stays revoked and gets neither a token nor a budget. Its name creates another agent', async () => {
    const { id, token } = await app.newAgent('phoenix')
    await revoke(id)
    expect(said(await mint(id))).toEqual([409, 'agent_revoked'])
    expect(said(await budget(id, 5))).toEqual([409, 'agent_revoked'])
    expect(said(await app.call('PATCH', `/v1/me/agents/${id}`, { may_delegate: true }))).toEqual([409, 'agent_revoked'])
    const byPerson = { scope: 'agent', target_id: id, monthly_budget_inr: 5 }
    expect(said(await app.call('POST', '/me/budgets', byPerson, { cookie: await app.signIn() }))).toEqual([409, 'agent_revoked'])
    const reborn = await create('phoenix')
    expect(reborn.status).toBe(201)
    expect(reborn.json.id).not.toBe(id)
    expect((await chat(await tokenOf(reborn.json.id))).status).toBe(200)
    expect((await chat(token)).status).toBe(401)
    expect((await agentById(id)).status).toBe('revoked')
    expect((await agentById(reborn.json.id)).status).toBe('active')
    // Revoking the new agent of that name does not restore the old one.
    await revoke(reborn.json.id)
    for (const each of [id, reborn.json.id]) expect(said(await mint(each))).toEqual([409, 'agent_revoked'])
    expect((await revoke(id)).json.status).toBe('revoked')
  })

  test('AGENT-08 a full key can set the budget of an agent, and null or 0 removes it', async () => {
    const { id } = await app.newAgent('budgeted')
    for (const clears of [null, 0]) {
      const set = await budget(id, 12.5)
      expect([set.status, set.json.monthly_budget_inr]).toEqual([200, 12.5])
      expect((await agentById(id)).monthly_budget_inr).toBe(12.5)
      expect((await budget(id, clears)).json.monthly_budget_inr).toBeNull()
      expect((await agentById(id)).monthly_budget_inr).toBeNull()
    }
  })

  test('AGENT-10 an invalid budget is refused with 400 bad_request and changes nothing', async () => {
    const { id } = await app.newAgent('guarded')
    await budget(id, 7)
    for (const wrong of [-1, -0.001, '5', 'all', true, [], {}, 1e300]) expect(said(await budget(id, wrong)), String(wrong)).toEqual([400, 'bad_request'])
    for (const raw of ['{"monthly_budget_inr":NaN}', '{"monthly_budget_inr":Infinity}', '{}', '[]', 'null', '{"monthly_budget_inr":'])
      expect(said(await app.call('POST', `/v1/me/agents/${id}/budget`, raw, { headers: { 'content-type': 'application/json' } })), raw).toEqual([
        400,
        'bad_request',
      ])
    expect((await agentById(id)).monthly_budget_inr).toBe(7)
  })

  test('AGENT-09 LIFE-06 an agent that has spent its budget gets 429 agent_budget_exceeded until the next month', async () => {
    const { id, token } = await app.newAgent('spender')
    await budget(id, 0.002)
    expect((await chat(token)).status).toBe(200)
    let refused = await chatUntilRefused(token)
    expect(said(refused)).toEqual([429, 'agent_budget_exceeded'])
    while (refused.headers.get('retry-after') === '5') refused = await chat(token)
    expect(refused.headers.get('x-should-retry')).toBe('false')
    expect(refused.json).toMatchObject({ scope: 'agent', cap_inr: 0.002, held_inr: 0 })
    expect(said(await chat(token, { stream: true }))).toEqual([429, 'agent_budget_exceeded'])
    expect((await chat(app.key)).status).toBe(200)
    clock.moveTo(Date.UTC(2026, 10, 30, 18, 30, 1))
    const next = await tokenOf(id)
    expect((await chat(next)).status).toBe(200)
    expect((await agentById(id)).spend_month_inr).toBeLessThan(0.002)
  })

  test('AGENT-11 every endpoint answers 404 for an agent of another organisation', async () => {
    const stranger = await app.otherOrg(`Strangers ${clock.nowMs()}`)
    const { id, token } = await app.newAgent('private')
    for (const attempt of [mint(id, stranger.key), revoke(id, stranger.key), budget(id, 1, stranger.key)])
      expect(said(await attempt)).toEqual([404, 'not_found'])
    expect((await agents(stranger.key)).map((agent: { id: number }) => agent.id)).not.toContain(id)
    expect((await chat(token)).status).toBe(200)
    for (const none of ['0', '-1', 'x', '2147483648', '99999999999'])
      expect(said(await app.call('POST', `/v1/me/agents/${none}/revoke`, {})), none).toEqual([404, 'not_found'])
  })

  test('AGENT-12 the rpm, daily limit, key budget and workspace budget of the minting key apply to the token', async () => {
    const { id } = await app.newAgent('bounded')
    const rated = await app.newKey({ rpm: 4 })
    const ratedToken = await tokenOf(id, rated.key)
    for (let i = 0; i < 3; i++) expect((await chat(ratedToken)).status).toBe(200)
    for (const credential of [ratedToken, rated.key]) expect(said(await chat(credential))).toEqual([429, 'rate_limit_exceeded'])

    const daily = await app.newKey({ daily: 3 })
    const dailyToken = await tokenOf(id, daily.key)
    expect((await chat(daily.key)).status).toBe(200)
    for (let i = 0; i < 2; i++) expect((await chat(dailyToken)).status).toBe(200)
    for (const credential of [dailyToken, daily.key]) expect(said(await chat(credential))).toEqual([429, 'daily_limit_reached'])

    const poor = await app.newKey({ budgetInr: 0.002 })
    const refused = await chatUntilRefused(await tokenOf(id, poor.key))
    expect([...said(refused), refused.json.scope]).toEqual([429, 'budget_exceeded', 'key'])

    const { id: workspaceId } = await app.db.one(insertWorkspace, app.orgId, 'narrow')
    await app.setBudget('workspace', workspaceId, 0.002)
    const member = await app.gateway.app.keys.create({
      orgId: app.orgId,
      userId: app.userId,
      workspaceId,
      name: 'workspace key',
      scope: 'full',
      rpmLimit: null,
      dailyLimit: null,
    })
    const full = await chatUntilRefused(await tokenOf(id, member.key))
    expect([...said(full), full.json.scope]).toEqual([429, 'budget_exceeded', 'workspace'])
    expect((await chat(await tokenOf(id))).status).toBe(200)
  })

  test('AGENT-13 the revocation of a key ends the tokens that it minted, and no other tokens', async () => {
    const { id, token: other } = await app.newAgent('orphan')
    const minting = await app.newKey()
    const token = await tokenOf(id, minting.key)
    expect((await chat(token)).status).toBe(200)
    const cookie = await app.signIn()
    const refused = async (): Promise<void> => {
      for (const dead of [await chat(token), await app.call('GET', '/v1/usage', undefined, { token }), await app.call('GET', '/me', undefined, { token })])
        expect([...said(dead), dead.json.reason]).toEqual([401, 'invalid_api_key', 'key_revoked'])
    }
    // Tokens are refused while their key is disabled.
    await app.call('PATCH', `/me/keys/${minting.keyId}`, { enabled: false }, { cookie })
    await refused()
    await app.call('PATCH', `/me/keys/${minting.keyId}`, { enabled: true }, { cookie })
    expect((await chat(token)).status).toBe(200)
    expect((await app.call('DELETE', `/me/keys/${minting.keyId}`, undefined, { cookie })).status).toBe(200)
    await refused()
    expect((await chat(other)).status).toBe(200)
  })

  test('AGENT-14 with an agent token, x-br-agent-id has no effect', async () => {
    const speaker = await app.newAgent('speaker')
    const victim = await app.newAgent('victim')
    for (const label of ['victim', String(victim.id), 'nobody-known']) expect((await chat(speaker.token, {}, { 'x-br-agent-id': label })).status).toBe(200)
    const { by_agent } = (await app.call('GET', '/v1/usage')).json
    const requestsOf = (match: (row: { id: number | null; label: string | null }) => boolean) => by_agent.find(match)?.requests ?? 0
    expect(requestsOf(row => row.id === speaker.id)).toBe(3)
    expect(requestsOf(row => row.id === victim.id)).toBe(0)
    expect(requestsOf(row => row.label === 'nobody-known')).toBe(0)
    await revoke(victim.id)
    expect((await chat(speaker.token, {}, { 'x-br-agent-id': 'victim' })).status).toBe(200)
  })

  test('AGENT-15 an agent token cannot create agents, mint tokens, set budgets or revoke agents, and gets 403 forbidden', async () => {
    const { id, token } = await app.newAgent('ambitious')
    const other = await app.newAgent('colleague')
    // A token of an agent that may create children cannot do this either, and neither can the token of a child.
    await app.call('PATCH', `/v1/me/agents/${id}`, { may_delegate: true })
    const child = (await app.call('POST', `/v1/me/agents/${id}/children`, { name: 'offspring', may_delegate: true }, { token })).json
    for (const credential of [token, child.access_token]) {
      for (const target of [id, other.id, child.agent_id]) {
        for (const attempt of [mint, revoke]) expect(said(await attempt(target, credential))).toEqual([403, 'forbidden'])
        expect(said(await budget(target, 1000, credential))).toEqual([403, 'forbidden'])
        expect(said(await app.call('PATCH', `/v1/me/agents/${target}`, {}, { token: credential }))).toEqual([403, 'forbidden'])
      }
      expect(said(await create('made-by-agent', credential))).toEqual([403, 'forbidden'])
    }
    expect((await agents()).map((agent: { name: string }) => agent.name)).not.toContain('made-by-agent')
    expect((await agentById(other.id)).status).toBe('active')
  })

  test('AUTH-14 AUTH-15 an inference key can list agents, but cannot create an agent or mint a token', async () => {
    const { id } = await app.newAgent('seen')
    const { key } = await app.newKey({ scope: 'inference' })
    expect(said(await create('unwanted', key))).toEqual([403, 'forbidden'])
    expect(said(await mint(id, key))).toEqual([403, 'forbidden'])
    const listed = await app.call('GET', '/v1/me/agents', undefined, { token: key })
    expect([listed.status, listed.json.agents.some((agent: { id: number }) => agent.id === id)]).toEqual([200, true])
    expect(listed.json.agents.some((agent: { name: string }) => agent.name === 'unwanted')).toBe(false)
  })

  test('full keys, with and without a user, create agents, mint tokens, set budgets and revoke. Inference keys and agent tokens only list agents. A request without a bearer gets 401', async () => {
    const { id: target, token } = await app.newAgent('target')
    const full = await app.newKey({ withUser: true })
    const bare = await app.newKey({ withUser: false })
    const narrow = await app.newKey({ scope: 'inference' })
    const statuses = async (credential: string | null): Promise<number[]> => {
      const { id } = (await create(`made ${credential?.slice(-8)}`)).json
      const as = (path: string, body: unknown) =>
        app.call('POST', path, body, { token: credential, ...(credential === null ? { headers: { cookie: 'session=abc' } } : {}) })
      const replies = [
        await app.call('GET', '/v1/me/agents', undefined, { token: credential }),
        await as('/v1/me/agents', { name: `made ${credential?.slice(-8)}` }),
        await as(`/v1/me/agents/${target}/token`, {}),
        await as(`/v1/me/agents/${id}/budget`, { monthly_budget_inr: 1 }),
        await as(`/v1/me/agents/${id}/revoke`, {}),
      ]
      return replies.map(reply => reply.status)
    }
    for (const { key } of [full, bare]) expect(await statuses(key)).toEqual([200, 200, 200, 200, 200])
    for (const credential of [narrow.key, token]) expect(await statuses(credential)).toEqual([200, 403, 403, 403, 403])
    expect(await statuses(null)).toEqual([401, 401, 401, 401, 401])
  })

  test('AGENT-16 a name that is empty, too long or has control characters is refused with 400 bad_name', async () => {
    for (const name of ['', '   ', 'x'.repeat(101), 'a\u0000b', 'a\nb', 'tab\there', 'del\u007f', 'c1\u0085'])
      expect(said(await create(name)), JSON.stringify(name)).toEqual([400, 'bad_name'])
    const long = await create('x'.repeat(100))
    expect([long.status, long.json.name.length]).toEqual([201, 100])
    expect((await create('शोधक 🔎')).status).toBe(201)
  })

  test("AGENT-17 a key that names a registered agent spends the agent's budget and is refused when it is spent. A revoked agent gets 403 agent_revoked", async () => {
    const { id, token } = await app.newAgent('named')
    await budget(id, 0.002)
    const refused = await chatUntilRefused(app.key, { 'x-br-agent-id': 'named' })
    expect([...said(refused), refused.json.scope]).toEqual([429, 'agent_budget_exceeded', 'agent'])
    expect(said(await chat(app.key, {}, { 'x-br-agent-id': String(id) }))).toEqual([429, 'agent_budget_exceeded'])
    expect(said(await chat(token))).toEqual([429, 'agent_budget_exceeded'])
    await app.gateway.app.limits.flushNow()
    expect((await agentById(id)).spend_month_inr).toBeGreaterThan(0)
    expect((await chat(app.key)).status).toBe(200)
    await revoke(id)
    for (const label of ['named', String(id)]) expect(said(await chat(app.key, {}, { 'x-br-agent-id': label }))).toEqual([403, 'agent_revoked'])
  })

  test('AGENT-18 concurrent creates with one name create one agent', async () => {
    const replies = await Promise.all(Array.from({ length: 20 }, () => create('crowded')))
    expect(new Set(replies.map(reply => reply.json.id)).size).toBe(1)
    expect(replies.map(reply => reply.status).sort((a, b) => a - b)).toEqual([...Array.from({ length: 19 }, () => 200), 201])
    expect((await agents()).filter((agent: { name: string }) => agent.name === 'crowded')).toHaveLength(1)
  })

  test('AGENT-19 the usage report has a row for the agent with id, name, tokens and value', async () => {
    const { id, token } = await app.newAgent('counted')
    for (let i = 0; i < 2; i++) expect((await chat(token)).status).toBe(200)
    const { by_agent } = (await app.call('GET', '/v1/usage', undefined, { token })).json
    const row = by_agent.find((each: { id: number }) => each.id === id)
    expect(row).toMatchObject({ id, name: 'counted', requests: 2, prompt_tokens: 24, completion_tokens: 10, total_tokens: 34 })
    // 24 tokens at ₹10 per million and 10 tokens at ₹40 per million.
    expect(row.value_inr).toBeCloseTo(0.00064, 9)
  })

  test('agents, tokens and budgets have times in ISO 8601 UTC', async () => {
    const { json: agent } = await create('dated')
    expect(agent.created_at).toBe(new Date(agent.created_at).toISOString())
    expect(Math.abs(Date.parse(agent.created_at) - clock.nowMs())).toBeLessThan(60_000)
    const token = (await mint(agent.id)).json
    expect(Math.abs(Date.parse(token.expires_at) - clock.nowMs() - 900_000)).toBeLessThan(5_000)
    expect(token.expires_at).toMatch(isoUtc)
    await budget(agent.id, 5)
    const [own] = (await app.call('GET', '/v1/me/budgets', undefined, { token: token.access_token })).json.budgets
    expect(own.resets_at).toBe('2026-11-30T18:30:00.000Z')
  })
})
