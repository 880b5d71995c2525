import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp, type TestReply } from '../harness/app.ts'

const noRules = {
  allowed_models: null,
  allowed_providers: null,
  max_cost_inr_per_call: null,
  max_output_tokens: null,
  max_concurrency: null,
  tpm_limit: null,
  allowed_tools: null,
  run: null,
}
const allRules = {
  allowed_models: ['alpha-only', 'auto'],
  allowed_providers: ['alpha'],
  max_cost_inr_per_call: 0.25,
  max_output_tokens: 100,
  max_concurrency: 3,
  tpm_limit: 5000,
  allowed_tools: ['crm__*', 'git__list-issues'],
}

describe('rules of agents over HTTP', () => {
  let app: TestApp
  let made = 0
  beforeAll(async () => {
    app = await startApp()
  })
  afterAll(() => app.stop())
  beforeEach(() => app.alpha.reset())

  const create = (body: object, token = app.key) => app.call('POST', '/v1/me/agents', body, { token })
  const patch = (id: number | string, body: unknown, token = app.key) => app.call('PATCH', `/v1/me/agents/${id}`, body, { token })
  const list = async (query = '', token = app.key) => (await app.call('GET', `/v1/me/agents${query}`, undefined, { token })).json
  const listed = async (id: number) => (await list()).agents.find((agent: { id: number }) => agent.id === id)
  const chat = (token: string, headers: Record<string, string> = {}) =>
    app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 200 }, { token, headers })
  const said = ({ status, json }: TestReply) => [status, json?.error?.code]
  const newName = (): string => `ruled ${made++}`

  test('a new agent gets the rules of the request, and every list shows them', async () => {
    const plain = await create({ name: newName() })
    expect([plain.status, plain.json]).toEqual([201, expect.objectContaining({ ...noRules, may_delegate: false })])
    const ruled = await create({ name: newName(), ...allRules, may_delegate: true })
    expect([ruled.status, ruled.json]).toEqual([201, expect.objectContaining({ ...allRules, may_delegate: true })])
    expect(await listed(ruled.json.id)).toMatchObject(allRules)
  })

  test('a second create of an agent sets the given fields and leaves the other fields unchanged', async () => {
    const name = newName()
    const { id } = (await create({ name, ...allRules })).json
    const same = await create({ name })
    expect([same.status, same.json]).toEqual([200, expect.objectContaining({ id, ...allRules, may_delegate: false })])
    const changed = await create({ name, max_output_tokens: 7, allowed_models: null, may_delegate: true })
    expect([changed.status, changed.json]).toEqual([
      200,
      expect.objectContaining({ id, ...allRules, max_output_tokens: 7, allowed_models: null, may_delegate: true }),
    ])
    expect(await listed(id)).toEqual(changed.json)
  })

  test('PATCH changes only the named fields, null removes a rule, and an empty body changes nothing', async () => {
    const { id } = (await create({ name: newName() })).json
    expect((await patch(id, allRules)).json).toMatchObject({ id, ...allRules })
    expect((await patch(id, {})).json).toMatchObject(allRules)
    expect((await patch(id, { max_concurrency: 9, may_delegate: true })).json).toMatchObject({ ...allRules, max_concurrency: 9, may_delegate: true })
    for (const rule of Object.keys(noRules)) expect((await patch(id, { [rule]: null })).json).toMatchObject({ [rule]: null })
    expect(await listed(id)).toMatchObject({ ...noRules, may_delegate: true })
  })

  test('a new rule applies to the next call of every credential of the agent, and so does its removal', async () => {
    const name = newName()
    const { id, token } = await app.newAgent(name)
    const ways: (() => Promise<TestReply>)[] = [
      () => chat(token),
      () => chat(app.key, { 'x-br-agent-id': name }),
      () => chat(app.key, { 'x-br-agent-id': String(id) }),
    ]
    for (const way of ways) {
      expect((await way()).status).toBe(200)
      await patch(id, { max_output_tokens: 100 })
      expect(said(await way())).toEqual([403, 'call_cap_exceeded'])
      await create({ name, max_output_tokens: 300 })
      expect((await way()).status).toBe(200)
      await patch(id, { max_output_tokens: null })
    }
    expect((await chat(app.key)).status).toBe(200)
  })

  test('an invalid rule is refused with 400 bad_request and changes nothing', async () => {
    const { id } = (await create({ name: newName(), ...allRules })).json
    const wrong = [
      { max_concurrency: 0 },
      { max_concurrency: 1.5 },
      { max_concurrency: '3' },
      { max_output_tokens: -1 },
      { max_output_tokens: 2 ** 31 },
      { max_cost_inr_per_call: 0 },
      { max_cost_inr_per_call: -1 },
      { max_cost_inr_per_call: 1e-7 },
      { max_cost_inr_per_call: 1e300 },
      { max_cost_inr_per_call: '5' },
      { allowed_models: [] },
      { allowed_models: 'alpha-only' },
      { allowed_models: [''] },
      { allowed_providers: [5] },
      { allowed_providers: Array.from({ length: 101 }, (_, i) => `p${i}`) },
      { may_delegate: null },
    ]
    for (const body of wrong) {
      expect(said(await patch(id, { max_concurrency: 9, ...body })), JSON.stringify(body)).toEqual([400, 'bad_request'])
      expect(said(await create({ name: newName(), ...body })), JSON.stringify(body)).toEqual([400, 'bad_request'])
    }
    expect(await listed(id)).toMatchObject(allRules)
  })

  test('only a full key of the organisation sets rules. An agent token gets 403, a key of another organisation 404, and a revoked agent 409', async () => {
    const { id, token } = await app.newAgent(newName())
    expect(said(await patch(id, { max_concurrency: 100 }, token))).toEqual([403, 'forbidden'])
    const inference = await app.newKey({ scope: 'inference' })
    expect(said(await patch(id, { max_concurrency: 100 }, inference.key))).toEqual([403, 'forbidden'])
    const stranger = await app.otherOrg('Rule Strangers')
    expect(said(await patch(id, { max_concurrency: 100 }, stranger.key))).toEqual([404, 'not_found'])
    for (const none of ['0', 'x', '2147483648']) expect(said(await patch(none, {}))).toEqual([404, 'not_found'])
    await app.call('POST', `/v1/me/agents/${id}/revoke`, {})
    expect(said(await patch(id, { max_concurrency: 100 }))).toEqual([409, 'agent_revoked'])
  })

  test('the pages of a list contain every agent once, active agents first, and the newest first within each group', async () => {
    const { key } = await app.otherOrg('Many Agents')
    expect(await list('', key)).toEqual({ agents: [] })
    expect(await list('?limit=5', key)).toEqual({ agents: [], next_cursor: null, total_estimate: 0 })
    const ids: number[] = []
    for (let i = 0; i < 7; i++) ids.push((await create({ name: `agent ${i}` }, key)).json.id)
    for (const i of [1, 4]) await app.call('POST', `/v1/me/agents/${ids[i]}/revoke`, {}, { token: key })
    const order = [6, 5, 3, 2, 0, 4, 1].map(i => ids[i])
    const whole = await list('', key)
    expect(whole.agents.map((agent: { id: number }) => agent.id)).toEqual(order)
    expect(whole).not.toHaveProperty('next_cursor')
    for (const limit of [1, 2, 3, 7, 200]) {
      const walked: unknown[] = []
      let cursor: string | null = ''
      while (cursor !== null) {
        const page: { agents: unknown[]; next_cursor: string | null } = await list(`?limit=${limit}${cursor === '' ? '' : `&cursor=${cursor}`}`, key)
        expect(page.agents.length).toBeLessThanOrEqual(limit)
        walked.push(...page.agents)
        cursor = page.next_cursor
      }
      expect(walked).toEqual(whole.agents)
    }
    for (const query of ['?limit=0', '?limit=201', '?limit=x', '?cursor=x', '?cursor=a', '?cursor=a0', '?cursor=b7'])
      expect(said(await app.call('GET', `/v1/me/agents${query}`, undefined, { token: key })), query).toEqual([400, 'bad_request'])
  })
})
