import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { version } from '../../src/version.ts'
import { startApp, type TestApp, until } from '../harness/app.ts'
import { info, mcpClients, type Step } from './mcp-clients.ts'

/** Some of the tools. toolsets.test.ts has the whole list of each credential. */
const someTools = ['budget_get', 'chat', 'memory_delete', 'memory_list', 'memory_paths', 'memory_read', 'memory_write', 'models_list', 'usage_get', 'whoami']

let app: TestApp
beforeAll(async () => {
  app = await startApp({ env: { FOLDER_STORE: 'on' } })
  const stored = await app.call('PUT', '/v1/me/memory-store', { store: 'folder' })
  expect(stored.status).toBe(200)
})
afterAll(() => app.stop())
beforeEach(() => {
  for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
})
afterEach(() => closeAll())

const { initializeClient, discoverClient, eras, closeAll } = mcpClients(() => app)

const usual = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: info } }
const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
const post = (body: unknown, headers: Record<string, string> = {}, token: string | null = app.key) =>
  app.call('POST', '/mcp', JSON.stringify(body), { token, headers: { ...usual, ...headers } })
/** Returns the JSON-RPC message of an answer, which is JSON or one event. */
const messageOf = (text: string) => JSON.parse(text.startsWith('{') ? text : (/^data: (.*)$/m.exec(text)?.[1] ?? 'null'))

