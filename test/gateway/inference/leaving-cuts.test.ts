/** A cut stream is not cheaper. When a pause, a revoke, a budget or an empty balance ends a stream, the provider's whole work is charged. */
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { readOnLongestMs, readOnMs } from '../../../src/gateway/inference/leaving/departures.ts'
import { type Clock, systemClock } from '../../../src/platform/clock.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { uinrFromInr } from '../../../src/platform/values/money.ts'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import { until } from '../../harness/until.ts'

interface Row {
  readonly id: string
  readonly label: string
  readonly outcome: string
  readonly estimated: boolean
  readonly prompt: number
  readonly completion: number
  readonly value: number
}
const rowsSince = statement<[last: string], Row>(
  'test.cut_rows_since',
  `select id, agent_label as "label", outcome, estimated, prompt_tokens::int as "prompt", completion_tokens::int as "completion", value_uinr::float8 as "value"
   from usage_events where id > $1::uuid order by id`,
)

/** ₹0.001 for an output token, ₹0.0001 for a prompt token. */
const route = { provider: 'alpha', input_inr_per_mtok: 100, output_inr_per_mtok: 1000, source: 'test', as_of: '2026-01-01' }
const common = { kind: 'chat', context_length: 200_000, max_output_tokens: 100_000 }
const models = [
  { ...common, id: 'thinker', reasoning: true, routes: [{ ...route, upstream_model: 'thinker-up' }] },
  { ...common, id: 'looker', modalities: ['text', 'image'], routes: [{ ...route, upstream_model: 'looker-up' }] },
]
const image = `data:image/png;base64,${'iVBORw0KGgo'.repeat(50)}`
const clients = {
  '/v1/chat/completions': {
    thinker: { messages: [{ role: 'user', content: 'Think' }] },
    looker: { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: image } }] }] },
  },
  '/v1/messages': {
    thinker: { max_tokens: 50_000, messages: [{ role: 'user', content: 'Think' }] },
    looker: {
      max_tokens: 50_000,
      messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo'.repeat(50) } }] }],
    },
  },
  '/v1/responses': { thinker: { input: 'Think' }, looker: { input: [{ role: 'user', content: [{ type: 'input_image', image_url: image }] }] } },
} as const
type Path = keyof typeof clients
type ModelId = 'thinker' | 'looker'
const paths = Object.keys(clients) as Path[]

const usageOf = (prompt: number, completion: number) => ({ prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion })
/** Usage that only the provider knows: hidden thinking, or a picture with far more tokens than assumed. */
const told = { thinker: usageOf(10, 20_000), looker: usageOf(40_000, 7) } as const
const points = 50

/** The machine's clock, except that the timers that end the reading after a disconnect fire with `strike()`. The test can move the time forward. */
function strikingClock(): Clock & { strike(): void; ahead(ms: number): void } {
  const waiting = new Set<() => void>()
  let aheadMs = 0
  return {
    ...systemClock,
    monotonicMs: () => systemClock.monotonicMs() + aheadMs,
    after(ms, fn) {
      if (ms < readOnMs / 2 || ms > readOnLongestMs) return systemClock.after(ms, fn)
      waiting.add(fn)
      return () => void waiting.delete(fn)
    },
    strike() {
      for (const fn of waiting) fn()
      waiting.clear()
    },
    ahead(ms) {
      aheadMs += ms
    },
  }
}

