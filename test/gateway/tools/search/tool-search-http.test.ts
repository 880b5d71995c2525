/** Search over 2,000 tools, and the three tools of `?toolsets=tools:search`. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startApp, type TestApp, type TestReply, until } from '../../../harness/app.ts'
import { type McpFixture, startMcpFixture } from '../mcp-server.ts'
import { mcpCaller, register } from '../registered.ts'
import { manyTools } from './many-tools.ts'
import { questions } from './questions.ts'

let app: TestApp
let work: McpFixture
const servers: McpFixture[] = []
let everything: { id: number; token: string }
let named = 0

beforeAll(async () => {
  const many = manyTools()
  servers.push(...(await Promise.all(many.map(({ tools }) => startMcpFixture('modern', tools)))))
  work = await startMcpFixture('modern')
  app = await startApp({ env: { OUTBOUND_ALLOW: [work, ...servers].map(({ hostPort }) => hostPort).join(',') } })
  for (const [at, { slug }] of many.entries()) await register(app, slug, servers[at]?.url ?? '')
  await register(app, 'work', work.url, { price_inr_per_call: 2 })
  everything = await agentWith([...many.map(({ slug }) => `${slug}__*`), 'work__*'])
}, 120_000)
afterAll(async () => {
  await app.stop()
  await Promise.all([work, ...servers].map(server => server.close()))
})

async function agentWith(allowed_tools: readonly string[]) {
  const agent = await app.newAgent(`searcher ${named++}`)
  expect((await app.call('PATCH', `/v1/me/agents/${agent.id}`, { allowed_tools })).status).toBe(200)
  return agent
}
const search = (q: string, token: string, limit = 5): Promise<TestReply> =>
  app.call('GET', `/v1/tools/search?${new URLSearchParams({ q, limit: String(limit) })}`, undefined, { token })
const namesOf = ({ json }: TestReply): string[] => json.tools.map(({ name }: { name: string }) => name)
/** Tokens of a text, more than any tokenizer counts for JSON in English. */
const tokensAtMost = (text: string): number => Math.ceil(text.length / 3)

async function findsTheRightTool(): Promise<void> {
  const missed: string[] = []
  for (const [question, tool] of questions) {
    const found = namesOf(await search(question, everything.token))
    expect(found.length).toBeLessThanOrEqual(5)
    if (!found.includes(tool)) missed.push(`${question}: ${found.join(', ')} and not ${tool}`)
  }
  expect(questions).toHaveLength(100)
  expect(missed.length, missed.join('\n')).toBeLessThanOrEqual(10)
}

async function isSmall(era: 'modern' | 'legacy'): Promise<void> {
  const client = await mcpCaller(app, era, everything.token, 'tools:search')
  const { tools } = await client.list()
  expect(tools.map(({ name }: { name: string }) => name)).toEqual(['tools_call', 'tools_describe', 'tools_search'])
  expect(tokensAtMost(JSON.stringify(tools))).toBeLessThan(1500)
  const whole = await app.call('GET', '/v1/tools', undefined, { token: everything.token })
  expect(whole.json.next_cursor).not.toBe(null)
  const found = await client.call('tools_search', { query: 'say what it got: echo at work' })
  expect(found.structuredContent.tools[0]).toMatchObject({ name: 'work__echo', arguments: ['text', 'times'], required: ['text'], price_inr: 2 })
  expect(found.content[0].text).toMatch(/untrusted content [\s\S]*work__echo\(text\*, times\) ₹2: Says what it got\.[\s\S]*end of untrusted content/)
  const shown = await client.call('tools_describe', { name: 'work__echo' })
  expect(shown.structuredContent.definition).toMatchObject({ name: 'work__echo', inputSchema: { required: ['text'] } })
  await client.close()
}

/** A call by tools_call has the answers, refusals and events of a direct call. */
async function callsAsDirectly(era: 'modern' | 'legacy'): Promise<void> {
  const agent = await agentWith(['work__echo', 'work__all-kinds', 'work__steps', 'work__wait'])
  const client = await mcpCaller(app, era, agent.token, 'tools:search')
  const direct = await mcpCaller(app, era, agent.token, 'tools')
  const run = (name: string, args: object = {}, options = {}) => client.call('tools_call', { name, arguments: args }, options)
  for (const [name, args] of [
    ['work__echo', { text: 'a' }],
    ['work__all-kinds', {}],
  ] as const)
    expect(await run(name, args)).toEqual(await direct.call(name, args))
  const notes: unknown[] = []
  await run('work__steps', {}, { onprogress: (note: unknown) => notes.push(note) })
  expect(notes).toMatchObject([{ message: 'one' }, { message: 'two' }])
  const cut = new AbortController()
  const before = work.calls.length
  const running = run('work__wait', {}, { signal: cut.signal }).catch((error: unknown) => error)
  await until(() => work.calls.length > before)
  cut.abort(new Error('enough'))
  expect(await running).toBeInstanceOf(Error)
  await until(() => work.calls.at(-1)?.cancelled === true)
  expect((await run('work__echo', { text: 5 }))._meta['dev.brigade/error'].code).toBe('bad_request')
  await app.setBudget('agent', agent.id, 0.5)
  await until(async () => (await run('work__echo', { text: 'a' }))._meta['dev.brigade/error']?.code === 'agent_budget_exceeded')
  await app.setBudget('agent', agent.id, null)
  const sent = work.calls.length
  const unknown = await run('work__nothing')
  // A denied tool, an own tool, the tool itself, and invalid names.
  for (const name of ['work__fails', 'chat', 'whoami', 'tools_call', 'tools_search', 'trackly__create-issue', '../v1/tools', 'work__echo/call'])
    expect((await run(name)).content, name).toEqual(unknown.content)
  expect(unknown).toMatchObject({ isError: true, _meta: { 'dev.brigade/error': { code: 'tool_not_found', status: 404 } } })
  expect((await client.call('tools_call', {}))._meta['dev.brigade/error'].code).toBe('bad_request')
  expect((await client.call('tools_call', { name: 'work__echo', more: 1 }))._meta['dev.brigade/error'].code).toBe('bad_request')
  expect((await client.call('tools_describe', { name: 'work__fails' })).structuredContent.code).toBe('tool_not_found')
  expect(work.calls.length).toBe(sent)
  await Promise.all([client.close(), direct.close()])
}

