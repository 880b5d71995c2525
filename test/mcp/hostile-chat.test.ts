/** The chat tool on an organisation's own server that never stops sending. The damage is limited to that call, and the gateway closes the connection. */
import type { LookupFunction } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { chatAnswerMaxBytes } from '../../src/mcp/tools/chat/chat-stream.ts'
import { startApp, type TestApp, until } from '../harness/app.ts'
import { startUpstream, type UpstreamServer } from '../harness/upstream-server.ts'
import { mcpClients } from './mcp-clients.ts'

let app: TestApp
let own: UpstreamServer
let provider = ''
beforeAll(async () => {
  own = await startUpstream()
  const lookup: LookupFunction = (_host, options, done) => (options.all ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4))
  app = await startApp({ lookup, env: { OUTBOUND_ALLOW: new URL(own.url).host, CIRCUIT_FAILURES: '1000' } })
  const endpoint = { name: 'endless server', model: 'test-model', base_url: own.url, upstream_model: 'm', key: 'sk-own-server-key' }
  const made = await app.call('POST', '/me/endpoints', endpoint, { cookie: await app.signIn() })
  expect(made.status, made.text).toBe(201)
  provider = made.json.endpoint.provider_ref
})
afterAll(async () => {
  await app.stop()
  await own.close()
})
beforeEach(() => {
  own.reset()
  app.alpha.reset()
})
const clients = mcpClients(() => app)
afterEach(() => clients.closeAll())

const chunk = (delta: object): string => `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`

/** Yields so much text that the stream ends in time only when its reader stops. */
function* endless(piece: string, begin = ''): Generator<string> {
  if (begin !== '') yield begin
  const block = piece.repeat(Math.ceil(65_536 / piece.length))
  for (let bytes = 0; bytes < 2 ** 30; bytes += block.length) yield block
}

const totals = async () => (await app.call('GET', '/v1/usage')).json.totals

describe.each(clients.eras)('HARD-03 in the %s', (_era, connect) => {
  /** Calls the tool, and waits until the call is settled and the gateway has closed the server's connection. */
  async function ask(rawStream: Iterable<string>) {
    const before = await totals()
    own.script([{ rawStream }])
    const client = await connect()
    const reply = await client.call('chat', { model: 'test-model', provider, prompt: 'x' })
    await until(() => own.requests.at(-1)?.aborted === true)
    await until(async () => (await totals()).requests > before.requests)
    expect((await totals()).requests).toBe(before.requests + 1)
    return reply
  }

  test.each([
    ['text', 'text', chunk({ content: 'word "quoted"\n' })],
    ['reasoning', 'reasoning', chunk({ reasoning_content: 'hm ' })],
  ] as const)('endless %s is cut at the bound, marked as cut, and settled once', { timeout: 60_000 }, async (_name, field, piece) => {
    const { isError, data, text } = await ask(endless(piece))
    expect([isError, data.finish_reason, data.usage.estimated]).toEqual([undefined, 'too_long', true])
    const bytes = Buffer.byteLength(JSON.stringify(data[field])) - 2
    expect(bytes).toBeLessThanOrEqual(chatAnswerMaxBytes)
    expect(bytes).toBeGreaterThan(chatAnswerMaxBytes - 100)
    expect(text).toContain(`cut short at ${chatAnswerMaxBytes} bytes`)
  })

  test.each([
    ['line', () => endless('a'.repeat(1000), 'data: {"choices":[{"delta":{"content":"')],
    ['event', () => endless('data: a\n', chunk({ content: 'begun' }))],
    ['event behind lone CRs', () => endless('data: a\r', chunk({ content: 'begun' }))],
  ])('an endless %s ends the answer with an error', { timeout: 60_000 }, async (_name, stream) => {
    const { isError, text, data } = await ask(stream())
    expect([isError, text]).toEqual([true, expect.stringContaining('too long')])
    expect(['upstream_stream_error', 'all_routes_failed']).toContain(data.code)
  })

  test('a whole answer that is too long is cut between two characters', async () => {
    app.alpha.script([{ body: { choices: [{ index: 0, message: { role: 'assistant', content: '😀'.repeat(400_000) }, finish_reason: 'stop' }] } }])
    const { data } = await (await connect()).call('chat', { model: 'alpha-only', prompt: 'x' })
    expect([data.finish_reason, data.text.length, data.text.replaceAll('😀', '')]).toEqual(['too_long', chatAnswerMaxBytes / 2, ''])
  })
})