describe('a stream that is cut', () => {
  let app: TestApp
  let clock: ReturnType<typeof strikingClock>
  let cookie: string
  let last = '00000000-0000-0000-0000-000000000000'
  beforeAll(async () => {
    clock = strikingClock()
    app = await startApp({
      clock,
      // A single failure of the route would open its circuit.
      env: {
        OFFLINE_MAX_MS: '86400000',
        AGENT_STALE_MS: '86400000',
        KEEP_ALIVE_MS: '86400000',
        CIRCUIT_FAILURES: '1',
        RAZORPAY_KEY_ID: 'rzp_test_key',
        RAZORPAY_KEY_SECRET: 'rzp-test-secret',
      },
      operatorFile: urls => {
        const file = defaultOperatorFile(urls)
        return { ...file, models: [...file.models, ...models] }
      },
    })
    cookie = await app.signIn()
    await app.gateway.app.operator.credits.give({ orgId: app.orgId, reason: 'grant', amountUinr: uinrFromInr(100_000), ref: 'plenty' })
  })
  afterAll(() => app.stop())
  beforeEach(() => app.alpha.reset())

  const send = (path: Path, model: ModelId, token: string, more: object = {}, signal: AbortSignal | null = null, label = 'l') =>
    fetch(app.baseUrl + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'x-br-agent-id': label },
      body: JSON.stringify({ ...clients[path][model], model, stream: true, ...more }),
      signal,
    })
  /** Reads the beginning of a stream. `all` resolves with the whole text at the end. */
  const readOf = async (reply: Response): Promise<{ readonly all: Promise<string> }> => {
    const reader = (reply.body as ReadableStream<Uint8Array>).getReader()
    let text = Buffer.from((await reader.read()).value ?? []).toString()
    const toEnd = async (): Promise<string> => {
      for (let read = await reader.read(); !read.done; read = await reader.read()) text += Buffer.from(read.value).toString()
      return text
    }
    return { all: toEnd() }
  }
  const settled = async (count = 1): Promise<Row[]> => {
    let rows: Row[] = []
    await until(async () => {
      await app.gateway.app.limits.flushNow()
      rows = await app.db.many(rowsSince, last)
      return rows.length >= count
    }, `${count} calls are settled`)
    expect(rows).toHaveLength(count)
    last = rows.at(-1)?.id ?? last
    return rows
  }
  const hungUp = () =>
    until(() => {
      clock.strike()
      return app.alpha.requests.at(-1)?.aborted === true
    }, 'the provider is hung up on')

  type Cut = { readonly token: string; readonly says: RegExp; cut(): Promise<{ status: number }> }
  const agentCut = async (what: 'pause' | 'revoke'): Promise<Cut> => {
    const { id, token } = await app.newAgent(`${what} ${Math.random()}`)
    return { token, says: what === 'pause' ? /paused/ : /revoked/, cut: () => app.call('POST', `/v1/me/agents/${id}/${what}`, {}) }
  }
  const ways: Readonly<Record<string, () => Promise<Cut>>> = {
    'a pause': () => agentCut('pause'),
    'the kill switch': () => agentCut('revoke'),
    'a revoked key': async () => {
      const { key, keyId } = await app.newKey()
      return { token: key, says: /revoked/, cut: () => app.call('DELETE', `/me/keys/${keyId}`, undefined, { cookie }) }
    },
  }

  for (const path of paths)
    for (const [way, make] of Object.entries(ways))
      for (const model of ['thinker', 'looker'] as const)
        test(`HARD-05 ${path}, ${model}: ${way} immediately ends the caller's stream, and the usage that the provider reports later is charged`, async () => {
          const { token, says, cut } = await make()
          app.alpha.script([{ holdAfterChunks: 1, chunks: ['x', ' and more'], usage: told[model] }])
          const { all } = await readOf(await send(path, model, token))
          expect((await cut()).status).toBeLessThan(300)
          // The provider has not continued yet.
          const text = await all
          expect(text).toMatch(says)
          expect(text).not.toContain('and more')
          expect(app.gateway.app.inflight.size).toBe(1)
          app.alpha.release()
          const [row] = await settled()
          expect(row).toMatchObject({ outcome: 'cut', estimated: false, prompt: told[model].prompt_tokens, completion: told[model].completion_tokens })
          expect(app.alpha.requests[0]?.aborted).toBe(false)
          // The cut does not count as a failure of the route.
          app.alpha.script([{ usage: usageOf(1, 1) }])
          expect((await send(path, model, app.key)).status).toBe(200)
          await settled()
        })

  test(`HARD-05 when a pause cuts ${points} streams at different points, each is charged at least 95 % of its output so far`, async () => {
    const { token, cut } = await agentCut('pause')
    const part = (content: string, finish: string | null = null) =>
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'thinker-up', choices: [{ index: 0, delta: { content }, finish_reason: finish }] })}\n\n`
    const made = (n: number) => n * 110
    const parts = (n: number) => [part('begun'), ...Array.from({ length: n }, () => `${part('abcdefghij'.repeat(3))}: thinking\n\n`), part('', 'stop')]
    const end = (n: number) => `data: ${JSON.stringify({ id: 'c', model: 'thinker-up', choices: [], usage: usageOf(10, made(n) + 2) })}\n\ndata: [DONE]\n\n`
    let next = 0
    app.alpha.script(() => {
      const n = next++
      return { rawStream: [...parts(n), end(n)], holdAfterRawParts: n + 1 }
    })
    const replies: Promise<string>[] = []
    for (let point = 0; point < points; point++) replies.push((await readOf(await send('/v1/chat/completions', 'thinker', token))).all)
    expect((await cut()).status).toBe(200)
    for (const text of await Promise.all(replies)) expect(text).toContain('agent_paused')
    app.alpha.release()
    for (const [n, row] of (await settled(points)).entries()) expect(row, `point ${n}`).toMatchObject({ outcome: 'cut', completion: made(n) + 2 })
    expect(app.alpha.requests.some(({ aborted }) => aborted)).toBe(false)
  })

  test('HARD-05 for a provider without usage, the assumed thinking and the largest possible prompt are charged, within the hold', async () => {
    const { token, cut } = await agentCut('pause')
    app.alpha.script([{ holdAfterChunks: 1, chunks: ['x', ' never'] }])
    const { all } = await readOf(await send('/v1/chat/completions', 'thinker', token))
    clock.ahead(60_000)
    await cut()
    await all
    await hungUp()
    const [thinker] = await settled()
    expect(thinker).toMatchObject({ outcome: 'cut', estimated: true })
    expect(thinker?.completion).toBeGreaterThanOrEqual(3000)
    expect(thinker?.completion).toBeLessThan(3600)
    const looker = await agentCut('pause')
    app.alpha.script([{ holdAfterChunks: 1, chunks: ['x', ' never'] }])
    const seen = await readOf(await send('/v1/chat/completions', 'looker', looker.token))
    await looker.cut()
    await seen.all
    await hungUp()
    const [row] = await settled()
    expect(row).toMatchObject({ outcome: 'cut', estimated: true, completion: 1 })
    // The charge includes the 255 output tokens of the hold that were not used. At most one prompt token is not paid in full.
    expect(row?.value).toBeGreaterThan(256 * 1000)
    expect(row?.prompt).toBeLessThan(16_384)
  })

  /** Output that exceeds the first hold. Each part is estimated at 1,000 tokens. */
  const long = (prompt: number, completion: number) => ({ chunks: Array.from({ length: 40 }, () => 'x'.repeat(3000)), usage: usageOf(prompt, completion) })

  test('HARD-05 a stream that a budget ends is charged the smaller of the reported usage and the hold', async () => {
    for (const path of paths)
      for (const [completion, charged, estimated] of [
        [9200, 9200, false],
        [30_000, 9999, true],
      ] as const) {
        const agent = await app.newAgent(`poor ${path} ${completion}`)
        await app.setBudget('agent', agent.id, 10)
        app.alpha.script([long(0, completion)])
        const { all } = await readOf(await send(path, 'thinker', agent.token))
        expect(await all, path).toContain('agent_budget_exceeded')
        const [row] = await settled()
        expect(row, path).toMatchObject({ outcome: 'cut', estimated })
        expect(Math.abs((row?.completion ?? 0) - charged), `${path} ${row?.completion}`).toBeLessThanOrEqual(estimated ? 10 : 0)
        expect(row?.value, path).toBeLessThanOrEqual(10_000_000)
      }
  })

  test('HARD-05 with a small budget, a picture in the prompt is still charged as reported, and output only within the hold', async () => {
    for (const path of paths) {
      const { key } = await app.newKey({ budgetInr: 0.5 })
      app.alpha.script([long(40_000, 13_000)])
      const { all } = await readOf(await send(path, 'looker', key))
      expect(await all, path).toContain('budget_exceeded')
      const [row] = await settled()
      expect(row, path).toMatchObject({ outcome: 'cut', prompt: 40_000 })
      expect(row?.completion, path).toBeLessThan(600)
    }
  })

  test('HARD-05 a stream that an empty balance ends is charged the smaller of reported usage and hold, and the balance never becomes negative', async () => {
    for (const [completion, most, isTold] of [
      [9200, 9200, true],
      [30_000, 10_000, false],
    ] as const) {
      const org = await app.otherOrg(`Prepaid ${completion}`)
      const { credits } = app.gateway.app.operator
      await credits.give({ orgId: org.orgId, reason: 'grant', amountUinr: uinrFromInr(10), ref: `cut ${completion}` })
      app.alpha.script([long(0, completion)])
      const { all } = await readOf(await send('/v1/chat/completions', 'thinker', org.key))
      expect(await all).toContain('insufficient_credits')
      const [row] = await settled()
      expect([row?.outcome, (row?.completion ?? 0) > 8192, (row?.completion ?? 0) <= most]).toEqual(['cut', true, true])
      expect(row?.estimated).toBe(!isTold)
      expect((await credits.show(org.orgId, 1)).balanceUinr).toBeGreaterThanOrEqual(0n)
    }
  })

  test('HARD-05 a caller with a small budget who disconnects pays the reported usage as far as the budget covers it', async () => {
    const { key } = await app.newKey({ budgetInr: 12 })
    app.alpha.script([{ holdAfterChunks: 1, chunks: ['x', ' and more'], usage: told.thinker }])
    const leaving = new AbortController()
    const reply = await send('/v1/chat/completions', 'thinker', key, {}, leaving.signal)
    await reply.body?.getReader().read()
    leaving.abort()
    await until(() => app.gateway.app.inflight.size === 2, 'the provider is read on')
    app.alpha.release()
    const [row] = await settled()
    expect(row).toMatchObject({ outcome: 'client_gone', estimated: true })
    expect(row?.value).toBeLessThanOrEqual(12_000_000)
    expect(row?.value).toBeGreaterThan(11_900_000)
  })

  test('HARD-05 after a cut, a compressed stream of a provider is also read to its end', async () => {
    const { token, cut } = await agentCut('pause')
    const head = `data: ${JSON.stringify({ id: 'c', model: 'thinker-up', choices: [{ index: 0, delta: { content: 'x' }, finish_reason: null }] })}\n\n`
    const tail = `data: ${JSON.stringify({ id: 'c', model: 'thinker-up', choices: [], usage: told.thinker })}\n\ndata: [DONE]\n\n`
    app.alpha.script([{ rawStream: [gzipSync(head), gzipSync(tail)], holdAfterRawParts: 1, headers: { 'content-encoding': 'gzip' } }])
    const { all } = await readOf(await send('/v1/chat/completions', 'thinker', token))
    await cut()
    expect(await all).toContain('agent_paused')
    app.alpha.release()
    expect((await settled())[0]).toMatchObject({ outcome: 'cut', estimated: false, completion: 20_000 })
  })

  test('HARD-05 a client that does not read the end of a cut stream does not delay the settlement', async () => {
    const { token, cut } = await agentCut('pause')
    app.alpha.script([{ chunks: Array.from({ length: 400 }, () => 'x'.repeat(20_000)), usage: usageOf(10, 2_700_000) }])
    const reply = await send('/v1/chat/completions', 'thinker', token)
    expect(reply.status).toBe(200)
    await cut()
    const [row] = await settled()
    expect(row?.outcome).toBe('cut')
    await reply.body?.cancel()
  })
})