describe('POST /mcp', () => {
  test('MCP-01 a missing or invalid bearer gets 401 invalid_api_key in the envelope, with a challenge that names no OAuth metadata', async () => {
    for (const token of [null, 'br-nonsense', 'not.a.token']) {
      const reply = await post(initialize, {}, token)
      expect([reply.status, reply.json.error.code]).toEqual([401, 'invalid_api_key'])
      expect(reply.headers.get('www-authenticate')).toMatch(/^Bearer /)
      expect(reply.headers.get('www-authenticate')).not.toContain('resource_metadata')
    }
  })

  test('MCP-02 initialize with a key returns the version, the server and the tool capability', async () => {
    const { result } = messageOf((await post(initialize)).text)
    expect(result).toMatchObject({ protocolVersion: '2025-11-25', serverInfo: { name: 'brigade', version }, capabilities: { tools: {} } })
    expect(result.instructions).toContain('memory')
  })

  test('MCP-03 an agent token works in the same way as a key', async () => {
    const agent = await app.newAgent('mcp-three')
    expect(messageOf((await post(initialize, {}, agent.token)).text).result.serverInfo.name).toBe('brigade')
    const who = await (await initializeClient(agent.token)).call('whoami')
    expect(who.data).toMatchObject({
      principal: { kind: 'agent', id: agent.id, name: 'mcp-three' },
      scope: 'inference memory:read memory:write usage:read tools:call',
    })
  })

  test('MCP-16 initialize for 2026-07-28 or for an unknown version is answered with 2025-11-25', async () => {
    for (const protocolVersion of ['2026-07-28', '2199-01-01'])
      expect(messageOf((await post({ ...initialize, params: { ...initialize.params, protocolVersion } })).text).result.protocolVersion).toBe('2025-11-25')
  })

  test('MCP-11 MCP-12 MCP-13 an Accept without both forms gets 406, another content type 415, and invalid JSON 400 -32700', async () => {
    expect((await post(list, { accept: 'application/json' })).status).toBe(406)
    expect((await post(list, { accept: 'text/event-stream' })).status).toBe(406)
    expect((await post(list, { 'content-type': 'text/plain' })).status).toBe(415)
    const broken = await app.call('POST', '/mcp', '{"jsonrpc":', { headers: usual })
    expect([broken.status, broken.json.error.code]).toEqual([400, -32700])
  })

  test('MCP-14 MCP-15 an unsupported protocol version header gets 400, and a request without this header is served', async () => {
    expect((await post(list, { 'mcp-protocol-version': '1900-01-01' })).status).toBe(400)
    const reply = await post(list)
    expect([reply.status, messageOf(reply.text).result.tools.length]).toEqual([200, (await (await initializeClient()).names()).length])
  })

  test('MCP-17 a single notification gets 202 with an empty body', async () => {
    const reply = await post({ jsonrpc: '2.0', method: 'notifications/initialized' })
    expect([reply.status, reply.text]).toEqual([202, ''])
  })

  test('MCP-18 a foreign Origin gets 403, whatever the credential', async () => {
    for (const token of [app.key, null]) {
      const reply = await post(list, { origin: 'https://evil.example' }, token)
      expect([reply.status, reply.json.error.type]).toEqual([403, 'permission_error'])
    }
  })

  test('MCP-19 GET and DELETE get 405 with Allow: POST, with and without a credential', async () => {
    for (const method of ['GET', 'DELETE'])
      for (const token of [app.key, null]) {
        const reply = await app.call(method, '/mcp', undefined, { token })
        expect([reply.status, reply.headers.get('allow'), reply.json.error.code]).toEqual([405, 'POST', 'method_not_allowed'])
      }
  })

  test('MCP-21 when an agent is revoked between two calls, the second call gets 401', async () => {
    const agent = await app.newAgent('mcp-twenty-one')
    expect((await post(list, {}, agent.token)).status).toBe(200)
    expect((await app.call('POST', `/v1/me/agents/${agent.id}/revoke`, {})).status).toBe(200)
    const reply = await post(list, {}, agent.token)
    expect([reply.status, reply.json.error.code, reply.json.reason]).toEqual([401, 'invalid_api_key', 'agent_revoked'])
    expect(reply.headers.get('www-authenticate')).toContain('error_description="agent_revoked"')
  })

  test('MCP-23 concurrent callers with equal JSON-RPC ids get their own answers', async () => {
    const other = await app.otherOrg('Mcp Twenty Three')
    const call = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'whoami', arguments: {} } }
    const tokens = Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? app.key : other.key))
    const orgs = (await Promise.all(tokens.map(token => post(call, {}, token)))).map(reply => messageOf(reply.text).result.structuredContent.org.id)
    expect(orgs).toEqual(tokens.map(token => (token === app.key ? app.orgId : other.orgId)))
  })

  test('MCP-25 a body above the limit gets 413 in the envelope', async () => {
    const reply = await post({ ...list, pad: 'x'.repeat(5 * 1024 * 1024) })
    expect([reply.status, reply.json.error.code]).toEqual([413, 'payload_too_large'])
  })

  test('MCP-17 the initialize era accepts pings and batches of at most a hundred messages. Requests get answers, and notifications get none', async () => {
    const ping = (id: number) => ({ jsonrpc: '2.0', id, method: 'ping' })
    expect(messageOf((await post(ping(1))).text)).toEqual({ jsonrpc: '2.0', id: 1, result: {} })
    const batch = await post([ping(1), { jsonrpc: '2.0', method: 'notifications/initialized' }, ping(2), { ...list, id: 3 }])
    const answers = [...batch.text.matchAll(/^data: (.*)$/gm)].map(found => JSON.parse(found[1] ?? 'null'))
    expect(answers.map(({ id }) => id).sort()).toEqual([1, 2, 3])
    const many = await post(Array.from({ length: 101 }, (_, id) => ping(id)))
    expect([many.status, many.text]).toEqual([400, expect.stringContaining('100')])
    expect((await post([])).status).toBe(400)
    expect((await post([{ jsonrpc: '2.0', method: 'notifications/initialized' }])).status).toBe(202)
  })

  test('MCPX-02 a client that probes for the newer era finds it at the same URL with the same header', async () => {
    expect((await discoverClient(app.key, {}, 'auto')).era).toBe('modern')
  })
})

