/** Providers whose limit of output excludes thinking. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { uinrFromInr } from '../../../src/platform/values/money.ts'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import { until } from '../../harness/until.ts'
import { usageRows } from '../../harness/usage-rows.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({
    operatorFile: urls => {
      const file = defaultOperatorFile(urls)
      const providers = file.providers.map(each => ('id' in each && each.id === 'alpha' ? { ...each, quirks: ['limit-excludes-thinking'] } : each))
      const models = file.models.map(each => ('kind' in each && each.kind === 'chat' ? { ...each, reasoning: true, max_output_tokens: 50_000 } : each))
      return { providers, models }
    },
  })
})
afterAll(() => app.stop())

const usage = { prompt_tokens: 5, completion_tokens: 9_001, total_tokens: 9_006, completion_tokens_details: { reasoning_tokens: 9_000 } }
const message = { role: 'assistant', content: 'w', reasoning_content: 'thought '.repeat(9_000) }

async function chargedTokens(model: string): Promise<bigint | undefined> {
  const body = { model, max_tokens: 1, messages: [{ role: 'user', content: 'Think' }] }
  expect((await app.call('POST', '/v1/chat/completions', body)).status).toBe(200)
  return (await usageRows(app))[0]?.completionTokens
}

test('thinking that a provider bills beside the limit is charged, and other providers are held to the limit', async () => {
  const reply = { body: { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices: [{ index: 0, message, finish_reason: 'stop' }], usage } }
  app.alpha.script([reply])
  expect(await chargedTokens('alpha-only')).toBe(9_001n)
  app.indus.script([reply])
  const body = { model: 'test-model', provider: 'indus', max_tokens: 1, messages: [{ role: 'user', content: 'Think' }] }
  expect((await app.call('POST', '/v1/chat/completions', body)).status).toBe(200)
  expect((await usageRows(app))[0]?.completionTokens).toBe(1n)
})

/** The price of an output token of `alpha`, in rupees. All that the model can write costs ₹2. */
const tokenInr = 40 / 1_000_000

describe('budgets', () => {
  const strictAgent = async (name: string, tokens: number) => {
    const agent = await app.newAgent(name)
    await app.gateway.app.limits.budgets.set(app.orgId, 'agent', String(agent.id), uinrFromInr(tokens * tokenInr), { strict: true })
    return agent.token
  }
  const ask = (token: string, more: object) =>
    app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: 'Think' }], ...more }, { token })
  const spentTokens = async (token: string): Promise<number> =>
    Math.round((await app.call('GET', '/v1/me/budgets', undefined, { token })).json.budgets[0].spent_inr / tokenInr)
  const thinks = (tokens: number, more: object = {}) => {
    const details = { completion_tokens_details: { reasoning_tokens: tokens } }
    const made = { prompt_tokens: 5, completion_tokens: tokens + 1, total_tokens: tokens + 6, ...details }
    return {
      body: { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices: [{ index: 0, message, finish_reason: 'stop' }], usage: made },
      ...more,
    }
  }

  test('a strict budget refuses a call whose thinking it could not pay for, whatever limit the call has', async () => {
    const token = await strictAgent('short of money', 10_000)
    app.alpha.reset()
    for (const more of [{ max_tokens: 1 }, {}, { max_tokens: 1, stream: true }, { max_tokens: 1, n: 2 }]) {
      const { status, json } = await ask(token, more)
      expect([status, json.error.code]).toEqual([429, 'agent_budget_exceeded'])
    }
    expect(app.alpha.requests).toHaveLength(0)
  })

  test('a strict budget that can pay for all that the model writes is never exceeded by thinking', async () => {
    const token = await strictAgent('enough for one', 51_000)
    app.alpha.reset()
    app.alpha.script([thinks(200_000)])
    expect((await ask(token, { max_tokens: 1 })).status).toBe(200)
    expect(await spentTokens(token)).toBeGreaterThan(49_000)
    expect(await spentTokens(token)).toBeLessThanOrEqual(51_000)
  })

  test('the hold of a stream grows with its thinking, so the stream ends when a budget refuses more', async () => {
    const agent = await app.newAgent('streams')
    await app.gateway.app.limits.budgets.set(app.orgId, 'agent', String(agent.id), uinrFromInr(9_000 * tokenInr))
    app.alpha.reset()
    app.alpha.script([{ chunks: Array.from({ length: 60 }, () => 'x'.repeat(3_000)), usage }])
    const { status, text } = await ask(agent.token, { max_tokens: 1, stream: true })
    expect([status, text.includes('agent_budget_exceeded')]).toEqual([200, true])
    // The last frame may arrive before the charge is written. Nobody says how much of the cut stream was thinking, so all of it is charged.
    await until(async () => (await spentTokens(agent.token)) > 7_000, 'the charge of the cut stream')
    expect(await spentTokens(agent.token)).toBeLessThanOrEqual(9_000)
  })

  test('a cap on the cost of a call counts the thinking, and its error asks for another model', async () => {
    const { id, token } = await app.newAgent('capped')
    expect((await app.call('PATCH', `/v1/me/agents/${id}`, { max_cost_inr_per_call: 100 * tokenInr })).status).toBe(200)
    const { status, json } = await ask(token, { max_tokens: 1 })
    expect([status, json.error.code, json.error.message]).toEqual([403, 'call_cap_exceeded', expect.stringContaining('choose a cheaper model')])
  })
})
