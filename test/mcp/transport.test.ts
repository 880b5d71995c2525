import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Mount, soonClock, soonSeconds, startMount } from './mount.ts'
import { type Seen, sampleTools, streamOf, until } from './sample-tools.ts'

let mount: Mount
let seen: Seen
const clients: { close(): Promise<void> }[] = []

beforeEach(async () => {
  seen = { labels: [], started: 0, aborted: [] }
  mount = await startMount(sampleTools(seen))
})
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close()
  await mount.close()
})

const info = { name: 'test', version: '1' }
const withToken = (token: string, extra: Record<string, string> = {}) => ({ requestInit: { headers: { authorization: `Bearer ${token}`, ...extra } } })

async function connectV1(token = 'br-full', extra: Record<string, string> = {}): Promise<ClientV1> {
  const client = new ClientV1(info)
  await client.connect(new TransportV1(new URL(mount.url), withToken(token, extra)) as never)
  clients.push(client)
  return client
}

async function connectV2(token = 'br-full', extra: Record<string, string> = {}): Promise<ClientV2> {
  const client = new ClientV2(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  await client.connect(new TransportV2(new URL(mount.url), withToken(token, extra)))
  clients.push(client)
  return client
}

const eras = { 'initialize era': connectV1, 'discover era': connectV2 }

describe.each(Object.entries(eras))('%s', (_name, connect) => {
  test('a client with a static bearer connects, lists the tools in order and calls one', async () => {
    const client = await connect()
    expect(client.getServerVersion()).toMatchObject({ name: 'brigade', version: '1.2.3' })
    expect(client.getInstructions()).toContain('Memory first')
    const { tools } = await client.listTools()
    expect(tools.map(tool => tool.name)).toEqual(['admin', 'chat', 'echo', 'fail', 'wait'])
    for (const tool of tools)
      expect(tool).toMatchObject({ inputSchema: { type: 'object' }, outputSchema: { type: 'object' }, annotations: { readOnlyHint: expect.any(Boolean) } })
    const result = await client.callTool({ name: 'echo', arguments: { say: 'hello' } })
    expect(result).toMatchObject({ content: [{ type: 'text', text: 'hello' }], structuredContent: { said: 'hello', kind: 'key' } })
    expect(result.isError).toBeUndefined()
  })

  test('an agent token sees only the tools that it may use', async () => {
    const client = await connect('aaa.bbb.ccc')
    expect((await client.listTools()).tools.map(tool => tool.name)).not.toContain('admin')
    expect(await client.callTool({ name: 'admin', arguments: {} })).toMatchObject({ isError: true, structuredContent: { code: 'forbidden', status: 403 } })
  })

  test('a gateway error becomes a tool error that says what to do, even for a tool whose output schema the client knows', async () => {
    const client = await connect()
    await client.listTools()
    const result = await client.callTool({ name: 'fail', arguments: { name: 'agent_budget_exceeded' } })
    expect(result).toMatchObject({
      isError: true,
      structuredContent: { code: 'agent_budget_exceeded', status: 429, scope: 'agent', cap_inr: 10, spent_inr: 10, should_retry: false },
    })
    expect(JSON.stringify(result.content)).toContain('Do not retry')
    expect(result.structuredContent).not.toHaveProperty('retry_after_s')
  })

  test('an unexpected failure shows no internal details', async () => {
    const client = await connect()
    const result = await client.callTool({ name: 'fail', arguments: { name: 'surprise' } })
    expect(result).toMatchObject({ isError: true, structuredContent: { code: 'internal_error', status: 500 } })
    expect(JSON.stringify(result)).not.toContain('secret of the inside')
  })

  test('wrong or unknown arguments give a tool error that names the field', async () => {
    const client = await connect()
    const wrong = await client.callTool({ name: 'echo', arguments: { say: 5 } })
    expect(wrong).toMatchObject({ isError: true, structuredContent: { code: 'bad_request', status: 400 } })
    expect(JSON.stringify(wrong.content)).toContain('say')
    const unknown = await client.callTool({ name: 'echo', arguments: { say: 'x', shout: true } })
    expect(JSON.stringify(unknown.content)).toContain('shout')
  })

  test('an unknown tool gives a protocol error that names it', async () => {
    const client = await connect()
    await expect(client.callTool({ name: 'nonsense', arguments: {} })).rejects.toMatchObject({ code: -32602, message: expect.stringContaining('nonsense') })
  })

  test('the value of x-br-agent-id reaches the row', async () => {
    const client = await connect('br-full', { 'x-br-agent-id': 'nightly' })
    await client.callTool({ name: 'echo', arguments: { say: 'x' } })
    expect(seen.labels).toEqual(['nightly'])
  })

  test('a revocation cuts the running tool, which returns the reason, and the next call is refused', async () => {
    const client = await connect('aaa.bbb.ccc')
    const call = client.callTool({ name: 'wait', arguments: {} })
    await until(() => seen.started === 1)
    mount.revoked.add('aaa.bbb.ccc')
    expect(mount.inflight.abortAgent(21, 'agent_revoked')).toBe(1)
    expect(await call).toMatchObject({ isError: true, structuredContent: { code: 'agent_revoked', reason: 'agent_revoked', should_retry: false } })
    await expect(client.listTools()).rejects.toThrow()
  })
})

const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: info } }
const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
const usual = { authorization: 'Bearer br-full', 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

const post = (body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(mount.url, { method: 'POST', headers: { ...usual, ...headers }, body: typeof body === 'string' ? body : JSON.stringify(body) })

describe('cancel', () => {
  test('in the initialize era a cancel notification aborts the running tool of that client', async () => {
    const client = await connectV1()
    const stop = new AbortController()
    const call = client.callTool({ name: 'wait', arguments: {} }, undefined, { signal: stop.signal }).catch(() => 'gone')
    await until(() => seen.started === 1)
    stop.abort()
    expect(await call).toBe('gone')
    await until(() => seen.aborted.length === 1)
    await until(() => mount.inflight.size === 0)
  })

  test('in the initialize era a cancel that matches two running calls cancels neither', async () => {
    const wait = { jsonrpc: '2.0', id: 9, method: 'tools/call', params: { name: 'wait', arguments: {} } }
    const stop = new AbortController()
    const calls = [1, 2].map(() =>
      fetch(mount.url, { method: 'POST', headers: usual, signal: stop.signal, body: JSON.stringify(wait) })
        .then(response => response.text())
        .catch(() => 'gone'),
    )
    await until(() => seen.started === 2)
    expect((await post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 9 } })).status).toBe(202)
    expect(seen.aborted).toEqual([])
    stop.abort()
    await Promise.all(calls)
    await until(() => seen.aborted.length === 2)
  })

  test('in the discover era, a cancel closes the request and aborts the running tool', async () => {
    const client = await connectV2()
    const stop = new AbortController()
    const call = client.callTool({ name: 'wait', arguments: {} }, { signal: stop.signal }).catch(() => 'gone')
    await until(() => seen.started > 0)
    stop.abort()
    expect(await call).toBe('gone')
    await until(() => seen.aborted.length === 1)
    await until(() => mount.inflight.size === 0)
  })
})

