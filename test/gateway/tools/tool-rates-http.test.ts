import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startApp, type TestApp, type TestReply, until } from '../../harness/app.ts'
import { type McpFixture, startMcpFixture } from './mcp-server.ts'
import { register } from './registered.ts'

let app: TestApp
let server: McpFixture
let named = 0

beforeAll(async () => {
  server = await startMcpFixture('modern')
  app = await startApp({ env: { OUTBOUND_ALLOW: server.hostPort } })
  await register(app, 'mod', server.url, { price_inr_per_call: 2 })
})
afterAll(async () => {
  await app.stop()
  await server.close()
})

const call = (name: string, args: unknown, token: string): Promise<TestReply> => app.call('POST', `/v1/tools/${name}/call`, { arguments: args }, { token })
const said = ({ status, json }: TestReply) => [status, json?.error?.code]
async function agentWith(allowed_tools: readonly string[] | null, more: object = {}) {
  const agent = await app.newAgent(`caller ${named++}`)
  expect((await app.call('PATCH', `/v1/me/agents/${agent.id}`, { allowed_tools, ...more })).status).toBe(200)
  return agent
}

describe('the limits of calls of tools', () => {
  it('calls of tools have limits of a day and of a minute of their own, of the agent, the agents above it and the key, and models take nothing from them', async () => {
    const chat = (token: string) =>
      app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 10 }, { token })
    const echo = (token: string) => call('mod__echo', { text: 'a' }, token)
    const agent = await agentWith(['mod__*'], { may_delegate: true, tool_daily: 2 })
    const born = await app.call(
      'POST',
      `/v1/me/agents/${agent.id}/children`,
      { name: `child ${named++}`, allowed_tools: ['mod__*'], tool_daily: 2 },
      { token: agent.token },
    )
    expect((await echo(agent.token)).status).toBe(200)
    expect((await echo(born.json.access_token)).status).toBe(200)
    const before = server.calls.length
    for (const token of [agent.token, born.json.access_token]) {
      const refused = await echo(token)
      expect([...said(refused), refused.json.limit_name, refused.json.scope, refused.json.limit]).toEqual([
        429,
        'daily_limit_reached',
        'tool_daily',
        'agent',
        2,
      ])
    }
    expect(server.calls.length).toBe(before)
    expect((await chat(agent.token)).status).toBe(200)
    const wider = { name: `child ${named++}`, tool_daily: 3 }
    expect(said(await app.call('POST', `/v1/me/agents/${agent.id}/children`, wider, { token: agent.token }))).toEqual([403, 'forbidden'])
    expect((await app.call('PATCH', `/v1/me/agents/${agent.id}`, { tool_daily: 3, tool_rpm: null })).json).toMatchObject({ tool_daily: 3, tool_rpm: null })
    expect((await echo(agent.token)).status).toBe(200)
    const key = await app.newKey({ daily: 1 })
    const changed = await app.call('PATCH', `/me/keys/${key.keyId}`, { allowed_tools: ['mod__*'], tool_daily: 1 }, { cookie: await app.signIn() })
    expect(changed.json.key).toMatchObject({ tool_daily: 1, tool_rpm: null })
    expect([(await chat(key.key)).status, (await echo(key.key)).status]).toEqual([200, 200])
    expect([said(await chat(key.key)), said(await echo(key.key))]).toEqual(Array(2).fill([429, 'daily_limit_reached']))
    // A minute may end between two of these calls.
    const quick = await agentWith(['mod__*'], { tool_rpm: 2 })
    const replies = []
    for (let i = 0; i < 5; i++) replies.push(await echo(quick.token))
    const limited = replies.find(({ status }) => status !== 200)
    expect([limited?.status, limited?.json.error.code, limited?.json.limit_name]).toEqual([429, 'rate_limit_exceeded', 'tool_rpm'])
    for (const wrong of [0, -1, 1.5, 'x']) expect(said(await app.call('PATCH', `/v1/me/agents/${quick.id}`, { tool_rpm: wrong }))).toEqual([400, 'bad_request'])
  })

  it('a call that a budget refuses takes no unit of the limits of tools', async () => {
    const agent = await agentWith(['mod__*'], { tool_daily: 1 })
    await app.setBudget('agent', agent.id, 0.5)
    await until(async () => (await call('mod__echo', { text: 'a' }, agent.token)).json.error?.code === 'agent_budget_exceeded')
    await app.setBudget('agent', agent.id, null)
    await until(async () => (await call('mod__echo', { text: 'a' }, agent.token)).status === 200)
    expect(said(await call('mod__echo', { text: 'a' }, agent.token))).toEqual([429, 'daily_limit_reached'])
  })
})
