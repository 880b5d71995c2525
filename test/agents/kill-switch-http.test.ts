import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { startApp, type TestApp, until } from '../harness/app.ts'
import type { UpstreamScript } from '../harness/upstream-server.ts'

interface EventRow {
  readonly outcome: string
  readonly status: number
  readonly streamed: boolean
  readonly promptTokens: bigint
  readonly completionTokens: bigint
  readonly valueUinr: bigint
}
const eventsOf = statement<[agentId: number], EventRow>(
  'test.events_of_agent',
  `select outcome, status, streamed, prompt_tokens as "promptTokens", completion_tokens as "completionTokens", value_uinr as "valueUinr"
   from usage_events where agent_id = $1::int order by at`,
)
const hello = [{ role: 'user', content: 'Hello there' }]
/** The price of the prompt of `hello` on alpha: an estimate of 8 tokens at ₹10 per million. */
const promptUinr = 80n
/** Chunks of 30 output tokens each, by the gateway's estimate. */
const thirtyTokens = (count: number): string[] => Array.from({ length: count }, () => 'x'.repeat(90))
const framesOf = (text: string): string[] =>
  text
    .split('\n\n')
    .filter(event => event.startsWith('data: '))
    .map(event => event.slice(6))

/** A streamed chat that the test reads step by step. */
interface OpenStream {
  readonly status: number
  /** Reads until that many chunks with content have arrived. */
  chunks(count: number): Promise<void>
  /** Returns the rest of the text, after the gateway has ended the stream. */
  rest(): Promise<string>
  hangUp(): void
}