describe('HTTP', () => {
  test('a missing or invalid bearer gets 401 with the envelope and a challenge without resource metadata', async () => {
    for (const authorization of ['', 'Bearer nonsense', 'Basic eDp5']) {
      const response = await post(initialize, { authorization })
      expect(response.status).toBe(401)
      expect(response.headers.get('www-authenticate')).toBe('Bearer realm="brigade", error="invalid_token"')
      expect(await response.json()).toMatchObject({ error: { code: 'invalid_api_key', type: 'authentication_error' } })
    }
  })

  test('the reason for refusing an agent token is in the body and in the challenge', async () => {
    mount.revoked.add('aaa.bbb.ccc')
    const response = await post(initialize, { authorization: 'Bearer aaa.bbb.ccc' })
    expect(response.headers.get('www-authenticate')).toContain('error_description="agent_revoked"')
    expect(await response.json()).toMatchObject({ reason: 'agent_revoked' })
  })

  test('x-br-api-key and x-api-key may contain a gateway key, and any other key in x-api-key is ignored', async () => {
    const { authorization: _gone, ...bare } = usual
    const send = (headers: Record<string, string>) => fetch(mount.url, { method: 'POST', headers: { ...bare, ...headers }, body: JSON.stringify(initialize) })
    expect((await send({ 'x-br-api-key': 'br-full' })).status).toBe(200)
    expect((await send({ 'x-api-key': 'br-full' })).status).toBe(200)
    expect((await send({ 'x-api-key': 'sk-other' })).status).toBe(401)
    expect((await send({ 'x-br-api-key': 'br-full', authorization: 'Bearer of-somebody-else' })).status).toBe(200)
  })

  test('every method except POST gets 405 with Allow, with and without a credential', async () => {
    for (const method of ['GET', 'DELETE', 'PUT'])
      for (const headers of [{}, { authorization: 'Bearer br-full' }]) {
        const response = await fetch(mount.url, { method, headers })
        expect(response.status).toBe(405)
        expect(response.headers.get('allow')).toBe('POST')
        expect(await response.json()).toMatchObject({ error: { code: 'method_not_allowed' } })
      }
  })

  test('a foreign origin is refused before the credential is checked, and a loopback origin is accepted', async () => {
    for (const origin of ['https://evil.example', 'null']) {
      const response = await post(initialize, { origin, authorization: '' })
      expect(response.status).toBe(403)
      expect(await response.json()).toMatchObject({ error: { code: 'forbidden', type: 'permission_error' } })
    }
    expect((await post(initialize, { origin: 'http://localhost:3000' })).status).toBe(200)
  })

  test('both SDK versions answer an unknown revision with the newest one that they know', async () => {
    for (const protocolVersion of ['2026-07-28', '2099-01-01']) {
      const text = await (await post({ ...initialize, params: { ...initialize.params, protocolVersion } })).text()
      expect(text).toContain('"protocolVersion":"2025-11-25"')
    }
  })

  test('invalid JSON gets 400 -32700, a wrong content type 415, an Accept without both forms 406, and an unknown protocol version 400', async () => {
    const broken = await post('{"jsonrpc":')
    expect([broken.status, await broken.json()]).toMatchObject([400, { error: { code: -32700 }, id: null }])
    expect((await post(list, { 'content-type': 'text/plain' })).status).toBe(415)
    expect((await post(list, { accept: 'application/json' })).status).toBe(406)
    expect((await post(list, { 'mcp-protocol-version': '1900-01-01' })).status).toBe(400)
  })

  test('a request without a version header is served', async () => {
    expect(await (await post(list)).text()).toContain('"echo"')
  })

  test('a body above the limit gets 413 in the envelope', async () => {
    const response = await post({ ...list, pad: 'x'.repeat(5 * 1024 * 1024) })
    expect([response.status, await response.json()]).toMatchObject([413, { error: { code: 'payload_too_large' } }])
  })

  test('a single notification gets 202 without a body', async () => {
    const response = await post({ jsonrpc: '2.0', method: 'notifications/initialized' })
    expect([response.status, await response.text()]).toEqual([202, ''])
  })

  test('two concurrent clients with equal JSON-RPC ids get their own answers', async () => {
    const say = (word: string) =>
      post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo', arguments: { say: word } } }).then(response => response.text())
    const words = Array.from({ length: 20 }, (_, n) => `word-${n}-`)
    const replies = await Promise.all(words.map(say))
    for (const [n, word] of words.entries()) expect(replies[n]).toContain(word)
  })

  test('new calls are refused while the process drains', async () => {
    mount.drain()
    expect((await post(list)).status).toBe(503)
  })

  test('every answer has a request id, and no call is left in flight', async () => {
    const response = await post(list)
    await response.text()
    expect(response.headers.get('x-request-id')).toMatch(/^req_/)
    await until(() => mount.inflight.size === 0)
  })

  test('a client that drops the connection aborts the running tool', async () => {
    const stop = new AbortController()
    const call = fetch(mount.url, {
      method: 'POST',
      headers: usual,
      signal: stop.signal,
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'wait', arguments: {} } }),
    })
      .then(response => response.text())
      .catch(() => 'gone')
    await until(() => seen.started === 1)
    stop.abort()
    await call
    await until(() => seen.aborted.length === 1)
  })
})

