/** Calls without a stream on a prepaid balance. Their answers can cost far more than the small amount that admission holds. */
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
        return { ...file, models: [...file.models, model] }
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
})