describe.each(eras)('tools in the %s', (name, connect) => {
  test('MCPX-02 the list has every tool that the caller may use, always in the same order, with schemas and annotations', async () => {
    const client = await connect()
    const names = await client.names()
    expect(names).toEqual(expect.arrayContaining(someTools))
    expect(await client.names()).toEqual(names)
    const { tools } = messageOf((await post(list)).text).result
    for (const tool of tools) {
      expect(tool).toMatchObject({
        title: expect.any(String),
        description: expect.any(String),
        inputSchema: { type: 'object' },
        outputSchema: { type: 'object' },
      })
      expect(Object.keys(tool.annotations).sort()).toEqual(['destructiveHint', 'idempotentHint', 'openWorldHint', 'readOnlyHint'])
    }
  })

  test('MCP-05 a chat is routed and metered as /v1/chat/completions is, and is answered as text and data', async () => {
    const before = (await app.call('GET', '/v1/usage')).json.totals
    const reply = await (await connect()).call('chat', { model: 'test-model', prompt: 'Hello there', max_tokens: 50 })
    expect(reply.isError).toBeUndefined()
    expect(reply.data).toMatchObject({
      text: expect.any(String),
      provider: 'alpha',
      finish_reason: 'stop',
      usage: { total_tokens: expect.any(Number) },
      request_id: expect.stringMatching(/^req_/),
    })
    expect(reply.text).toBe(reply.data.text)
    expect(reply.text.length).toBeGreaterThan(0)
    expect(app.alpha.requests[0]?.json).toMatchObject({ messages: [{ role: 'user', content: 'Hello there' }], max_tokens: 50 })
    const after = (await app.call('GET', '/v1/usage')).json.totals
    expect([after.requests - before.requests, after.total_tokens - before.total_tokens]).toEqual([1, reply.data.usage.total_tokens])
  })

  test("MCP-05 a provider's failure causes a failover, and the caller's credential never reaches a provider", async () => {
    app.alpha.script([{ status: 503 }])
    const reply = await (await connect()).call('chat', { model: 'test-model', prompt: 'Hello', exclude: ['indus'] })
    expect(reply.data.provider).toBe('beta')
    for (const request of [...app.alpha.requests, ...app.beta.requests]) expect(JSON.stringify(request)).not.toContain(app.key)
  })

  test("a memory write by a client of the discover era records the client's name, and lists come in pages", async () => {
    const client = await discoverClient()
    for (const n of [1, 2, 3]) await client.call('memory_write', { key: `agents/clients/${n}`, content: 'x' })
    const read = await app.call('GET', '/v1/me/memory/o?key=agents/clients/1')
    expect(read.headers.get('x-br-meta-client')).toBe(info.name)
    const first = await client.call('memory_list', { prefix: 'agents/clients/', limit: 2 })
    expect(first.data.keys.map(({ key }: { key: string }) => key)).toEqual(['agents/clients/1', 'agents/clients/2'])
    const rest = await client.call('memory_list', { prefix: 'agents/clients/', limit: 2, cursor: first.data.next_cursor })
    expect([rest.data.keys.map(({ key }: { key: string }) => key), rest.data.next_cursor]).toEqual([['agents/clients/3'], null])
    expect((await client.call('memory_list', { prefix: 'agents/', delimiter: '/' })).data.prefixes).toContain('agents/clients/')
  })

  test('MCP-06 MEMX-10 memory has the rules and the provenance of HTTP. Content that is read is marked as untrusted, with author and time', async () => {
    const agent = await app.newAgent(`writer in the ${name}`)
    const client = await connect(agent.token)
    const key = `agents/${name.split(' ')[0]}/notes.md`
    expect((await client.call('memory_write', { key, content: 'one\ntwo\nthree' })).data).toMatchObject({ key, size: 13 })
    const overHttp = await app.call('GET', `/v1/me/memory/o?key=${key}`)
    expect(overHttp.text).toBe('one\ntwo\nthree')
    const read = await (await connect()).call('memory_read', { key })
    expect(read.data).toMatchObject({ content: 'one\ntwo\nthree', etag: overHttp.headers.get('etag'), total_lines: 3, truncated: false, untrusted: true })
    expect(read.data.provenance.agent).toContain(`${agent.id}`)
    expect(read.text).toContain(`agent ${read.data.provenance.agent}`)
    expect(read.text).toContain(read.data.provenance.at)
    expect(read.text.toLowerCase()).toContain('untrusted content')
    const part = await client.call('memory_read', { key, offset_line: 1, limit_lines: 1 })
    expect(part.data).toMatchObject({ content: 'two', truncated: true, total_lines: 3 })
    expect((await client.call('memory_list', { prefix: 'agents/' })).data.keys.map((entry: { key: string }) => entry.key)).toContain(key)
    expect((await client.call('memory_paths')).data.scopes).toHaveProperty('org')
    expect((await client.call('memory_write', { key: 'org/records/x', content: 'x' })).data).toMatchObject({ code: 'forbidden', status: 403 })
    expect((await client.call('memory_read', { key: '../x' })).data).toMatchObject({ code: 'bad_memory_key', status: 400 })
    expect((await client.call('memory_delete', { key })).isError).toBeUndefined()
    expect((await client.call('memory_read', { key })).data).toMatchObject({ code: 'not_found', status: 404 })
  })

  test('MCP-06 a write to an object that has changed meanwhile is a conflict, and the error says how to continue', async () => {
    const client = await connect()
    const key = `agents/${name.split(' ')[0]}/cas.md`
    await client.call('memory_write', { key, content: 'first', create_only: true })
    expect((await client.call('memory_write', { key, content: 'again', create_only: true })).data).toMatchObject({ code: 'memory_conflict', status: 412 })
    const { etag } = (await client.call('memory_read', { key })).data
    expect((await client.call('memory_write', { key, content: 'second', if_match: etag })).isError).toBeUndefined()
    const stale = await client.call('memory_write', { key, content: 'third', if_match: etag })
    expect(stale).toMatchObject({ isError: true, data: { code: 'memory_conflict' } })
    expect(stale.text).toContain('memory_read')
    expect((await client.call('memory_read', { key })).data.content).toBe('second')
  })

  test('MCP-24 x-br-agent-id with a key sets the agent of usage and of memory writes over HTTP', async () => {
    const label = `label ${name.split(' ')[0]}`
    const client = await connect(app.key, { 'x-br-agent-id': label })
    await client.call('chat', { model: 'test-model', prompt: 'x' })
    const usage = (await app.call('GET', '/v1/usage')).json
    expect(usage.by_agent.find((row: { label: string | null }) => row.label === label)).toMatchObject({ requests: 1 })
    const key = `agents/${name.split(' ')[0]}/stamped.md`
    await client.call('memory_write', { key, content: 'x' })
    expect((await client.call('memory_read', { key })).data.provenance).toMatchObject({ agent: JSON.stringify(label), verified: false })
  })

  test('MCP-22 a chat with a progress token reports progress that never falls, contains no content, and ends before the answer', async () => {
    const client = await connect()
    app.alpha.script({ chunks: ['secret ', 'words ', 'of the ', 'model'] })
    const steps: Step[] = []
    const reply = await client.call('chat', { model: 'test-model', prompt: 'hi' }, undefined, step => steps.push(step))
    const told = steps.length
    expect(reply.isError).toBeUndefined()
    expect(told).toBeGreaterThan(0)
    expect(steps[0]?.progress).toBe(0)
    expect(steps.map(({ progress }) => progress)).toEqual(steps.map(({ progress }) => progress).sort((a, b) => a - b))
    expect(JSON.stringify(steps)).not.toContain('secret')
    expect(steps.every(({ message }) => typeof message === 'string' && message !== '')).toBe(true)
    const silent = await client.call('chat', { model: 'test-model', prompt: 'hi' })
    expect([silent.isError, steps.length]).toEqual([undefined, told])
  })
})

