/** The relay treats a byte order mark and the end mark of a stream as clients do. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { usageRows } from '../../harness/usage-rows.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp()
})
afterAll(() => app.stop())
beforeEach(() => app.alpha.reset())

const frame = (content: string): string =>
  `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`
const stop = 'data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
const paths = {
  '/v1/chat/completions': { messages: [{ role: 'user', content: 'hello' }] },
  '/v1/messages': { max_tokens: 100, messages: [{ role: 'user', content: 'hello' }] },
}

for (const [path, body] of Object.entries(paths)) {
  test(`a byte order mark before the first event does not hide its text: ${path}`, async () => {
    app.alpha.script([{ rawStream: [`\ufeff${frame('first')}`, frame('second'), stop, 'data: [DONE]\n\n'] }])
    const reply = await app.call('POST', path, { model: 'alpha-only', stream: true, ...body })
    expect([reply.status, reply.text.includes('first'), reply.text.includes('second')]).toEqual([200, true, true])
  })

  for (const mark of ['[DONE]\t', '[DONE] bye'])
    test(`a stream ends at data that begins with the end mark, and later data is neither sent nor charged: ${path}, ${JSON.stringify(mark)}`, async () => {
      app.alpha.script([{ rawStream: [frame('abc'), stop, `data: ${mark}\n\n`, frame('after'.repeat(1000)), 'data: [DONE]\n\n'] }])
      const reply = await app.call('POST', path, { model: 'alpha-only', stream: true, ...body })
      expect([reply.status, reply.text.includes('abc'), reply.text.includes('after')]).toEqual([200, true, false])
      expect((await usageRows(app))[0]).toMatchObject({ outcome: 'ok', completionTokens: 1n })
    })
}
