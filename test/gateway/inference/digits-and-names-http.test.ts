/** Output without reported usage: a digit is a token, and names of tools count like their arguments. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { usageRows } from '../../harness/usage-rows.ts'

const hello = [{ role: 'user', content: 'Hello' }]
const bodies = {
  '/v1/chat/completions': { model: 'alpha-only', messages: hello },
  '/v1/messages': { model: 'alpha-only', messages: hello, max_tokens: 5000 },
  '/v1/responses': { model: 'alpha-only', input: 'Hello' },
}
const digits = Array.from({ length: 30 }, (_, index) => String(index % 10).repeat(10))
const name = 'look_up_the_weather_of_a_city'
const args = '{"city":"Pune"}'
/** Three bytes are a token. */
const callTokens = BigInt(Math.ceil((name.length + args.length) / 3))
const called = (more: object) => [{ ...more, id: 'call_1', type: 'function', function: { name, arguments: args } }]

describe('output without reported usage', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp()
  })
  afterAll(() => app.stop())
  beforeEach(() => app.alpha.reset())

  for (const [path, body] of Object.entries(bodies))
    for (const stream of [false, true]) {
      const how = `${path}, ${stream ? 'streamed' : 'whole'}`
      const tokens = async () => {
        expect((await app.call('POST', path, { ...body, stream })).status).toBe(200)
        const [row] = await usageRows(app)
        return [row?.completionTokens, row?.estimated]
      }

      test(`a digit counts as a token: ${how}`, async () => {
        app.alpha.script({ usage: null, chunks: digits })
        expect(await tokens()).toEqual([300n, true])
        app.alpha.script({ usage: null, chunks: ['abc', 'def'] })
        expect(await tokens()).toEqual([2n, true])
      })

      test(`the name of a tool counts like its arguments: ${how}`, async () => {
        const head = { id: 'x', created: 1, model: 'm' }
        const whole = {
          ...head,
          object: 'chat.completion',
          choices: [{ index: 0, message: { role: 'assistant', content: null, tool_calls: called({}) }, finish_reason: 'tool_calls' }],
        }
        const chunk = (delta: object, finish: string | null) =>
          `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
        const rawStream = [chunk({ role: 'assistant', tool_calls: called({ index: 0 }) }, null), chunk({}, 'tool_calls'), 'data: [DONE]\n\n']
        app.alpha.script(stream ? { rawStream } : { body: whole })
        expect(await tokens()).toEqual([callTokens, true])
      })
    }
})
