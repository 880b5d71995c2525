import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestReply, until } from '../../harness/app.ts'
import { type HostileMode, type HostileServer, startHostileServer } from './hostile-server.ts'
import { type McpFixture, startMcpFixture } from './mcp-server.ts'
import { type McpCaller, mcpCaller, type Registered, register } from './registered.ts'

const secret = 'Bearer top-secret-token'
const auth = { kind: 'header', header_name: 'Authorization', header_value: secret }

const toolEvents = statement<
  [orgId: number],
  { model: string; provider: string; outcome: string; status: number; value: bigint; cost: bigint; agentId: number | null; kind: string }
>(
  'test.tool_events',
  `select model, provider, outcome, status, value_uinr as value, cost_uinr as cost, agent_id as "agentId", kind
   from usage_events where org_id = $1::int and kind = 'tool' order by id`,
)

let app: TestApp
let modern: McpFixture
let legacy: McpFixture
let hostile: HostileServer
let many: McpFixture
let mod: Registered
let named = 0

beforeAll(async () => {
  const simple = Array.from({ length: 250 }, (_, i) => ({ name: `t${i}`, description: 'One of many.', inputSchema: { type: 'object' } }))
  ;[modern, legacy, hostile, many] = await Promise.all([
    startMcpFixture('modern'),
    startMcpFixture('legacy'),
    startHostileServer('two-answers'),
    startMcpFixture('modern', simple),
  ])
  hostile.tools = [{ name: 'x', inputSchema: { type: 'object' } }]
  app = await startApp({
    env: {
      OUTBOUND_ALLOW: [modern.hostPort, legacy.hostPort, hostile.hostPort, many.hostPort].join(','),
      TOOL_RESULT_MAX_BYTES: '20000',
      TOOL_TIMEOUT_MS: '3000',
      CIRCUIT_FAILURES: '3',
      CIRCUIT_OPEN_MS: '60000',
    },
  })
  mod = await register(app, 'mod', modern.url, { auth, price_inr_per_call: 2 })
  await register(app, 'leg', legacy.url, { auth, residency: 'india' })
  await register(app, 'many', many.url)
  await register(app, 'bad', hostile.url, { auth, price_inr_per_call: 1, timeout_ms: 2000 })
})
afterAll(async () => {
  await app.stop()
  await Promise.all([modern.close(), legacy.close(), hostile.close(), many.close()])
})

const call = (name: string, args: unknown = {}, token = app.key): Promise<TestReply> =>
  app.call('POST', `/v1/tools/${name}/call`, { arguments: args }, { token })
const list = (token = app.key, query = ''): Promise<TestReply> => app.call('GET', `/v1/tools${query}`, undefined, { token })
const said = ({ status, json }: TestReply) => [status, json?.error?.code]
const patch = (id: number, allowed_tools: unknown) => app.call('PATCH', `/v1/me/agents/${id}`, { allowed_tools })
async function agentWith(allowed_tools: readonly string[] | null, more: object = {}) {
  const agent = await app.newAgent(`caller ${named++}`)
  expect((await app.call('PATCH', `/v1/me/agents/${agent.id}`, { allowed_tools, ...more })).status).toBe(200)
  return agent
}
async function eventsOf() {
  await app.gateway.app.limits.flushNow()
  return app.db.many(toolEvents, app.orgId)
}
const names = (reply: TestReply): string[] => reply.json.tools.map(({ name }: { name: string }) => name)

