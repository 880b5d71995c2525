/** whoami, budget_get and usage_get. They return the figures of the HTTP endpoints as text for a model. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, until } from '../harness/app.ts'
import { mcpClients } from './mcp-clients.ts'

let app: TestApp
let agent: { id: number; token: string }
beforeAll(async () => {
  app = await startApp()
  agent = await app.newAgent('counting')
  const chat = (token: string, model: string, headers: Record<string, string> = {}) =>
    app.call('POST', '/v1/chat/completions', { model, messages: [{ role: 'user', content: 'Hello' }] }, { token, headers })
  await chat(app.key, 'test-model')
  await chat(agent.token, 'alpha-only')
  await chat(agent.token, 'alpha-only')
  await chat(app.key, 'alpha-only', { 'x-br-agent-id': 'Some Label' })
  await app.gateway.app.limits.flushNow()
})
afterAll(() => app.stop())
const clients = mcpClients(() => app)
afterEach(() => clients.closeAll())

describe.each(clients.eras)('in the %s', (_era, connect) => {
  test('MCP-07 usage_get has the numbers of GET /v1/usage: in total, by model, by agent and by day', async () => {
    const client = await connect()
    const { json } = await app.call('GET', '/v1/usage')
    const whole = await client.call('usage_get')
    expect(whole.data).toEqual(json)
    expect(json.totals.requests).toBe(4)
    expect((await client.call('usage_get', { group_by: 'model' })).data).toEqual({
      from: json.from,
      to: json.to,
      totals: json.totals,
      group_by: 'model',
      rows: json.by_model,
    })
    expect((await client.call('usage_get', { group_by: 'agent' })).data.rows).toEqual(json.by_agent)
    const days = (await client.call('usage_get', { group_by: 'day' })).data
    expect(days.rows).toEqual((await app.call('GET', '/v1/usage?group_by=day')).json.by_day)
    expect(days.rows).toEqual([{ day: json.to, ...json.totals }])
    expect(whole.text).toMatch(/^\d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d: 4 requests · \d+ tokens \(\d+ in, \d+ out\) · ₹\S+ charged/)
    expect(whole.text).toContain('- alpha-only: 3 requests')
    expect(whole.text).toContain(`- agent "counting" (id ${agent.id}): 2 requests`)
    expect(whole.text).toContain('- label "Some Label": 1 request ')
  })

  test('usage_get can report one agent, by id, name or label. It says when the agent is unknown, and a period without usage is empty', async () => {
    const client = await connect()
    const mine = (await app.call('GET', '/v1/usage')).json.by_agent.find(({ id }: { id: number }) => id === agent.id)
    for (const name of [agent.id, String(agent.id), 'counting', 'COUNTING']) {
      const { data } = await client.call('usage_get', { agent: name })
      expect(data.rows).toEqual([mine])
      expect(data.totals).toMatchObject({ requests: 2, total_tokens: mine.total_tokens, cost_uinr: mine.cost_uinr })
    }
    expect((await client.call('usage_get', { agent: 'some label' })).data.totals.requests).toBe(1)
    const nobody = await client.call('usage_get', { agent: 'nobody' })
    expect(nobody.data).toMatchObject({ rows: [], totals: { requests: 0, cost_inr: 0 } })
    expect(nobody.text).toContain('Nothing by the agent nobody')
    expect((await client.call('usage_get', { agent: 'counting', group_by: 'day' })).data).toMatchObject({ code: 'bad_request' })
    expect((await client.call('usage_get', { from: '2020-01-01', to: '2020-01-31', group_by: 'day' })).data).toMatchObject({
      rows: [],
      totals: { requests: 0 },
    })
    for (const wrong of [{ from: 'yesterday' }, { from: '2020-02-31' }, { from: '2020-02-02', to: '2020-01-01' }])
      expect((await client.call('usage_get', wrong)).data).toMatchObject({ code: 'bad_request', status: 400 })
  })

  test('budget_get shows the budgets of GET /v1/me/budgets as lines, all budgets or those of one scope', async () => {
    await app.setBudget('agent', agent.id, 50)
    await app.setBudget('org', app.orgId, 1000)
    const client = await connect(agent.token)
    await until(async () => (await client.call('budget_get')).data.budgets.length === 2)
    const { json } = await app.call('GET', '/v1/me/budgets', undefined, { token: agent.token })
    const reply = await client.call('budget_get')
    expect(reply.data).toEqual(json)
    expect(reply.text).toMatch(new RegExp(`^agent ${agent.id}: ₹\\S+ of ₹50\\.00 left \\(₹\\S+ spent.*\\); starts again \\d{4}-.*\\norg `))
    expect((await client.call('budget_get', { scope: 'org' })).data.budgets).toMatchObject([
      { scope: 'org', cap_inr: 1000, remaining_inr: expect.any(Number), resets_at: expect.any(String) },
    ])
    const none = await client.call('budget_get', { scope: 'workspace' })
    expect([none.data.budgets, none.text]).toEqual([[], 'No budget of the scope workspace binds this credential.'])
    const other = await app.otherOrg(`Budgets ${_era}`)
    expect((await (await connect(other.key)).call('budget_get')).text).toBe('No budget binds this credential.')
  })

  test('whoami returns GET /v1/me/whoami with the tightest budget, for keys and agents', async () => {
    await app.setBudget('agent', agent.id, 50)
    await app.setBudget('org', app.orgId, 1000)
    const client = await connect(agent.token)
    await until(async () => (await client.call('whoami')).data.budget?.scope === 'agent')
    const { scopes, ...me } = (await client.call('whoami')).data
    const { json } = await app.call('GET', '/v1/me/whoami', undefined, { token: agent.token })
    expect(me).toEqual(json)
    expect(scopes).toEqual(['inference', 'memory:read', 'memory:write', 'usage:read', 'tools:call'])
    expect(me).toMatchObject({
      principal: { kind: 'agent', id: agent.id, name: 'counting' },
      org: { id: app.orgId },
      budget: { scope: 'agent', cap_inr: 50, remaining_inr: expect.any(Number) },
      memory: { configured: false },
      token_expires_at: expect.stringMatching(/^\d{4}-/),
    })
    const { text } = await client.call('whoami')
    expect(text).toMatch(new RegExp(`^agent "counting" \\(id ${agent.id}\\), minted with the key `))
    expect(text).toContain('shared memory is not configured')
    expect(text).toContain('tightest budget: agent')
    const key = await (await connect()).call('whoami')
    expect(key.data).toMatchObject({
      principal: { kind: 'key', id: app.keyId },
      scope: 'full',
      scopes: ['full'],
      budget: { scope: 'org' },
      token_expires_at: null,
    })
  })
})
