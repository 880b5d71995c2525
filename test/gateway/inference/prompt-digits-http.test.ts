/** What a prompt of digits holds and costs when its provider counts a token for each digit. */
import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { uinrFromInr } from '../../../src/platform/values/money.ts'
import { startApp, type TestApp, until } from '../../harness/app.ts'
import { usageRows } from '../../harness/usage-rows.ts'

const table = '80808080'.repeat(12_000)
const digits = table.length
/** The part of a prompt that may count by its bytes. */
const slackTokens = 2000

describe('a prompt of digits', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ env: { RAZORPAY_KEY_ID: 'rzp_test_key', RAZORPAY_KEY_SECRET: 'rzp-test-secret' } })
  })
  afterAll(() => app.stop())

  const orgWith = async (name: string, inr: number) => {
    const org = await app.otherOrg(name)
    await app.gateway.app.operator.credits.give({ orgId: org.orgId, reason: 'grant', amountUinr: uinrFromInr(inr), ref: name })
    return org
  }
  const body = (content: string) => ({ model: 'alpha-only', stream: true, max_tokens: 50, messages: [{ role: 'user', content }] })
  const reported = { prompt_tokens: digits, completion_tokens: 5, total_tokens: digits + 5 }

  test('a caller who leaves a stream before its usage is reported pays a token for each digit of the prompt', async () => {
    const { key } = await orgWith('Leaver', 1000)
    app.alpha.script([{ usage: reported, chunks: ['The', ' sum', ' is', ' 42', '.'], holdAfterChunks: 4 }])
    const { hostname, port } = new URL(app.baseUrl)
    await new Promise<void>((resolve, reject) => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
      let left = false
      const asked = request({ hostname, port, path: '/v1/chat/completions', method: 'POST', headers }, reply => {
        let text = ''
        reply.on('error', () => undefined)
        reply.on('data', (bytes: Buffer) => {
          text += bytes.toString('utf8')
          if (!text.includes('42')) return
          left = true
          asked.destroy()
          resolve()
        })
      })
      asked.on('error', error => (left ? undefined : reject(error)))
      asked.end(JSON.stringify(body(table)))
    })
    await until(async () => {
      await app.gateway.app.limits.flushNow()
      return (await usageRows(app))[0]?.outcome === 'client_gone'
    })
    app.alpha.release()
    const charged = Number((await usageRows(app))[0]?.promptTokens)
    expect(charged).toBeGreaterThan(digits - slackTokens)
    expect(charged).toBeLessThan(digits + slackTokens)
  })

  test('concurrent calls hold a token for each digit in the prepaid balance, so they cannot cost a multiple of it', async () => {
    app.alpha.reset()
    const inr = 5
    const { key, orgId } = await orgWith('Spender', inr)
    app.alpha.script(() => ({ hold: true, usage: reported, chunks: ['x'] }))
    const refused: string[] = []
    const calls = Array.from({ length: 16 }, async () => {
      const reply = await app.call('POST', '/v1/chat/completions', body(table), { token: key })
      if (reply.status !== 200) refused.push(reply.json.error.code)
    })
    await until(() => app.alpha.requests.length + refused.length === calls.length)
    const costInr = (digits * 10) / 1e6
    // The last call may exceed the rest of the balance.
    expect(app.alpha.requests.length).toBeLessThanOrEqual(Math.ceil(inr / costInr))
    app.alpha.release()
    await Promise.all(calls)
    expect(new Set(refused)).toEqual(new Set(['insufficient_credits']))
    await app.gateway.app.limits.flushNow()
    const { balanceUinr } = await app.gateway.app.operator.credits.show(orgId, 1)
    expect(Number(balanceUinr) / 1e6).toBeGreaterThan(-1.1 * costInr)
  })

  test('a prompt that fits into the context window by its bytes is served, although its digits alone would exceed it', async () => {
    app.alpha.reset()
    const { key } = await orgWith('Analyst', 1000)
    const count = 200_000
    app.alpha.script(() => ({ usage: { prompt_tokens: count / 3, completion_tokens: 5, total_tokens: count / 3 + 5 } }))
    expect((await app.call('POST', '/v1/chat/completions', body('7'.repeat(count)), { token: key })).status).toBe(200)
    await app.gateway.app.limits.flushNow()
    // The provider's report is believed, and not doubted as too low.
    expect(Number((await usageRows(app))[0]?.promptTokens)).toBe(Math.ceil(count / 3))
  })
})
