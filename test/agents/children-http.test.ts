import { decodeJwt } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../src/platform/db.ts'
import { startApp, type TestApp, type TestReply } from '../harness/app.ts'

const everything = 'inference memory:read memory:write usage:read'
const manyChildren = statement<[orgId: number, parentId: number, count: number]>(
  'test.many_children',
  `insert into agents (org_id, name, created_at, parent_id, depth)
   select $1::int, 'one of many ' || n, now(), $2::int, 1 from generate_series(1, $3::int) as n`,
)

interface Made {
  readonly id: number
  readonly token: string
}

describe('children of agents over HTTP', () => {
  let app: TestApp
  let made = 0
  beforeAll(async () => {
    app = await startApp({ env: { FOLDER_STORE: 'on' } })
    await app.gateway.app.memory.useFolder(app.orgId)
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })

  const said = ({ status, json }: TestReply) => [status, json?.error?.code]
  const newName = (word = 'agent'): string => `${word} ${made++}`
  const budget = (id: number, inr: number | null, token = app.key) => app.call('POST', `/v1/me/agents/${id}/budget`, { monthly_budget_inr: inr }, { token })
  const patch = (id: number, body: object) => app.call('PATCH', `/v1/me/agents/${id}`, body)
  const revoke = (id: number, token = app.key) => app.call('POST', `/v1/me/agents/${id}/revoke`, {}, { token })
  const mint = async (id: number, body: object = {}, token = app.key): Promise<string> =>
    (await app.call('POST', `/v1/me/agents/${id}/token`, body, { token })).json.access_token
  const listed = async (id: number) => (await app.call('GET', '/v1/me/agents')).json.agents.find((agent: { id: number }) => agent.id === id)
  const child = (parent: Made, body: object = {}) => app.call('POST', `/v1/me/agents/${parent.id}/children`, { name: newName('child'), ...body }, { token: parent.token })
  const chat = (token: string, body: object = {}, headers: Record<string, string> = {}) =>
    app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: 'Hello there' }], max_tokens: 50, ...body }, { token, headers })

  /** An agent of a full key that may make children. */
  async function lead(body: object = {}, monthlyInr: number | null = null): Promise<Made> {
    const { id } = (await app.call('POST', '/v1/me/agents', { name: newName('lead'), may_delegate: true, ...body })).json
    if (monthlyInr !== null) await budget(id, monthlyInr)
    return { id, token: await mint(id) }
  }
  /** A child that was made, as its parent got it. */
  async function born(parent: Made, body: object = {}): Promise<Made> {
    const reply = await child(parent, body)
    expect(reply.status, reply.text).toBe(201)
    return { id: reply.json.agent.id, token: reply.json.access_token }
  }

  test('an agent that may delegate makes a child by its own token and gets the agent and a token for it', async () => {
    const parent = await lead()
    const name = newName('helper')
    const reply = await child(parent, { name })
    expect(reply.status).toBe(201)
    expect(reply.headers.get('cache-control')).toBe('no-store')
    const { agent, access_token: token, ...rest } = reply.json
    expect(agent).toMatchObject({ name, status: 'active', parent_id: parent.id, depth: 1, may_delegate: false, monthly_budget_inr: null, spend_month_inr: 0 })
    expect(rest).toMatchObject({ token, token_type: 'Bearer', expires_in: 900, agent_id: agent.id, scope: everything })
    expect(decodeJwt(token)).toMatchObject({ sub: `agent:${agent.id}`, act: { sub: `agent:${parent.id}` }, agent: { ancestors: [parent.id] } })
    expect((await chat(token)).status).toBe(200)
    expect(await listed(agent.id)).toMatchObject({ parent_id: parent.id, depth: 1 })
  })
})
