/** Output of a model counts in every field of a reply: a budget cuts it, and a caller who disconnects pays for it. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp, until } from '../../harness/app.ts'
import { usageRows } from '../../harness/usage-rows.ts'

/** ₹0.001 for each output token. */
const dear = {
  id: 'dear',
  kind: 'chat',
  context_length: 200_000,
  max_output_tokens: 100_000,
  tools: true,
  routes: [{ provider: 'alpha', upstream_model: 'dear-up', input_inr_per_mtok: 0, output_inr_per_mtok: 1000, source: 'test', as_of: '2026-01-01' }],
}
const text = 'The quick brown fox jumps. '.repeat(10).slice(0, 250)
const hello = [{ role: 'user', content: 'Hello' }]

/** Deltas with the text, by the field that contains it. */
const shapes: Readonly<Record<string, object>> = {
  'plain content': { content: text },
  'thinking under two names': { reasoning: text, reasoning_details: [{ type: 'reasoning.text', text, signature: 'x'.repeat(500) }] },
  'input of a custom tool': { tool_calls: [{ index: 0, id: 'call_1', type: 'custom', custom: { name: 'write', input: text } }] },
  'content in parts': { content: [{ type: 'text', text }] },
  'thinking in parts': { content: [{ type: 'thinking', thinking: [{ type: 'text', text }] }] },
  'details of reasoning': { reasoning_details: [{ type: 'reasoning.summary', summary: text, id: 'r1' }] },
  'what is said aloud': { audio: { id: 'a1', transcript: text } },
  'sound alone': { audio: { id: 'a1', data: 'QUJD'.repeat(16_000) } },
  'a field that nobody knows': { monologue: { deep: [{ line: text }] } },
  'a refusal': { refusal: text },
}
const frame = (delta: object): string => `data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`

describe('output in any field', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({
      env: { CIRCUIT_FAILURES: '1000' },
      operatorFile(urls) {
        const file = defaultOperatorFile(urls)
        return { ...file, models: [...file.models, dear] }
      },
    })
  })
  afterAll(() => app.stop())
  beforeEach(() => app.alpha.reset())
  let agents = 0
  const bodies = {
    '/v1/chat/completions': { model: 'dear', messages: hello, stream: true },
    '/v1/messages': { model: 'dear', messages: hello, max_tokens: 50_000, stream: true },
    '/v1/responses': { model: 'dear', input: 'Hello', stream: true },
  }

  for (const [path, body] of Object.entries(bodies)) {
    test(`HARD-06 a budget cuts a stream for output in any field, not only in content: ${path}`, async () => {
      for (const [name, delta] of Object.entries(shapes)) {
        app.alpha.script([{ rawStream: Array.from({ length: 200 }, () => frame(delta)), holdAfterRaw: true }])
        const { key } = await app.newKey({ budgetInr: 0.5 })
        const reply = await app.call('POST', path, body, { token: key })
        expect([name, reply.text.includes('budget_exceeded')]).toEqual([name, true])
        const [row] = await usageRows(app)
        expect([name, row?.outcome, Number(row?.valueUinr) >= 400_000]).toEqual([name, 'cut', true])
      }
    })

    test(`HARD-06 a caller who disconnects pays for output in any field, not only in content: ${path}`, async () => {
      const charged: Record<string, number> = {}
      for (const [name, delta] of Object.entries(shapes)) {
        const agent = await app.newAgent(`agent ${++agents}`)
        await app.setBudget('agent', agent.id, 1000)
        app.alpha.script([{ rawStream: [frame({ role: 'assistant', content: 'begun' }), frame(delta).repeat(40)], holdAfterRaw: true }])
        const controller = new AbortController()
        const reply = await fetch(app.baseUrl + path, {
          method: 'POST',
          signal: controller.signal,
          headers: { authorization: `Bearer ${agent.token}`, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })
        const reader = reply.body?.getReader()
        await reader?.read()
        // Some formats do not show all of this output. The budget's hold shows that it has arrived.
        const heldInr = async (): Promise<number> => (await app.call('GET', '/v1/me/budgets', undefined, { token: agent.token })).json.budgets[0].held_inr
        await until(async () => (await heldInr()) >= 3.3)
        controller.abort()
        await until(() => app.alpha.requests.at(-1)?.aborted === true)
        await until(async () => (await usageRows(app))[0]?.outcome === 'client_gone')
        const [row] = await usageRows(app)
        charged[name] = Number(row?.completionTokens)
        await app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: hello })
        app.alpha.reset()
      }
      // The whole output has 3,335 tokens, and 67 more when each delta names its tool. Money is held in advance, so the last part may not have arrived yet.
      for (const [name, tokens] of Object.entries(charged)) expect([name, tokens >= 1000, tokens <= 3470]).toEqual([name, true, true])
    })
  }
})
