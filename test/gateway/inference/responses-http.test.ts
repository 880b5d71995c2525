import OpenAI from 'openai'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'

let app: TestApp
let client: OpenAI
beforeAll(async () => {
  app = await startApp({ dialects: true })
  client = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 })
})
afterAll(() => app.stop())
afterEach(() => {
  for (const server of [app.alpha, app.others?.resp, app.others?.claude]) server?.reset()
})

const ask = (body: object, headers: Record<string, string> = {}) => app.call('POST', '/v1/responses', { model: 'openai-model', input: 'Hello', ...body }, { headers })

const models = ['openai-model', 'anthropic-model', 'gemini-model', 'responses-model']

test.each(models)('RESP-01 %s answers a response, whole and as typed events in order', async model => {
  const whole = await client.responses.create({ model, input: 'Hello' })
  expect(whole).toMatchObject({ object: 'response', status: 'completed', output_text: 'Hello from the test upstream' })
  expect(whole.usage).toMatchObject({ input_tokens: 12, output_tokens: 5, total_tokens: 17 })

  const events: OpenAI.Responses.ResponseStreamEvent[] = []
  for await (const event of await client.responses.create({ model, input: 'Hello', stream: true })) events.push(event)
  expect(events.map(event => event.sequence_number)).toEqual(events.map((_, index) => index))
  const deltas = events.filter(event => event.type === 'response.output_text.delta')
  expect(deltas.map(event => event.delta).join('')).toBe('Hello from the test upstream')
  const last = events.at(-1)
  expect(last).toMatchObject({ type: 'response.completed', response: { status: 'completed', usage: { input_tokens: 12, output_tokens: 5, total_tokens: 17 } } })
})

test('smoke', async () => {
  const reply = await ask({})
  console.log(JSON.stringify(reply.json), [...reply.headers].join('|'))
  console.log((await ask({ stream: true })).text)
  console.log((await ask({ stream: true, model: 'responses-model' })).text)
})
