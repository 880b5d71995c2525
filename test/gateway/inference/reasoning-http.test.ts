import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/platform/clock.ts'
import { systemIds } from '../../../src/platform/values/ids.ts'
import { startSandbox } from '../../../src/sandbox/sandbox.ts'
import { startApp, type TestApp } from '../../harness/app.ts'

const header = 'x-br-reasoning-cap-advisory'
const messages = [{ role: 'user', content: 'Think of a number' }]
const price = { input_inr_per_mtok: 10, output_inr_per_mtok: 40, source: 'test', as_of: '2026-01-01' }
const model = (id: string, provider: string, more: object = {}) => ({
  id,
  kind: 'chat',
  context_length: 100_000,
  max_output_tokens: 16_000,
  reasoning: true,
  routes: [{ provider, upstream_model: `${id}-upstream`, ...price }],
  ...more,
})

describe('models that think', () => {
  let app: TestApp
  let sandbox: Awaited<ReturnType<typeof startSandbox>>

  beforeAll(async () => {
    sandbox = await startSandbox({ clock: systemClock, ids: systemIds, host: '127.0.0.1' })
    app = await startApp({
      dialects: true,
      operatorFile: urls => ({
        providers: [
          { id: 'alpha', base_url: urls.alpha, residency: 'global' },
          { id: 'box', base_url: sandbox.url, auth: 'none', residency: 'global' },
          { id: 'boxclaude', base_url: sandbox.url, dialect: 'anthropic', auth: 'none', residency: 'global' },
          { id: 'boxgemini', base_url: sandbox.url, dialect: 'gemini', auth: 'none', residency: 'global' },
        ],
        models: [
          model('plain', 'alpha', { reasoning: false }),
          model('thinker', 'alpha'),
          model('all-five', 'alpha', { efforts: ['low', 'medium', 'high', 'xhigh', 'max'] }),
          model('three', 'alpha', { efforts: ['low', 'high', 'max'] }),
          model('always', 'alpha', { efforts: ['low', 'medium', 'high'], thinking: 'always' }),
          model('claude-always', 'claude', { efforts: ['low', 'medium', 'high'], thinking: 'always' }),
          model('claude-adaptive', 'claude', { efforts: ['low', 'medium', 'high', 'xhigh', 'max'], thinking: 'always' }),
          model('gemini-always', 'gem', { efforts: ['low', 'medium', 'high'], thinking: 'always' }),
          ...['box', 'boxclaude', 'boxgemini'].map(provider => ({
            ...model(`thinks-${provider}`, provider),
            routes: [{ provider, upstream_model: 'sandbox-reasoning', ...price }],
          })),
        ],
      }),
      env: { ALPHA_API_KEY: 'alpha-platform-secret', CIRCUIT_FAILURES: '1000' },
    })
  })
  afterAll(async () => {
    await app.stop()
    await sandbox.close()
  })
  beforeEach(() => {
    for (const server of [app.alpha, app.others.claude, app.others.gem, app.others.resp]) server.reset()
  })

  const chat = (fields: object) => app.call('POST', '/v1/chat/completions', { messages, ...fields })
  const sentTo = (server: { requests: readonly { json: Record<string, unknown> | null }[] }) => server.requests.at(-1)?.json ?? {}
  const effortOf = async (id: string, reasoning_effort: unknown): Promise<unknown> => {
    const reply = await chat({ model: id, reasoning_effort })
    expect(reply.status, reply.text).toBe(200)
    return sentTo(app.alpha)['reasoning_effort']
  }

  test('REAS-01 REAS-02 REAS-04 REAS-05 a max_tokens below 1024 on a thinking model is sent unchanged and reported in its own header', async () => {
    for (const [id, cap, told] of [
      ['thinker', 1023, '1023'],
      ['thinker', 1, '1'],
      ['thinker', 1024, null],
      ['thinker', undefined, null],
      ['plain', 10, null],
    ] as const) {
      const reply = await chat({ model: id, ...(cap === undefined ? {} : { max_tokens: cap }) })
      expect([reply.status, reply.headers.get(header), reply.headers.get('x-br-reasoning-min-tokens')], `${id} ${cap}`).toEqual([200, told, null])
      expect(sentTo(app.alpha)['max_tokens']).toBe(cap)
    }
    const several = await chat({ model: 'thinker', max_completion_tokens: 700, n: 2 })
    expect(several.headers.get(header)).toBe('700')
  })

  test('REAS-03 in every dialect, a limit of one token gets a 200 with finish_reason length, perhaps without content', async () => {
    for (const id of ['thinks-box', 'thinks-boxclaude', 'thinks-boxgemini']) {
      const reply = await chat({ model: id, max_tokens: 1 })
      expect([reply.status, reply.json.choices[0].finish_reason, reply.headers.get(header)], `${id} ${reply.text}`).toEqual([200, 'length', '1'])
      expect(reply.json.choices[0].message.content).toBe('')
      expect(reply.json.usage.completion_tokens).toBe(1)
    }
  })

  test('REAS-06 relayed and translated streams, and relayed calls of other formats, have the same header', async () => {
    for (const id of ['thinker', 'anthropic-model', 'gemini-model']) {
      const reply = await chat({ model: id, max_tokens: 512, stream: true })
      expect([reply.status, reply.headers.get(header)], id).toEqual([200, '512'])
      expect(reply.text).toContain('[DONE]')
    }
    const relayed = await app.call('POST', '/v1/messages', { model: 'anthropic-model', max_tokens: 100, messages })
    expect([relayed.status, relayed.headers.get(header)], relayed.text).toEqual([200, '100'])
  })

  test('REAS-08 the effort minimal is sent as low to a provider of the Responses API, and as minimal elsewhere', async () => {
    const reply = await chat({ model: 'responses-model', reasoning_effort: 'minimal' })
    expect(reply.status, reply.text).toBe(200)
    expect(sentTo(app.others.resp)['reasoning']).toMatchObject({ effort: 'low' })
    expect(await effortOf('thinker', 'minimal')).toBe('minimal')
  })

  test('CHAT-15 REAS-09 an effort is sent to the model, and one that the model does not know becomes the nearest, or the higher of two nearest', async () => {
    expect(await effortOf('thinker', 'xhigh')).toBe('xhigh')
    expect(await effortOf('plain', 'low')).toBe('low')
    for (const level of ['low', 'medium', 'high', 'xhigh', 'max']) expect(await effortOf('all-five', level)).toBe(level)
    expect(await effortOf('three', 'medium')).toBe('high')
    expect(await effortOf('three', 'xhigh')).toBe('max')
    expect(await effortOf('three', 'minimal')).toBe('low')
    expect(await effortOf('all-five', 'none')).toBe('low')
    await chat({ model: 'anthropic-model', reasoning_effort: 'medium' })
    expect(sentTo(app.others.claude)['thinking']).toMatchObject({ type: 'enabled', budget_tokens: expect.any(Number) })
    await chat({ model: 'gemini-model', reasoning_effort: 'medium' })
    expect(sentTo(app.others.gem)['generationConfig']).toMatchObject({ thinkingConfig: { thinkingBudget: expect.any(Number) } })
  })

  test('REAS-10 an invalid effort is 400 bad_request with the allowed values, and no provider is called', async () => {
    for (const effort of ['extreme', '', 3, ['low']]) {
      const reply = await chat({ model: 'three', reasoning_effort: effort })
      expect([reply.status, reply.json.error.code], String(effort)).toEqual([400, 'bad_request'])
      for (const level of ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']) expect(reply.json.error.message).toContain(level)
    }
    expect(app.alpha.requests).toEqual([])
    expect((await chat({ model: 'three', reasoning_effort: null })).status).toBe(200)
  })

  test('REAS-11 a model that always thinks gets a small budget when none or minimal is requested', async () => {
    for (const effort of ['none', 'minimal', 'low']) {
      await chat({ model: 'claude-always', reasoning_effort: effort, max_tokens: 4000 })
      expect(sentTo(app.others.claude)['thinking'], effort).toEqual({ type: 'enabled', budget_tokens: 1024 })
      await chat({ model: 'gemini-always', reasoning_effort: effort })
      expect(sentTo(app.others.gem)['generationConfig'], effort).toEqual({ thinkingConfig: { thinkingBudget: 128, includeThoughts: true } })
      await chat({ model: 'claude-adaptive', reasoning_effort: effort })
      expect(sentTo(app.others.claude), effort).toMatchObject({ thinking: { type: 'adaptive' }, output_config: { effort: 'low' } })
      expect(await effortOf('always', effort)).toBe('low')
    }
    await chat({ model: 'anthropic-model', reasoning_effort: 'none' })
    expect(sentTo(app.others.claude)['thinking']).toEqual({ type: 'disabled' })
  })

  test('REAS-12 reasoning counts as part of the completion and of its limit, and is charged as output', async () => {
    for (const id of ['thinks-box', 'thinks-boxclaude', 'thinks-boxgemini']) {
      const reply = await chat({ model: id, reasoning_effort: 'low', max_tokens: 2000 })
      const { completion_tokens: completion, completion_tokens_details: details, prompt_tokens: prompt } = reply.json.usage
      expect(reply.json.choices[0].message.reasoning_content, `${id} ${reply.text}`).toContain('Simulated reasoning')
      expect(completion).toBeGreaterThan(details.reasoning_tokens)
      expect(Number(reply.headers.get('x-br-cost-inr'))).toBeCloseTo((prompt * 10 + completion * 40) / 1e6, 6)
      const capped = await chat({ model: id, max_tokens: 5 })
      expect(capped.json.usage.completion_tokens).toBe(5)
    }
    // Tokens that a provider reports above the limit are not charged to the caller.
    app.alpha.script({ usage: { prompt_tokens: 10, completion_tokens: 900, total_tokens: 910, completion_tokens_details: { reasoning_tokens: 890 } } })
    const over = await chat({ model: 'thinker', max_tokens: 100 })
    expect(Number(over.headers.get('x-br-cost-inr'))).toBeCloseTo((10 * 10 + 100 * 40) / 1e6, 6)
  })

  test('GET /v1/models lists the efforts of a model', async () => {
    expect((await app.call('GET', '/v1/models/three')).json.reasoning_efforts).toEqual(['low', 'high', 'max'])
    expect((await app.call('GET', '/v1/models/thinker')).json).not.toHaveProperty('reasoning_efforts')
  })
})

describe('a preset that chooses a model', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({
      operatorFile: urls => ({
        providers: [{ id: 'alpha', base_url: urls.alpha, residency: 'global' }],
        models: [model('thinker', 'alpha', { tools: true, openness: 'open' })],
      }),
      env: { ALPHA_API_KEY: 'alpha-platform-secret' },
    })
  })
  afterAll(() => app.stop())

  test('REAS-07 with a preset, the model that serves the call decides about the header', async () => {
    const reply = await app.call('POST', '/v1/chat/completions', { model: 'auto:reasoning', messages, max_tokens: 300 })
    expect([reply.status, reply.headers.get('x-br-auto-model'), reply.headers.get(header)], reply.text).toEqual([200, 'thinker', '300'])
    const roomy = await app.call('POST', '/v1/chat/completions', { model: 'auto:reasoning', messages, max_tokens: 3000 })
    expect([roomy.status, roomy.headers.get(header)]).toEqual([200, null])
  })
})
