import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/platform/clock.ts'
import { defaultOperatorFile, startApp, type TestApp, until } from '../../harness/app.ts'

/** ₹0.001 for each output token. */
const thinker = {
  id: 'thinker',
  kind: 'chat',
  context_length: 200_000,
  max_output_tokens: 100_000,
  reasoning: true,
  routes: [{ provider: 'alpha', upstream_model: 'thinker-up', input_inr_per_mtok: 0, output_inr_per_mtok: 1000, source: 'test', as_of: '2026-01-01' }],
}

describe('a model with hidden thinking', () => {
  let aheadMs = 0
  const clock = { ...systemClock, monotonicMs: () => performance.now() + aheadMs }
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({
      clock,
      env: { KEEP_ALIVE_MS: '100', OFFLINE_MAX_MS: '86400000', AGENT_STALE_MS: '86400000' },
      operatorFile: urls => {
        const file = defaultOperatorFile(urls)
        return { ...file, models: [...file.models, thinker] }
      },
    })
  })
  afterAll(() => app.stop())
  beforeEach(() => app.alpha.reset())

  async function think(name: string, inr: number) {
    const agent = await app.newAgent(name)
    await app.setBudget('agent', agent.id, inr)
    app.alpha.script([
      { holdAfterChunks: 1, chunks: ['after long thought', ' an answer'], usage: { prompt_tokens: 5, completion_tokens: 20_000, total_tokens: 20_005 } },
    ])
    const body = { model: 'thinker', stream: true, messages: [{ role: 'user', content: 'Think' }] }
    const reply = app.call('POST', '/v1/chat/completions', body, { token: agent.token })
    await app.alpha.arrived(1)
    const held = async (): Promise<number> => (await app.call('GET', '/v1/me/budgets', undefined, { token: agent.token })).json.budgets[0].held_inr
    return { reply, held }
  }

  test('the hold of a model with hidden thinking grows with time, and the call continues while the budget has room', async () => {
    const { reply, held } = await think('rich thinker', 1000)
    const first = await held()
    // In four minutes, 12,000 tokens are assumed.
    await until(async () => {
      aheadMs += 1000
      return (await held()) >= first + 4
    }, 25_000)
    app.alpha.release()
    expect((await reply).text).toContain('an answer')
  })

  test('a call with hidden thinking ends when the budget has no room for the assumed thinking', async () => {
    const { reply } = await think('poor thinker', 9)
    let isOver = false
    void reply.finally(() => {
      isOver = true
    })
    await until(() => {
      aheadMs += 1000
      return isOver
    }, 25_000)
    const { text } = await reply
    expect(text).toContain('"code":"agent_budget_exceeded"')
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
    expect(text).not.toContain('an answer')
  })
})