describe('the end of a running call', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp()
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })

  const bodyOf = (more: object = {}) => ({ model: 'alpha-only', messages: hello, ...more })
  const chat = (token: string, more: object = {}, headers: Record<string, string> = {}) =>
    app.call('POST', '/v1/chat/completions', bodyOf(more), { token, headers })
  const revoke = async (id: number) => expect((await app.call('POST', `/v1/me/agents/${id}/revoke`, {})).status).toBe(200)
  const events = async (agentId: number): Promise<EventRow[]> => {
    await app.gateway.app.limits.flushNow()
    return app.db.many(eventsOf, agentId)
  }
  const heldInr = async (token: string, scope: string): Promise<number> => {
    const { budgets } = (await app.call('GET', '/v1/me/budgets', undefined, { token })).json
    return budgets.find((budget: { scope: string }) => budget.scope === scope).held_inr
  }
  const openStream = async (token: string, more: object = {}, headers: Record<string, string> = {}): Promise<OpenStream> => {
    const controller = new AbortController()
    const response = await fetch(`${app.baseUrl}/v1/chat/completions`, {
      method: 'POST',
      signal: controller.signal,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(bodyOf({ stream: true, ...more })),
    })
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    const decoder = new TextDecoder()
    let text = ''
    const read = async (): Promise<boolean> => {
      const { done, value } = await reader.read()
      if (!done) text += decoder.decode(value, { stream: true })
      return !done
    }
    return {
      status: response.status,
      async chunks(count) {
        while (text.split('"content":').length - 1 < count) if (!(await read())) throw new Error(`the stream ended early: ${text}`)
      },
      async rest() {
        while (await read()) {}
        return text
      },
      hangUp: () => controller.abort(),
    }
  }
  const holdingStream = async (token: string, script: UpstreamScript, chunks: number): Promise<OpenStream> => {
    app.alpha.script([{ holdAfterChunks: chunks, ...script }])
    const stream = await openStream(token)
    await stream.chunks(chunks)
    return stream
  }

  test("AGENT-05 a revocation cuts the stream with an error frame and closes the provider's stream. The output so far is metered once, and the next call is refused", async () => {
    const { id, token } = await app.newAgent('cut-stream')
    const stream = await holdingStream(token, { chunks: thirtyTokens(20) }, 4)
    expect(await events(id)).toEqual([])
    await revoke(id)
    const frames = framesOf(await stream.rest())
    expect(frames.at(-1)).toBe('[DONE]')
    const last = JSON.parse(frames.at(-2) ?? '')
    expect(last.error).toEqual({ code: 'agent_revoked', type: 'authentication_error', message: expect.any(String), param: null })
    expect(frames.slice(0, -2).map(frame => JSON.parse(frame).choices[0].finish_reason)).toEqual([null, null, null, null])
    await app.alpha.requests[0]?.closed
    expect(app.alpha.requests[0]?.aborted).toBe(true)
    const [event, ...more] = await events(id)
    expect(more).toEqual([])
    // Four chunks of 30 tokens at ₹40 per million, and the estimated prompt at ₹10 per million.
    expect(event).toMatchObject({ outcome: 'cut', streamed: true, completionTokens: 120n })
    expect(event?.valueUinr).toBe(120n * 40n + (event?.promptTokens ?? 0n) * 10n)
    expect(last.usage).toEqual({ prompt_tokens: Number(event?.promptTokens), completion_tokens: 120, total_tokens: Number(event?.promptTokens) + 120 })
    const next = await chat(token)
    expect([next.status, next.json.error.code, next.json.reason]).toEqual([401, 'invalid_api_key', 'agent_revoked'])
    app.alpha.release()
    expect(await events(id)).toHaveLength(1)
    expect(app.alpha.requests).toHaveLength(1)
  })

  test('the client reads whole frames when a revocation comes in the middle of an event', async () => {
    const { id, token } = await app.newAgent('cut-inside')
    const whole = 'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"abcdef"},"finish_reason":null}]}\n\n'
    app.alpha.script([
      { rawStream: [whole, 'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"never fin'], holdAfterRaw: true },
    ])
    const stream = await openStream(token)
    await stream.chunks(1)
    await revoke(id)
    const frames = framesOf(await stream.rest())
    expect(frames.at(-1)).toBe('[DONE]')
    expect(JSON.parse(frames.at(-2) ?? '').error.code).toBe('agent_revoked')
    await app.alpha.requests[0]?.closed
    expect((await events(id)).map(event => event.outcome)).toEqual(['cut'])
  })

  test('a revocation settles the call of a client that does not read', async () => {
    const { id, token } = await app.newAgent('cut-unread')
    app.alpha.script([{ chunks: Array.from({ length: 400 }, () => 'x'.repeat(60_000)) }])
    const stream = await openStream(token)
    await stream.chunks(1)
    await revoke(id)
    await app.alpha.requests[0]?.closed
    expect(app.alpha.requests[0]?.aborted).toBe(true)
    await until(async () => (await events(id)).length === 1)
    expect((await events(id))[0]?.outcome).toBe('cut')
    stream.hangUp()
  })

  test('a revocation cuts a call without a stream, and a call that waits for its first chunk. Both get 401 with the reason, and one event that charges what the provider has read and written', async () => {
    for (const stream of [false, true]) {
      const { id, token } = await app.newAgent(`cut-waiting-${stream}`)
      app.alpha.reset()
      app.alpha.script([{ hold: true }])
      const pending = chat(token, { stream })
      await app.alpha.arrived(1)
      await revoke(id)
      const reply = await pending
      expect([reply.status, reply.json.error.code, reply.json.reason]).toEqual([401, 'invalid_api_key', 'agent_revoked'])
      await app.alpha.requests[0]?.closed
      expect(app.alpha.requests[0]?.aborted).toBe(true)
      const made = await events(id)
      expect(made).toMatchObject([{ outcome: 'cut', status: 401 }])
      // A call without a stream is also charged for the output that its running time allows.
      const [event] = made
      expect([event?.completionTokens === 0n, event?.valueUinr === promptUinr]).toEqual([stream, stream])
      expect(Number(event?.valueUinr)).toBeGreaterThanOrEqual(Number(promptUinr))
    }
  })

  test("a revocation ends the running chat tool with an error result, and closes the provider's stream", async () => {
    const { id, token } = await app.newAgent('cut-mcp')
    const client = new Client({ name: 'test', version: '1' })
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${app.baseUrl}/mcp`), { requestInit: { headers: { authorization: `Bearer ${token}` } } }) as never,
    )
    app.alpha.script([{ holdAfterChunks: 4, chunks: thirtyTokens(20) }])
    const pending = client.callTool({ name: 'chat', arguments: { prompt: 'Hello', model: 'alpha-only' } })
    await app.alpha.arrived(1)
    await revoke(id)
    const result = await pending
    expect(result).toMatchObject({ isError: true, structuredContent: { code: 'agent_revoked', reason: 'agent_revoked', should_retry: false } })
    await app.alpha.requests[0]?.closed
    expect(app.alpha.requests[0]?.aborted).toBe(true)
    await until(async () => (await events(id)).length === 1)
    expect((await events(id))[0]?.outcome).toBe('cut')
    await expect(client.callTool({ name: 'whoami', arguments: {} })).rejects.toThrow()
    await client.close()
  })

  test("a revocation cuts a key's call that names the agent in x-br-agent-id, and the key's other calls continue", async () => {
    const { id } = await app.newAgent('cut-label')
    app.alpha.script([{ holdAfterChunks: 2 }, { holdAfterChunks: 2 }])
    const named = await openStream(app.key, {}, { 'x-br-agent-id': 'cut-label' })
    await named.chunks(2)
    const other = await openStream(app.key)
    await other.chunks(2)
    await revoke(id)
    expect(framesOf(await named.rest()).at(-2)).toContain('"agent_revoked"')
    app.alpha.release()
    const frames = framesOf(await other.rest())
    expect(frames.some(frame => frame.includes('"error"'))).toBe(false)
    expect((await events(id)).map(event => event.outcome)).toEqual(['cut'])

    const { id: second } = await app.newAgent('cut-label-waiting')
    app.alpha.reset()
    app.alpha.script([{ hold: true }])
    const waiting = chat(app.key, {}, { 'x-br-agent-id': 'cut-label-waiting' })
    await app.alpha.arrived(1)
    await revoke(second)
    const refused = await waiting
    expect([refused.status, refused.json.error.code]).toEqual([403, 'agent_revoked'])
  })

  test('a revocation between the look-up of the label and the dial refuses the call, and no provider is dialed', async () => {
    const { id } = await app.newAgent('cut-between')
    const { limits } = app.gateway.app
    const admit = limits.admit.bind(limits)
    // Delays the real admission until the revocation is complete.
    limits.admit = async request => {
      limits.admit = admit
      await revoke(id)
      return admit(request)
    }
    const refused = await chat(app.key, {}, { 'x-br-agent-id': 'cut-between' })
    expect([refused.status, refused.json.error.code]).toEqual([403, 'agent_revoked'])
    expect(app.alpha.requests).toHaveLength(0)
    expect(await events(id)).toEqual([])
  })

  test('a revocation of the minting key cuts the streams of its tokens with invalid_api_key', async () => {
    const minting = await app.newKey()
    const { id } = (await app.call('POST', '/v1/me/agents', { name: 'cut-key' })).json
    const token = (await app.call('POST', `/v1/me/agents/${id}/token`, {}, { token: minting.key })).json.access_token
    const stream = await holdingStream(token, {}, 2)
    await app.gateway.app.keys.revoke(app.orgId, minting.keyId)
    const frames = framesOf(await stream.rest())
    expect([JSON.parse(frames.at(-2) ?? '').error.code, frames.at(-1)]).toEqual(['invalid_api_key', '[DONE]'])
    expect((await events(id)).map(event => event.outcome)).toEqual(['cut'])
  })

  for (const [scope, code] of [
    ['agent', 'agent_budget_exceeded'],
    ['key', 'budget_exceeded'],
  ] as const) {
    test(`BUDG-11 when the ${scope} budget is spent during a call, a stream first gets more budget, then ends with ${code} and is metered. A call without a stream finishes`, async () => {
      const minting = await app.newKey()
      const { id } = (await app.call('POST', '/v1/me/agents', { name: `runs-out-${scope}` })).json
      const token = (await app.call('POST', `/v1/me/agents/${id}/token`, {}, { token: minting.key })).json.access_token
      const setBudget = (inr: number) => app.setBudget(scope, scope === 'agent' ? id : minting.keyId, inr)
      // ₹0.04 is spent in three steps. The first 256 output tokens cost ₹0.01, and the next 768 cost ₹0.03. The rest covers less than 1,000 tokens in
      // total.
      await setBudget(0.04)
      app.alpha.script([{ holdAfterChunks: 40, chunks: thirtyTokens(60) }])
      const stream = await openStream(token)
      const frames = framesOf(await stream.rest())
      expect(stream.status).toBe(200)
      expect(frames.at(-1)).toBe('[DONE]')
      const last = JSON.parse(frames.at(-2) ?? '')
      expect(last.error).toMatchObject({ code, message: expect.any(String), type: expect.any(String) })
      expect(frames.slice(0, -2).every(frame => JSON.parse(frame).choices[0].finish_reason === null)).toBe(true)
      await app.alpha.requests[0]?.closed
      expect(app.alpha.requests[0]?.aborted).toBe(true)
      const [event, ...more] = await events(id)
      expect(more).toEqual([])
      const produced = (frames.length - 2) * 30
      expect(produced).toBeGreaterThanOrEqual(990)
      expect(event).toMatchObject({ outcome: 'cut', completionTokens: BigInt(produced) })
      expect(event?.valueUinr).toBe(BigInt(produced) * 40n + (event?.promptTokens ?? 0n) * 10n)
      expect(last.usage.completion_tokens).toBe(produced)

      expect((await chat(token, { max_tokens: 50 })).json.error.code).toBe(code)
      await setBudget(1)
      app.alpha.script([{ hold: true }])
      const whole = chat(token, { max_tokens: 50 })
      await app.alpha.arrived(2)
      await setBudget(0.000001)
      expect((await chat(token, { max_tokens: 50 })).json.error.code).toBe(code)
      app.alpha.release()
      const finished = await whole
      expect([finished.status, finished.json.choices[0].finish_reason]).toEqual([200, 'stop'])
      expect((await events(id))[1]).toMatchObject({ outcome: 'ok', completionTokens: 5n, valueUinr: 320n })
    })
  }

  test('a client that disconnects before the first byte leaves one event, no hold and no provider stream. The event charges what the provider has read and written', async () => {
    for (const stream of [false, true]) {
      const { id, token } = await app.newAgent(`gone-early-${stream}`)
      await app.setBudget('agent', id, 1)
      app.alpha.reset()
      app.alpha.script([{ hold: true }])
      const controller = new AbortController()
      const pending = app.call('POST', '/v1/chat/completions', bodyOf({ stream }), { token, signal: controller.signal })
      await app.alpha.arrived(1)
      expect(await heldInr(token, 'agent')).toBeGreaterThan(0)
      controller.abort()
      await expect(pending).rejects.toThrow()
      await app.alpha.requests[0]?.closed
      expect(app.alpha.requests[0]?.aborted).toBe(true)
      await until(async () => (await events(id)).length === 1)
      const [event] = await events(id)
      expect(event).toMatchObject({ outcome: 'client_gone' })
      // A call without a stream is also charged for the output that its running time allows.
      expect([event?.completionTokens === 0n, event?.valueUinr === promptUinr]).toEqual([stream, stream])
      expect(Number(event?.valueUinr)).toBeGreaterThanOrEqual(Number(promptUinr))
      expect(await heldInr(token, 'agent')).toBe(0)
      expect((await chat(token)).status).toBe(200)
    }
  })
})
