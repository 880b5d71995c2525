/** Providers whose limit of output excludes thinking. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
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
