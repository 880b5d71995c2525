/** Whole replies that are longer than their hold, and that nobody reads: the charge is what the provider made, as far as it can be known. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/platform/clock.ts'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import { usageRows } from '../../harness/usage-rows.ts'

const route = { provider: 'alpha', input_inr_per_mtok: 0, output_inr_per_mtok: 1000, source: 'test', as_of: '2026-01-01' }
const models = [
  { id: 'writer', kind: 'chat', context_length: 200_000, max_output_tokens: 100_000, routes: [{ ...route, upstream_model: 'writer-up' }] },
  { id: 'thinker', kind: 'chat', context_length: 200_000, max_output_tokens: 100_000, reasoning: true, routes: [{ ...route, upstream_model: 'thinker-up' }] },
]
const tokenInr = 0.001
/** The tokens of 200 seconds, at 50 a second. A call without a stream holds 4,096, and 8,192 of a model that thinks. */
const madeTokens = 10_000

describe('a long whole reply', () => {
  let aheadMs = 0
  const clock = { ...systemClock, monotonicMs: () => performance.now() + aheadMs }
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({
      clock,
      env: { FIRST_BYTE_TIMEOUT_MS: '1500', WHOLE_REPLY_TIMEOUT_MS: '1500', OFFLINE_MAX_MS: '86400000', AGENT_STALE_MS: '86400000' },
      operatorFile: urls => {
        const file = defaultOperatorFile(urls)
        return { ...file, models: [...file.models, ...models] }
      },
    })
  })
  afterAll(() => app.stop())
  beforeEach(() => app.alpha.reset())

  /** Begins a call of an agent with this budget, and lets 200 seconds pass while its provider works. */
  async function begin(model: string, budgetInr: number, script: object) {
    const agent = await app.newAgent(`${model} ${budgetInr} ${Math.random()}`)
    await app.setBudget('agent', agent.id, budgetInr)
    app.alpha.script(script)
    const stop = new AbortController()
    const pending = app.call(
      'POST',
      '/v1/chat/completions',
      { model, messages: [{ role: 'user', content: 'Write' }] },
      { token: agent.token, signal: stop.signal },
    )
    await app.alpha.arrived(1)
    aheadMs += 200_000
    const budget = async () => (await app.call('GET', '/v1/me/budgets', undefined, { token: agent.token })).json.budgets[0]
    return { pending, stop, budget }
  }
  const lastRow = async () => (await usageRows(app))[0]

  test('is charged for the time that its provider worked when its caller leaves, also beyond the first hold', async () => {
    const { pending, stop } = await begin('writer', 1000, { hang: true })
    stop.abort()
    await pending.catch(() => undefined)
    await expect.poll(lastRow, { timeout: 10_000 }).toMatchObject({ model: 'writer', outcome: 'client_gone', estimated: true })
    expect(Number((await lastRow())?.completionTokens)).toBeGreaterThanOrEqual(madeTokens)
  })

  test('is charged for the time that its provider worked when it does not come in time', async () => {
    const { pending } = await begin('writer', 1000, { hang: true })
    const { status } = await pending
    expect(status).toBe(502)
    const row = await lastRow()
    expect(row).toMatchObject({ model: 'writer', outcome: 'failed', estimated: true })
    expect(Number(row?.completionTokens)).toBeGreaterThanOrEqual(madeTokens)
  })

  test.each(['left', 'late'])('is not charged beyond a budget by a guess when it is %s', async how => {
    const { pending, stop, budget } = await begin('writer', 6000 * tokenInr, { hang: true })
    if (how === 'left') stop.abort()
    await pending.catch(() => undefined)
    await expect.poll(async () => (await budget()).spent_inr, { timeout: 10_000 }).toBe(6000 * tokenInr)
    expect((await budget()).held_inr).toBe(0)
  })

  test('of a model that thinks unseen is followed beyond its first hold, and its reported usage is charged', async () => {
    const { pending, stop } = await begin('thinker', 1000, { hold: true, usage: { prompt_tokens: 5, completion_tokens: 20_000, total_tokens: 20_005 } })
    stop.abort()
    await pending.catch(() => undefined)
    await new Promise(resolve => setTimeout(resolve, 200))
    app.alpha.release()
    await expect.poll(lastRow, { timeout: 10_000 }).toMatchObject({ model: 'thinker', outcome: 'client_gone', estimated: false, completionTokens: 20_000n })
  })
})
