/** For any reply with status 200, the gateway translates it, treats the route as failed, or names a bound. It never answers with an internal error. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { usageRows } from '../../harness/usage-rows.ts'

const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
const jsonHeaders = { 'content-type': 'application/json' }

/** Bodies without an answer in any format. */
const answerless: Readonly<Record<string, string>> = {
  'an empty object': '{}',
  null: 'null',
  'a list': '[]',
  text: '"x"',
  'usage alone':
    '{"usage":{"prompt_tokens":3,"completion_tokens":4,"input_tokens":3,"output_tokens":4},"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4}}',
  nulls: '{"choices":null,"content":null,"output":null,"candidates":null,"usage":null}',
  'objects for lists': '{"choices":{},"content":{},"output":{},"candidates":{},"usage":[]}',
  'texts for lists': '{"choices":"x","content":"x","output":"x","candidates":"x"}',
  'lists of null': '{"choices":[null],"content":[null],"output":[null],"candidates":[null]}',
  'lists of text': '{"choices":["x"],"content":["x"],"output":["x"],"candidates":["x"]}',
  'an error': '{"error":"bad"}',
  'a failed answer': '{"choices":[],"content":null,"output":[],"status":"failed","candidates":[]}',
}

/** Bodies with an answer and invalid data around and inside it. */
const odd: Readonly<Record<string, string>> = {
  'wrong types':
    '{"id":5,"created":"x","model":{},"choices":[{"index":"a","message":{"content":{"a":1},"tool_calls":{"a":1},"reasoning_content":[],"thinking_blocks":5},"finish_reason":{}}],"content":[{"type":"tool_use","id":5,"name":{},"input":"x"},{"type":"thinking","thinking":5}],"stop_reason":{},"output":[{"type":"function_call","name":{},"arguments":{},"call_id":7},{"type":"reasoning","summary":5}],"candidates":[{"content":{"parts":[{"functionCall":{"name":{},"args":"x"}},5,null,{"thoughtSignature":5,"text":{}},{"inlineData":{"mimeType":{},"data":5}}]}}]}',
  'calls of nonsense':
    '{"choices":[{"message":{"content":[5,null,{"type":"text","text":{}}],"tool_calls":[5,null,{"function":null},{"function":{"name":{"toString":1},"arguments":{"toString":2}}}]}}],"content":[{"type":"text","text":"x","citations":[5,{"url":5}]}],"output":[{"type":"custom_tool_call","input":{}},{"type":"message","content":[{"type":"output_text","text":5}]}],"candidates":[{"content":{"parts":{"a":1}}}]}',
  'names of prototypes':
    '{"choices":[{"message":{"__proto__":null,"content":"x","tool_calls":[{"function":{"name":"__proto__","arguments":"{\\"__proto__\\":1}"}}]}}],"content":[{"type":"tool_use","id":"__proto__","name":"__proto__","input":{"__proto__":1}}],"output":[{"type":"function_call","name":"constructor","arguments":"{}"}],"candidates":[{"content":{"parts":[{"functionCall":{"name":"__proto__","args":{"__proto__":1}}}]},"finishReason":"__proto__"}]}',
  'depth in the text of a call': `{"choices":[{"message":{"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\\"a\\":${deep}}"}}]}}],"content":[{"type":"tool_use","id":"a","name":"f","input":{}}],"output":[{"type":"function_call","call_id":"c","name":"f","arguments":"{\\"a\\":${deep}}"}],"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]}}]}`,
}

/** Bodies that are nested too deeply to parse. */
const tooDeep: Readonly<Record<string, string>> = {
  'an error of depth': `{"error":{"message":"x","more":${deep}}}`,
  'depth beside the answer': `{"choices":[{"message":{"content":"hi"}}],"content":[{"type":"text","text":"hi"}],"output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]}],"candidates":[{"content":{"parts":[{"text":"hi"}]}}],"x":${deep}}`,
  'depth in a call': `{"choices":[{"message":{"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":${deep}}}]}}],"content":[{"type":"tool_use","id":"a","name":"f","input":{"a":${deep}}}],"output":[{"type":"function_call","name":"f","arguments":${deep}}],"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":${deep}}}}]}}]}`,
}

const figures = ['null', '-1', '1.5', '1e309', '"12"', '[]', '{}', 'true', '1e12', '1e-9', '1000000000']
const counts = {
  openai: ['usage', 'prompt_tokens', 'completion_tokens'],
  native: ['usage', 'input_tokens', 'output_tokens'],
  gemini: ['usageMetadata', 'promptTokenCount', 'candidatesTokenCount'],
} as const
const good =
  '"choices":[{"message":{"content":"hi"}}],"content":[{"type":"text","text":"hi"}],"output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]}],"candidates":[{"content":{"parts":[{"text":"hi"}]}}]'

