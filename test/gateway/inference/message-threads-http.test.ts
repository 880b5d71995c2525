/** The client of the messages format asks the provider to store a conversation, but the model's provider stores none. */
import Anthropic from '@anthropic-ai/sdk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp()
})
afterAll(() => app?.stop())

test('a turn that continues a thread gets the refusal that the SDK expects, and the SDK sends the whole conversation', async () => {
  const messages = [{ role: 'user', content: 'and now?' }]
  const body = { model: 'test-model', max_tokens: 50, messages, thread: { type: 'continue', previous_message_id: 'msg_1' } }
  const refused = await app.call('POST', '/v1/messages?beta=true', body)
  expect(refused.status).toBe(400)
  expect(refused.json.error).toMatchObject({
    message: '"thread": nobody keeps conversations of this model. Send all messages, without "thread".',
    details: { error_code: 'thread_unsupported_request', unsupported: ['thread'] },
  })
  app.alpha.reset()

  const client = new Anthropic({ baseURL: app.baseUrl, authToken: app.key })
  const thread = client.beta.messages.thread({ model: 'test-model', max_tokens: 50, unsupportedRequestBehavior: 'continue_unthreaded' })
  for (const content of ['one', 'two', 'three'])
    expect((await thread.send({ role: 'user', content })).content).toMatchObject([{ text: 'Hello from the test upstream' }])
  const lengths = app.alpha.requests.map(({ json }) => (Array.isArray(json?.['messages']) ? json['messages'].length : null))
  expect(lengths).toEqual([1, 3, 5])
})
