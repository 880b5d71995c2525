import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { type MovableClock, movableClock } from '../harness/clock.ts'
import { startProgram } from '../harness/started-program.ts'
import { startTcpProxy, type TcpProxy } from '../harness/tcp-proxy.ts'
import { until } from '../harness/until.ts'
import { brigade, discoverClient, eras, type StdioClient } from './stdio-clients.ts'

let app: TestApp
let clock: MovableClock
let proxy: TcpProxy
let home: string
const open: StdioClient[] = []

beforeAll(async () => {
  clock = movableClock()
  app = await startApp({ clock })
  await app.gateway.app.memory.useFolder(app.orgId)
  proxy = await startTcpProxy({ host: '127.0.0.1', port: Number(new URL(app.baseUrl).port) })
  home = mkdtempSync(join(tmpdir(), 'brigade-bridge-'))
})
afterAll(async () => {
  rmSync(home, { recursive: true, force: true })
  await proxy.close()
  await app.stop()
})
afterEach(async () => {
  app.alpha.reset()
  for (const client of open.splice(0)) await client.close()
})

const env = (key = app.key): Record<string, string> => ({ HOME: home, BRIGADE_KEY: key, BRIGADE: app.baseUrl })
async function kept<T extends StdioClient>(connecting: Promise<T>): Promise<T> {
  const client = await connecting
  open.push(client)
  return client
}

/** Runs `brigade mcp` with these lines on its input. Returns what it answers and how it ends. */
async function piped(lines: readonly (object | string)[], options: { env?: Record<string, string>; args?: string[]; keepOpen?: boolean } = {}) {
  const { child, out, err, ended } = startProgram(process.execPath, [brigade, 'mcp', ...(options.args ?? [])], { env: options.env ?? env(), stdin: 'open' })
  for (const line of lines) child.stdin?.write(`${typeof line === 'string' ? line : JSON.stringify(line)}\n`)
  if (options.keepOpen !== true) child.stdin?.end()
  // biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
  const messages = (): any[] =>
    out()
      .split('\n')
      .filter(line => line !== '')
      .map(line => JSON.parse(line))
  return { child, messages, stderr: err, code: () => ended }
}
const toolCall = (id: number | string, name: string, args: object = {}) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } })

