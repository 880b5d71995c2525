import { brotliCompressSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp, until } from '../../harness/app.ts'

let app: TestApp

beforeAll(async () => {
  app = await startApp({ dialects: true, env: { STREAM_IDLE_TIMEOUT_MS: '1500' } })
})
afterAll(() => app.stop())
beforeEach(() => {
  for (const server of [app.alpha, app.beta, app.indus]) server.reset()
})

const body = { model: 'alpha-only', max_tokens: 2000, messages: [{ role: 'user', content: 'Hi' }] }
const streamed = { ...body, stream: true }
const namesIn = (text: string): string[] => [...text.matchAll(/^event: (.*)$/gm)].map(([, name]) => name ?? '')
const lastOutcome = statement<[], { readonly outcome: string; readonly completion: number }>(
  'test.messages_stream_outcome',
  `select outcome as "outcome", completion_tokens::int as "completion" from usage_events order by id desc limit 1`,
)

async function open(signal?: AbortSignal): Promise<Response> {
  const headers = { 'x-api-key': app.key, 'content-type': 'application/json' }
  return fetch(`${app.baseUrl}/v1/messages`, { method: 'POST', headers, body: JSON.stringify(streamed), ...(signal ? { signal } : {}) })
}

test('case 67 a body that is compressed without a request for it is read', async () => {
  const whole = JSON.stringify({
    id: 'c',
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content: 'packed' }, finish_reason: 'stop' }],
  })
  const stream = 'data: {"choices":[{"index":0,"delta":{"content":"packed"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
  const packings = [
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
  ] as const
  for (const [encoding, pack] of packings) {
    app.alpha.script({ rawStream: [pack(whole)], headers: { 'content-type': 'application/json', 'content-encoding': encoding } })
    expect((await app.call('POST', '/v1/messages', body)).json.content).toEqual([{ type: 'text', text: 'packed' }])
    app.alpha.script({ rawStream: [pack(stream)], headers: { 'content-encoding': encoding } })
    expect((await app.call('POST', '/v1/messages', streamed)).text).toContain('"text":"packed"')
  }
  app.alpha.script({ rawStream: ['?'], headers: { 'content-encoding': 'pack200' } })
  expect((await app.call('POST', '/v1/messages', body)).status).toBe(502)
})

test('case 70 the first event is sent before the second arrives', async () => {
  app.alpha.script({ holdAfterChunks: 1 })
  const response = await open()
  const reader = response.body?.getReader()
  let text = ''
  await until(async () => {
    text += Buffer.from((await reader?.read())?.value ?? []).toString()
    return text.includes('text_delta')
  })
  expect(response.headers.get('x-br-provider')).toBe('alpha')
  expect(namesIn(text)).not.toContain('message_stop')
  app.alpha.release()
  for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) text += Buffer.from(part.value).toString()
  expect(namesIn(text).at(-1)).toBe('message_stop')
})

test('case 70 a client that does not read pauses the provider, and the gateway does not buffer the stream', async () => {
  const parts = 400
  const text = 'x'.repeat(64 * 1024)
  let given = 0
  const long = {
    *[Symbol.iterator]() {
      for (; given < parts; given++) yield `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text }, finish_reason: null }] })}\n\n`
      yield 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    },
  }
  app.alpha.script({ rawStream: long })
  const reader = (await open()).body?.getReader()
  let got = Buffer.from((await reader?.read())?.value ?? []).toString()
  let last = -1
  await until(async () => {
    const isStill = given === last
    last = given
    await new Promise(resolve => setTimeout(resolve, 300))
    return isStill
  })
  // The provider has 25 MB to send. Only the buffers of the sockets in between are filled.
  expect(given).toBeLessThan(parts / 2)
  for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) got += Buffer.from(part.value).toString()
  expect(got.split(text).length - 1).toBe(parts)
  expect(namesIn(got).at(-1)).toBe('message_stop')
})

test('case 71 when a client disconnects, the upstream call ends and the output so far is charged', async () => {
  const controller = new AbortController()
  app.alpha.script({ holdAfterChunks: 3 })
  const response = await open(controller.signal)
  await response.body?.getReader().read()
  controller.abort()
  await until(() => app.alpha.requests[0]?.aborted === true)
  await until(async () => {
    await app.gateway.app.limits.flushNow()
    return (await app.db.maybe(lastOutcome))?.outcome === 'client_gone'
  })
  expect((await app.db.one(lastOutcome)).completion).toBeGreaterThan(0)
})

test('case 72 a stream that becomes silent ends with one error event', async () => {
  app.alpha.script({ holdAfterChunks: 2 })
  const got = await app.call('POST', '/v1/messages', streamed)
  expect(namesIn(got.text).filter(name => name === 'error' || name === 'message_stop')).toEqual(['error'])
  expect(namesIn(got.text).at(-1)).toBe('error')
})

test('case 64 an error inside a stream becomes an error event, which is the last event', async () => {
  app.alpha.script({ holdAfterChunks: 2, errorFrameAfterChunks: 2 })
  const response = await open()
  const reader = response.body?.getReader()
  let text = ''
  for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) {
    text += Buffer.from(part.value).toString()
    if (text.includes('text_delta')) app.alpha.release()
  }
  expect(namesIn(text).filter(name => name === 'error' || name === 'message_stop')).toEqual(['error'])
  expect(namesIn(text).at(-1)).toBe('error')
  expect(text).toMatch(/event: error\ndata: {"type":"error","error":{"type":"[a-z_]+","message":".+","code":".+"}}/)
})

test('case 74 a stream that breaks off ends with one error event', async () => {
  app.alpha.script({ breakAfterChunks: 2 })
  const got = await app.call('POST', '/v1/messages', streamed)
  expect(namesIn(got.text).filter(name => name === 'error' || name === 'message_stop')).toEqual(['error'])
  expect(got.text).toContain('"code":"upstream_stream_error"')
})

test('case 75 a budget that is used up during a stream ends it with an error event that says so', async () => {
  const { key } = await app.newKey({ budgetInr: 0.03 })
  app.alpha.script({ chunks: Array.from({ length: 400 }, () => 'word '.repeat(20)) })
  const got = await app.call('POST', '/v1/messages', { ...streamed, max_tokens: 100_000 }, { token: key })
  expect(got.status).toBe(200)
  expect(namesIn(got.text).at(-1)).toBe('error')
  expect(namesIn(got.text)).not.toContain('message_stop')
  expect(got.text).toContain('"error":{"type":"billing_error"')
  expect(got.text).toContain('"code":"budget_exceeded"')
})

test('case 76 failover happens only before the first byte, and there is one message_start', async () => {
  const model = { ...streamed, model: 'test-model' }
  app.alpha.script({ status: 500 })
  app.beta.script({ rawStream: ['data: {"error":{"message":"no"}}\n\n'] })
  const third = await app.call('POST', '/v1/messages', model)
  expect(third.headers.get('x-br-provider')).toBe('indus')
  expect(namesIn(third.text).filter(name => name === 'message_start')).toHaveLength(1)
  app.indus.reset()
  app.alpha.script({ breakAfterChunks: 1 })
  const broken = await app.call('POST', '/v1/messages', model)
  expect(broken.headers.get('x-br-provider')).toBe('alpha')
  expect(namesIn(broken.text).filter(name => name === 'message_start')).toHaveLength(1)
  expect(app.indus.requests).toHaveLength(0)
})
