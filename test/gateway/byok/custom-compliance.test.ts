import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Compliance } from '../../../src/gateway/byok/checks/compliance.ts'
import { testCompliance } from '../../../src/gateway/byok/checks/compliance-run.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { Cancellation } from '../../../src/platform/loop/cancellation.ts'
import { createOutbound, type Outbound } from '../../../src/platform/outbound/outbound.ts'
import { Secret } from '../../../src/platform/security/secret.ts'
import { asksForTool, isMalformed, isStream, type OwnServer, startOwnServer, toolReply } from './own-server.ts'

const key = 'own-key-0123456789-SECRET'

describe('the test of a custom endpoint', () => {
  let server: OwnServer
  let outbound: Outbound
  beforeAll(async () => {
    server = await startOwnServer()
    outbound = createOutbound({ connectTimeoutMs: 1000, firstByteTimeoutMs: 5000, streamIdleTimeoutMs: 5000, allow: [server.hostPort, '127.0.0.1:1'] })
  })
  afterAll(async () => {
    await outbound.close()
    await server.close()
  })
  beforeEach(() => server.behave())

  const run = (options: { expectsTools?: boolean; timeoutMs?: number; url?: string; signal?: Cancellation } = {}): Promise<Compliance> =>
    testCompliance(
      {
        provider: {
          id: 'byoe:new',
          name: 'Own',
          dialect: 'openai',
          baseUrl: options.url ?? server.url,
          auth: 'bearer',
          residency: 'global',
          byok: true,
          keyShape: null,
          quirks: [],
          platformKey: new Secret(key),
          configured: true,
          userGiven: true,
        },
        upstreamModel: 'own-model',
        expectsTools: options.expectsTools ?? true,
      },
      options.signal ?? new Cancellation(),
      { dial: request => outbound.toUserUrl(request), clock: systemClock, timeoutMs: options.timeoutMs ?? 30_000 },
    )
  const failures = ({ checks }: Compliance): Record<string, string> =>
    Object.fromEntries(checks.filter(check => !check.pass).map(({ name, detail }) => [name, detail]))

  test("a good server passes every check with four small requests, each with the server's key and model", async () => {
    const result = await run()
    expect(failures(result)).toEqual({})
    expect(result.pass).toBe(true)
    expect(result.checks.map(({ name, required }) => [name, required])).toEqual([
      ['chat', true],
      ['stream', true],
      ['usage', false],
      ['tools', false],
      ['errors', false],
      ['latency', false],
    ])
    expect(result.checks.every(({ latencyMs, detail }) => Number.isInteger(latencyMs) && latencyMs >= 0 && detail !== '')).toBe(true)
    expect(server.requests.map(({ path, headers, json }) => [path, headers.authorization, json?.['model']])).toEqual(
      Array.from({ length: 4 }, () => ['/v1/chat/completions', `Bearer ${key}`, 'own-model']),
    )
    expect(server.requests.every(({ raw }) => raw.length < 1000)).toBe(true)
  })

  test('for a model that calls no tools, tools are not tested', async () => {
    const { checks } = await run({ expectsTools: false })
    expect(checks.find(({ name }) => name === 'tools')).toMatchObject({ pass: true, detail: expect.stringContaining('skipped') })
    expect(server.requests.some(asksForTool)).toBe(false)
  })

  test('missing usage, missing tool calls and unusual errors are only warnings', async () => {
    server.misbehave(request => (isMalformed(request) ? { status: 200, body: { choices: [] } } : { usage: null }))
    const result = await run()
    expect(result.pass).toBe(true)
    expect(failures(result)).toMatchObject({
      usage: expect.stringContaining('estimated'),
      tools: expect.stringContaining('without a tool call'),
      errors: expect.stringContaining('200'),
    })
    server.misbehave(request =>
      asksForTool(request) ? { body: toolReply({ city: 'Pune' }) } : isMalformed(request) ? { status: 422, body: 'plain text' } : null,
    )
    expect(failures(await run())).toEqual({ tools: expect.stringContaining('no string'), errors: expect.stringContaining('"error" object') })
  })

  test.each([
    ['an HTML page', { status: 200, body: '<html>hello</html>' }, 'no JSON object'],
    ['JSON without choices', { body: { ok: true } }, '"choices"'],
    ['a choice without a message', { body: { choices: [{ text: 'old' }] } }, 'message'],
    ['a wrong status', { status: 503, body: { error: { message: 'model is loading' } } }, '503: model is loading'],
    ['a redirect', { status: 307, body: '', headers: { location: 'http://127.0.0.1:1/' } }, 'redirects are not followed'],
    ['a broken connection', { reset: true }, 'closed the connection'],
    ['a reply that is too large', { body: 'x'.repeat(300_000) }, 'larger than'],
  ])('a server that answers a chat with %s fails, and no other check runs', async (_what, script, detail) => {
    server.misbehave(() => script)
    const result = await run()
    expect(result.pass).toBe(false)
    expect(failures(result)['chat']).toContain(detail)
    expect(failures(result)['stream']).toContain('not tried')
    expect(server.requests.length).toBe(1)
  })

  test.each([
    ['is plain JSON', { body: { choices: [] } }, 'content-type'],
    ['has an error frame', { errorFrameAfterChunks: 1 }, 'carried an error'],
    ['has no end mark', { rawStream: ['data: {"choices":[{"index":0,"delta":{"content":"OK"}}]}\n\n'] }, '[DONE]'],
    ['has no chunks', { rawStream: ['data: [DONE]\n\n'] }, 'no chunk'],
    ['contains a text that is not JSON', { rawStream: ['data: hello\n\ndata: [DONE]\n\n'] }, 'no JSON'],
    ['breaks before its end', { breakAfterChunks: 2 }, 'closed the connection'],
  ])('a server whose stream %s fails', async (_what, script, detail) => {
    server.misbehave(request => (isStream(request) ? script : null))
    const result = await run()
    expect(result.pass).toBe(false)
    expect(failures(result)['stream']).toContain(detail)
  })

  test('a server that expects the output limit under its newer name passes', async () => {
    server.misbehave(({ json }) =>
      json?.['max_tokens'] === undefined ? null : { status: 400, body: { error: { message: 'Use max_completion_tokens instead.' } } },
    )
    expect(failures(await run())).toEqual({})
  })

  test("the detail of a failure quotes the server's text in short form, without its key and the prompt", async () => {
    server.misbehave(({ headers }) => ({ status: 401, body: { error: { message: `Bad key ${headers.authorization} ${'very '.repeat(200)}` } } }))
    const detail = failures(await run())['chat'] ?? ''
    expect(detail).toContain('401: Bad key Bearer [secret]')
    expect(detail).toContain('is the key right?')
    expect(detail).not.toContain(key)
    expect(detail.length).toBeLessThan(300)
  })

  test('the whole test ends within its time limit, whichever request hangs', async () => {
    server.misbehave(() => ({ hang: true }))
    expect(failures(await run({ timeoutMs: 200 }))['chat']).toContain('within the 0.2 s')
    server.misbehave(request => (isStream(request) ? { holdAfterChunks: 1 } : null))
    const result = await run({ timeoutMs: 400 })
    expect(failures(result)['stream']).toContain('within the 0.4 s')
    expect(failures(result)['errors']).toContain('within the 0.4 s')
  })

  test('the test ends when its caller disconnects', async () => {
    server.misbehave(() => ({ hang: true }))
    const signal = new Cancellation()
    const running = run({ signal })
    await server.arrived(1)
    signal.abort(new Error('gone'))
    await expect(running).rejects.toThrow('gone')
  })

  test('the result says when a server cannot be reached', async () => {
    expect(failures(await run({ url: 'http://127.0.0.1:1/v1' }))['chat']).toContain('nothing listens')
  })

  test('an address that a user may not reach is refused and gets no request', async () => {
    await expect(run({ url: 'https://localhost:1/v1' })).rejects.toMatchObject({ code: 'bad_request' })
    await expect(run({ url: 'https://10.0.0.1/v1' })).rejects.toMatchObject({ code: 'bad_request' })
  })
})