describe('hostile replies of status 200', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ dialects: true })
  })
  afterAll(() => app.stop())

  const upstreamOf = {
    'openai-model': () => app.alpha,
    'anthropic-model': () => app.others.claude,
    'gemini-model': () => app.others.gem,
    'responses-model': () => app.others.resp,
  }
  type ModelId = keyof typeof upstreamOf
  const models = Object.keys(upstreamOf) as ModelId[]
  const clients: Readonly<Record<string, object>> = {
    '/v1/chat/completions': {
      messages: [{ role: 'user', content: 'hello' }],
      tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }],
    },
    '/v1/messages': { max_tokens: 100, messages: [{ role: 'user', content: 'hello' }], tools: [{ name: 'f', input_schema: { type: 'object' } }] },
    '/v1/responses': { input: 'hello', tools: [{ type: 'function', name: 'f', parameters: {} }] },
  }
  beforeEach(() => {
    for (const model of models) upstreamOf[model]().reset()
  })

  /** It does not use app.call, because such replies do not match the schemas. */
  const ask = async (path: string, model: ModelId, stream: boolean, body: string) => {
    upstreamOf[model]().script({ body, headers: jsonHeaders })
    const reply = await fetch(app.baseUrl + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${app.key}`, ...jsonHeaders },
      body: JSON.stringify({ ...clients[path], model, stream }),
    })
    const text = await reply.text()
    const [row] = await usageRows(app)
    if (row === undefined) throw new Error('the call is in no books')
    return { status: reply.status, text, row, inr: reply.headers.get('x-br-cost-inr'), what: `${path} ${model} ${stream ? 'stream' : 'whole'}` }
  }
  const each = async (look: (path: string, model: ModelId, stream: boolean) => Promise<void>) => {
    for (const path of Object.keys(clients)) for (const model of models) for (const stream of [false, true]) await look(path, model, stream)
  }

  test('a reply without a valid answer is a failure of the route and costs nothing', async () => {
    await each(async (path, model, stream) => {
      for (const [name, body] of Object.entries(answerless)) {
        const { status, row, text, what } = await ask(path, model, stream, body)
        expect([status, row.outcome, row.status, row.valueUinr], `${what}: ${name}: ${text.slice(0, 200)}`).toEqual([502, 'failed', 502, 0n])
      }
    })
  })

  test('an odd answer is either translated and charged or a failure of the route, but never an internal error', async () => {
    await each(async (path, model, stream) => {
      for (const [name, body] of Object.entries(odd)) {
        const { status, row, text, inr, what } = await ask(path, model, stream, body)
        const at = `${what}: ${name}: ${text.slice(0, 200)}`
        if (status === 200) {
          expect(row.valueUinr > 0n, at).toBe(true)
          if (!stream) expect(Number(inr), at).toBe(Number(row.valueUinr) / 1e6)
          if (stream) expect(text.includes('upstream_stream_error'), at).toBe(row.outcome === 'upstream_broke')
        } else expect([status, row.outcome, row.valueUinr], at).toEqual([502, 'failed', 0n])
      }
    })
  })

  test('a reply that is too deep to parse is charged, because the provider bills it, and no other route is tried', async () => {
    await each(async (path, model, stream) => {
      for (const [name, body] of Object.entries(tooDeep)) {
        const { status, row, text, what } = await ask(path, model, stream, body)
        expect([status, row.outcome, row.estimated, row.valueUinr > 0n], `${what}: ${name}: ${text.slice(0, 200)}`).toEqual([502, 'failed', true, true])
        expect(text).toContain('larger than this gateway accepts')
      }
    })
  })

  test('implausible usage figures are corrected, streamed or not', async () => {
    await each(async (path, model, stream) => {
      const [block, prompt, completion] = counts[model === 'openai-model' ? 'openai' : model === 'gemini-model' ? 'gemini' : 'native']
      for (const figure of figures)
        for (const usage of [`{"${prompt}":${figure},"${completion}":5}`, `{"${prompt}":7,"${completion}":${figure}}`]) {
          const { status, row, text, what } = await ask(path, model, stream, `{${good},"${block}":${usage}}`)
          expect([status, row.outcome, row.promptTokens > 0n], `${what}: ${usage}: ${text.slice(0, 200)}`).toEqual([200, 'ok', true])
        }
    })
  })

  test('a reply without usage costs the same, streamed or not', async () => {
    for (const path of Object.keys(clients))
      for (const model of models) {
        const rows = [await ask(path, model, false, `{${good}}`), await ask(path, model, true, `{${good}}`)].map(({ row }) => row)
        expect(rows.map(({ estimated, completionTokens }) => [estimated, completionTokens])).toEqual([
          [true, 1n],
          [true, 1n],
        ])
        expect(rows[0]?.valueUinr).toBe(rows[1]?.valueUinr)
      }
  })

  test('after a reply that cannot be translated another route serves, and only that route is charged', async () => {
    app.alpha.script({ body: answerless['usage alone'] ?? '', headers: jsonHeaders })
    const reply = await app.call('POST', '/v1/messages', { model: 'test-model', max_tokens: 50, messages: [{ role: 'user', content: 'hello' }] })
    const [row] = await usageRows(app)
    expect([reply.status, reply.headers.get('x-br-provider'), row?.provider, row?.valueUinr]).toEqual([200, 'beta', 'beta', 640n])
  })

  test('a request body that is nested too deeply is an error of the caller and opens no circuit', async () => {
    const body = `{"model":"anthropic-model","input":"hi","metadata":${deep}}`
    const valueInr = async (): Promise<number> => (await app.call('GET', '/v1/usage')).json.totals.value_inr
    const before = await valueInr()
    for (let times = 0; times < 6; times++) {
      const reply = await fetch(`${app.baseUrl}/v1/responses`, { method: 'POST', headers: { authorization: `Bearer ${app.key}`, ...jsonHeaders }, body })
      expect([reply.status, JSON.parse(await reply.text()).error.code]).toEqual([400, 'bad_request'])
    }
    expect(app.gateway.app.circuits.openRoutes()).not.toContain('claude')
    expect(await valueInr()).toBe(before)
  })
})