describe('what a caller may call', () => {
  async function agentsAreBound(): Promise<void> {
    const agent = await app.newAgent(`caller ${named++}`)
    expect(names(await list(agent.token))).toEqual([])
    const unknown = await call('mod__nothing', {}, agent.token)
    const denied = await call('mod__echo', { text: 'a' }, agent.token)
    expect(said(denied)).toEqual([404, 'tool_not_found'])
    expect(denied.json.error).toEqual(unknown.json.error)
    expect((await patch(agent.id, ['mod__echo', 'leg__*'])).json.allowed_tools).toEqual(['mod__echo', 'leg__*'])
    expect(names(await list(agent.token)).filter(name => name.startsWith('mod__'))).toEqual(['mod__echo'])
    expect(names(await list(agent.token)).filter(name => name.startsWith('leg__')).length).toBe(legacy.tools.length)
    expect((await call('mod__echo', { text: 'a' }, agent.token)).json.content).toEqual([{ type: 'text', text: 'echo: a' }])
    expect(said(await call('mod__steps', {}, agent.token))).toEqual([404, 'tool_not_found'])
    expect(said(await app.call('GET', '/v1/tools/mod__steps', undefined, { token: agent.token }))).toEqual([404, 'tool_not_found'])
    for (const none of [[], null]) {
      await patch(agent.id, none)
      expect(said(await call('mod__echo', { text: 'a' }, agent.token))).toEqual([404, 'tool_not_found'])
    }
  }

  async function childrenAreBound(): Promise<void> {
    const parent = await agentWith(['mod__*'], { may_delegate: true })
    const born = await app.call(
      'POST',
      `/v1/me/agents/${parent.id}/children`,
      { name: `child ${named++}`, allowed_tools: ['mod__echo'] },
      { token: parent.token },
    )
    const token = born.json.access_token
    expect((await call('mod__echo', { text: 'a' }, token)).status).toBe(200)
    const wider = { name: `child ${named++}`, allowed_tools: ['leg__echo'] }
    expect(said(await app.call('POST', `/v1/me/agents/${parent.id}/children`, wider, { token: parent.token }))).toEqual([403, 'forbidden'])
    await patch(parent.id, ['mod__steps'])
    expect(said(await call('mod__echo', { text: 'a' }, token))).toEqual([404, 'tool_not_found'])
    expect(names(await list(token))).toEqual([])
    await patch(parent.id, null)
    expect(said(await call('mod__echo', { text: 'a' }, token))).toEqual([404, 'tool_not_found'])
  }

  async function keysAreBound(): Promise<void> {
    const key = await app.newKey({ scope: 'inference' })
    const agent = await agentWith(['mod__*'])
    const headers = { 'x-br-agent-id': String(agent.id) }
    expect(said(await call('mod__echo', { text: 'a' }, key.key))).toEqual([404, 'tool_not_found'])
    expect(said(await app.call('POST', '/v1/tools/mod__echo/call', {}, { headers }))).toEqual([404, 'tool_not_found'])
    const cookie = await app.signIn()
    const changed = await app.call('PATCH', `/me/keys/${key.keyId}`, { allowed_tools: ['mod__echo', 'mod__steps'] }, { cookie })
    expect(changed.json.key.allowed_tools).toEqual(['mod__echo', 'mod__steps'])
    expect((await call('mod__echo', { text: 'a' }, key.key)).status).toBe(200)
    await patch(agent.id, ['mod__steps'])
    const asAgent = (name: string) => app.call('POST', `/v1/tools/${name}/call`, { arguments: { text: 'a' } }, { token: key.key, headers })
    expect([(await asAgent('mod__steps')).status, (await asAgent('mod__echo')).status]).toEqual([200, 404])
  }

  it('TGW-04 an agent calls nothing until a rule names tools or servers, a child what all above it may call at the call, and a key alike', async () => {
    await agentsAreBound()
    await childrenAreBound()
    await keysAreBound()
  })

  it('patterns other than names and slug__* are refused', async () => {
    const { id } = await app.newAgent(`caller ${named++}`)
    for (const wrong of ['*', 'mod', 'mod__', 'mod__e*', '*__echo', 'Mod__echo', '__echo', 'mod__echo ', 5])
      expect(said(await patch(id, [wrong])), String(wrong)).toEqual([400, 'bad_request'])
    expect(
      said(
        await patch(
          id,
          Array.from({ length: 101 }, (_, i) => `mod__t${i}`),
        ),
      ),
    ).toEqual([400, 'bad_request'])
  })

  it('a tool of another organisation is unknown, and so is one without the scope', async () => {
    const other = await app.otherOrg(`Others ${named++}`)
    expect(said(await call('mod__echo', { text: 'a' }, other.key))).toEqual([404, 'tool_not_found'])
    const agent = await agentWith(['mod__*'])
    const narrow = (await app.call('POST', `/v1/me/agents/${agent.id}/token`, { scope: 'inference' })).json.access_token
    expect(said(await call('mod__echo', { text: 'a' }, narrow))).toEqual([403, 'forbidden'])
    expect(said(await list(narrow))).toEqual([403, 'forbidden'])
  })
})

