/** Numbers that a double cannot hold reach providers of every dialect unchanged. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import type { UpstreamServer } from '../../harness/upstream-server.ts'

const wide = [
  '9007199254740993',
  '12345678901234567890',
  '-9223372036854775808',
  '9223372036854775807',
  '1e400',
  '-1E+999',
  '1e-400',
  '0.1234567890123456789',
  '10000000000000000000000',
]

const schema = `{"type":"object","properties":{"id":{"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807}}}`

describe('numbers that a double cannot hold', () => {
  let app: TestApp
  beforeAll(async () => {
    // An operator's own server gets every field, so numbers in unknown fields also arrive.
    const operatorFile: typeof defaultOperatorFile = urls => {
      const { providers, models } = defaultOperatorFile(urls)
      return { providers: providers.map(provider => ({ ...provider, forwards: 'all' })), models }
    }
    app = await startApp({ dialects: true, operatorFile })
  })
  afterAll(() => app.stop())

  /** Returns the request to the provider for a body, as text. */
  async function sent(upstream: UpstreamServer, path: string, body: string): Promise<string> {
    const before = upstream.requests.length
    const reply = await app.call('POST', path, body, { headers: { 'content-type': 'application/json' } })
    expect(reply.status, reply.text).toBe(200)
    expect(upstream.requests.length).toBe(before + 1)
    return upstream.requests.at(-1)?.raw.toString() ?? ''
  }

  const messages = '"messages":[{"role":"user","content":"Take 9007199254740993 and \\"1e400\\""}]'
  const tool = `"tools":[{"type":"function","function":{"name":"find","parameters":${schema}}}]`

  test('EDGE-07 a chat body reaches an OpenAI provider with the same digits, whether it is relayed, edited, streamed, capped or routed', async () => {
    const seeds = wide.map((digits, index) => `"x${index}":${digits}`).join(',')
    for (const more of [
      '"model":"same-id"',
      '"model":"test-model"',
      '"model":"test-model","stream":true',
      '"model":"test-model","optimize":"price"',
      '"model":"openai-newer-model","max_tokens":20',
    ]) {
      const text = await sent(app.alpha, '/v1/chat/completions', `{${more},"seed":9007199254740993,${seeds},"list":[${wide.join(',')}],${tool},${messages}}`)
      expect(text).toContain('"seed":9007199254740993')
      if (!more.includes('newer')) {
        for (const [index, digits] of wide.entries()) expect(text, more).toContain(`"x${index}":${digits}`)
        expect(text).toContain(`"list":[${wide.join(',')}]`)
      }
      expect(text).toContain('"maximum":9223372036854775807')
      expect(text).toContain('"minimum":-9223372036854775808')
      expect(text).toContain('Take 9007199254740993 and \\"1e400\\"')
    }
  })

  test('EDGE-07 translated bodies keep the digits of tool schemas, of arguments and of seeds', async () => {
    const turns = `"messages":[{"role":"user","content":"Go"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"find","input":{"id":9007199254740993}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"found"}]}]`
    const claudeTool = `"tools":[{"name":"find","input_schema":${schema}}]`
    for (const [model, upstream] of [
      ['test-model', app.alpha],
      ['gemini-model', app.others.gem],
      ['anthropic-model', app.others.claude],
      ['responses-model', app.others.resp],
    ] as const) {
      const fromMessages = await sent(upstream, '/v1/messages', `{"model":"${model}","max_tokens":50,${claudeTool},${turns}}`)
      expect(fromMessages, model).toContain('9223372036854775807')
      expect(fromMessages, model).toContain('9007199254740993')
      const fromChat = await sent(upstream, '/v1/chat/completions', `{"model":"${model}","max_tokens":50,${tool},${messages}}`)
      expect(fromChat, model).toContain('"maximum":9223372036854775807')
      const fromResponses = await sent(
        upstream,
        '/v1/responses',
        `{"model":"${model}","input":"Go","tools":[{"type":"function","name":"find","strict":false,"parameters":${schema}}]}`,
      )
      expect(fromResponses, model).toContain('"maximum":9223372036854775807')
    }
    expect(await sent(app.others.gem, '/v1/chat/completions', `{"model":"gemini-model","seed":9007199254740993,${messages}}`)).toContain(
      '"seed":9007199254740993',
    )
  })

  test('EDGE-07 a large body keeps its digits in every position, on every route', async () => {
    // The text is longer than one piece of the restoration, so some numbers are at the end of a piece.
    const numbers = Array.from({ length: 9000 }, (_, index) => `9007199254${740_993 + 2 * index}`)
    const content = numbers.map(digits => `{"type":"text","text":"${'x'.repeat(1200 + (Number(digits) % 7))}","at":${digits}}`)
    const parts = [content.slice(0, 4500), content.slice(4500)].map(some => `{"role":"user","content":[${some.join(',')}]}`)
    const heavy = `"messages":[${parts.join(',')}]`
    const text = await sent(app.alpha, '/v1/chat/completions', `{"model":"test-model","optimize":"price",${heavy}}`)
    expect(text.match(/"at":\d+/g)).toEqual(numbers.map(digits => `"at":${digits}`))
    const schemas = numbers.slice(0, 1500).map((digits, index) => {
      const about = `"description":"${'न'.repeat(700 + (index % 5))}"`
      return `{"type":"function","function":{"name":"f${index}",${about},"parameters":{"type":"object","properties":{"a":{"type":"integer","maximum":${digits}}}}}}`
    })
    for (const [model, upstream] of [
      ['anthropic-model', app.others.claude],
      ['responses-model', app.others.resp],
    ] as const) {
      const translated = await sent(upstream, '/v1/chat/completions', `{"model":"${model}","max_tokens":50,"tools":[${schemas.join(',')}],${messages}}`)
      expect(translated.match(/"maximum":\d+/g)).toEqual(numbers.slice(0, 1500).map(digits => `"maximum":${digits}`))
    }
  })

  test('EDGE-07 a reply that repeats fields of the request has the same digits, streamed or not', async () => {
    const body = (stream: boolean) =>
      `{"model":"test-model","stream":${stream},"input":"Go","tools":[{"type":"function","name":"find","strict":false,"parameters":${schema}}]}`
    for (const stream of [false, true]) {
      const reply = await app.call('POST', '/v1/responses', body(stream), { headers: { 'content-type': 'application/json' } })
      expect(reply.text).toContain('"maximum":9223372036854775807')
      expect(reply.text).toContain('"minimum":-9223372036854775808')
    }
  })

  test('EDGE-07 embeddings requests also keep their digits, and numbers that a double can represent are unchanged', async () => {
    const text = await sent(
      app.alpha,
      '/v1/embeddings',
      '{"model":"test-embed","input":"x","dimensions":1024,"extra":[1e400,9007199254740993,0.1,1.50,-0,1e2,0.69999999999999996,123456789012345]}',
    )
    expect(text).toContain('"extra":[1e400,9007199254740993,0.1,1.5,0,100,0.7,123456789012345]')
  })

  test('EDGE-07 fields that the gateway itself reads are still checked, and every number is sent as it arrived', async () => {
    for (const [field, status] of [
      ['"max_tokens":9007199254740993', 400],
      ['"max_tokens":1e400', 400],
      ['"n":9007199254740993', 400],
      ['"temperature":0.70000000000000000001', 200],
      ['"stream":1e400', 400],
    ] as const) {
      const reply = await app.call('POST', '/v1/chat/completions', `{"model":"test-model",${field},${messages}}`, {
        headers: { 'content-type': 'application/json' },
      })
      expect([reply.status, field]).toEqual([status, field])
      expect(reply.text).not.toMatch(/\d{15}/)
    }
    expect(app.alpha.requests.at(-1)?.raw.toString()).toContain('"temperature":0.70000000000000000001')
    const many = await app.call('POST', '/v1/chat/completions', `{"model":"test-model","x":[${Array(10_001).fill('1e400').join(',')}],${messages}}`, {
      headers: { 'content-type': 'application/json' },
    })
    expect([many.status, many.json.error.message]).toEqual([400, expect.stringContaining('10000')])
  })
})
