/** Agents at the console: a signed-in person does with a session what a program does with an API key. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, type TestMember } from '../harness/app.ts'
import { usageRows } from '../harness/usage-rows.ts'
import { newName, said } from './family.ts'

describe('agents at the console', () => {
  let app: TestApp
  let ann: TestMember
  let bob: TestMember
  let admin: TestMember
  beforeAll(async () => {
    app = await startApp()
    ann = await app.newMember('member')
    bob = await app.newMember('member')
    admin = await app.newMember('admin')
  })
  afterAll(() => app.stop())

  const as =
    ({ cookie }: { cookie: string }) =>
    (method: string, path: string, body?: unknown) =>
      app.call(method, `/me/agents${path}`, body, { cookie })
  const make = async (person: TestMember, body: object = {}) => {
    const reply = await as(person)('POST', '', { name: newName('console'), ...body })
    expect(reply.status, reply.text).toBe(201)
    return reply.json
  }
  const keyOf = async ({ cookie }: TestMember, body: object = {}) => (await app.call('POST', '/me/keys', { name: newName('key'), ...body }, { cookie })).json
  const chat = (token: string, headers = {}) =>
    app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 50 }, { token, headers })
  const forbidden = [403, 'forbidden']

  test('CAPI-01 a person creates an agent, sets its rules and budget, pauses, resumes and ends it, and the audit trail names the person', async () => {
    const me = as(ann)
    const made = await make(ann, { max_output_tokens: 100 })
    expect(made).toMatchObject({
      status: 'active',
      max_output_tokens: 100,
      owner_uid: ann.userId,
      created_by: { kind: 'person', id: ann.userId },
      last_call_at: null,
    })
    expect((await me('POST', '', { name: made.name })).status, 'the same name is the same agent').toBe(200)
    expect((await me('PATCH', `/${made.id}`, { max_output_tokens: 50 })).json).toMatchObject({ ok: true, max_output_tokens: 50 })
    expect((await me('POST', `/${made.id}/budget`, { monthly_budget_inr: 20 })).json).toMatchObject({ ok: true, monthly_budget_inr: 20 })
    expect((await me('POST', `/${made.id}/pause`)).json).toMatchObject({ ok: true, status: 'paused' })
    expect((await me('POST', `/${made.id}/resume`)).json).toMatchObject({ ok: true, status: 'active' })
    expect((await me('GET', `/${made.id}`)).json).toMatchObject({ id: made.id, owner_name: ann.email.split('@')[0], monthly_budget_inr: 20, children: [] })
    expect((await me('POST', `/${made.id}/revoke`)).json).toMatchObject({ ok: true, status: 'revoked' })
    expect(said(await me('PATCH', `/${made.id}`, { max_output_tokens: 10 }))).toEqual([409, 'agent_revoked'])
    const lines = (await app.call('GET', `/me/audit?actor=user:${ann.userId}`, undefined, { cookie: admin.cookie })).json
    const acts = JSON.stringify(lines)
    for (const act of ['createAgentConsole', 'updateAgentConsole', 'setAgentBudgetConsole', 'pauseAgentConsole', 'resumeAgentConsole', 'revokeAgentConsole'])
      expect(acts).toContain(act)
  })

  test('CAPI-01 a member acts on their own agents only, sees all of them, and an admin acts on every agent', async () => {
    const { id, name } = await make(ann)
    const [theirs, admins] = [as(bob), as(admin)]
    const acts: [string, string, unknown?][] = [
      ['PATCH', `/${id}`, { max_output_tokens: 5 }],
      ['POST', '', { name, max_output_tokens: 5 }],
      ['POST', `/${id}/budget`, { monthly_budget_inr: 1 }],
      ['POST', `/${id}/pause`],
      ['POST', `/${id}/resume`],
      ['POST', `/${id}/revoke`],
      ['POST', `/${id}/children`, { name: newName() }],
      ['POST', `/${id}/token`, { key_id: (await keyOf(bob)).id }],
    ]
    for (const [method, path, body] of acts) expect(said(await theirs(method, path, body)), `${method} ${path}`).toEqual(forbidden)
    expect((await theirs('GET', `/${id}`)).json).toMatchObject({ id, status: 'active', max_output_tokens: null, monthly_budget_inr: null })
    expect((await theirs('GET', '?limit=200')).json.agents.map((agent: { id: number }) => agent.id)).toContain(id)
    expect((await admins('POST', `/${id}/budget`, { monthly_budget_inr: 5 })).status).toBe(200)
    // What an admin set, the owner tightens and does not loosen.
    expect((await as(ann)('POST', `/${id}/budget`, { monthly_budget_inr: 4 })).status).toBe(200)
    expect(said(await as(ann)('POST', `/${id}/budget`, { monthly_budget_inr: 6 }))).toEqual(forbidden)
    expect((await admins('POST', `/${id}/revoke`)).json.status).toBe('revoked')
  })

  test('an id of another organisation is 404, and an API key, an agent token and nobody get no further than with other endpoints of the console', async () => {
    const { id } = await make(ann)
    const there = await app.otherOrg(newName('Org'))
    const cookie = await app.signIn(there.userId, there.orgId)
    const acts: [string, string, unknown?][] = [
      ['GET', `/${id}`],
      ['PATCH', `/${id}`, {}],
      ['POST', `/${id}/budget`, { monthly_budget_inr: 1 }],
      ['POST', `/${id}/pause`],
      ['POST', `/${id}/resume`],
      ['POST', `/${id}/revoke`],
      ['POST', `/${id}/children`, { name: newName() }],
      ['POST', `/${id}/token`, { key_id: there.keyId }],
    ]
    for (const [method, path, body] of acts) {
      expect(said(await app.call(method, `/me/agents${path}`, body, { cookie })), `${method} ${path}`).toEqual([404, 'not_found'])
      expect(said(await app.call(method, `/me/agents${path}`, body, { token: app.key })), `${method} ${path} by key`).toEqual([401, 'no_session'])
    }
    for (const bad of ['x', '0', '99999999999']) expect((await as(admin)('GET', `/${bad}`)).status).toBe(404)
    expect(said(await app.call('GET', `/v1/me/agents/${id}`, undefined, { token: there.key }))).toEqual([404, 'not_found'])
    const agent = await app.newAgent(newName())
    expect((await app.call('GET', `/me/agents/${id}`, undefined, { token: agent.token })).status, 'an agent looks').toBe(200)
    expect(said(await app.call('POST', `/me/agents/${agent.id}/pause`, undefined, { token: agent.token }))).toEqual(forbidden)
  })

  test('a budget of 0 is refused at the console and tells what to send instead', async () => {
    const { id } = await make(ann)
    const message = '0 would lift the budget. Send null for no limit, or pause the agent.'
    for (const [path, body] of [
      [`/${id}/budget`, { monthly_budget_inr: 0 }],
      [`/${id}/children`, { name: newName(), monthly_budget_inr: 0 }],
    ] as const) {
      const reply = await as(ann)('POST', path, body)
      expect([reply.status, reply.json.error]).toMatchObject([400, { code: 'bad_request', message }])
    }
    await as(ann)('POST', `/${id}/budget`, { monthly_budget_inr: 3 })
    expect((await as(ann)('POST', `/${id}/budget`, { monthly_budget_inr: null })).json.monthly_budget_inr).toBeNull()
    expect((await app.call('POST', `/v1/me/agents/${id}/budget`, { monthly_budget_inr: 0 })).status, 'keys keep their contract').toBe(200)
  })

  test('CAPI-01 a person mints a token with a key of their own, which binds it', async () => {
    const { id } = await make(ann)
    const key = await keyOf(ann)
    const mint = (body: object, person = ann) => as(person)('POST', `/${id}/token`, body)
    expect(said(await mint({}))).toEqual([400, 'bad_request'])
    expect(said(await mint({ key_id: 999_999 }))).toEqual([404, 'not_found'])
    expect(said(await mint({ key_id: (await keyOf(bob)).id })), 'of somebody else').toEqual([400, 'bad_request'])
    const ownerless = await app.newKey({ withUser: false })
    expect(said(await mint({ key_id: ownerless.keyId }))).toEqual([400, 'bad_request'])
    expect((await mint({ key_id: ownerless.keyId }, admin)).status, 'an admin may take it').toBe(200)
    const minted = await mint({ key_id: key.id, scope: 'inference', ttl_s: 60 })
    expect([minted.status, minted.json, minted.headers.get('cache-control')]).toMatchObject([
      200,
      { agent_id: id, scope: 'inference', expires_in: 60 },
      'no-store',
    ])
    expect((await chat(minted.json.access_token)).status).toBe(200)
    await app.call('DELETE', `/me/keys/${key.id}`, undefined, { cookie: admin.cookie })
    expect((await chat(minted.json.access_token)).status, 'it ends with its key').toBe(401)
    expect(said(await app.call('POST', `/v1/me/agents/${id}/token`, { key_id: 999_999 })), 'a key binds with itself').toEqual([400, 'bad_request'])
  })

  test('a key for calls only is enough to bind the token of a person: it bounds the token, and the session has the right to mint', async () => {
    const { id } = await make(ann)
    const key = await keyOf(ann, { scope: 'inference', expires_days: 30 })
    const minted = (await as(ann)('POST', `/${id}/token`, { key_id: key.id, scope: 'inference usage:read' })).json
    expect(minted.scope).toBe('inference usage:read')
    expect((await chat(minted.access_token)).status).toBe(200)
    expect(said(await app.call('POST', `/v1/me/agents/${id}/token`, {}, { token: key.key })), 'the key itself mints nothing').toEqual(forbidden)
    await app.call('PATCH', `/me/keys/${key.id}`, { enabled: false }, { cookie: admin.cookie })
    expect((await chat(minted.access_token)).status, 'it ends with its key').toBe(401)
    expect(said(await as(ann)('POST', `/${id}/token`, { key_id: key.id })), 'a disabled key binds nothing').toEqual([400, 'bad_request'])
  })

  test('CAPI-01 a person creates a child of an agent, within its family', async () => {
    const parent = await make(ann, { allowed_models: ['alpha-only'] })
    await as(ann)('POST', `/${parent.id}/budget`, { monthly_budget_inr: 10 })
    const child = (body: object) => as(ann)('POST', `/${parent.id}/children`, { name: newName('child'), ...body })
    expect(said(await child({})), 'the parent has a budget').toEqual([409, 'budget_not_available'])
    expect(said(await child({ monthly_budget_inr: 11 }))).toEqual([409, 'budget_not_available'])
    expect(said(await child({ monthly_budget_inr: 4, allowed_models: ['test-model'] }))).toEqual(forbidden)
    expect(said(await child({ monthly_budget_inr: 4, name: parent.name }))).toEqual([409, 'agent_name_taken'])
    const made = await child({ monthly_budget_inr: 4 })
    expect([made.status, made.json]).toMatchObject([
      201,
      { parent_id: parent.id, depth: 1, monthly_budget_inr: 4, owner_uid: ann.userId, created_by: { kind: 'person', id: ann.userId } },
    ])
    const deep = (await as(ann)('POST', `/${made.json.id}/children`, { name: newName(), monthly_budget_inr: 1 })).json
    const family = (await as(bob)('GET', `/${made.json.id}`)).json
    expect(family).toMatchObject({
      active_children: 1,
      parents: [{ id: parent.id, monthly_budget_inr: 10 }],
      children: [{ id: deep.id, monthly_budget_inr: 1 }],
    })
    expect(
      (await as(ann)('GET', `/${deep.id}`)).json.parents.map((each: { id: number }) => each.id),
      'nearest first',
    ).toEqual([made.json.id, parent.id])
    await as(ann)('POST', `/${parent.id}/revoke`)
    expect((await as(ann)('GET', `/${deep.id}`)).json.status).toBe('revoked')
    expect(said(await child({ monthly_budget_inr: 1 }))).toEqual([409, 'agent_revoked'])
  })

  test('only owners and admins give an agent another owner. The new owner gets every right over it, and the former one loses them', async () => {
    const { id, name } = await make(ann)
    expect(said(await as(ann)('PATCH', `/${id}`, { owner_uid: bob.userId }))).toEqual(forbidden)
    const there = await app.otherOrg(newName('Org'))
    expect(said(await as(admin)('PATCH', `/${id}`, { owner_uid: there.userId })), 'no member here').toEqual([400, 'bad_request'])
    await as(ann)('POST', `/${id}/budget`, { monthly_budget_inr: 100 })
    const [ofAnn, ofBob] = [(await keyOf(ann, { scope: 'inference' })).key, (await keyOf(bob, { scope: 'inference' })).key]
    const charged = async (token: string) => {
      expect((await chat(token, { 'x-br-agent-id': name })).status).toBe(200)
      return (await usageRows(app))[0]?.agentId
    }
    expect([await charged(ofAnn), await charged(ofBob)]).toEqual([id, null])
    expect((await as(admin)('PATCH', `/${id}`, { owner_uid: bob.userId, max_output_tokens: 60 })).json).toMatchObject({
      owner_uid: bob.userId,
      max_output_tokens: 60,
    })
    expect(said(await as(ann)('POST', `/${id}/pause`))).toEqual(forbidden)
    expect((await as(bob)('POST', `/${id}/budget`, { monthly_budget_inr: 120 })).json.monthly_budget_inr).toBe(120)
    expect([await charged(ofAnn), await charged(ofBob)], 'labels follow the owner').toEqual([null, id])
    expect((await app.call('GET', `/v1/me/agents/${id}`)).json).toMatchObject({ owner_uid: bob.userId, created_by: { kind: 'person', id: ann.userId } })
  })
})
