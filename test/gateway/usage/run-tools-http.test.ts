/** Calls of tools in runs: which run they belong to, its caps and its end, over HTTP and over MCP. Also what a revoked agent ends. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp, type TestReply } from '../../harness/app.ts'
import { until } from '../../harness/until.ts'
import { type McpFixture, startMcpFixture } from '../tools/mcp-server.ts'
import { register } from '../tools/registered.ts'

const hello = [{ role: 'user', content: 'Hello there' }]
/** What a call costs on alpha, and what the tool costs. */
const chatInr = 0.00032
const toolInr = 2

describe('calls of tools in runs', () => {
  let app: TestApp
  let server: McpFixture
  let named = 0
  beforeAll(async () => {
    server = await startMcpFixture('modern')
    app = await startApp({ env: { OUTBOUND_ALLOW: server.hostPort } })
    await register(app, 'mod', server.url, { price_inr_per_call: toolInr })
  })
  afterAll(async () => {
    await app.stop()
    await server.close()
  })
  beforeEach(() => app.alpha.reset())

  interface Sent {
    readonly token?: string
    readonly headers?: Record<string, string>
    readonly body?: object
  }
  const inRun = (run: string | null, headers: Record<string, string> = {}) => ({ ...(run === null ? {} : { 'x-br-run-id': run }), ...headers })
  const chat = (run: string | null, { token = app.key, headers, body = {} }: Sent = {}) =>
    app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: hello, max_tokens: 5, ...body }, { token, headers: inRun(run, headers) })
  const tool = (run: string | null, { token = app.key, headers, name = 'echo' }: Sent & { name?: string } = {}) =>
    app.call('POST', `/v1/tools/mod__${name}/call`, { arguments: name === 'echo' ? { text: 'a' } : {} }, { token, headers: inRun(run, headers) })
  /** Calls a tool over MCP, in the era of `initialize` or without a session, and returns what a client reads. */
  const overMcp = async (run: string | null, { token = app.key, headers, meta, name = 'echo' }: Sent & { meta?: object; name?: string } = {}) => {
    const params = { name: `mod__${name}`, arguments: name === 'echo' ? { text: 'a' } : {}, ...(meta === undefined ? {} : { _meta: meta }) }
    const reply = await fetch(`${app.baseUrl}/mcp?toolsets=tools`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...inRun(run, headers),
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    })
    const text = await reply.text()
    const json = text.startsWith('{') ? JSON.parse(text) : JSON.parse(text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1))
    return { status: reply.status, isError: json.result?.isError === true, code: codeIn(json), text }
  }
  const said = ({ status, json }: TestReply) => [status, json?.error?.code ?? null]
  const newAgent = async (run: object | null = null, more: object = {}) => {
    const { json: agent } = await app.call('POST', '/v1/me/agents', {
      name: `tool runner ${named++}`,
      may_delegate: true,
      allowed_tools: ['mod__*'],
      run,
      ...more,
    })
    const token = (await app.call('POST', `/v1/me/agents/${agent.id}/token`, {})).json.access_token as string
    return { id: agent.id as number, token, owner: `?agent_id=${agent.id}` }
  }
  const show = async (run: string, owner: string) => (await app.call('GET', `/v1/me/runs/${run}${owner}`)).json
  const revoke = (id: number) => app.call('POST', `/v1/me/agents/${id}/revoke`)

  test('a call of a tool belongs to the run of its caller, by the same order of ids over HTTP and MCP, and counts in the sums of the run', async () => {
    const agent = await newAgent()
    const sent: readonly [id: string, headers: Record<string, string>][] = [
      ['own', { 'x-br-run-id': 'own', 'x-claude-code-session-id': 'cc', 'x-session-id': 'oc' }],
      ['of baggage', { baggage: 'br.run=of%20baggage', 'x-claude-code-session-id': 'cc' }],
      ['cc', { 'x-claude-code-session-id': 'cc', 'session-id': 'codex' }],
      ['codex', { 'session-id': 'codex', 'x-session-id': 'oc' }],
      ['oc', { 'x-session-id': 'oc' }],
    ]
    for (const [id, headers] of sent) {
      const direct = await tool(null, { token: agent.token, headers })
      expect([direct.status, direct.headers.get('x-br-run-id')], direct.text).toEqual([200, id])
      expect((await overMcp(null, { token: agent.token, headers })).isError).toBe(false)
    }
    expect((await overMcp(null, { token: agent.token, meta: { baggage: 'br.run=of-meta' } })).isError).toBe(false)
    expect((await tool(null, { token: agent.token })).headers.get('x-br-run-id')).toBeNull()
    for (const [id] of sent)
      expect(await show(encodeURIComponent(id), agent.owner), id).toMatchObject({ calls: 2, errors: 0, value_inr: 2 * toolInr, cost_inr: 0 })
    expect((await chat('own', { token: agent.token })).status).toBe(200)
    const own = await show('own', agent.owner)
    expect(own).toMatchObject({ calls: 3, by_agent: [{ agent_id: agent.id, calls: 3 }] })
    expect(own.by_model.map(({ model, calls }: { model: string; calls: number }) => [model, calls])).toEqual([
      ['mod__echo', 2],
      [own.by_model[1].model, 1],
    ])
    expect((await show('of-meta', agent.owner)).calls).toBe(1)
    // The claim of a token comes before every id, and another id is refused.
    const claimed = (await app.call('POST', `/v1/me/agents/${agent.id}/token`, { run: 'claimed' })).json.access_token
    expect((await tool(null, { token: claimed })).headers.get('x-br-run-id')).toBe('claimed')
    const calls = server.calls.length
    expect(said(await tool('other', { token: claimed }))).toEqual([400, 'bad_request'])
    expect(await overMcp('other', { token: claimed })).toMatchObject({ isError: true, code: 'bad_request' })
    expect(server.calls).toHaveLength(calls)
  })

  test('RUN-02 calls of models and of tools use up the same caps of a run: cost, calls, sub-agents, depth, and an id is required of both', async () => {
    const byCalls = await newAgent({ max_calls: 3 })
    expect((await chat('mixed', byCalls)).status).toBe(200)
    const second = await tool('mixed', byCalls)
    expect([second.status, second.headers.get('x-br-run-calls-remaining')], second.text).toEqual([200, '1'])
    expect((await overMcp('mixed', byCalls)).isError).toBe(false)
    const calls = server.calls.length
    const held = await tool('mixed', byCalls)
    expect([...said(held), held.headers.get('x-should-retry'), held.headers.get('x-br-run-id')]).toEqual([429, 'run_calls_exceeded', 'false', 'mixed'])
    expect(held.json).toMatchObject({ scope: 'run', run_id: 'mixed', cap: 3, spent: 3 })
    expect(await overMcp('mixed', byCalls)).toMatchObject({ isError: true, code: 'run_calls_exceeded' })
    expect(said(await chat('mixed', byCalls))).toEqual([429, 'run_calls_exceeded'])
    expect(await show('mixed', byCalls.owner)).toMatchObject({ state: 'held', calls: 3 })

    const byCost = await newAgent({ max_cost_inr: toolInr, strict: true })
    expect((await chat('rupees', byCost)).status).toBe(200)
    expect(said(await tool('rupees', byCost))).toEqual([429, 'run_budget_exceeded'])
    await app.call('PATCH', `/v1/me/runs/rupees${byCost.owner}`, { max_cost_inr: 2 * toolInr })
    const paid = await tool('rupees', byCost)
    expect([paid.status, Number(paid.headers.get('x-br-run-cost-inr'))]).toEqual([200, chatInr])
    expect(said(await tool('rupees', byCost))).toEqual([429, 'run_budget_exceeded'])

    const bySubagents = await newAgent({ max_subagents: 1, max_depth: 1 })
    const of = (name: string, parent?: string) => ({
      ...bySubagents,
      headers: { 'x-claude-code-agent-id': name, ...(parent === undefined ? {} : { 'x-claude-code-parent-agent-id': parent }) },
    })
    expect((await tool('family', of('one'))).status).toBe(200)
    expect(said(await tool('family', of('two')))).toEqual([429, 'run_subagents_exceeded'])
    expect(said(await chat('family', of('two')))).toEqual([429, 'run_subagents_exceeded'])
    const required = await newAgent({ required: true })
    expect(said(await tool(null, required))).toEqual([400, 'run_required'])
    expect(await overMcp(null, required)).toMatchObject({ isError: true, code: 'run_required' })
    expect((await tool('named', required)).status).toBe(200)
    // A call lowers the cap of its run.
    const plain = await newAgent()
    expect((await tool('lowered', { ...plain, headers: { 'x-br-run-max-calls': '1' } })).headers.get('x-br-run-calls-remaining')).toBe('0')
    expect(said(await tool('lowered', plain))).toEqual([429, 'run_calls_exceeded'])
    expect(server.calls.length - calls).toBe(4)
  })

  test('RUN-04 the end of a run and the revoke of its agent cut running calls of models and tools, and every later call of the run is 403 run_ended, also with another key', async () => {
    const byEnd = await newAgent()
    const byRevoke = await newAgent()
    const child = (
      await app.call('POST', `/v1/me/agents/${byRevoke.id}/children`, { name: `child ${named++}`, allowed_tools: ['mod__*'] }, { token: byRevoke.token })
    ).json
    await app.call('PATCH', `/me/keys/${app.keyId}`, { allowed_tools: ['mod__*'] }, { cookie: await app.signIn() })
    const label = (id: number) => ({ headers: { 'x-br-agent-id': String(id) } })
    for (const { agent, other, end } of [
      { agent: byEnd, other: byEnd.token, end: () => app.call('POST', `/v1/me/runs/job/end${byEnd.owner}`) },
      { agent: byRevoke, other: child.access_token as string, end: () => revoke(byRevoke.id) },
    ]) {
      const before = server.calls.length
      app.alpha.hold()
      const dialed = app.alpha.requests.length
      const running = [chat('job', label(agent.id)), tool('job', { ...label(agent.id), name: 'wait' })]
      const ofOther = [chat('job', { token: other }), tool('job', { token: other, name: 'wait' })]
      const mcp = overMcp('job', { ...label(agent.id), name: 'wait' })
      await app.alpha.arrived(dialed + 2)
      await until(() => server.calls.length === before + 3, 'the tools run')
      expect((await end()).status).toBe(200)
      for (const reply of running) expect(said(await reply)).toEqual([403, 'run_ended'])
      expect(await mcp).toMatchObject({ isError: true, code: expect.stringMatching(/run_ended|agent_revoked/) })
      // The credential of a revoked agent, and those of its children, are dead: they get the error of a dead credential.
      const dead = agent === byRevoke ? [401, 'invalid_api_key'] : [403, 'run_ended']
      for (const reply of ofOther) expect(said(await reply)).toEqual(dead)
      await until(() => server.calls.slice(before).every(({ cancelled }) => cancelled), 'the tools are cancelled')
      app.alpha.release()
      const calls = server.calls.length
      const requests = app.alpha.requests.length
      const later = [await chat('job', label(agent.id)), await tool('job', label(agent.id))]
      for (const reply of later) {
        expect([...said(reply), reply.json.scope, reply.json.run_id]).toEqual([403, 'run_ended', 'run', 'job'])
        expect([reply.headers.get('x-should-retry'), reply.headers.get('x-br-run-id')]).toEqual(['false', 'job'])
      }
      expect(await overMcp('job', label(agent.id))).toMatchObject({ isError: true, code: 'run_ended' })
      expect(said(await chat('job', { token: other }))).toEqual(dead)
      expect([server.calls.length, app.alpha.requests.length]).toEqual([calls, requests])
      expect((await show('job', agent.owner)).state).toBe('ended')
    }
    // The run belongs to the agent at the top: a key that names the child of the revoked agent meets the ended run too.
    expect(said(await chat('job', label(child.agent.id)))).toEqual([403, 'run_ended'])
    expect(said(await chat(null, label(byRevoke.id)))).toEqual([403, 'agent_revoked'])
    // A revoked child ends no run of its parent.
    const lead = await newAgent()
    const gone = (await app.call('POST', `/v1/me/agents/${lead.id}/children`, { name: `child ${named++}` }, { token: lead.token })).json
    expect((await chat('goes-on', { token: gone.access_token })).status).toBe(200)
    await revoke(gone.agent.id)
    expect(said(await chat('goes-on', label(gone.agent.id)))).toEqual([403, 'agent_revoked'])
    expect((await chat('goes-on', { token: lead.token })).status).toBe(200)
    expect((await show('goes-on', lead.owner)).state).toBe('active')
  })
})

// biome-ignore lint/suspicious/noExplicitAny: it reads arbitrary JSON.
function codeIn(json: any): string | null {
  const meta = Object.values(json.result?._meta ?? {}).find(value => typeof value === 'object' && value !== null && 'code' in value)
  return (meta as { code: string } | undefined)?.code ?? json.error?.data?.code ?? null
}