describe('the list', () => {
  it('comes in pages, in one order, and asks no server', async () => {
    const agent = await agentWith(['mod__*', 'leg__*'])
    const before = modern.requests.length + legacy.requests.length
    const all = names(await list(agent.token))
    expect(all).toEqual([...all].sort())
    const paged: string[] = []
    let cursor: string | null = null
    do {
      const page = await list(agent.token, `?limit=4${cursor === null ? '' : `&cursor=${cursor}`}`)
      paged.push(...names(page))
      cursor = page.json.next_cursor
    } while (cursor !== null)
    expect(paged).toEqual(all)
    expect(names(await list(agent.token, '?server=leg'))).toEqual(all.filter(name => name.startsWith('leg__')))
    expect(said(await list(agent.token, '?cursor=!'))).toEqual([400, 'bad_request'])
    expect(modern.requests.length + legacy.requests.length).toBe(before)
    const one = (await app.call('GET', '/v1/tools/mod__echo', undefined, { token: agent.token })).json
    expect(one).toMatchObject({
      name: 'mod__echo',
      server: 'mod',
      price_inr: 2,
      hash: mod.hashes.get('mod__echo'),
      definition: { name: 'mod__echo', 'x-unknown': { kept: true } },
    })
  })
})

describe('arguments', () => {
  it('are checked against the approved schema before anything is held or sent', async () => {
    const agent = await agentWith(['mod__*'])
    const before = modern.calls.length
    const wrong: unknown[] = [{}, { text: 5 }, { text: 'a', times: 0 }, { text: 'a', more: 1 }, { text: 'a!' }]
    for (const args of wrong) expect(said(await call('mod__echo', args, agent.token)), JSON.stringify(args)).toEqual([400, 'bad_request'])
    expect(said(await app.call('POST', '/v1/tools/mod__echo/call', { arguments: [] }, { token: agent.token }))).toEqual([400, 'bad_request'])
    let deep: unknown = 1
    for (let i = 0; i < 70; i++) deep = [deep]
    expect(said(await call('mod__steps', { deep }, agent.token))).toEqual([400, 'bad_request'])
    expect(modern.calls.length).toBe(before)
  })
})

