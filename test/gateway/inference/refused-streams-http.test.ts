/** Streams that exceed a bound of the gateway. The provider has generated and bills them, so the call is charged as the provider reports. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { usageRows } from '../../harness/usage-rows.ts'

const clients: Readonly<Record<string, object>> = {
  '/v1/messages': { max_tokens: 8000, messages: [{ role: 'user', content: 'hello' }] },
  '/v1/responses': { input: 'hello', max_output_tokens: 8000 },
}
const promptTokens = 12
/** Far more output than is shown, because the model had hidden thinking. */
const outputTokens = 7900
const usage = { prompt_tokens: promptTokens, completion_tokens: outputTokens, total_tokens: promptTokens + outputTokens }
const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'openai-upstream' }
const madeCall = (index: number) => ({ index, id: `c${index}`, type: 'function', function: { name: 'f', arguments: '{}' } })
const event = (value: object): string => `data: ${JSON.stringify(value)}\n\n`
const deltaEvent = (delta: object, finish: string | null = null): string => event({ ...head, choices: [{ index: 0, delta, finish_reason: finish }] })
const calls = Array.from({ length: 600 }, (_, index) => deltaEvent({ tool_calls: [madeCall(index)] }))
const ending = [deltaEvent({}, 'tool_calls'), event({ ...head, choices: [], usage }), 'data: [DONE]\n\n']

describe('streams beyond a bound', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ dialects: true })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    app.alpha.reset()
    app.others.resp.reset()
  })

  async function ask(path: string, model: string, body: object) {
    const reply = await fetch(app.baseUrl + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${app.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, stream: true, ...body }),
    })
    return { status: reply.status, text: await reply.text() }
  }

  /** Waits for the charge, because the caller's stream ends before the provider's stream is read to its end. */
  const isCharged = (outcome: string) =>
    expect
      .poll(async () => (await usageRows(app))[0])
      .toMatchObject({ outcome, estimated: false, promptTokens: BigInt(promptTokens), completionTokens: BigInt(outputTokens) })

  const replies = {
    'in pieces': () => ({ rawStream: [...calls, ...ending] }),
    'in one piece': () => ({ rawStream: [[...calls, ...ending].join('')] }),
    'as a whole reply': () => ({
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        ...head,
        object: 'chat.completion',
        choices: [
          { index: 0, message: { role: 'assistant', content: null, tool_calls: calls.map((_, index) => madeCall(index)) }, finish_reason: 'tool_calls' },
        ],
        usage,
      }),
    }),
  }
  for (const path of Object.keys(clients))
    for (const [name, script] of Object.entries(replies))
      test(`a translated stream with too many tool calls is charged as its provider reports: ${path}, ${name}`, async () => {
        app.alpha.script([script()])
        const { status, text } = await ask(path, 'openai-model', clients[path] ?? {})
        expect([status, text.slice(-4000)]).toEqual([200, expect.stringContaining('over 512 tool calls')])
        await isCharged('upstream_broke')
        expect(app.alpha.requests).toHaveLength(1)
        expect((await ask(path, 'openai-model', clients[path] ?? {})).text).not.toContain('upstream_stream_error')
        await expect.poll(async () => (await usageRows(app))[0]).toMatchObject({ outcome: 'ok' })
      })

  test('a relayed response whose last event has too many values to parse is relayed to its end, and its usage is charged', async () => {
    const response = (status: string, more: object = {}): object => ({
      id: 'resp_1',
      object: 'response',
      created_at: 1,
      status,
      model: 'responses-upstream',
      ...more,
    })
    const named = (type: string, fields: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
    const logprobs = Array.from({ length: 40_000 }, () => ({ token: 'a', logprob: -1, bytes: [97] }))
    const output = [{ type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'hello', logprobs, annotations: [] }] }]
    const reported = { input_tokens: promptTokens, output_tokens: outputTokens, total_tokens: promptTokens + outputTokens }
    app.others.resp.script([
      {
        rawStream: [
          named('response.created', { response: response('in_progress', { output: [] }) }),
          named('response.output_text.delta', { output_index: 0, delta: 'hello' }),
          named('response.completed', {
            response: response('completed', { output, usage: { ...reported, output_tokens_details: { reasoning_tokens: 7000 } }, metadata: { usage: 'x' } }),
          }),
        ],
      },
    ])
    const { status, text } = await ask('/v1/responses', 'responses-model', clients['/v1/responses'] ?? {})
    expect([status, text.includes('upstream_stream_error'), text.includes('"response.completed"')]).toEqual([200, false, true])
    await isCharged('ok')
  })

  test('a stream whose first event exceeds a bound is charged for the prompt, and no other route is tried', async () => {
    const deep = { a: 'x'.repeat(70_000), deep: JSON.parse(`${'['.repeat(200)}${']'.repeat(200)}`) }
    app.alpha.script([{ rawStream: [event({ ...head, choices: [{ index: 0, delta: { content: 'hi' }, finish_reason: null }], ...deep }), ...ending] }])
    const { status, text } = await ask('/v1/messages', 'openai-model', clients['/v1/messages'] ?? {})
    expect([status, text]).toEqual([502, expect.stringContaining('larger than this gateway accepts')])
    const [row] = await usageRows(app)
    expect(row).toMatchObject({ outcome: 'failed', status: 502, estimated: true })
    expect([Number(row?.promptTokens) > 0, Number(row?.completionTokens) > 0]).toEqual([true, true])
  })
})
