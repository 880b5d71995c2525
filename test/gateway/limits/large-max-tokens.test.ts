import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { uinrFromInr } from '../../../src/platform/values/money.ts'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'

/** ₹0.005 for each output token, so 100,000 tokens cost ₹500. */
const dear = {
  id: 'dear-model',
  kind: 'chat',
  context_length: 200_000,
  routes: [{ provider: 'alpha', upstream_model: 'dear-upstream', input_inr_per_mtok: 0, output_inr_per_mtok: 5000, source: 'test', as_of: '2026-01-01' }],
}
const tokenInr = 0.005
const said = ({ status, json }: { status: number; json: { error: { code: string } } }) => [status, json.error.code]
const maxTokens = 100_000

describe('a large max_tokens on a dear model with ₹100 left', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({
      operatorFile: urls => {
        const file = defaultOperatorFile(urls)
        return { ...file, models: [...file.models, dear] }
      },
    })
  })
  afterAll(() => app.stop())
  beforeEach(() => app.alpha.reset())

  const agentWith = async (name: string, strict = false) => {
    const agent = await app.newAgent(name)
    await app.gateway.app.limits.budgets.set(app.orgId, 'agent', String(agent.id), uinrFromInr(100), { strict })
    return agent
  }
  const chat = (token: string, body: object = {}) =>
    app.call('POST', '/v1/chat/completions', { model: 'dear-model', messages: [{ role: 'user', content: 'Hello' }], max_tokens: maxTokens, ...body }, { token })
  const budget = async (token: string) => (await app.call('GET', '/v1/me/budgets', undefined, { token })).json.budgets[0]

  test('BUDX-03 a call with a large max_tokens gets a small hold that grows during the stream, but a strict budget refuses its worst case', async () => {
    const { token } = await agentWith('thrifty')
    // The gateway estimates each chunk at 30 tokens.
    app.alpha.script([
      {
        hold: true,
        holdAfterChunks: 20,
        chunks: Array.from({ length: 25 }, () => 'x'.repeat(90)),
        usage: { prompt_tokens: 5, completion_tokens: 750, total_tokens: 755 },
      },
    ])
    const streamed = chat(token, { stream: true })
    await app.alpha.arrived(1)
    const first = (await budget(token)).held_inr
    expect(first).toBeGreaterThan(0)
    expect(first).toBeLessThanOrEqual(300 * tokenInr)
    app.alpha.release()
    let grown = first
    while (grown < 600 * tokenInr) grown = (await budget(token)).held_inr
    expect(grown).toBeLessThan(100 / 2)
    app.alpha.release()
    const stream = await streamed
    expect([stream.status, stream.text.includes('"error"'), stream.text.trimEnd().endsWith('data: [DONE]')]).toEqual([200, false, true])
    expect(await budget(token)).toMatchObject({ held_inr: 0, spent_inr: 750 * tokenInr })

    app.alpha.script([{ hold: true, usage: { prompt_tokens: 5, completion_tokens: 40, total_tokens: 45 } }])
    const pending = chat(token)
    await app.alpha.arrived(2)
    expect((await budget(token)).held_inr).toBeLessThanOrEqual(4096 * tokenInr)
    app.alpha.release()
    expect((await pending).status).toBe(200)
    expect(await budget(token)).toMatchObject({ held_inr: 0, spent_inr: 790 * tokenInr })

    const strict = await agentWith('strict', true)
    for (const stream of [false, true]) {
      const refused = await chat(strict.token, { stream })
      expect([refused.status, refused.json.error.code]).toEqual([429, 'agent_budget_exceeded'])
      expect((await chat(strict.token, { stream, max_tokens: 100 })).status).toBe(200)
    }
    expect(app.alpha.requests).toHaveLength(4)
  })

  test('BUDX-03 for a call without max_tokens, a strict budget sets a max_tokens that it can pay for, so no answer exceeds the cap', async () => {
    const { id, token } = await agentWith('bound', true)
    const open = (stream: boolean) => chat(token, { stream, max_tokens: undefined })
    const writes = (tokens: number) => app.alpha.script([{ usage: { prompt_tokens: 5, completion_tokens: tokens, total_tokens: tokens + 5 } }])
    for (const stream of [false, true]) {
      app.alpha.reset()
      writes(6000)
      expect((await open(stream)).status).toBe(200)
      expect(app.alpha.requests[0]?.json).toMatchObject({ max_tokens: 4096 })
    }
    expect((await budget(token)).spent_inr).toBeCloseTo(2 * 4096 * tokenInr, 2)
    // 1,000 tokens are left, which is less than the first hold of a call.
    await app.gateway.app.limits.budgets.set(app.orgId, 'agent', String(id), uinrFromInr(9192 * tokenInr), { strict: true })
    app.alpha.reset()
    writes(6000)
    expect((await open(false)).status).toBe(200)
    expect(app.alpha.requests[0]?.json).toMatchObject({ max_tokens: 1000 })
    expect(await budget(token)).toMatchObject({ cap_inr: 9192 * tokenInr, spent_inr: 9192 * tokenInr, held_inr: 0 })
    expect(said(await open(false))).toEqual([429, 'agent_budget_exceeded'])
    // When the rest does not pay for a short answer, the call is refused.
    await app.gateway.app.limits.budgets.set(app.orgId, 'agent', String(id), uinrFromInr(9300 * tokenInr), { strict: true })
    expect(said(await open(true))).toEqual([429, 'agent_budget_exceeded'])
    expect(app.alpha.requests).toHaveLength(1)
  })

  test('a budget that is not strict leaves a call without max_tokens unchanged', async () => {
    const { token } = await agentWith('unbound')
    expect((await chat(token, { max_tokens: undefined })).status).toBe(200)
    expect(app.alpha.requests[0]?.json).not.toHaveProperty('max_tokens')
  })

  test('a stream that the budget no longer covers uses the rest of the budget before it ends', async () => {
    const { id, token } = await app.newAgent('to-the-end')
    // The budget pays for 2,000 tokens. Holds of 256, 768 and 1,792 fit, but the next one of 3,840 does not, so the rest up to 2,000 is used.
    await app.setBudget('agent', id, 2000 * tokenInr)
    app.alpha.script([{ holdAfterChunks: 80, chunks: Array.from({ length: 100 }, () => 'x'.repeat(90)) }])
    const reply = await chat(token, { stream: true })
    expect(reply.text).toContain('"agent_budget_exceeded"')
    const { spent_inr, held_inr } = await budget(token)
    expect(held_inr).toBe(0)
    expect(spent_inr).toBeGreaterThanOrEqual(2000 * tokenInr)
    // Only output that had already arrived exceeds the budget.
    expect(spent_inr).toBeLessThanOrEqual(80 * 30 * tokenInr)
  })

  test('a large output in one chunk is covered immediately, and the stream continues if the budget pays for it and otherwise ends', async () => {
    // 10,000 tokens in one chunk, which cost ₹50.
    const burst = { holdAfterChunks: 1, chunks: ['x'.repeat(30_000), 'and', 'the-tail'] }
    const rich = await agentWith('rich')
    app.alpha.script([burst])
    const goes = chat(rich.token, { stream: true })
    let held = 0
    while (held < 10_000 * tokenInr) held = (await budget(rich.token)).held_inr
    app.alpha.release()
    const whole = await goes
    expect([whole.text.includes('"error"'), whole.text.includes('the-tail')]).toEqual([false, true])

    const poor = await app.newAgent('poor')
    await app.setBudget('agent', poor.id, 20)
    app.alpha.script([burst])
    const ends = await chat(poor.token, { stream: true })
    expect(ends.text).toContain('"agent_budget_exceeded"')
    expect(ends.text).not.toContain('the-tail')
    expect((await budget(poor.token)).spent_inr).toBeCloseTo(10_000 * tokenInr, 2)
  })
})