describe.each(eras)('brigade mcp, %s', (era, connect) => {
  test('TOOL-03 a stdio client works as an agent on tokens that renew themselves, and the agent is the author of what it writes', async () => {
    const agent = await app.newAgent(`bridged ${era}`)
    const client = await kept(connect({ args: ['--agent', `bridged ${era}`], env: env() }))
    expect(await client.names()).toEqual(expect.arrayContaining(['chat', 'memory_write', 'whoami']))
    expect((await client.call('whoami')).structuredContent.principal).toMatchObject({ kind: 'agent', id: agent.id })
    // A token lives for 15 minutes. The client never sees the token and does not notice that it expires.
    clock.advance(20 * 60_000)
    const key = `agents/${agent.id}/era.md`
    expect((await client.call('memory_write', { key, content: 'from stdio' })).isError).toBeUndefined()
    const read = await app.call('GET', `/v1/me/memory/o?key=${key}`)
    expect([read.text, read.headers.get('x-br-meta-agent')]).toEqual(['from stdio', String(agent.id)])
    expect(client.stderr()).toBe('')
  })

  test('progress arrives while a call runs, and calls run concurrently', async () => {
    const client = await kept(connect({ env: env() }))
    app.alpha.script([{ holdAfterChunks: 3 }])
    const progress: string[] = []
    const chat = client.call('chat', { model: 'alpha-only', prompt: 'x' }, { onprogress: ({ message }) => progress.push(message ?? '') })
    await until(() => progress.length > 0, 'progress comes')
    const others = await Promise.all(Array.from({ length: 20 }, () => client.call('whoami')))
    expect(others.every(reply => reply.structuredContent.key.id === app.keyId)).toBe(true)
    app.alpha.release()
    expect((await chat).structuredContent.text).toBe('Hello from the test upstream')
  })

  test('a cancel ends the call at the provider and no other call', async () => {
    const client = await kept(connect({ env: env() }))
    const other = await kept(connect({ env: env() }))
    app.alpha.script([{ holdAfterChunks: 3 }, { holdAfterChunks: 3 }])
    const stop = new AbortController()
    const cancelled = client.call('chat', { model: 'alpha-only', prompt: 'mine' }, { signal: stop.signal }).catch(() => 'cancelled')
    await until(() => app.alpha.requests.length === 1, 'the provider is asked')
    // This call has the same JSON-RPC id and the same key, and comes from the same address.
    const going = other.call('chat', { model: 'alpha-only', prompt: 'other' })
    await until(() => app.alpha.requests.length === 2, 'the provider is asked twice')
    stop.abort()
    expect(await cancelled).toBe('cancelled')
    await until(() => app.alpha.requests[0]?.aborted === true, 'the provider is hung up on')
    expect(app.alpha.requests[1]?.aborted).toBe(false)
    app.alpha.release()
    expect((await going).structuredContent.text).toBe('Hello from the test upstream')
    expect((await client.call('whoami')).isError).toBeUndefined()
  })

  test('after an agent is revoked, each call says so', async () => {
    const agent = await app.newAgent(`doomed ${era}`)
    const client = await kept(connect({ args: ['--agent', String(agent.id)], env: env() }))
    await client.call('whoami')
    await app.call('POST', `/v1/me/agents/${agent.id}/revoke`, {})
    for (let round = 0; round < 2; round++) await expect(client.call('whoami')).rejects.toThrow(/revoked/)
    expect(client.stderr().match(/revoked/g)).toHaveLength(1)
  })

  test('calls fail and say why while the gateway is unreachable, and work again afterwards', async () => {
    const client = await kept(connect({ args: ['--base-url', `http://127.0.0.1:${proxy.port}`], env: env() }))
    app.alpha.script([{ holdAfterChunks: 3 }])
    const broken = client.call('chat', { model: 'alpha-only', prompt: 'x' }).catch((error: Error) => error.message)
    await until(() => app.alpha.requests.length === 1, 'the provider is asked')
    await proxy.cut()
    expect(await broken).toMatch(/connection to .* (was cut|broke)/)
    await expect(client.call('whoami')).rejects.toThrow(/nothing listens at/i)
    await proxy.restore()
    expect((await client.call('whoami')).isError).toBeUndefined()
    expect(client.stderr()).toContain('The request may have been carried out')
  })

  test('a text of 200 KiB passes completely in both directions', async () => {
    const client = await kept(connect({ env: env() }))
    const content = 'ü–\u2028"\\ '.repeat(20_000).slice(0, 80_000)
    await client.call('memory_write', { key: 'agents/big/text.md', content })
    expect((await app.call('GET', '/v1/me/memory/o?key=agents/big/text.md')).text).toBe(content)
    expect((await client.call('memory_read', { key: 'agents/big/text.md' })).isError).toBeUndefined()
  })

  test('closing the client ends the process and its calls', async () => {
    const client = await connect({ env: env() })
    app.alpha.script([{ holdAfterChunks: 3 }])
    const chat = client.call('chat', { model: 'alpha-only', prompt: 'x' }).catch(() => 'closed')
    await until(() => app.alpha.requests.length === 1, 'the provider is asked')
    const { pid } = client
    await client.close()
    expect(await chat).toBe('closed')
    await until(() => app.alpha.requests[0]?.aborted === true, 'the provider is hung up on')
    await until(() => !isRunning(pid), 'the process has ended')
  })
})

function isRunning(pid: number | null): boolean {
  try {
    return pid !== null && process.kill(pid, 0)
  } catch {
    return false
  }
}

test('a stream of changes is passed on, and ends when the client closes it', async () => {
  const { client } = await kept(discoverClient({ env: env() }))
  const seen: string[] = []
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => void seen.push(params.uri))
  const subscription = await client.listen({ resourceSubscriptions: ['memory://agents/news/a.md'] })
  await app.call('PUT', '/v1/me/memory/o?key=agents/news/a.md', 'news')
  await until(() => seen.length > 0, 'the change is told')
  expect(seen).toEqual(['memory://agents/news/a.md'])
  await subscription.close()
  expect((await client.callTool({ name: 'whoami', arguments: {} })).isError).toBeUndefined()
})