describe('chat', () => {
  const frames = [
    { id: 'c', model: 'm-1', choices: [{ index: 0, delta: { role: 'assistant', content: 'Hel' } }] },
    { id: 'c', model: 'm-1', choices: [{ index: 0, delta: { reasoning_content: 'hm', content: 'lo' }, finish_reason: 'stop' }] },
    {
      id: 'c',
      model: 'm-1',
      choices: [],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
      x_br: { cost_inr: 0.5, value_inr: 0.5, provider: 'test-provider' },
    },
  ]

  async function remount(chunks: (signal: AbortSignal) => AsyncIterable<Uint8Array>): Promise<void> {
    await mount.close()
    mount = await startMount(sampleTools(seen, chunks), { clock: soonClock })
  }

  test('the stream of a chat becomes one answer with usage, cost and provider', async () => {
    await remount(() => streamOf(frames))
    const client = await connectV1()
    await client.listTools()
    const result = await client.callTool({ name: 'chat', arguments: { prompt: 'hi' } })
    expect(result).toMatchObject({
      content: [{ type: 'text', text: 'Hello' }],
      structuredContent: {
        text: 'Hello',
        reasoning: 'hm',
        model: 'm-1',
        provider: 'test-provider',
        finish_reason: 'stop',
        usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
        cost_inr: 0.5,
      },
    })
  })

  test('a chat with both prompt and messages is refused', async () => {
    const client = await connectV1()
    expect(await client.callTool({ name: 'chat', arguments: { prompt: 'a', messages: [{ role: 'user', content: 'b' }] } })).toMatchObject({
      isError: true,
      structuredContent: { code: 'bad_request' },
    })
    expect(await client.callTool({ name: 'chat', arguments: {} })).toMatchObject({ isError: true })
  })

  test('a stream that breaks off becomes a tool error with the text so far', async () => {
    await remount(() => streamOf([frames[0] ?? {}, { error: { message: 'broke', code: 'upstream_stream_error' } }]))
    const client = await connectV2()
    expect(await client.callTool({ name: 'chat', arguments: { prompt: 'hi' } })).toMatchObject({
      isError: true,
      structuredContent: { code: 'upstream_stream_error', partial_text: 'Hel' },
    })
  })

  test('when the gateway ends a stream for a spent budget, the error says not to retry', async () => {
    await remount(() =>
      streamOf([
        frames[0] ?? {},
        {
          error: { message: 'The budget is spent.', type: 'billing_error', code: 'agent_budget_exceeded' },
          usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
        },
      ]),
    )
    const client = await connectV1()
    const result = await client.callTool({ name: 'chat', arguments: { prompt: 'hi' } })
    expect(result).toMatchObject({ isError: true, structuredContent: { code: 'agent_budget_exceeded', status: 429, partial_text: 'Hel', should_retry: false } })
    expect(JSON.stringify(result.content)).toContain('Do not retry')
  })

  const hanging = (signal: AbortSignal): AsyncIterable<Uint8Array> =>
    (async function* () {
      yield Buffer.from(`data: ${JSON.stringify(frames[0])}\n\n`)
      await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    })()

  test.each(Object.entries(eras))("after max_wait_s, the text so far is returned and the provider's stream is aborted: %s", async (_name, connect) => {
    await remount(hanging)
    const client = await connect()
    const result = await client.callTool({ name: 'chat', arguments: { prompt: 'hi', max_wait_s: soonSeconds } })
    expect(result).toMatchObject({ structuredContent: { text: 'Hel', finish_reason: 'deadline', usage: { completion_tokens: 1, estimated: true } } })
    expect(result.isError).toBeUndefined()
    await until(() => seen.aborted.length === 1)
  })

  test("a dropped connection aborts the provider's stream of a chat", async () => {
    await remount(hanging)
    const stop = new AbortController()
    const call = fetch(mount.url, {
      method: 'POST',
      headers: usual,
      signal: stop.signal,
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'chat', arguments: { prompt: 'hi' } } }),
    })
      .then(response => response.text())
      .catch(() => 'gone')
    await until(() => seen.started === 1)
    stop.abort()
    await call
    await until(() => seen.aborted.length === 1)
  })

  test('progress begins at zero and arrives with the answer in both eras', async () => {
    await remount(() => streamOf(frames))
    const heard: number[] = []
    const options = { onprogress: (progress: { progress: number }) => heard.push(progress.progress) }
    await (await connectV1()).callTool({ name: 'chat', arguments: { prompt: 'hi' } }, undefined, options)
    await (await connectV2()).callTool({ name: 'chat', arguments: { prompt: 'hi' } }, options)
    expect(heard).toEqual([0, 0])
  })
})
