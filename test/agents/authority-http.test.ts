/** What members, owners of agents and admins may change in an agent, with keys and at the console. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp, type TestMember, type TestReply } from '../harness/app.ts'
import { newName, said } from './family.ts'

type Call = (method: string, path: string, body?: unknown) => Promise<TestReply>

describe('who may loosen an agent', () => {
  let app: TestApp
  let admin: Call
  let member: Call
  let colleague: Call
  let adminPerson: TestMember
  let memberPerson: TestMember
  beforeAll(async () => {
    app = await startApp()
    const keyed = async (role: 'member' | 'admin'): Promise<[TestMember, Call]> => {
      const person = await app.newMember(role)
      const { key } = (await app.call('POST', '/me/keys', { name: newName('key') }, { cookie: person.cookie })).json
      return [person, (method, path, body) => app.call(method, path, body, { token: key })]
    }
    ;[adminPerson, admin] = await keyed('admin')
    ;[memberPerson, member] = await keyed('member')
    ;[, colleague] = await keyed('member')
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })

  const made = async (by: Call, params: object = {}): Promise<number> => (await by('POST', '/v1/me/agents', { name: newName('ruled'), ...params })).json.id
  const budget = (by: Call, id: number, inr: number | null) => by('POST', `/v1/me/agents/${id}/budget`, { monthly_budget_inr: inr })
  const patch = (by: Call, id: number, body: object) => by('PATCH', `/v1/me/agents/${id}`, body)
  const listed = async (id: number) => (await app.call('GET', '/v1/me/agents')).json.agents.find((agent: { id: number }) => agent.id === id)
  const forbidden = [403, 'forbidden']
  const strict = {
    allowed_models: ['alpha-only'],
    max_cost_inr_per_call: 2,
    max_output_tokens: 100,
    max_concurrency: 2,
    may_delegate: false,
    run: { max_calls: 5 },
  }
  const looser = [
    { allowed_models: null },
    { allowed_models: ['alpha-only', 'test-model'] },
    { max_cost_inr_per_call: 3 },
    { max_cost_inr_per_call: null },
    { max_output_tokens: 101 },
    { max_concurrency: null },
    { run: { max_calls: 6 } },
    { run: { max_calls: null } },
    { run: null },
    { may_delegate: true },
  ]

  test("HARD-09 a member's key can lower the budget and tighten the rules of an admin's agent, but cannot remove a limit, raise the budget, resume the agent or end it", async () => {
    const id = await made(admin, strict)
    expect((await budget(admin, id, 10)).status).toBe(200)
    const { name } = await listed(id)
    for (const by of [member, colleague]) {
      for (const inr of [null, 0, 10.01]) expect(said(await budget(by, id, inr)), String(inr)).toEqual(forbidden)
      for (const params of looser) {
        expect(said(await patch(by, id, params)), JSON.stringify(params)).toEqual(forbidden)
        expect(said(await by('POST', '/v1/me/agents', { name, ...params })), `again ${JSON.stringify(params)}`).toEqual(forbidden)
      }
      expect(said(await by('POST', `/v1/me/agents/${id}/revoke`))).toEqual(forbidden)
    }
    expect(await listed(id)).toMatchObject({ status: 'active', monthly_budget_inr: 10, ...strict })
    expect((await budget(member, id, 9)).json).toMatchObject({ ok: true, monthly_budget_inr: 9 })
    expect((await patch(member, id, { max_output_tokens: 50, max_concurrency: 1 })).json).toMatchObject({ max_output_tokens: 50, max_concurrency: 1 })
    // When a member tightens a limit that an admin set, only admins can loosen it again.
    expect(said(await budget(member, id, 10))).toEqual(forbidden)
    expect((await member('POST', `/v1/me/agents/${id}/pause`)).json.status).toBe('paused')
    expect(said(await member('POST', `/v1/me/agents/${id}/resume`))).toEqual(forbidden)
    expect((await admin('POST', `/v1/me/agents/${id}/resume`)).json.status).toBe('active')
    expect((await budget(admin, id, null)).json.monthly_budget_inr).toBeNull()
    expect((await patch(admin, id, { allowed_models: null, may_delegate: true })).json).toMatchObject({ allowed_models: null, may_delegate: true })
    expect((await admin('POST', `/v1/me/agents/${id}/revoke`)).json.status).toBe('revoked')
  })

  test('HARD-09 a member can loosen and end their own agent, except for limits that an admin set with a key or at the console', async () => {
    const id = await made(member, { max_output_tokens: 100 })
    await budget(member, id, 10)
    expect((await budget(member, id, 20)).status).toBe(200)
    expect((await patch(member, id, { max_output_tokens: 200, max_concurrency: 5 })).status).toBe(200)
    for (const by of [colleague]) {
      expect(said(await budget(by, id, 21))).toEqual(forbidden)
      expect(said(await patch(by, id, { max_output_tokens: null }))).toEqual(forbidden)
      expect(said(await by('POST', `/v1/me/agents/${id}/revoke`))).toEqual(forbidden)
    }
    // A limit that an admin sets binds the owner, whether the admin uses the console or a key.
    const console_ = await app.call('POST', '/me/budgets', { scope: 'agent', target_id: id, monthly_budget_inr: 15 }, { cookie: adminPerson.cookie })
    expect(console_.status).toBe(200)
    const refused = await budget(member, id, 16)
    expect([...said(refused), refused.json.error.message]).toEqual([403, 'forbidden', expect.stringContaining('budget of agent')])
    expect(said(await budget(member, id, null))).toEqual(forbidden)
    expect(said(await app.call('POST', '/me/budgets', { scope: 'agent', target_id: id, monthly_budget_inr: 16 }, { cookie: memberPerson.cookie }))).toEqual(
      forbidden,
    )
    expect((await budget(member, id, 5)).status, 'tightening').toBe(200)
    expect((await patch(admin, id, { max_output_tokens: 150 })).status).toBe(200)
    expect(said(await patch(member, id, { max_output_tokens: 151 }))).toEqual(forbidden)
    expect((await patch(member, id, { max_concurrency: null })).status, 'what no admin set is still theirs').toBe(200)
    // After an admin removes a limit, the owner may set it again.
    expect((await patch(admin, id, { max_output_tokens: null })).status).toBe(200)
    expect((await patch(member, id, { max_output_tokens: 300 })).status).toBe(200)
    expect((await patch(member, id, { max_output_tokens: 400 })).status).toBe(200)
    expect((await admin('POST', `/v1/me/agents/${id}/pause`)).status).toBe(200)
    expect(said(await member('POST', `/v1/me/agents/${id}/resume`))).toEqual(forbidden)
    expect((await admin('POST', `/v1/me/agents/${id}/resume`)).status).toBe(200)
    expect((await member('POST', `/v1/me/agents/${id}/pause`)).status).toBe(200)
    expect(said(await colleague('POST', `/v1/me/agents/${id}/resume`))).toEqual(forbidden)
    expect((await member('POST', `/v1/me/agents/${id}/resume`)).status).toBe(200)
    expect(said(await member('POST', `/v1/me/agents/${id}/revoke`)), "the budget is still an admin's").toEqual(forbidden)
    expect((await budget(admin, id, null)).status).toBe(200)
    expect((await member('POST', `/v1/me/agents/${id}/revoke`)).json.status).toBe('revoked')
  })

  test("HARD-09 a member cannot revoke an agent that an admin paused or limited. Revoking its parent, or revoking it with its parent's token, fails too, so its name stays taken", async () => {
    const paused = await made(member)
    expect((await admin('POST', `/v1/me/agents/${paused}/pause`)).status).toBe(200)
    const refused = await member('POST', `/v1/me/agents/${paused}/revoke`)
    expect([...said(refused), refused.json.error.message]).toEqual([403, 'forbidden', expect.stringContaining(`POST /v1/me/agents/${paused}/pause`)])
    expect((await admin('POST', `/v1/me/agents/${paused}/resume`)).status).toBe(200)
    const limited = await made(member, { may_delegate: true })
    const { access_token: token } = (await member('POST', `/v1/me/agents/${limited}/token`, {})).json
    const asLead: Call = (method, path, body) => app.call(method, path, body, { token })
    const { agent } = (await asLead('POST', `/v1/me/agents/${limited}/children`, { name: newName('child') })).json
    expect((await patch(admin, agent.id, { max_output_tokens: 10 })).status).toBe(200)
    expect(said(await member('POST', `/v1/me/agents/${agent.id}/revoke`)), 'itself').toEqual(forbidden)
    expect(said(await member('POST', `/v1/me/agents/${limited}/revoke`)), 'with its parent').toEqual(forbidden)
    expect(said(await asLead('POST', `/v1/me/agents/${limited}/children/${agent.id}/revoke`)), 'by its parent').toEqual(forbidden)
    for (const id of [limited, agent.id, paused]) expect(await listed(id)).toMatchObject({ status: 'active' })
    expect((await patch(admin, agent.id, { max_output_tokens: null })).status).toBe(200)
    expect((await member('POST', `/v1/me/agents/${limited}/revoke`)).json.status).toBe('revoked')
    expect((await member('POST', `/v1/me/agents/${paused}/revoke`)).json.status).toBe('revoked')
  })

  test("HARD-09 with a token of another person's agent, a member can pause its children and lower their budgets, but cannot revoke or resume them or raise their budgets", async () => {
    const lead = await made(member, { may_delegate: true })
    const asLead = async (by: Call): Promise<Call> => {
      const { access_token: token } = (await by('POST', `/v1/me/agents/${lead}/token`, {})).json
      return (method, path, body) => app.call(method, path, body, { token })
    }
    const children = `/v1/me/agents/${lead}/children`
    const own = await asLead(member)
    const foreign = await asLead(colleague)
    const name = newName('child')
    const { agent } = (await own('POST', children, { name, monthly_budget_inr: 5 })).json
    const below = (by: Call, what: string) => by('POST', `${children}/${agent.id}/${what}`)
    const refused = await below(foreign, 'revoke')
    expect([...said(refused), refused.json.error.message]).toEqual([403, 'forbidden', expect.stringContaining('may pause an agent below it')])
    for (const monthly_budget_inr of [6, null]) expect(said(await foreign('POST', children, { name, monthly_budget_inr }))).toEqual(forbidden)
    expect((await foreign('POST', children, { name, monthly_budget_inr: 4 })).json.agent.monthly_budget_inr).toBe(4)
    expect((await below(foreign, 'pause')).json.status).toBe('paused')
    expect(said(await below(foreign, 'resume'))).toEqual(forbidden)
    expect((await below(await asLead(admin), 'resume')).json.status).toBe('active')
    // A child that a member creates with such a token belongs to that member. The person who created the parent also answers for every agent below
    // it.
    const { agent: theirs } = (await foreign('POST', children, { name: newName('child'), monthly_budget_inr: 5 })).json
    expect((await foreign('POST', `${children}/${theirs.id}/pause`)).status).toBe(200)
    expect((await foreign('POST', `${children}/${theirs.id}/resume`)).status).toBe(200)
    expect((await own('POST', `${children}/${theirs.id}/revoke`)).json.status).toBe('revoked')
    expect((await own('POST', children, { name, monthly_budget_inr: 6 })).json.agent.monthly_budget_inr).toBe(6)
    expect((await below(own, 'revoke')).json.status).toBe('revoked')
  })

  test('HARD-09 a parent cannot raise a budget of its child that an admin set, and a member has the rights of their present role', async () => {
    const leadId = await made(member, { may_delegate: false })
    expect((await patch(admin, leadId, { may_delegate: true })).status).toBe(200)
    const { access_token: token } = (await member('POST', `/v1/me/agents/${leadId}/token`, {})).json
    const asLead: Call = (method, path, body) => app.call(method, path, body, { token })
    const name = newName('child')
    const { agent } = (await asLead('POST', `/v1/me/agents/${leadId}/children`, { name, monthly_budget_inr: 5 })).json
    expect((await asLead('POST', `/v1/me/agents/${leadId}/children`, { name, monthly_budget_inr: 6 })).json.agent.monthly_budget_inr).toBe(6)
    expect((await budget(admin, agent.id, 4)).status).toBe(200)
    for (const monthly_budget_inr of [5, null])
      expect(said(await asLead('POST', `/v1/me/agents/${leadId}/children`, { name, monthly_budget_inr }))).toEqual(forbidden)
    expect((await asLead('POST', `/v1/me/agents/${leadId}/children`, { name, monthly_budget_inr: 3 })).json.agent.monthly_budget_inr).toBe(3)
    const owner = await app.signIn()
    expect((await app.call('PATCH', `/me/members/${memberPerson.userId}`, { role: 'admin' }, { cookie: owner })).status).toBe(200)
    expect((await budget(member, agent.id, 50)).status).toBe(200)
    await app.call('PATCH', `/me/members/${memberPerson.userId}`, { role: 'member' }, { cookie: owner })
    expect(said(await budget(member, agent.id, 60))).toEqual(forbidden)
  })
})