/** Each message of a batch takes a unit of the rate. */
async function countsBatches(): Promise<void> {
  const key = await app.newKey({ rpm: 3 })
  await app.call('PATCH', `/me/keys/${key.keyId}`, { allowed_tools: ['work__*'] }, { cookie: await app.signIn() })
  const before = work.calls.length
  const batch = Array.from({ length: 10 }, (_, id) => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name: 'tools_call', arguments: { name: 'work__echo', arguments: { text: 'a' } } },
  }))
  await app.call('POST', '/mcp?toolsets=tools:search', batch, {
    token: key.key,
    headers: { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-03-26' },
  })
  expect(work.calls.length - before).toBeLessThanOrEqual(3)
}

describe('tools:search', { timeout: 60_000 }, () => {
  it('TGW-14 three tools below 1,500 tokens find the right one of 2,000 among the first five for 90 of 100 questions, and call it as a direct call does', async () => {
    await findsTheRightTool()
    for (const era of ['modern', 'legacy'] as const) {
      await isSmall(era)
      await callsAsDirectly(era)
    }
    await countsBatches()
  })

  it('a search shows only what the caller may call now, in one order, and bounds the question', async () => {
    const agent = await agentWith(['trackly__create-issue', 'work__*'])
    const all = await search('create an issue', everything.token, 50)
    expect(namesOf(all)).toHaveLength(50)
    expect((await search('create an issue', everything.token, 50)).json).toEqual(all.json)
    expect(namesOf(await search('create an issue', agent.token, 50))).toEqual(['trackly__create-issue'])
    await app.call('PATCH', `/v1/me/agents/${agent.id}`, { allowed_tools: null })
    expect(namesOf(await search('create an issue', agent.token))).toEqual([])
    expect(namesOf(await search('zzzz qqqq', everything.token))).toEqual([])
    expect(namesOf(await search('the of and', everything.token))).toEqual([])
    expect((await search('issue '.repeat(83), everything.token)).status).toBe(200)
    expect((await search('x'.repeat(501), everything.token)).status).toBe(400)
    expect((await search('', everything.token)).status).toBe(400)
    expect((await search('issue', everything.token, 51)).status).toBe(400)
    const other = await app.otherOrg('Others')
    expect(namesOf(await search('create an issue', other.key))).toEqual([])
    const narrow = (await app.call('POST', `/v1/me/agents/${everything.id}/token`, { scope: 'inference' })).json.access_token
    expect((await search('issue', narrow)).status).toBe(403)
  })

  it('a blocked tool and a server that is off are not found any more, and a new approval is found', async () => {
    const cookie = await app.signIn()
    const { servers: rows } = (await app.call('GET', '/me/tool-servers', undefined, { cookie })).json
    const { id } = rows.find(({ slug }: { slug: string }) => slug === 'trackly')
    const first = async (): Promise<string | undefined> => namesOf(await search('trackly create issue', everything.token))[0]
    expect(await first()).toBe('trackly__create-issue')
    await app.call('POST', `/me/tool-servers/${id}/tools/block`, { tools: ['trackly__create-issue'] }, { cookie })
    expect(await first()).not.toBe('trackly__create-issue')
    const { tool } = (await app.call('GET', `/me/tool-servers/${id}/tools/trackly__create-issue`, undefined, { cookie })).json
    await app.call('POST', `/me/tool-servers/${id}/tools/approve`, { tools: [{ name: tool.name, hash: tool.hash }] }, { cookie })
    expect(await first()).toBe('trackly__create-issue')
    await app.call('POST', `/me/tool-servers/${id}/off`, undefined, { cookie })
    expect(namesOf(await search('trackly create issue', everything.token)).filter(name => name.startsWith('trackly'))).toEqual([])
  })

  it('no server gets the slug that names the search', async () => {
    const cookie = await app.signIn()
    const given = await app.call('POST', '/me/tool-servers', { name: 'Search', slug: 'search', url: work.url }, { cookie })
    expect([given.status, given.json.error.code]).toEqual([409, 'tool_slug_taken'])
    const made = await app.call('POST', '/me/tool-servers', { name: 'Search', url: work.url }, { cookie })
    expect(made.json.server.slug).toBe('search-2')
  })
})