describe('clients and servers of both eras', () => {
  const slugs = ['mod', 'leg'] as const
  const eras = ['modern', 'legacy'] as const
  const serverOf = (slug: string): McpFixture => (slug === 'mod' ? modern : legacy)

  it.each(eras)('a client of the %s era lists what it may call now, and with a server only the tools of that server', async era => {
    const agent = await agentWith(['mod__*', 'leg__*', 'bad__*'])
    const client = await mcpCaller(app, era, agent.token)
    const { tools } = await client.list()
    expect(tools.map(({ name }: { name: string }) => name)).toEqual(names(await list(agent.token)))
    const echo = tools.find(({ name }: { name: string }) => name === 'mod__echo')
    expect(echo).toMatchObject({ title: 'Echo', annotations: { readOnlyHint: true }, _meta: { 'dev.brigade/origin': { server: 'mod', untrusted: true } } })
    const one = await mcpCaller(app, era, agent.token, 'core,tools:leg')
    const found = (await one.list()).tools.map(({ name }: { name: string }) => name)
    expect(found).toContain('whoami')
    expect(found.filter((name: string) => name.includes('__')).every((name: string) => name.startsWith('leg__'))).toBe(true)
    await expect(one.call('mod__echo', { text: 'a' })).rejects.toMatchObject({ code: -32602 })
    await patch(agent.id, ['mod__echo'])
    expect((await client.list()).tools.map(({ name }: { name: string }) => name)).toEqual(['mod__echo'])
    const denied = await client.call('mod__steps').catch((error: unknown) => error)
    const unknown = await client.call('mod__stepz').catch((error: unknown) => error)
    expect(denied).toMatchObject({ code: -32602 })
    expect(String(denied).replace('steps', 'stepz')).toBe(String(unknown))
    await Promise.all([client.close(), one.close()])
  })

  it.each(eras)('a client of the %s era reads a long list in pages, and no server is asked', async era => {
    const agent = await agentWith(['many__*'])
    const before = many.requests.length
    const client = await mcpCaller(app, era, agent.token, 'usage,tools:many')
    const first = await client.list()
    const rest = await client.list(first.nextCursor)
    const found = [...first.tools, ...rest.tools].map(({ name }: { name: string }) => name)
    expect([first.tools.length, rest.tools.length, rest.nextCursor]).toEqual([203, 50, undefined])
    expect(found).toContain('usage_get')
    const upstream = found.filter((name: string) => name.includes('__'))
    expect([upstream.length, upstream]).toEqual([250, [...upstream].sort()])
    await expect(client.list('!')).rejects.toMatchObject({ code: -32602 })
    expect(many.requests.length).toBe(before)
    await client.close()
  })

  async function carriesContent(run: (name: string) => Promise<Record<string, unknown>>, slug: string): Promise<void> {
    const result = await run(`${slug}__all-kinds`)
    expect((result['content'] as { type: string }[]).map(({ type }) => type)).toEqual(['text', 'image', 'audio', 'resource_link', 'resource'])
    expect(result['structuredContent']).toEqual({ answer: 42, list: [1, 2] })
    expect(result['_meta']).toMatchObject({ 'example.com/own': 1, 'dev.brigade/origin': { server: slug, tool: 'all-kinds', untrusted: true } })
    expect((await run(`${slug}__fails`))['isError']).toBe(true)
  }

  async function carriesProgressAndCancel(client: McpCaller, slug: string): Promise<void> {
    const notes: unknown[] = []
    await client.call(`${slug}__steps`, {}, { onprogress: note => notes.push(note) })
    expect(notes).toMatchObject([
      { progress: 1, message: 'one' },
      { progress: 2, message: 'two' },
    ])
    const cut = new AbortController()
    const server = serverOf(slug)
    const before = server.calls.length
    const running = client.call(`${slug}__wait`, {}, { signal: cut.signal }).catch((error: unknown) => error)
    await until(() => server.calls.length > before)
    cut.abort(new Error('enough'))
    expect(await running).toBeInstanceOf(Error)
    await until(() => server.calls.at(-1)?.cancelled === true)
  }

  /** The rules are those of one path: arguments, rates, hold and journal. */
  async function followsTheRules(run: (args: object) => Promise<string>, agentId: number): Promise<void> {
    const before = modern.calls.length
    expect(await run({ text: 5 })).toBe('bad_request')
    await app.setBudget('agent', agentId, 0.5)
    await until(async () => (await run({ text: 'a' })) === 'agent_budget_exceeded')
    const sent = modern.calls.length
    expect(await run({ text: 'a' })).toBe('agent_budget_exceeded')
    expect(modern.calls.length).toBe(sent)
    await app.setBudget('agent', agentId, null)
    await until(async () => (await run({ text: 'a' })) === 'ok')
    expect(modern.calls.length).toBeGreaterThan(before)
    const own = (await eventsOf()).filter(event => event.agentId === agentId && event.model === 'mod__echo')
    expect(own.at(-1)).toMatchObject({ kind: 'tool', provider: 'mcp:mod', outcome: 'ok', value: 2_000_000n })
  }

  it('TGW-06 a call over MCP and over HTTP has one path and one set of rules, and everything is carried in both eras on both sides', async () => {
    const over: McpCaller[] = []
    for (const era of eras) {
      const agent = await agentWith(['mod__*', 'leg__*'])
      const client = await mcpCaller(app, era, agent.token)
      over.push(client)
      for (const slug of slugs) {
        await carriesContent(name => client.call(name), slug)
        await carriesProgressAndCancel(client, slug)
      }
      await followsTheRules(async args => {
        const answer = await client.call('mod__echo', args as Record<string, unknown>)
        return answer.isError === true ? answer._meta['dev.brigade/error'].code : 'ok'
      }, agent.id)
    }
    const agent = await agentWith(['mod__*', 'leg__*'])
    for (const slug of slugs) await carriesContent(async name => (await call(name, {}, agent.token)).json, slug)
    await followsTheRules(async args => (await call('mod__echo', args, agent.token)).json.error?.code ?? 'ok', agent.id)
    const key = await app.newKey({ rpm: 2 })
    await app.call('PATCH', `/me/keys/${key.keyId}`, { allowed_tools: ['mod__*'] }, { cookie: await app.signIn() })
    const codes: string[] = []
    for (let i = 0; i < 4; i++) codes.push((await call('mod__echo', { text: 'a' }, key.key)).json.error?.code ?? 'ok')
    expect(codes).toContain('rate_limit_exceeded')
    await Promise.all(over.map(client => client.close()))
  })
})

