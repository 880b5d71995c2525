/** Whole replies that cannot be written in the format of the client. The provider has made and billed them. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { usageRows } from '../../harness/usage-rows.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp()
})
afterAll(() => app.stop())
beforeEach(() => {
  for (const upstream of upstreams()) upstream.reset()
})

const upstreams = () => [app.alpha, app.beta, app.indus]
const dialed = () => upstreams().reduce((sum, upstream) => sum + upstream.requests.length, 0)
const request = {
  model: 'test-model',
  max_tokens: 60_000,
  messages: [{ role: 'user', content: 'Call f with nested lists.' }],
  tools: [{ name: 'f', input_schema: { type: 'object' } }],
}

/** Scripts a reply whose tool call has arguments with so many nested lists. */
function answerNested(lists: number, usage: object): void {
  const args = `{"p":"${'x'.repeat(4096)}","a":${'['.repeat(lists)}${']'.repeat(lists)}}`
  const message = { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: args } }] }
  const reply = { id: 'c', object: 'chat.completion', created: 1, model: 'x', choices: [{ index: 0, message, finish_reason: 'tool_calls' }], ...usage }
  for (const upstream of upstreams()) upstream.script(() => ({ body: JSON.stringify(reply), headers: { 'content-type': 'application/json' } }))
}

const billed = { usage: { prompt_tokens: 1000, completion_tokens: 50_000, total_tokens: 51_000 } }

test('a reply that cannot be translated is charged as reported and not made again', async () => {
  answerNested(150, billed)
  const reply = await app.call('POST', '/v1/messages', request, { token: app.key })
  expect([reply.status, reply.json.error.type]).toEqual([502, 'api_error'])
  expect(reply.text).toContain('cannot be written in the format of this endpoint')
  expect(dialed()).toBe(1)
  const [row] = await usageRows(app)
  expect(row).toMatchObject({ promptTokens: 1000n, completionTokens: 50_000n, outcome: 'failed' })
  expect(row?.costUinr).toBeGreaterThan(0n)
})

test('a reply that reports no usage and cannot be translated is a failure of its route, which another route may not have', async () => {
  answerNested(150, {})
  const reply = await app.call('POST', '/v1/messages', request, { token: app.key })
  expect(reply.status).toBe(502)
  expect(dialed()).toBeGreaterThan(1)
})

test('a reply that is nested less deeply is translated', async () => {
  answerNested(100, billed)
  const reply = await app.call('POST', '/v1/messages', request, { token: app.key })
  expect([reply.status, reply.json.content[0].type]).toEqual([200, 'tool_use'])
  expect(dialed()).toBe(1)
})
