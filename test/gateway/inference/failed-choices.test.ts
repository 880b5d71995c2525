/** A reply of status 200 with an error in a choice, and a stream with only an end mark, count as a failure of the route. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { usageRows } from '../../harness/usage-rows.ts'

const hello = [{ role: 'user', content: 'Hello there' }]
const usage = { prompt_tokens: 3, completion_tokens: 900, total_tokens: 903 }
const chunk = (choice: object, more: object = {}): string =>
  `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: {}, ...choice }], ...more })}\n\n`
const end = 'data: [DONE]\n\n'
const whole = (choice: object): object => ({
  body: { id: 'x', object: 'chat.completion', model: 'm', choices: [{ index: 0, message: { role: 'assistant', content: '' }, ...choice }], usage },
})
const noRoom = { code: 502, message: 'No capacity left' }
const failures: readonly object[] = [
  { error: noRoom, finish_reason: 'error' },
  { error: noRoom, finish_reason: null },
  { error: 'No capacity left', finish_reason: 'stop' },
  { finish_reason: 'error' },
]
const events = (text: string): string[] => text.split(/\n\n/).filter(event => event !== '')

describe('a choice that failed', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ env: { CIRCUIT_FAILURES: '1000' } })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })

  const paths: readonly [string, (model: string, stream: boolean) => object][] = [
    ['/v1/chat/completions', (model, stream) => ({ model, stream, messages: hello })],
    ['/v1/messages', (model, stream) => ({ model, stream, messages: hello, max_tokens: 1000 })],
    ['/v1/responses', (model, stream) => ({ model, stream, input: 'Hello there' })],
  ]

  test.each(paths)('CHAT-24 a failed choice in a whole reply or the first chunk causes failover without a charge: %s', async (path, bodyOf) => {
    for (const failure of failures)
      for (const [stream, script] of [
        [false, whole(failure)],
        [true, whole(failure)],
        [true, { rawStream: [': waiting\n\n', chunk(failure, { usage }), end] }],
        [false, { rawStream: [chunk(failure, { usage }), end] }],
      ] as const) {
        const name = JSON.stringify([failure, stream, script])
        app.alpha.script([script])
        const reply = await app.call('POST', path, bodyOf('test-model', stream))
        expect([name, reply.status, reply.headers.get('x-br-provider'), reply.text.includes('No capacity')]).toEqual([name, 200, 'beta', false])
        expect((await usageRows(app))[0]).toMatchObject({ provider: 'beta', outcome: 'ok' })
      }
  })

  test.each(paths)("CHAT-24 when no route is left after a failed choice, the answer is 502 with the provider's message: %s", async (path, bodyOf) => {
    for (const stream of [false, true]) {
      const before = await usageRows(app, 1000)
      app.alpha.script([stream ? { rawStream: [chunk({ error: noRoom, finish_reason: 'error' }), end] } : whole({ error: noRoom, finish_reason: 'error' })])
      const reply = await app.call('POST', path, bodyOf('alpha-only', stream))
      expect([reply.status, reply.json.error.code]).toEqual([502, 'all_routes_failed'])
      expect(reply.json.error.message).toContain('No capacity left')
      for (const row of (await usageRows(app, 1000)).slice(0, -before.length || undefined)) expect(row.costUinr).toBe(0n)
    }
  })

  test('CHAT-25 a failed choice after the first chunk ends the stream with an error in its format, and only the received output is charged', async () => {
    for (const model of ['alpha-only', 'same-id'])
      for (const failure of failures)
        for (const [path, bodyOf] of paths) {
          const failed = chunk({ delta: { content: 'x'.repeat(4000) }, ...failure }, { usage })
          app.alpha.script([{ rawStream: [chunk({ delta: { role: 'assistant', content: 'abcdefgh' } }), failed, chunk({ delta: { content: 'LATE' } }), end] }])
          const reply = await app.call('POST', path, bodyOf(model, true))
          const name = JSON.stringify([model, failure, path])
          const got = events(reply.text)
          expect([name, reply.status, reply.text.includes('LATE'), reply.text.includes('xxxx'), app.beta.requests.length]).toEqual([name, 200, false, false, 0])
          const told = 'error' in failure ? 'No capacity left' : 'The provider ended the answer with an error.'
          if (path === '/v1/chat/completions') {
            expect(got.at(-1), name).toBe('data: [DONE]')
            expect(JSON.parse(got.at(-2)?.slice(6) ?? '').error, name).toMatchObject({ message: told, type: expect.any(String) })
          } else {
            const kind = path === '/v1/messages' ? 'error' : 'response.failed'
            expect(got.at(-1)?.split('\n')[0], name).toBe(`event: ${kind}`)
            expect(got.at(-1), name).toContain(told)
            expect(got.at(-1), name).not.toContain('"finish_reason"')
          }
          // Eight letters were sent. The usage in the chunk with the error does not count.
          const [row] = await usageRows(app)
          expect([name, row?.outcome, row?.completionTokens]).toEqual([name, 'upstream_broke', 3n])
        }
  })

  test('CHAT-24 a stream of only comments and an end mark causes failover, and is 502 when no route is left', async () => {
    const empty = [[end], [': waiting\n\n', end], ['data: [DONE]'], ['data: {"choices":[]}\n\n', end], [`event: x\n\n${end}${end}`]]
    for (const rawStream of empty)
      for (const [path, bodyOf] of paths)
        for (const stream of [true, false]) {
          const name = JSON.stringify([rawStream, path, stream])
          app.alpha.script([{ rawStream }])
          const reply = await app.call('POST', path, bodyOf('test-model', stream))
          expect([name, reply.status, reply.headers.get('x-br-provider')]).toEqual([name, 200, 'beta'])
          app.alpha.script([{ rawStream }])
          const alone = await app.call('POST', path, bodyOf('alpha-only', stream))
          expect([name, alone.status, alone.json.error?.code]).toEqual([name, 502, 'all_routes_failed'])
        }
  })

  test('CHAT-24 a choice whose error is null, or whose text is about errors, is a normal answer', async () => {
    app.alpha.script([whole({ error: null, finish_reason: 'stop' })])
    expect((await app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: hello })).status).toBe(200)
    const said = chunk({ delta: { content: '"finish_reason":"error"', error: 'as text' }, error: null, finish_reason: 'stop' })
    app.alpha.script([{ rawStream: [said, end] }])
    const reply = await app.call('POST', '/v1/chat/completions', { model: 'same-id', messages: hello, stream: true })
    expect([reply.status, reply.text.startsWith(said)]).toEqual([200, true])
  })
})
