/** Bodies that protect something: a field that the row does not know is refused by name, and an amount of 0 lifts no limit. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'

let app: TestApp
let cookie: string
beforeAll(async () => {
  app = await startApp({ env: { OUTBOUND_ALLOW: 'localhost:9' } })
  cookie = await app.signIn()
})
afterAll(() => app.stop())

const byPerson = (method: string, path: string, body: unknown) => app.call(method, path, body, { cookie })
const byKey = (method: string, path: string, body: unknown) => app.call(method, path, body)

describe('unknown fields', () => {
  test('HARD-17 a field that a body of keys, budgets, agents, trust, webhooks, workspaces, members or settings does not know is 400 with its name, and nothing is changed', async () => {
    const { id: agentId, token: agentToken } = await app.newAgent('strict')
    const made = await byPerson('POST', '/me/keys', { name: 'strict key' })
    const hook = await byPerson('POST', '/me/webhooks', { url: 'http://localhost:9/hook' })
    const space = await byPerson('POST', '/me/workspaces', { name: 'Strict' })
    const member = await app.newMember('member')
    expect([made.status, hook.status, space.status]).toEqual([201, 201, 201])
    const trust = { name: 'ci', issuer: 'https://issuer.test', subject: 'repo:*', agent_id: agentId, key_id: made.json.id }
    const asAgent = (method: string, path: string, body: unknown) => app.call(method, path, body, { token: agentToken })
    const before = await app.dump()
    for (const [call, method, path, body] of [
      [byPerson, 'POST', '/me/keys', {}],
      [byPerson, 'PATCH', `/me/keys/${made.json.id}`, { rpm_limit: 1 }],
      [byPerson, 'POST', `/me/keys/${made.json.id}/rotate`, {}],
      [byPerson, 'POST', '/me/budgets', { scope: 'org', monthly_budget_inr: 5 }],
      [byKey, 'POST', '/v1/me/agents', { name: 'another' }],
      [byKey, 'PATCH', `/v1/me/agents/${agentId}`, { max_concurrency: 1 }],
      [byKey, 'POST', `/v1/me/agents/${agentId}/token`, {}],
      [byKey, 'POST', `/v1/me/agents/${agentId}/budget`, { monthly_budget_inr: 5 }],
      [asAgent, 'POST', `/v1/me/agents/${agentId}/children`, { name: 'child' }],
      [byPerson, 'POST', '/me/agent-trust', trust],
      [byPerson, 'POST', '/me/webhooks', { url: 'http://localhost:9/other' }],
      [byPerson, 'PATCH', `/me/webhooks/${hook.json.id}`, { enabled: false }],
      [byPerson, 'POST', '/me/workspaces', { name: 'Other' }],
      [byPerson, 'PATCH', `/me/workspaces/${space.json.id}`, { monthly_budget_inr: 5 }],
      [byPerson, 'POST', '/me/members', { email: 'new@strict.test', role: 'member' }],
      [byPerson, 'PATCH', `/me/members/${member.userId}`, { role: 'admin' }],
      [byPerson, 'PATCH', '/me/org', { name: 'Renamed' }],
      [byPerson, 'PUT', '/me/org/data-retention', { days: 1 }],
      [byPerson, 'PUT', '/me/org/key-inactivity', { days: 7 }],
      [byPerson, 'PUT', '/me/byok/alpha', { key: 'sk-x' }],
      [byPerson, 'POST', '/me/endpoints', { name: 'Own', model: 'test-model', base_url: 'http://localhost:9/v1', upstream_model: 'm' }],
    ] as const) {
      const reply = await call(method, path, { ...body, expires_in_days: -1, monthly_limit: 10 })
      expect([reply.status, reply.json.error?.code], `${method} ${path}`).toEqual([400, 'bad_request'])
      expect(reply.json.error.message, `${method} ${path}`).toContain('"expires_in_days", "monthly_limit" are unknown here.')
    }
    const without = (dump: string): string[] =>
      dump.split('\n').filter(line => /agents|api_keys|webhook_endpoints|workspaces|budgets|agent_trust|org_members/.test(line.slice(0, 40)))
    expect(without(await app.dump())).toEqual(without(before))
  })

  test('HARD-17 odd values for the life and the limits of a key are refused by name, and each makes no key', async () => {
    const names = async () => (await app.call('GET', '/me/keys', undefined, { cookie })).json.keys.length
    const count = await names()
    for (const body of [
      { expires_in_days: -1 },
      { expires_in_days: 30 },
      { expires_at: '2027-01-01' },
      { expiresDays: 30 },
      { ttl: 60 },
      { monthly_budget_inr: 5 },
      { budget: 5 },
      { rate_limit: 1 },
      { rpm: 1 },
      { models: ['test-model'] },
      { scopes: ['inference'] },
      { enabled: false },
      { __proto__x: 1 },
    ]) {
      const reply = await byPerson('POST', '/me/keys', body)
      expect(reply.status, JSON.stringify(body)).toBe(400)
      expect(reply.json.error.message).toContain(`The field "${Object.keys(body)[0]}" is unknown here. This endpoint takes name, expires_days, `)
    }
    for (const expires_days of [-1, 0, 366, 1.5, '30', true, []])
      expect((await byPerson('POST', '/me/keys', { expires_days })).json.error.message, JSON.stringify(expires_days)).toContain('"expires_days"')
    expect(await names()).toBe(count)
  })
})

describe('a budget of 0', () => {
  test('EDGE-24 a budget of 0 is 400 that names null and how to stop calls, and what was limited stays limited', async () => {
    const { id: agentId } = await app.newAgent('zero')
    const made = await byPerson('POST', '/me/keys', { name: 'zero key', budget_inr: 5 })
    const space = await byPerson('POST', '/me/workspaces', { name: 'Zero', monthly_budget_inr: 6 })
    await byPerson('POST', '/me/budgets', { scope: 'agent', target_id: agentId, monthly_budget_inr: 7 })
    await byPerson('POST', '/me/budgets', { scope: 'org', monthly_budget_inr: 8 })
    for (const [method, path, body, stop] of [
      ['POST', '/me/keys', { budget_inr: 0 }, 'disable the key'],
      ['PATCH', `/me/keys/${made.json.id}`, { budget_inr: 0 }, 'disable the key'],
      ['PATCH', `/me/keys/${made.json.id}`, { budget_inr: 1e-9 }, 'disable the key'],
      ['POST', '/me/workspaces', { name: 'Zero too', monthly_budget_inr: 0 }, 'disable the keys'],
      ['PATCH', `/me/workspaces/${space.json.id}`, { monthly_budget_inr: 0 }, 'disable the keys'],
      ['POST', '/me/budgets', { scope: 'org', monthly_budget_inr: 0 }, 'disable its keys'],
      ['POST', '/me/budgets', { scope: 'key', target_id: made.json.id, monthly_budget_inr: 0 }, 'disable the key'],
      ['POST', '/me/budgets', { scope: 'workspace', target_id: space.json.id, monthly_budget_inr: 0 }, 'disable the keys'],
      ['POST', '/me/budgets', { scope: 'member', target_id: app.userId, monthly_budget_inr: 0 }, 'disable the member'],
      ['POST', '/me/budgets', { scope: 'agent', target_id: agentId, monthly_budget_inr: 0 }, 'pause the agent'],
    ] as const) {
      const reply = await byPerson(method, path, body)
      expect([reply.status, reply.json.error?.code], `${method} ${path} ${JSON.stringify(body)}`).toEqual([400, 'bad_request'])
      expect(reply.json.error.message).toContain('Send null for no limit. To stop calls altogether, ')
      expect(reply.json.error.message).toContain(stop)
    }
    const caps = Object.fromEntries(
      (await app.call('GET', '/me/budgets', undefined, { cookie })).json.budgets.map((row: { scope: string; id: string; cap_inr: number }) => [
        `${row.scope}:${row.id}`,
        row.cap_inr,
      ]),
    )
    expect(caps).toMatchObject({ [`key:${made.json.id}`]: 5, [`workspace:${space.json.id}`]: 6, [`agent:${agentId}`]: 7, [`org:${app.orgId}`]: 8 })
    for (const [scope, id] of [
      ['key', made.json.id],
      ['workspace', space.json.id],
      ['agent', agentId],
      ['org', null],
    ])
      expect((await byPerson('POST', '/me/budgets', { scope, target_id: id, monthly_budget_inr: null })).json, scope).toMatchObject({
        ok: true,
        budget: { cap_inr: null },
      })
  })

  test('EDGE-24 a child of an agent with a budget of 0 is not made', async () => {
    const parent = await byKey('POST', '/v1/me/agents', { name: 'zero parent', may_delegate: true })
    const { json: minted } = await byKey('POST', `/v1/me/agents/${parent.json.id}/token`, {})
    const reply = await app.call(
      'POST',
      `/v1/me/agents/${parent.json.id}/children`,
      { name: 'zero child', monthly_budget_inr: 0 },
      { token: minted.access_token },
    )
    expect([reply.status, reply.json.error.message]).toEqual([
      400,
      expect.stringContaining('Send null for no limit. To stop calls altogether, pause the child'),
    ])
    expect((await byKey('GET', '/v1/me/agents', undefined)).text).not.toContain('zero child')
  })
})