test('MCPX-03 a dropped connection aborts the provider of a running chat, and the output so far is metered', async () => {
  const before = (await app.call('GET', '/v1/usage')).json.totals
  app.alpha.script([{ holdAfterChunks: 3 }])
  const stop = new AbortController()
  const call = app
    .call(
      'POST',
      '/mcp',
      JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'chat', arguments: { model: 'alpha-only', prompt: 'x' } } }),
      { headers: usual, signal: stop.signal },
    )
    .catch(() => 'dropped')
  await until(() => app.alpha.requests.length === 1)
  stop.abort()
  expect(await call).toBe('dropped')
  await until(() => app.alpha.requests[0]?.aborted === true)
  await until(async () => (await app.call('GET', '/v1/usage')).json.totals.requests === before.requests + 1)
  expect((await app.call('GET', '/v1/usage')).json.totals.total_tokens).toBeGreaterThan(before.total_tokens)
})

test('memory tools say when no store is configured, and models_list shows the public catalog in pages', async () => {
  const other = await app.otherOrg('Mcp Unconfigured')
  const client = await initializeClient(other.key)
  expect((await client.call('memory_list')).data).toMatchObject({ code: 'memory_not_configured', status: 404 })
  const ids = (await app.call('GET', '/v1/models')).json.data.map((model: { id: string }) => model.id)
  const seen: string[] = []
  let cursor: string | undefined
  do {
    const page = (await client.call('models_list', { limit: 5, ...(cursor === undefined ? {} : { cursor }) })).data
    seen.push(...page.models.map((model: { id: string }) => model.id))
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
  // models_list shows available models first, so the order differs.
  expect(seen.sort()).toEqual(ids.sort())
})
