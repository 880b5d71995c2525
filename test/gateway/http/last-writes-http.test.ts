/** The bytes that a reply hands to the network when it ends. They count as unread until they are sent. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { systemClock } from '../../../src/platform/clock.ts'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import { until } from '../../harness/until.ts'
import { info } from '../../mcp/mcp-clients.ts'

const longMs = 60_000
/** The longest time in which the kernel takes what it has room for. */
const settlingMs = 50
let app: TestApp
const ends: (() => void)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) end()
  await app.stop()
})

const unreadBytes = async (): Promise<number> => {
  const { text } = await app.call('GET', '/metrics')
  return Number(/^brigade_replies_unread_bytes (\d+)$/m.exec(text)?.[1] ?? Number.NaN)
}

/** Opens a connection that reads nothing. Returns both of its ends. */
async function unread(): Promise<{ client: Socket; served: Socket }> {
  const accepted = once(app.gateway.app.server, 'connection')
  const { hostname, port } = new URL(app.baseUrl)
  const client = connect({ port: Number(port), host: hostname }).pause()
  client.on('error', () => undefined)
  ends.push(() => client.destroy())
  const [served] = (await accepted) as [Socket]
  return { client, served }
}

const post = (path: string, body: object, headers: Readonly<Record<string, string>> = {}): string => {
  const text = JSON.stringify(body)
  const all = { host: 'gateway', authorization: `Bearer ${app.key}`, 'content-type': 'application/json', 'content-length': `${text.length}`, ...headers }
  return `POST ${path} HTTP/1.1\r\n${Object.entries(all)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n${text}`
}

/** Repeats a step until the kernel has no room for its bytes, so that some of them stay in this process. */
async function fill(served: Socket, step: () => Promise<void>): Promise<void> {
  for (let count = 0; count < 5_000; count++) {
    await step()
    if (served.writableLength === 0) continue
    await systemClock.sleep(settlingMs)
    if (served.writableLength > 0) return
  }
  throw new Error('the kernel takes everything')
}

test(
  'HARD-02 the last write of a stream counts as an unread reply until its client reads it',
  async () => {
    let provider = null as ServerResponse | null
    const upstream = createServer((request, response) => {
      request.resume().once('end', () => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        provider = response
      })
    })
    upstream.listen(0, '127.0.0.1')
    await once(upstream, 'listening')
    ends.push(() => upstream.close())
    app = await startApp({
      env: { KEEP_ALIVE_MS: '86400000' },
      operatorFile: urls => defaultOperatorFile({ ...urls, alpha: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1` }),
    })
    const { client, served } = await unread()
    client.write(post('/v1/chat/completions', { model: 'alpha-only', stream: true, messages: [{ role: 'user', content: 'hi' }] }))
    await until(() => provider !== null, 'the provider is called')
    const chunk = (delta: object, finish: string | null = null): string =>
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
    // Shorter than what one write of the stream may leave in the process without counting.
    const event = chunk({ content: 'x'.repeat(10_000) })
    await fill(served, async () => {
      const sent = served.bytesWritten + event.length
      provider?.write(event)
      await until(() => served.bytesWritten >= sent, 'the event is relayed')
    })
    expect(await unreadBytes()).toBe(0)
    provider?.end(`${chunk({}, 'stop')}data: [DONE]\n\n`)
    await until(async () => (await unreadBytes()) > 0, 'the end of the stream counts', 10_000)
    client.resume()
    await until(async () => (await unreadBytes()) === 0, 'the client has read the stream')
  },
  longMs,
)

test.each([
  ['2025-06-18', {}],
  [
    '2026-07-28',
    {
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': info,
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  ],
])(
  'HARD-02 the last write of an answer to an MCP message counts as an unread reply until its client reads it: %s',
  async (version, params) => {
    app = await startApp({})
    const { client, served } = await unread()
    const message = post(
      '/mcp',
      { jsonrpc: '2.0', id: 1, method: 'tools/list', params },
      { accept: 'application/json, text/event-stream', 'mcp-protocol-version': version, 'mcp-method': 'tools/list' },
    )
    await fill(served, async () => {
      const before = served.bytesWritten
      client.write(message)
      await until(() => served.bytesWritten > before, 'the message is answered')
      // The rest of the answer and its end come with the same work.
      await systemClock.sleep(5)
    })
    expect(await unreadBytes()).toBeGreaterThan(0)
    client.resume()
    await until(async () => (await unreadBytes()) === 0, 'the client has read the answers')
  },
  longMs,
)