describe('credentials and results', () => {
  it('TGW-11 the credential of a server leaves, that of the caller does not, and neither comes back', async () => {
    for (const slug of ['mod', 'leg']) await credentialsStay(slug)
  })

  async function credentialsStay(slug: string): Promise<void> {
    const agent = await agentWith([`${slug}__*`])
    const result = await call(`${slug}__headers`, {}, agent.token)
    const seen = (slug === 'mod' ? modern : legacy).calls.at(-1)?.headers
    expect(seen?.['authorization']).toBe(secret)
    expect(JSON.stringify(seen)).not.toContain(agent.token)
    expect(result.text).toContain('[secret of the server]')
    for (const hidden of ['top-secret-token', agent.token]) expect(result.text).not.toContain(hidden)
    expect(app.logLines.join('\n')).not.toContain('top-secret-token')
  }

  it('TGW-12 a result is bounded with both sizes in the error, marked with server, tool and hash as untrusted, and never cached', async () => {
    const agent = await agentWith(['mod__*'])
    const large = await call('mod__big', { bytes: 30_000 }, agent.token)
    expect(said(large)).toEqual([502, 'tool_result_too_large'])
    expect(large.json).toMatchObject({ limit_bytes: 20_000, size_bytes: expect.any(Number) })
    expect(large.json.size_bytes).toBeGreaterThan(30_000)
    expect(large.text).not.toContain('xxxx')
    const marked = await call('mod__all-kinds', {}, agent.token)
    expect(marked.json._meta).toEqual({
      'example.com/own': 1,
      'dev.brigade/origin': { server: 'mod', tool: 'all-kinds', hash: mod.hashes.get('mod__all-kinds'), untrusted: true },
    })
    const before = modern.calls.length
    for (let i = 0; i < 2; i++) expect((await call('mod__echo', { text: 'same' }, agent.token)).headers.get('cache-control')).toBe('no-store')
    expect(modern.calls.length - before).toBe(2)
  })
})

describe('money', () => {
  it('a call holds its price in every budget, is counted once, and leaves an event without content', async () => {
    const agent = await agentWith(['mod__*'])
    await app.setBudget('agent', agent.id, 5)
    for (const text of ['spoken words', 'more']) expect((await call('mod__echo', { text }, agent.token)).status).toBe(200)
    // One rupee is left, and a call costs two. No budget goes beyond its cap for a tool, also one that is not strict.
    expect(said(await call('mod__echo', { text: 'a' }, agent.token))).toEqual([429, 'agent_budget_exceeded'])
    const own = (await eventsOf()).filter(event => event.agentId === agent.id)
    expect(own).toEqual(
      Array(2).fill({ model: 'mod__echo', provider: 'mcp:mod', outcome: 'ok', status: 200, value: 2_000_000n, cost: 0n, agentId: agent.id, kind: 'tool' }),
    )
    expect((await app.dump()).includes('spoken words')).toBe(false)
    expect(app.logLines.join('\n')).not.toContain('spoken words')
  })

  it('of many parallel calls as many reach the server as the budget pays, mixed with chat', async () => {
    const agent = await agentWith(['mod__*'])
    await app.setBudget('agent', agent.id, 20.5)
    const before = modern.calls.length
    const chat = () =>
      app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 10 }, { token: agent.token })
    const replies = await Promise.all(Array.from({ length: 60 }, (_, i) => (i % 6 === 0 ? chat() : call('mod__echo', { text: String(i) }, agent.token))))
    const sent = modern.calls.length - before
    expect(sent).toBeLessThanOrEqual(10)
    expect(replies.filter(reply => reply.json.content !== undefined).length).toBe(sent)
    while ((await call('mod__echo', { text: 'rest' }, agent.token)).status === 200);
    expect(modern.calls.length - before).toBe(10)
  })

  it('a daily limit of a key counts no tools, and a cap of concurrent calls counts both', async () => {
    const key = await app.newKey({ daily: 1 })
    await app.call('PATCH', `/me/keys/${key.keyId}`, { allowed_tools: ['mod__*'], max_concurrency: 1 }, { cookie: await app.signIn() })
    for (let i = 0; i < 3; i++) expect((await call('mod__echo', { text: 'a' }, key.key)).status).toBe(200)
    const cut = new AbortController()
    const before = modern.calls.length
    const running = app.call('POST', '/v1/tools/mod__wait/call', {}, { token: key.key, signal: cut.signal }).catch(() => null)
    await until(() => modern.calls.length > before)
    expect(said(await call('mod__echo', { text: 'a' }, key.key))).toEqual([429, 'concurrency_limit_reached'])
    cut.abort()
    await running
    await until(async () => (await call('mod__echo', { text: 'a' }, key.key)).status === 200)
  })

  it('tools are in no ranking and in no statistics of models', async () => {
    await eventsOf()
    expect((await app.call('GET', '/v1/rankings')).text).not.toContain('__echo')
    expect((await app.dump()).split('\n').filter(line => line.includes('model_days') && line.includes('__echo'))).toEqual([])
  })
})

