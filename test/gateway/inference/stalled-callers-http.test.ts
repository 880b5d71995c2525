/** Callers who stop reading a stream, and then leave or are cut. The provider goes on meanwhile, and what it has made is charged. */
import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/platform/clock.ts'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import { until } from '../../harness/until.ts'
import { usageRows } from '../../harness/usage-rows.ts'

/** The gateway takes three characters for a token. */
const eventTokens = 1_000
const event = `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', model: 'm', choices: [{ index: 0, delta: { content: 'abc'.repeat(eventTokens) } }] })}\n\n`
const eventsMost = 1_500
const body = JSON.stringify({ model: 'alpha-only', stream: true, messages: [{ role: 'user', content: 'write for long' }] })

describe('callers who do not read', () => {
  let app: TestApp
  let provider: Server
  const replies: ServerResponse[] = []
  beforeAll(async () => {
    provider = createServer((request, response) => {
      request.resume().on('end', () => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.on('error', () => undefined)
        replies.push(response)
        response.write(event)
      })
    }).listen(0, '127.0.0.1')
    await once(provider, 'listening')
    const url = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`
    app = await startApp({ operatorFile: urls => defaultOperatorFile({ ...urls, alpha: url }) })
  })
  afterAll(async () => {
    await app.stop()
    provider.closeAllConnections()
    provider.close()
  })

  /** Begins a stream, reads its first bytes and stops. Resolves when the provider cannot send more, with the number of its events. */
  async function stalled(token = app.key): Promise<{ socket: Socket; events: number }> {
    const { hostname, port } = new URL(app.baseUrl)
    const socket = connect({ port: Number(port), host: hostname })
    socket.on('error', () => undefined)
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    )
    const [head] = (await once(socket, 'data')) as [Buffer]
    socket.pause()
    expect(head.toString('latin1').slice(0, 12)).toBe('HTTP/1.1 200')
    const sending = replies.pop()
    if (sending === undefined) throw new Error('the provider was not called')
    // All buffers together have about as much room. A provider that can send everything is read before the caller leaves.
    for (let events = 2; ; events++) {
      if (sending.write(event) && events < eventsMost) continue
      // Each wait includes a turn in which the gateway, which is in this process, could read.
      for (let waits = 0; sending.writableNeedDrain; waits++) {
        if (waits === 20) return { socket, events }
        await systemClock.sleep(50)
      }
      if (events < eventsMost) continue
      await systemClock.sleep(1_000)
      return { socket, events }
    }
  }
  const idle = () => until(() => app.gateway.app.inflight.size === 0, 'no call is in flight')

  test('a caller who stops reading and leaves pays at least 95 % of what the provider has sent', async () => {
    const { socket, events } = await stalled()
    socket.destroy()
    await idle()
    const [row] = await usageRows(app)
    expect(row).toMatchObject({ outcome: 'client_gone', estimated: true })
    expect(Number(row?.completionTokens)).toBeGreaterThanOrEqual(0.95 * events * eventTokens)
    expect(Number(row?.completionTokens)).toBeLessThanOrEqual(events * eventTokens)
  })

  test('a caller who stops reading and is cut by the kill switch pays for it as well', async () => {
    const agent = await app.newAgent('sleeper')
    const { socket, events } = await stalled(agent.token)
    expect((await app.call('POST', `/v1/me/agents/${agent.id}/revoke`, {})).status).toBe(200)
    await until(async () => (await usageRows(app))[0]?.outcome === 'cut', 'the cut call is settled')
    socket.destroy()
    await idle()
    const [row] = await usageRows(app)
    expect(row?.outcome).toBe('cut')
    expect(Number(row?.completionTokens)).toBeGreaterThanOrEqual(0.95 * events * eventTokens)
  })
})
