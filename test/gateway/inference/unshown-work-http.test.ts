/** Work that a provider bills and the caller does not see: thinking of models that the catalog does not list as thinking, and responses that fail. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { usageRows } from '../../harness/usage-rows.ts'

const outputTokens = 30_000

describe('unshown work', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ dialects: true })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    app.alpha.reset()
    app.others.resp.reset()
  })

  const answer = {
    id: 'x',
    object: 'chat.completion',
    created: 1,
    model: 'alpha-upstream',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Yes' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 12, completion_tokens: outputTokens, total_tokens: 12 + outputTokens },
  }
  const asked = [{ enable_thinking: true }, { chat_template_kwargs: { enable_thinking: true } }, { reasoning: { exclude: true } }, { reasoning_effort: 'high' }]
  for (const field of asked)
    test(`thinking that a request asks for is charged as reported, even if the catalog does not list the model as thinking: ${JSON.stringify(field)}`, async () => {
      app.alpha.script({ body: answer })
      const reply = await app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: 'hello' }], ...field })
      expect([reply.status, reply.text]).toEqual([200, expect.stringContaining('Yes')])
      expect((await usageRows(app))[0]).toMatchObject({ outcome: 'ok', estimated: false, completionTokens: BigInt(outputTokens) })
    })

  test('without such a field, usage far above the shown output is implausible', async () => {
    app.alpha.script({ body: answer })
    await app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: 'hello' }] })
    const [row] = await usageRows(app)
    expect(row).toMatchObject({ outcome: 'ok', estimated: true })
    expect(Number(row?.completionTokens)).toBeLessThan(10_000)
  })

  test('a response that fails after the model has worked is charged as reported, streamed or not', async () => {
    const usage = { input_tokens: 20, output_tokens: 7000, output_tokens_details: { reasoning_tokens: 7000 }, total_tokens: 7020 }
    const error = { code: 'invalid_prompt', message: 'flagged' }
    app.others.resp.script({ body: { id: 'resp_1', object: 'response', created_at: 1, status: 'failed', model: 'm', output: [], error, usage } })
    const reply = await app.call('POST', '/v1/responses', { model: 'responses-model', input: 'hello' })
    expect([reply.status, reply.text]).toEqual([502, expect.stringContaining('flagged')])
    expect((await usageRows(app))[0]).toMatchObject({ outcome: 'failed', status: 502, promptTokens: 20n, completionTokens: 7000n, estimated: true })
  })
})