describe('the end of a call', () => {
  it('a revoked agent is cut while its call runs, and the server sees the cancel', async () => {
    for (const slug of ['mod', 'leg'] as const) {
      const server = slug === 'mod' ? modern : legacy
      const agent = await agentWith([`${slug}__*`])
      const before = server.calls.length
      const running = call(`${slug}__wait`, {}, agent.token)
      await until(() => server.calls.length > before)
      await app.call('POST', `/v1/me/agents/${agent.id}/revoke`)
      expect(said(await running)).toEqual([401, 'invalid_api_key'])
      await until(() => server.calls.at(-1)?.cancelled === true)
      const own = (await eventsOf()).filter(event => event.agentId === agent.id)
      expect(own).toMatchObject([{ outcome: 'cut', status: 401, value: slug === 'mod' ? 2_000_000n : 0n }])
    }
  })

  const failures: readonly (readonly [string, HostileMode, number, string])[] = [
    ['401', { status: 401 }, 502, 'tool_server_failed'],
    ['403', { status: 403 }, 502, 'tool_server_failed'],
    ['404', { status: 404 }, 502, 'tool_server_failed'],
    ['429', { status: 429, headers: { 'retry-after': '7' } }, 503, 'tool_server_unavailable'],
    ['500', { status: 500 }, 503, 'tool_server_unavailable'],
    ['a redirect', { status: 302, headers: { location: 'http://169.254.169.254/' } }, 502, 'tool_server_failed'],
    ['silence', 'hang', 504, 'tool_timeout'],
    ['silence in the middle', 'hang-mid-stream', 504, 'tool_timeout'],
    ['endless comments', 'comments', 502, 'tool_result_too_large'],
    ['a huge result', 'huge', 502, 'tool_result_too_large'],
    ['compression', 'gzip', 502, 'tool_server_failed'],
    ['a deep result', 'deep', 502, 'tool_server_failed'],
    ['a wrong id', 'wrong-id', 502, 'tool_server_failed'],
    ['no answer', 'no-answer', 502, 'tool_server_failed'],
    ['an error of the protocol', 'rpc-error', 502, 'tool_server_failed'],
    ['a question', 'asks', 502, 'tool_server_failed'],
  ]
  async function failsAlone(name: string, mode: HostileMode, status: number, code: string): Promise<void> {
    // A success closes the circuit.
    hostile.mode = 'two-answers'
    const agent = await agentWith(['bad__*', 'mod__*'])
    expect((await call('bad__x', {}, agent.token)).status).toBe(200)
    hostile.mode = mode
    hostile.calls = 0
    const reply = await call('bad__x', {}, agent.token)
    expect([name, ...said(reply)]).toEqual([name, status, code])
    expect(reply.text).not.toContain('secret words')
    expect(reply.text).not.toContain('top-secret')
    expect(hostile.calls).toBe(1)
    if (code === 'tool_server_unavailable' && name === '429') expect(reply.headers.get('retry-after')).toBe('7')
    expect((await call('mod__echo', { text: 'a' }, agent.token)).status).toBe(200)
    const own = (await eventsOf()).filter(event => event.agentId === agent.id && event.provider === 'mcp:bad')
    expect(own.map(({ outcome, value }) => [outcome, value])).toEqual([
      ['ok', 1_000_000n],
      ['failed', 1_000_000n],
    ])
  }

  async function isLeftAlone(): Promise<void> {
    hostile.mode = 'two-answers'
    const agent = await agentWith(['bad__*', 'mod__*'])
    expect((await call('bad__x', {}, agent.token)).status).toBe(200)
    hostile.mode = { status: 500 }
    for (let i = 0; i < 3; i++) expect((await call('bad__x', {}, agent.token)).status).toBe(503)
    hostile.calls = 0
    const refused = await call('bad__x', {}, agent.token)
    expect(said(refused)).toEqual([503, 'tool_server_unavailable'])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(hostile.calls).toBe(0)
    expect(names(await list(agent.token))).toContain('bad__x')
    expect((await call('mod__echo', { text: 'a' }, agent.token)).status).toBe(200)
  }

  it('TGW-09 a server that fails fails its own call only, once, with an error that says so, and is left alone after three failures', async () => {
    for (const failure of failures) await failsAlone(...failure)
    await isLeftAlone()
  })
})