test('lines from a pipe are answered, also in a batch, and the process exits with 0', async () => {
  const content = 'piped'
  const { messages, code, stderr } = await piped([
    toolCall('w', 'memory_write', { key: 'agents/pipe/a.md', content }),
    [toolCall(1, 'whoami'), { jsonrpc: '2.0', method: 'notifications/initialized' }],
    'no json',
    { jsonrpc: '2.0', id: null, method: 'ping' },
  ])
  expect(await code()).toBe(0)
  expect(messages()).toHaveLength(4)
  expect(messages()).toContainEqual({ jsonrpc: '2.0', id: null, error: { code: -32600, message: 'The line is no JSON-RPC message.' } })
  expect(messages()).toContainEqual({ jsonrpc: '2.0', id: null, error: { code: -32700, message: 'The line is no JSON-RPC message.' } })
  expect(messages().map(({ id }) => id)).toEqual(expect.arrayContaining(['w', 1]))
  expect(stderr()).toBe('')
  expect((await app.call('GET', '/v1/me/memory/o?key=agents/pipe/a.md')).text).toBe(content)
})

test('a message that is too large for the gateway is refused, and the next message is answered', async () => {
  const content = 'x'.repeat(5 * 1024 * 1024)
  const { messages, code } = await piped([toolCall(1, 'memory_write', { key: 'agents/big/b.md', content }), toolCall(2, 'whoami')])
  expect(await code()).toBe(0)
  expect(messages().find(({ id }) => id === 1)?.error).toMatchObject({ code: -32000, data: { status: 413, code: 'payload_too_large' } })
  expect(messages().find(({ id }) => id === 2)?.result.structuredContent.key.id).toBe(app.keyId)
})

test('calls that still run at the end of the input are ended', async () => {
  app.alpha.script([{ holdAfterChunks: 3 }])
  const { code, child } = await piped([toolCall(1, 'chat', { model: 'alpha-only', prompt: 'x' })], { keepOpen: true })
  await until(() => app.alpha.requests.length === 1, 'the provider is asked')
  child.stdin?.end()
  expect(await code()).toBe(0)
  await until(() => app.alpha.requests[0]?.aborted === true, 'the provider is hung up on')
})

test('when the client disconnects, the process and its calls end', async () => {
  app.alpha.script([{ chunks: Array.from({ length: 2000 }, () => 'x '), chunkIntervalMs: 5 }])
  const { child, code } = await piped(
    [
      {
        ...toolCall(1, 'chat', { model: 'alpha-only', prompt: 'x' }),
        params: { name: 'chat', arguments: { model: 'alpha-only', prompt: 'x' }, _meta: { progressToken: 1 } },
      },
    ],
    { keepOpen: true },
  )
  await until(() => app.alpha.requests.length === 1, 'the provider is asked')
  child.stdout?.destroy()
  await code()
  await until(() => app.alpha.requests[0]?.aborted === true, 'the provider is hung up on')
})

describe('brigade mcp with an unusable credential or agent', () => {
  test.each([
    { what: 'nobody is signed in', given: () => ({ HOME: home, BRIGADE: app.baseUrl }), says: /not signed in.*brigade login/ },
    { what: 'the key is unknown', given: () => env('br-00000000000000000000000000000000'), says: /does not accept the credential of BRIGADE_KEY/ },
  ])('$what, so every answer says why and the process exits with 3', async ({ given, says }) => {
    const { messages, code, stderr } = await piped([toolCall(1, 'whoami'), toolCall(2, 'whoami')], { env: given() })
    expect(await code()).toBe(3)
    expect(messages().map(({ id, error }) => [id, error.code, says.test(error.message)])).toEqual(
      expect.arrayContaining([
        [1, -32000, true],
        [2, -32000, true],
      ]),
    )
    expect(stderr()).toMatch(says)
  })

  test('the agent is revoked, so every answer says why and the process exits with 3', async () => {
    const agent = await app.newAgent('revoked before')
    await app.call('POST', `/v1/me/agents/${agent.id}/revoke`, {})
    const { messages, code } = await piped([toolCall(1, 'whoami')], { args: ['--agent', 'revoked before'] })
    expect(await code()).toBe(3)
    expect(messages()[0].error).toMatchObject({ code: -32000, data: { reason: 'agent_revoked' } })
  })

  test('the agent does not exist, so the answer says how to create it', async () => {
    const { messages, code } = await piped([toolCall(1, 'whoami')], { args: ['--agent', 'nobody'] })
    expect(await code()).toBe(0)
    expect(messages()[0].error.message).toContain('brigade agent create nobody')
  })
})

test('--toolsets limits the tools that the client sees', async () => {
  const client = await kept(discoverClient({ args: ['--toolsets', 'memory'], env: env() }))
  const names = await client.names()
  expect(names).toContain('memory_write')
  expect(names).not.toContain('chat')
})
