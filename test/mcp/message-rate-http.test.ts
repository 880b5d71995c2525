import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/platform/clock.ts'
import { startApp, type TestApp } from '../harness/app.ts'
import { closeClients, connectV1, connectV2, discoverPost } from './raw-clients.ts'

let app: TestApp
beforeAll(async () => {
  // The clock does not move, so that the rate's minute does not end during a test.
  const nowMs = Date.now()
  app = await startApp({ clock: { ...systemClock, nowMs: () => nowMs }, env: { FOLDER_STORE: 'on' } })
  expect((await app.call('PUT', '/v1/me/memory-store', { store: 'folder', quota_mb: 100 })).status).toBe(200)
})
afterAll(() => app?.stop())
afterEach(closeClients)

const post = (token: string, body: unknown): Promise<Response> =>
  fetch(`${app.baseUrl}/mcp`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify(body),
  })
const message = (id: number, method: string, params?: object) => ({ jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) })
// biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
const messagesIn = (text: string): any[] => {
  if (/^[[{]/.test(text)) return [JSON.parse(text)].flat()
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data ?? 'null'))
}
/** Returns the units that the key has left. It uses them up over HTTP. */
const unitsLeft = async (token: string): Promise<number> => {
  for (let used = 0; ; used++) if ((await app.call('GET', '/v1/models', undefined, { token })).status === 429) return used
}
const initialize = message(1, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } })

describe('the rate of messages to /mcp', () => {
  test.each<[string, (token: string) => Promise<Response>]>([
    ['initialize', token => post(token, initialize)],
    ['a notification', token => post(token, { jsonrpc: '2.0', method: 'notifications/initialized' })],
    ['an answer', token => post(token, { jsonrpc: '2.0', id: 9, result: {} })],
    ['ping', token => post(token, message(1, 'ping'))],
    ['tools/list', token => post(token, message(1, 'tools/list'))],
    ['resources/list', token => post(token, message(1, 'resources/list'))],
    ['resources/templates/list', token => post(token, message(1, 'resources/templates/list'))],
    ['resources/read', token => post(token, message(1, 'resources/read', { uri: 'brigade://whoami' }))],
    ['prompts/list', token => post(token, message(1, 'prompts/list'))],
    ['prompts/get', token => post(token, message(1, 'prompts/get', { name: 'handoff', arguments: { to: 'anna' } }))],
    [
      'completion/complete',
      token => post(token, message(1, 'completion/complete', { ref: { type: 'ref/prompt', name: 'recall' }, argument: { name: 'topic', value: '' } })),
    ],
    ['tools/call', token => post(token, message(1, 'tools/call', { name: 'whoami', arguments: {} }))],
    ['an unknown method', token => post(token, message(1, 'nothing/such'))],
    ['a body that is no message', token => post(token, 'nothing')],
    ['server/discover', token => discoverPost(app.baseUrl, token, 'server/discover', {})],
    ['tools/list of the discover era', token => discoverPost(app.baseUrl, token, 'tools/list', {})],
    ['resources/read of the discover era', token => discoverPost(app.baseUrl, token, 'resources/read', { uri: 'brigade://whoami' })],
    ['tools/call of the discover era', token => discoverPost(app.baseUrl, token, 'tools/call', { name: 'whoami', arguments: {} })],
  ])('HARD-10 %s takes one unit of the rate, and gets 429 with retry-after when no unit is left', async (_name, send) => {
    const { key } = await app.newKey({ rpm: 4 })
    await (await send(key)).text()
    expect(await unitsLeft(key)).toBe(3)
    const refused = await send(key)
    expect([refused.status, await refused.json()]).toEqual([
      429,
      { error: expect.objectContaining({ code: 'rate_limit_exceeded' }), scope: 'key', limit: 4, resets_at: expect.stringMatching(/:00\.000Z$/) },
    ])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  })

  test('HARD-10 a batch pays for each of its messages. Messages beyond the rate are refused one by one, and the others are answered', async () => {
    const { key } = await app.newKey({ rpm: 5 })
    const reply = await post(key, [...Array.from({ length: 7 }, (_, n) => message(n, 'ping')), { jsonrpc: '2.0', method: 'notifications/initialized' }])
    const answers = messagesIn(await reply.text())
    expect([reply.status, answers.length]).toEqual([200, 7])
    expect(answers.filter(answer => answer.result !== undefined).map(answer => answer.id)).toEqual([0, 1, 2, 3, 4])
    for (const { id, error } of answers.filter(answer => answer.error !== undefined)) {
      expect([5, 6]).toContain(id)
      expect(error).toMatchObject({ code: -32000, data: { code: 'rate_limit_exceeded', status: 429, retry_after_s: expect.any(Number) } })
    }
    expect((await post(key, [message(1, 'ping')])).status).toBe(429)
    // When the messages within the rate expect no answer, the refused ones still get one.
    const { key: second } = await app.newKey({ rpm: 1 })
    const refused = await post(second, [{ jsonrpc: '2.0', method: 'notifications/initialized' }, message(7, 'ping')])
    expect([refused.status, messagesIn(await refused.text())]).toEqual([
      200,
      [expect.objectContaining({ id: 7, error: expect.objectContaining({ code: -32000 }) })],
    ])
  })

  test('HARD-10 the clients of both SDKs read the code of the refusal', async () => {
    for (const connect of [connectV1, connectV2]) {
      const { key } = await app.newKey({ rpm: 6 })
      const client = await connect(app.baseUrl, key)
      await unitsLeft(key)
      await expect(client.listTools()).rejects.toThrow(/rate_limit_exceeded/)
    }
  })

  test('HARD-10 a tool that calls several rows pays for each of them, and a tool that calls one row pays once', async () => {
    const { key } = await app.newKey({ rpm: 5 })
    // memory_paths calls two rows.
    expect(messagesIn(await (await post(key, message(1, 'tools/call', { name: 'memory_paths', arguments: {} }))).text())[0].result.isError).toBeUndefined()
    expect(await unitsLeft(key)).toBe(3)
  })
})

describe('the size of answers', () => {
  const boundBytes = 2 * 1024 * 1024

  test('HARD-10 the answers to one POST have at most 2 MiB in all, and each message whose answer does not fit gets an error that says so', async () => {
    expect((await app.call('PUT', '/v1/me/memory/o?key=agents/large.md', 'x'.repeat(40_000))).status).toBe(200)
    const read = (id: number) => message(id, 'tools/call', { name: 'memory_read', arguments: { key: 'agents/large.md' } })
    for (const batch of [Array.from({ length: 100 }, (_, id) => message(id, 'tools/list')), Array.from({ length: 60 }, (_, id) => read(id))]) {
      const text = await (await post(app.key, batch)).text()
      // The error answers are short and are not counted in the bound.
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(boundBytes + batch.length * 1024)
      const answers = messagesIn(text)
      expect(new Set(answers.map(answer => answer.id)).size).toBe(batch.length)
      const refused = answers.filter(answer => answer.error !== undefined)
      expect(refused.length).toBeGreaterThan(0)
      expect(answers.length - refused.length).toBeGreaterThan(20)
      for (const { error } of refused) expect(error).toMatchObject({ code: -32000, data: { code: 'payload_too_large', status: 413 } })
    }
  })
})
