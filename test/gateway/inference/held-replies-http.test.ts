/** One bound limits the bytes of all replies that the process keeps, with a share for each founder. Only the call that exceeds it ends. */
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { until } from '../../harness/until.ts'
import { usageRows } from '../../harness/usage-rows.ts'
import { wholeChat } from '../../harness/whole-chat.ts'

const messages = [{ role: 'user', content: 'hello' }]
const paths = {
  '/v1/chat/completions': { messages },
  '/v1/messages': { messages, max_tokens: 50 },
  '/v1/responses': { input: 'hello' },
} as const
type Path = keyof typeof paths
const all = Object.keys(paths) as Path[]
/** One founder may use half of this room. */
const roomBytes = 1_000_000
const json = { 'content-type': 'application/json' }
const delta = (content: string): string => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`
const end = `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\ndata: [DONE]\n\n`

describe('the room for replies', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ env: { REPLIES_MAX_BYTES: String(roomBytes) } })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta]) upstream.reset()
  })
  const ask = (path: Path, more: object = {}) => app.call('POST', path, { model: 'test-model', provider: 'alpha', ...paths[path], ...more })
  const figure = async (name: string): Promise<number> => {
    const { text } = await app.call('GET', '/metrics', undefined, { token: null })
    return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? Number.NaN)
  }
  const held = (): Promise<number> => figure('brigade_replies_held_bytes')

  test('HARD-03 whole replies that arrive concurrently wait for room, and all are served', async () => {
    const text = wholeChat(400_000)
    const parts = { rawStream: [text.slice(0, 390_000), text.slice(390_000)], holdAfterRawParts: 1, headers: json }
    app.alpha.script([parts, parts, parts])
    const calls = [1, 2, 3].map(() => ask('/v1/chat/completions'))
    await until(async () => (await figure('brigade_replies_waits_total')) > 0, 'a reply waits for room')
    expect(await held()).toBeLessThanOrEqual(roomBytes / 2)
    app.alpha.release()
    for (const reply of await Promise.all(calls)) expect([reply.status, reply.text.length > 400_000]).toEqual([200, true])
    expect(await held()).toBe(0)
  })

  test('HARD-03 a single whole reply that is larger than the room is still read', async () => {
    for (const path of all) {
      app.alpha.script([{ body: wholeChat(1_500_000), headers: json }])
      expect((await ask(path)).status).toBe(200)
      expect(await held()).toBe(0)
    }
  })

  test('HARD-03 a compressed reply also waits for room', async () => {
    const text = wholeChat(400_000)
    const first = { rawStream: [text.slice(0, 390_000), text.slice(390_000)], holdAfterRawParts: 1, headers: json }
    app.alpha.script([first, { rawStream: [new Uint8Array(gzipSync(text))], headers: { ...json, 'content-encoding': 'gzip' } }])
    const before = await figure('brigade_replies_waits_total')
    const calls = [ask('/v1/chat/completions')]
    await until(async () => (await held()) > 300_000, 'the first reply is kept')
    calls.push(ask('/v1/chat/completions'))
    await until(async () => (await figure('brigade_replies_waits_total')) > before, 'the second reply waits for room')
    app.alpha.release()
    for (const reply of await Promise.all(calls)) expect([reply.status, reply.text.length > 400_000]).toEqual([200, true])
    expect(await held()).toBe(0)
  })

  test.each(all)('HARD-03 a stream with an event that has no room ends with an error frame: %s', async path => {
    app.alpha.script([{ rawStream: [delta('begins'), 'data: {"choices":[{"index":0,"delta":{"content":"', 'a'.repeat(700_000)], holdAfterRaw: true }])
    const reply = await ask(path, { stream: true })
    expect(reply.status).toBe(200)
    expect(reply.text).toContain('begins')
    expect(reply.text).toContain('REPLIES_MAX_BYTES')
    expect(reply.text).not.toContain('aaaa')
    await until(async () => (await held()) === 0, 'nothing is kept any more')
    expect(app.gateway.app.circuits.openRoutes()).toEqual([])
  })

  test('HARD-03 output that a stream repeats at its end uses room while it is kept', async () => {
    const pieces = Array.from({ length: 14 }, () => delta('b'.repeat(50_000)))
    app.alpha.script(() => ({ rawStream: [...pieces, end] }))
    const repeated = await ask('/v1/responses', { stream: true })
    expect(repeated.text).toContain('REPLIES_MAX_BYTES')
    for (const path of ['/v1/chat/completions', '/v1/messages'] as const) {
      const passed = await ask(path, { stream: true })
      expect(passed.text).not.toContain('REPLIES_MAX_BYTES')
      expect(passed.text.split('b'.repeat(50_000)).length).toBe(15)
    }
    await until(async () => (await held()) === 0, 'nothing is kept any more')
  })

  test('HARD-03 when the first event of a stream has no room, the call is 503 and charged, and no other provider is called', async () => {
    app.alpha.script([{ rawStream: ['data: {"choices":[{"index":0,"delta":{"content":"', 'a'.repeat(700_000)], holdAfterRaw: true }])
    const reply = await app.call('POST', '/v1/chat/completions', { model: 'test-model', messages, stream: true })
    expect([reply.status, reply.headers.get('retry-after'), reply.json.error?.code]).toEqual([503, '2', 'temporarily_unavailable'])
    expect(reply.json).toMatchObject({ limit_name: 'REPLIES_MAX_BYTES' })
    expect([app.alpha.requests.length, app.beta.requests.length]).toEqual([1, 0])
    const [row] = await usageRows(app)
    expect(row).toMatchObject({ outcome: 'failed', status: 503, estimated: true })
    expect(Number(row?.completionTokens)).toBeGreaterThan(0)
    expect(app.gateway.app.circuits.openRoutes()).toEqual([])
    expect(await held()).toBe(0)
  })
})
