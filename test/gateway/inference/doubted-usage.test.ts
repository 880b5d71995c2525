/** Usage that is far from the request or the shown output is limited, estimated, flagged and counted. Plausible usage is used unchanged. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { spokenBytes } from '../../../src/gateway/wire/output-chars.ts'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import { usageRows } from '../../harness/usage-rows.ts'

const route = { provider: 'alpha', input_inr_per_mtok: 10, output_inr_per_mtok: 1000, source: 'test', as_of: '2026-01-01' }
const common = { kind: 'chat', context_length: 200_000, max_output_tokens: 100_000 }
const models = [
  { ...common, id: 'thinker', reasoning: true, routes: [{ ...route, upstream_model: 'thinker-up' }] },
  {
    ...common,
    id: 'both',
    routes: [
      { ...route, upstream_model: 'both-up' },
      { ...route, provider: 'beta', upstream_model: 'both-up' },
    ],
  },
  { ...common, id: 'speaker', routes: [{ ...route, upstream_model: 'speaker-up' }] },
]
const paths: Readonly<Record<string, (content: string, maxTokens: number | null) => object>> = {
  '/v1/chat/completions': (content, max) => ({ messages: [{ role: 'user', content }], ...(max === null ? {} : { max_tokens: max }) }),
  '/v1/messages': (content, max) => ({ messages: [{ role: 'user', content }], max_tokens: max ?? 100_000 }),
  '/v1/responses': (content, max) => ({ input: content, ...(max === null ? {} : { max_output_tokens: max }) }),
}
const usageOf = (prompt: number, completion: number) => ({ prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion })
const words = (count: number): string[] => Array.from({ length: count }, (_, n) => `word ${n} `)

describe('implausible usage', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ env: { METRICS: 'on' }, operatorFile: urls => ({ ...defaultOperatorFile(urls), models }) })
  })
  afterAll(() => app.stop())
  beforeEach(() => app.alpha.reset())

  /** Returns the charge of a call in every API, streamed and not. */
  async function everywhere(
    script: { chunks: readonly string[]; usage: object },
    { model = 'speaker', content = 'hello', maxTokens = null as number | null },
    look: (row: { prompt: number; completion: number; estimated: boolean }, at: string) => void,
  ) {
    for (const [path, bodyOf] of Object.entries(paths))
      for (const stream of [false, true]) {
        app.alpha.script([script as never])
        const reply = await app.call('POST', path, { model, stream, ...bodyOf(content, maxTokens) })
        expect(reply.status, reply.text).toBe(200)
        const [row] = await usageRows(app)
        const at = `${path} ${stream ? 'stream' : 'whole'}`
        look({ prompt: Number(row?.promptTokens), completion: Number(row?.completionTokens), estimated: row?.estimated === true }, at)
        // The header reports the charged amount.
        if (!stream) expect(Number(reply.headers.get('x-br-cost-inr')), at).toBe(Number(row?.costUinr) / 1e6)
        if (path === '/v1/chat/completions' && stream) expect(reply.text).toContain(`"cost_inr":${Number(row?.costUinr) / 1e6}`)
      }
  }

  test('HARD-16 900,000 reported tokens for a short answer are limited to the received output, or to the possible hidden output, and flagged', async () => {
    const lie = { chunks: ['short'], usage: usageOf(10, 900_000) }
    await everywhere(lie, {}, ({ completion, estimated }, at) => expect([completion <= 10_000, estimated], at).toEqual([true, true]))
    await everywhere(lie, { model: 'thinker' }, ({ completion, estimated }, at) => expect([completion, estimated], at).toEqual([100_000, true]))
    await everywhere(lie, { maxTokens: 50 }, ({ completion, estimated }, at) => expect([completion, estimated], at).toEqual([50, true]))
  })

  test('HARD-16 a long answer for which the provider reports zero tokens is charged by the estimate', async () => {
    const lie = { chunks: words(200), usage: usageOf(0, 0) }
    const chars = spokenBytes(lie.chunks.join(''))
    await everywhere(lie, { content: 'a long question '.repeat(100) }, ({ prompt, completion, estimated }, at) => {
      expect([completion, estimated], at).toEqual([Math.ceil(chars / 3), true])
      expect(prompt, at).toBeGreaterThan(400)
    })
  })

  test('HARD-16 a reported prompt that exceeds the context window is limited to the window', async () => {
    await everywhere({ chunks: ['short'], usage: usageOf(5_000_000, 2) }, {}, ({ prompt, completion, estimated }, at) => {
      expect([completion, estimated], at).toEqual([2, true])
      expect(prompt, at).toBeLessThanOrEqual(200_000)
    })
  })

  test('HARD-16 plausible usage is charged unchanged, to the token', async () => {
    for (const [prompt, completion, script] of [
      [1, 1, { chunks: ['ok'] }],
      [900, 12, { chunks: ['a short answer'] }],
      [12, 7000, { chunks: words(3000) }],
      [12, 2, { chunks: [`  ${' '.repeat(60)}`] }],
    ] as const)
      await everywhere({ ...script, usage: usageOf(prompt, completion) }, {}, (row, at) => expect(row, at).toEqual({ prompt, completion, estimated: false }))
    await everywhere({ chunks: ['short'], usage: usageOf(12, 60_000) }, { model: 'thinker' }, row =>
      expect(row).toEqual({ prompt: 12, completion: 60_000, estimated: false }),
    )
  })

  test('HARD-16 usage that is reported before a stream breaks is limited in the same way, in every format', async () => {
    const content = 'a long question '.repeat(100)
    const chunk = (usage: object) =>
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'speaker-up', choices: [{ index: 0, delta: { content: 'short' }, finish_reason: null }], usage })}\n\n`
    for (const [told, prompt, completion] of [
      [usageOf(5_000_000, 900_000), 200_000, 10_000],
      [usageOf(0, 0), 1000, 10],
    ] as const)
      for (const [path, bodyOf] of Object.entries(paths)) {
        app.alpha.script([{ rawStream: [chunk(told)], breakAfterRaw: true }])
        await app.call('POST', path, { model: 'speaker', stream: true, ...bodyOf(content, null) })
        const [row] = await usageRows(app)
        const charged = [Number(row?.promptTokens) <= prompt, Number(row?.completionTokens) <= completion, Number(row?.promptTokens) > 400]
        expect([row?.outcome, ...charged], `${path} ${row?.promptTokens} ${row?.completionTokens}`).toEqual(['upstream_broke', true, true, true])
      }
  })

  test('HARD-16 output that was predicted and rejected is charged as reported, and long runs of spaces are plausible output', async () => {
    const messages = [{ role: 'user', content: 'hello' }]
    for (const stream of [false, true]) {
      app.alpha.script([{ chunks: ['short'], usage: usageOf(10, 30_000) }])
      const prediction = { type: 'content', content: 'x'.repeat(40_000) }
      await app.call('POST', '/v1/chat/completions', { model: 'speaker', stream, messages, prediction })
      expect((await usageRows(app))[0]).toMatchObject({ completionTokens: 30_000n, estimated: false })
      app.alpha.script([{ chunks: ['a', ' '.repeat(12_000), 'b'], usage: usageOf(10, 120) }])
      await app.call('POST', '/v1/chat/completions', { model: 'speaker', stream, messages })
      expect((await usageRows(app))[0]).toMatchObject({ completionTokens: 120n, estimated: false })
      app.alpha.script([{ chunks: ['b'], usage: usageOf(130, 1) }])
      await app.call('POST', '/v1/chat/completions', { model: 'speaker', stream, messages: [{ role: 'user', content: ' '.repeat(12_000) }] })
      expect((await usageRows(app))[0]).toMatchObject({ promptTokens: 130n, estimated: false })
    }
  })

  test('a reply that is too large to read is charged its hold, and no other route is tried', async () => {
    app.beta.reset()
    const large = JSON.stringify({
      id: 'c',
      choices: [{ index: 0, message: { role: 'assistant', content: 'x'.repeat(65 * 1024 * 1024) }, finish_reason: 'stop' }],
    })
    for (const [more, completion] of [
      [{}, 4096],
      [{ max_tokens: 700 }, 700],
      [{ n: 3 }, 3 * 4096],
      [{ stream: true }, 4096],
    ] as const) {
      app.alpha.script([{ body: large, headers: { 'content-type': 'application/json' } }])
      const reply = await app.call('POST', '/v1/chat/completions', { model: 'both', messages: [{ role: 'user', content: 'hello' }], ...more })
      expect([reply.status, reply.json.error.code, reply.headers.get('x-should-retry')]).toEqual([502, 'upstream_reply_too_large', 'false'])
      const [row] = await usageRows(app)
      expect(row).toMatchObject({ outcome: 'failed', estimated: true, provider: 'alpha', promptTokens: 6n, completionTokens: BigInt(completion) })
    }
    expect(app.beta.requests).toEqual([])
    // A long refusal costs nothing, because the provider has generated no answer.
    app.alpha.script([{ status: 500, body: large.slice(0, 2_000_000) }])
    const served = await app.call('POST', '/v1/chat/completions', { model: 'both', messages: [{ role: 'user', content: 'hello' }] })
    expect([served.status, app.beta.requests.length]).toEqual([200, 1])
  })

  test('a reply with too many values to parse is charged as its provider reports', async () => {
    app.beta.reset()
    const token = { token: ' word', logprob: -1.23, bytes: [32, 119] }
    const content = Array.from({ length: 7000 }, () => ({ ...token, top_logprobs: Array.from({ length: 20 }, () => token) }))
    const message = { role: 'assistant', content: 'no "usage":{"prompt_tokens":1,"completion_tokens":1} of its own' }
    const reply = (usage: object) => ({
      id: 'c',
      model: 'm',
      ...usage,
      choices: [{ index: 0, message, logprobs: { content, usage: { completion_tokens: 1 } } }],
    })
    const reported = { usage: { prompt_tokens: 9, completion_tokens: 7000, total_tokens: 7009 } }
    const none = { usage: { prompt_tokens: 9, completion_tokens: 0, total_tokens: 9 } }
    const far = { usage: { prompt_tokens: 9, completion_tokens: 5_000_000, total_tokens: 5_000_009 } }
    for (const [usage, more, completion, estimated] of [
      [reported, {}, 7000, false],
      [reported, { stream: true }, 7000, false],
      [reported, { max_tokens: 6500 }, 6500, false],
      [far, { max_tokens: 7500 }, 7500, true],
      [none, {}, 4096, true],
      [{}, {}, 4096, true],
    ] as const) {
      app.alpha.script([{ body: JSON.stringify(reply(usage)), headers: { 'content-type': 'application/json' } }])
      const asked = { model: 'both', messages: [{ role: 'user', content: 'hello' }], logprobs: true, top_logprobs: 20, ...more }
      const refused = await app.call('POST', '/v1/chat/completions', asked)
      expect([refused.status, refused.json.error.code], refused.text).toEqual([502, 'upstream_reply_too_large'])
      expect((await usageRows(app))[0]).toMatchObject({ outcome: 'failed', provider: 'alpha', completionTokens: BigInt(completion), estimated })
    }
    expect(app.beta.requests).toEqual([])
  })

  test('HARD-16 a metric counts implausible usage by provider', async () => {
    app.alpha.script([{ chunks: ['short'], usage: usageOf(10, 900_000) }])
    await app.call('POST', '/v1/chat/completions', { model: 'speaker', messages: [{ role: 'user', content: 'x' }] })
    const { text } = await app.call('GET', '/metrics', undefined, { token: null })
    expect(text).toMatch(/brigade_provider_usage_doubted_total\{provider="alpha",figure="output_above"\} [1-9]/)
    expect(text).toMatch(/brigade_provider_usage_doubted_total\{provider="alpha",figure="output_below"\} [1-9]/)
  })
})
