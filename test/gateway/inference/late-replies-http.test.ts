/** Providers that do not answer in time: how long the gateway waits, which routes it tries afterwards, and what it charges. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp, until } from '../../harness/app.ts'
import { usageRows } from '../../harness/usage-rows.ts'

const body = { model: 'slow-thinker', messages: [{ role: 'user', content: 'Write a long essay.' }] }
/** A number of tokens that takes longer than WHOLE_REPLY_TIMEOUT_MS at 20 tokens a second. */
const longTokens = 60_000
/** A number of tokens that takes 200 ms. */
const shortTokens = 4

describe('late replies', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({
      env: { FIRST_BYTE_TIMEOUT_MS: '300', WHOLE_REPLY_TIMEOUT_MS: '900', STREAM_IDLE_TIMEOUT_MS: '700', KEEP_ALIVE_MS: '100', CIRCUIT_FAILURES: '1000' },
      operatorFile: urls => {
        const file = defaultOperatorFile(urls)
        const routes = (file.models[0] as { readonly routes: readonly object[] }).routes.slice(0, 2)
        const thinker = { id: 'slow-thinker', kind: 'chat', context_length: 200_000, max_output_tokens: 65_536, reasoning: true, tools: true, routes }
        return { ...file, models: [...file.models, thinker] }
      },
    })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    app.alpha.reset()
    app.beta.reset()
    app.alpha.script({ hang: true })
  })
  const lastRow = async () => (await usageRows(app))[0]

  test('when a whole reply may take longer than the time limit, it is charged after the limit, and no other route is tried', async () => {
    const reply = await app.call('POST', '/v1/chat/completions', { ...body, max_tokens: longTokens })
    expect([reply.status, reply.json.error.code, reply.headers.get('x-should-retry')]).toEqual([502, 'all_routes_failed', 'false'])
    expect(reply.json.error.message).toContain('WHOLE_REPLY_TIMEOUT_MS')
    expect(await lastRow()).toMatchObject({ provider: 'alpha', outcome: 'failed', status: 502, estimated: true })
    const row = await lastRow()
    expect([Number(row?.promptTokens) > 0, Number(row?.completionTokens) >= 40, Number(row?.costUinr) > 0]).toEqual([true, true, true])
    expect(app.beta.requests).toEqual([])
  })

  test('when a reply that should be fast is late, the next route serves, and only that route is charged', async () => {
    const reply = await app.call('POST', '/v1/chat/completions', { ...body, max_tokens: shortTokens })
    expect([reply.status, reply.headers.get('x-br-provider')]).toEqual([200, 'beta'])
    expect(await lastRow()).toMatchObject({ provider: 'beta', outcome: 'ok', estimated: false })
  })

  test('a short reply costs nothing when no route answers in time', async () => {
    app.beta.script({ hang: true })
    const reply = await app.call('POST', '/v1/chat/completions', { ...body, max_tokens: shortTokens })
    expect([reply.status, reply.json.error.code]).toEqual([502, 'all_routes_failed'])
    expect(await lastRow()).toMatchObject({ outcome: 'failed', valueUinr: 0n, promptTokens: 0n })
  })

  const edges = [
    ['408', { status: 408 }],
    ['504', { status: 504 }],
    ['524', { status: 524 }],
    ['a closed connection', { closeMidHeaders: true }],
  ] as const

  /** Calls alpha, whose edge gives up after this time. */
  async function whenGivenUp(script: object, afterMs: number, maxTokens: number) {
    app.alpha.reset()
    app.alpha.script({ ...script, hold: true })
    const pending = app.call('POST', '/v1/chat/completions', { ...body, max_tokens: maxTokens })
    await app.alpha.arrived(1)
    await new Promise(resolve => setTimeout(resolve, afterMs))
    app.alpha.release()
    return pending
  }

  test.each(edges)(
    'a long whole reply that the edge of its provider gives up with %s is charged as made, and no other route makes it again',
    async (_, script) => {
      const reply = await whenGivenUp(script, 200, longTokens)
      expect([reply.status, reply.json.error.code, reply.headers.get('x-should-retry')]).toEqual([502, 'all_routes_failed', 'false'])
      const row = await lastRow()
      expect(row).toMatchObject({ provider: 'alpha', outcome: 'failed', status: 502, estimated: true })
      // 50 tokens a second.
      expect([Number(row?.promptTokens) > 0, Number(row?.completionTokens) >= 9, Number(row?.completionTokens) < 40]).toEqual([true, true, true])
      expect(app.beta.requests).toEqual([])
    },
  )

  test.each(edges)(
    'a short whole reply that the edge of its provider gives up with %s is made by the next route, which alone is charged',
    async (_, script) => {
      const reply = await whenGivenUp(script, 200, shortTokens)
      expect([reply.status, reply.headers.get('x-br-provider')]).toEqual([200, 'beta'])
      expect(await lastRow()).toMatchObject({ provider: 'beta', outcome: 'ok', estimated: false })
    },
  )

  test.each([...edges, ['a reset', { reset: true }]] as const)(
    'a provider that is down answers a long call with %s immediately, and the next route serves it',
    async (_, script) => {
      app.alpha.reset()
      app.alpha.script(script)
      const reply = await app.call('POST', '/v1/chat/completions', { ...body, max_tokens: longTokens })
      expect([reply.status, reply.headers.get('x-br-provider')]).toEqual([200, 'beta'])
      expect(await lastRow()).toMatchObject({ provider: 'beta', outcome: 'ok', estimated: false })
    },
  )

  /** Leaves as soon as the provider has the call. */
  async function leave(call: object): Promise<void> {
    const stop = new AbortController()
    const gone = app.call('POST', '/v1/chat/completions', { ...call, provider: 'alpha' }, { signal: stop.signal }).catch(() => undefined)
    await until(() => app.alpha.requests.length === 1)
    await new Promise(resolve => setTimeout(resolve, 100))
    stop.abort()
    await gone
  }

  test('a caller who disconnects is charged, even if the provider does not answer in time', async () => {
    await leave({ ...body, max_tokens: shortTokens })
    await expect.poll(lastRow, { timeout: 10_000 }).toMatchObject({ provider: 'alpha', estimated: true, completionTokens: BigInt(shortTokens) })
    expect(app.beta.requests).toEqual([])
  })

  test('a caller who disconnects from a call without a stream pays for the assumed output until then, for each answer', async () => {
    await leave({ ...body, model: 'alpha-only', n: 4 })
    await expect.poll(lastRow, { timeout: 10_000 }).toMatchObject({ model: 'alpha-only', outcome: 'client_gone', estimated: true })
    // 50 tokens a second for each answer, for at least 100 ms.
    expect(Number((await lastRow())?.completionTokens)).toBeGreaterThanOrEqual(20)
  })

  test('a stream with hidden thinking that is silent too long before its first chunk is charged, and no other route is tried', async () => {
    app.alpha.reset()
    app.alpha.script({ rawStream: [': processing\n\n'], holdAfterRaw: true })
    const reply = await app.call('POST', '/v1/chat/completions', { ...body, stream: true })
    expect([reply.status, reply.json.error.code, reply.headers.get('x-should-retry')]).toEqual([502, 'all_routes_failed', 'false'])
    const row = await lastRow()
    expect(row).toMatchObject({ provider: 'alpha', outcome: 'failed', estimated: true })
    expect(Number(row?.completionTokens)).toBeGreaterThanOrEqual(30)
    expect(app.beta.requests).toEqual([])
  })

  test('a stream with hidden thinking that is abandoned because of silence is charged for the amount held meanwhile', async () => {
    const first = {
      id: 'x',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'm',
      choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }],
    }
    app.alpha.reset()
    app.alpha.script({ rawStream: [`data: ${JSON.stringify(first)}\n\n`], holdAfterRaw: true })
    const reply = await app.call('POST', '/v1/chat/completions', { ...body, provider: 'alpha', stream: true })
    expect([reply.status, reply.text]).toEqual([200, expect.stringContaining('upstream_stream_error')])
    const row = await lastRow()
    expect(row).toMatchObject({ provider: 'alpha', outcome: 'upstream_broke', estimated: true })
    // 50 tokens a second of silence.
    expect(Number(row?.completionTokens)).toBeGreaterThanOrEqual(30)
  })

  test('a provider that has begun to work is charged, even if a previous provider did not answer', async () => {
    app.beta.script({ rawStream: [': processing\n\n'], holdAfterRaw: true })
    const reply = await app.call('POST', '/v1/chat/completions', { ...body, stream: true })
    expect([reply.status, reply.json.error.message]).toEqual([502, expect.stringContaining('is charged')])
    const row = await lastRow()
    expect(row).toMatchObject({ provider: 'beta', outcome: 'failed', estimated: true })
    expect(Number(row?.completionTokens)).toBeGreaterThanOrEqual(30)
  })
})
