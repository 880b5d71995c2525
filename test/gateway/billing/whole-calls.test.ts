/** Calls on a prepaid balance whose answers can cost far more than what is left of it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { uinrFromInr } from '../../../src/platform/values/money.ts'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'

const answerTokens = 100_000
/** The price of an answer at ₹2,880 per million tokens. */
const answerInr = 288

describe('calls without a stream on a prepaid balance', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({
      env: { RAZORPAY_KEY_ID: 'rzp_test_key', RAZORPAY_KEY_SECRET: 'rzp-test-secret' },
      operatorFile: urls => {
        const file = defaultOperatorFile(urls)
        const route = { provider: 'alpha', upstream_model: 'long', input_inr_per_mtok: 480, output_inr_per_mtok: 2880, source: 'test', as_of: '2026-01-01' }
        const model = { id: 'long-model', kind: 'chat', context_length: 400_000, max_output_tokens: 128_000, tools: true, routes: [route] }
        const draw = { id: 'draw', kind: 'image', inr_per_image: 30, routes: [{ provider: 'alpha', upstream_model: 'draw-up' }] }
        const own = { ...model, id: 'own-model', routes: [{ ...route, provider: 'beta' }] }
        const thinking = { ...model, id: 'thinking-model', reasoning: true }
        const claude = { ...thinking, id: 'long-claude', routes: [{ ...route, provider: 'claude', upstream_model: 'claude-sonnet-4-5' }] }
        const messages = { id: 'claude', dialect: 'anthropic', base_url: urls.alpha, auth: 'x-api-key', residency: 'global' }
        return {
          ...file,
          providers: [...file.providers, messages],
          models: [...file.models, draw, model, own, thinking, claude, { ...claude, id: 'plain-claude', reasoning: false }],
        }
      },
    })
  })
  afterAll(() => app.stop())

  test('concurrent calls together overdraw the balance by at most the cost of one of them', async () => {
    const org = await app.otherOrg('Spender')
    const { credits } = app.gateway.app.operator
    await credits.give({ orgId: org.orgId, reason: 'grant', amountUinr: uinrFromInr(400), ref: 'r1' })
    const usage = { prompt_tokens: 10, completion_tokens: answerTokens, total_tokens: answerTokens + 10 }
    const choices = [{ index: 0, message: { role: 'assistant', content: 'word '.repeat(answerTokens) }, finish_reason: 'stop' }]
    app.alpha.script(() => ({ body: { id: 'x', object: 'chat.completion', created: 1, model: 'long', choices, usage } }))
    const ask = () =>
      app.call(
        'POST',
        '/v1/chat/completions',
        { model: 'long-model', max_tokens: answerTokens, messages: [{ role: 'user', content: 'go' }] },
        { token: org.key },
      )
    const replies = await Promise.all(Array.from({ length: 12 }, ask))
    const answered = replies.filter(({ status }) => status === 200).length
    const refused = replies.filter(({ status, json }) => status === 402 && json.error.code === 'insufficient_credits').length
    expect(answered + refused).toBe(12)
    expect([answered >= 1, answered <= 2]).toEqual([true, true])
    await app.gateway.app.limits.flushNow()
    const balanceInr = Number((await credits.show(org.orgId, 1)).balanceUinr) / 1e6
    expect(balanceInr).toBeGreaterThan(-answerInr)
  })

  describe('a last call', () => {
    /** What a token of output costs, in rupees. */
    const tokenInr = 2880 / 1e6
    const hello = [{ role: 'user', content: 'go' }]
    let asked = 0

    /** Makes one call with this balance. Its provider writes as much as it may. Returns the limit that the provider got, and the balance after the call. */
    async function lastCall(path: string, body: object, balanceInr: number, limitName: string) {
      const org = await app.otherOrg(`Last ${++asked}`)
      const { credits } = app.gateway.app.operator
      await credits.give({ orgId: org.orgId, reason: 'grant', amountUinr: uinrFromInr(balanceInr), ref: 'r1' })
      app.alpha.reset()
      app.alpha.script(({ json, path }) => {
        const tokens = Number((json as Record<string, unknown>)[limitName] ?? answerTokens)
        if (path.includes('/messages')) return { usage: { input_tokens: 1, output_tokens: tokens } }
        const choices = [{ index: 0, message: { role: 'assistant', content: 'word '.repeat(tokens) }, finish_reason: 'length' }]
        return {
          body: {
            id: 'x',
            object: 'chat.completion',
            created: 1,
            model: 'long',
            choices,
            usage: { prompt_tokens: 1, completion_tokens: tokens, total_tokens: tokens + 1 },
          },
        }
      })
      const { status } = await app.call('POST', path, { model: 'long-model', ...body }, { token: org.key })
      await app.gateway.app.limits.flushNow()
      const sent = app.alpha.requests[0]?.json as Record<string, unknown> | undefined
      return { status, sent: sent?.[limitName], balanceInr: Number((await credits.show(org.orgId, 1)).balanceUinr) / 1e6, json: sent }
    }

    const ways = [
      ['chat without a limit', '/v1/chat/completions', { messages: hello }, 'max_tokens'],
      ['chat with a larger limit', '/v1/chat/completions', { messages: hello, max_tokens: answerTokens }, 'max_tokens'],
      ['chat with a larger limit under its newer name', '/v1/chat/completions', { messages: hello, max_completion_tokens: answerTokens }, 'max_tokens'],
      ['messages', '/v1/messages', { messages: hello, max_tokens: answerTokens }, 'max_tokens'],
      ['responses without a limit', '/v1/responses', { input: 'go' }, 'max_tokens'],
    ] as const

    test.each(ways)('%s is bound to what the balance pays for and does not overdraw it', async (_, path, body, limitName) => {
      const { status, sent, balanceInr } = await lastCall(path, body, 1000 * tokenInr, limitName)
      expect(status).toBe(200)
      expect(sent).toBeGreaterThan(900)
      expect(sent).toBeLessThanOrEqual(1000)
      expect(balanceInr).toBeGreaterThanOrEqual(0)
    })

    test('a balance that pays for less than a short answer allows a short answer', async () => {
      const { status, sent, balanceInr } = await lastCall('/v1/chat/completions', { messages: hello, max_tokens: answerTokens }, 10 * tokenInr, 'max_tokens')
      expect([status, sent]).toEqual([200, 256])
      expect(balanceInr).toBeGreaterThan(-257 * tokenInr)
    })

    test('several answers share a short answer', async () => {
      const { json, balanceInr } = await lastCall('/v1/chat/completions', { messages: hello, n: 3, max_tokens: answerTokens }, 10 * tokenInr, 'max_tokens')
      expect(json).toMatchObject({ n: 3, max_tokens: 85 })
      expect(balanceInr).toBeGreaterThan(-257 * tokenInr)
    })

    const long = 1_000_000_000
    test.each([
      ['thinking_budget', '/v1/chat/completions', { messages: hello, thinking_budget: long }],
      ['thinking_budget without a limit', '/v1/chat/completions', { messages: hello, thinking_budget: long, max_tokens: undefined }],
      ['reasoning.max_tokens', '/v1/chat/completions', { messages: hello, reasoning: { max_tokens: long } }],
      ['thinking', '/v1/chat/completions', { messages: hello, thinking: { type: 'enabled', budget_tokens: long } }],
      ['thinking that is off', '/v1/chat/completions', { messages: hello, thinking: { type: 'disabled', budget_tokens: long } }],
      ['thinking of messages', '/v1/messages', { messages: hello, thinking: { type: 'enabled', budget_tokens: long } }],
      ['thinking_budget of messages', '/v1/messages', { messages: hello, thinking_budget: long }],
      ['thinking_budget of responses', '/v1/responses', { input: 'go', thinking_budget: long, max_tokens: undefined }],
    ])('%s with any length does not raise the bound', async (_, path, body) => {
      const { status, sent, balanceInr } = await lastCall(path, { max_tokens: answerTokens, ...body }, 1000 * tokenInr, 'max_tokens')
      expect(status).toBe(200)
      expect(sent).toBeLessThanOrEqual(1000)
      expect(balanceInr).toBeGreaterThanOrEqual(0)
    })

    test('thinking of a named length is shortened together with the limit, and leaves room for an answer', async () => {
      const thinking = { type: 'enabled', budget_tokens: 20_000 }
      const { json, balanceInr } = await lastCall(
        '/v1/chat/completions',
        { model: 'thinking-model', messages: hello, thinking, reasoning: { max_tokens: 20_000 }, thinking_budget: 20_000, max_tokens: answerTokens },
        10 * tokenInr,
        'max_tokens',
      )
      expect(json).toMatchObject({
        max_tokens: 8192,
        thinking: { type: 'enabled', budget_tokens: 7936 },
        reasoning: { max_tokens: 7936 },
        thinking_budget: 7936,
      })
      expect(balanceInr).toBeGreaterThan(-8193 * tokenInr)
    })

    test('a provider of the messages format gets a thinking budget below its limit, and none that is too short', async () => {
      const thinking = { type: 'enabled', budget_tokens: 20_000 }
      const ask = (body: object) =>
        lastCall('/v1/messages', { model: 'long-claude', messages: hello, max_tokens: answerTokens, ...body }, 10 * tokenInr, 'max_tokens')
      expect((await ask({ thinking })).json).toMatchObject({ max_tokens: 8192, thinking: { type: 'enabled', budget_tokens: 7936 } })
      const { json } = await ask({ model: 'plain-claude', thinking })
      expect(json).toMatchObject({ max_tokens: 256 })
      expect(json).not.toHaveProperty('thinking')
    })

    test('thinking that fits is sent as it is', async () => {
      const thinking = { type: 'enabled', budget_tokens: 5000 }
      const { json } = await lastCall(
        '/v1/chat/completions',
        { model: 'thinking-model', messages: hello, thinking, max_tokens: answerTokens },
        10 * tokenInr,
        'max_tokens',
      )
      expect(json).toMatchObject({ max_tokens: 8192, thinking })
    })

    test('a limit that the balance pays for is sent as it is', async () => {
      const { sent } = await lastCall('/v1/chat/completions', { messages: hello, max_tokens: 300 }, 1000 * tokenInr, 'max_tokens')
      expect(sent).toBe(300)
      const { sent: none } = await lastCall('/v1/chat/completions', { messages: hello }, 1000, 'max_tokens')
      expect(none).toBeUndefined()
    })
  })

  describe('a last call with a stream', () => {
    test.each([
      ['a plain request', {}],
      ['an effort', { reasoning_effort: 'low' }],
      ['an effort for each of many answers', { reasoning_effort: 'low', n: 100 }],
    ])('%s overdraws the balance by at most a short answer', async (_, body) => {
      const org = await app.otherOrg(`Stream ${Object.keys(body).length}`)
      const { credits } = app.gateway.app.operator
      await credits.give({ orgId: org.orgId, reason: 'grant', amountUinr: uinrFromInr(0.1), ref: 'r1' })
      app.alpha.reset()
      app.alpha.script(({ json }) => {
        const { max_tokens: limit, n = 1 } = json as { max_tokens?: number; n?: number }
        const tokens = Math.min(answerTokens, (limit ?? answerTokens) * n)
        const chunks = Array.from({ length: Math.ceil(tokens / 100) }, () => 'abc'.repeat(Math.min(100, tokens)))
        return { chunks, usage: { prompt_tokens: 1, completion_tokens: tokens, total_tokens: tokens + 1 } }
      })
      const messages = [{ role: 'user', content: 'go' }]
      const { status } = await app.call('POST', '/v1/chat/completions', { model: 'long-model', stream: true, messages, ...body }, { token: org.key })
      expect(status).toBe(200)
      await app.gateway.app.limits.flushNow()
      const balanceInr = Number((await credits.show(org.orgId, 1)).balanceUinr) / 1e6
      expect(balanceInr).toBeLessThan(0.1)
      expect(balanceInr).toBeGreaterThan((-500 * 2880) / 1e6)
    })
  })

  describe('a last call for pictures', () => {
    test.each([
      [1, 1],
      [70, 2],
      [120, 4],
      [1000, 4],
    ])('₹%i pays for %i of 4 pictures for ₹30 each', async (balanceInr, images) => {
      const org = await app.otherOrg(`Drawer ${balanceInr}`)
      const { credits } = app.gateway.app.operator
      await credits.give({ orgId: org.orgId, reason: 'grant', amountUinr: uinrFromInr(balanceInr), ref: 'r1' })
      app.alpha.reset()
      app.alpha.script(({ json }) => ({
        body: { created: 1, data: Array.from({ length: Number((json as Record<string, unknown>)['n'] ?? 1) }, () => ({ b64_json: 'aGVsbG8=' })) },
      }))
      const { status, json } = await app.call('POST', '/v1/images/generations', { model: 'draw', prompt: 'x', n: 4 }, { token: org.key })
      expect([status, json.data.length]).toEqual([200, images])
      await app.gateway.app.limits.flushNow()
      expect((await credits.show(org.orgId, 1)).balanceUinr).toBe(uinrFromInr(balanceInr - 30 * images))
    })
  })

  describe('a call that its own key may serve', () => {
    let key: string
    beforeAll(async () => {
      const owner = await app.signIn()
      await app.call('PUT', '/me/byok/beta', { key: 'sk-saved-beta-key-0001', always_use: true }, { cookie: owner })
      key = (await app.call('POST', '/me/keys', { name: 'own' }, { cookie: owner })).json.key
      await app.gateway.app.operator.credits.give({ orgId: app.orgId, reason: 'grant', amountUinr: uinrFromInr(0.5), ref: 'r1' })
    })
    const ask = () =>
      app.call('POST', '/v1/chat/completions', { model: 'own-model', max_tokens: 5000, messages: [{ role: 'user', content: 'go' }] }, { token: key })
    const balanceUinr = async () => {
      await app.gateway.app.limits.flushNow()
      return (await app.gateway.app.operator.credits.show(app.orgId, 1)).balanceUinr
    }
    const wordy = ({ json }: { readonly json: unknown }) => {
      const tokens = Number((json as Record<string, unknown>)['max_tokens'])
      const choices = [{ index: 0, message: { role: 'assistant', content: 'word' }, finish_reason: 'length' }]
      const usage = { prompt_tokens: 1, completion_tokens: tokens, total_tokens: tokens + 1 }
      return { body: { id: 'x', object: 'chat.completion', created: 1, model: 'long', choices, usage } }
    }
    const sent = () => app.beta.requests.map(({ json, headers }) => [headers['authorization'], (json as Record<string, unknown>)['max_tokens']])

    test('a small balance does not bound the own key, which it does not pay for', async () => {
      app.beta.reset()
      app.beta.script(wordy)
      const { status, json } = await ask()
      expect([status, json.usage.completion_tokens]).toEqual([200, 5000])
      expect(sent()).toEqual([['Bearer sk-saved-beta-key-0001', 5000]])
      expect(await balanceUinr()).toBe(uinrFromInr(0.5))
    })

    test("the bound applies when the platform's key serves the call after the own key has failed", async () => {
      app.beta.reset()
      app.beta.script(request => (request.headers['authorization'] === 'Bearer sk-saved-beta-key-0001' ? { status: 500 } : wordy(request)))
      const { status, json } = await ask()
      expect([status, json.usage.completion_tokens]).toEqual([200, 256])
      expect(sent().map(([, limit]) => limit)).toEqual([5000, 256])
      expect(await balanceUinr()).toBeLessThan(0n)
      expect(await balanceUinr()).toBeGreaterThan(-uinrFromInr(0.3))
    })
  })
})
