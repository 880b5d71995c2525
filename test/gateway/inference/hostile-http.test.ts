/** Neither a caller nor a provider may crash the gateway, fill its memory, block its thread, or close a route for other callers. */
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { eventMaxBytes, SseEventReader } from '../../../src/gateway/wire/sse/sse-events.ts'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'

const price = { source: 'test', as_of: '2026-01-01' }
const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`

describe('hostile callers and providers', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({
      dialects: true,
      env: { CIRCUIT_FAILURES: '2' },
      operatorFile(urls) {
        const file = defaultOperatorFile(urls)
        const media = [
          { id: 'hear', kind: 'transcription', routes: [{ provider: 'alpha', upstream_model: 'hear-up', inr_per_minute: 0.6, ...price }] },
          {
            id: 'say',
            kind: 'speech',
            default_voice: 'v',
            routes: [{ provider: 'alpha', upstream_model: 'say-up', inr_per_million_characters: 50, ...price }],
          },
          { id: 'draw', kind: 'image', inr_per_image: 3, edits: true, routes: [{ provider: 'alpha', upstream_model: 'draw-up' }] },
        ]
        return { ...file, models: [...file.models, ...media] }
      },
    })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta, app.indus, app.others.gem, app.others.claude]) upstream.reset()
  })
  const send = (path: string, body: string | object) => app.call('POST', path, body, { headers: { 'content-type': 'application/json' } })
  const transcribe = async (fields: Record<string, string> = {}) => {
    const form = new FormData()
    for (const [name, value] of Object.entries({ model: 'hear', ...fields })) form.append(name, value)
    form.append('file', new Blob(['RIFFabcd']), 'a.wav')
    const reply = await fetch(`${app.baseUrl}/v1/audio/transcriptions`, { method: 'POST', headers: { authorization: `Bearer ${app.key}` }, body: form })
    return { status: reply.status, type: reply.headers.get('content-type'), text: await reply.text() }
  }

  test('a body that is nested too deeply is 400 on every endpoint and opens no circuit', async () => {
    const bodies: [string, string][] = [
      ['/v1/messages', `{"model":"test-model","max_tokens":5,"messages":[{"role":"user","content":"x"}],"tools":[{"name":"x","input_schema":{"a":${deep}}}]}`],
      ['/v1/messages/count_tokens', `{"model":"test-model","messages":[{"role":"user","content":"x"}],"tools":[{"name":"x","input_schema":{"a":${deep}}}]}`],
      ['/v1/responses', `{"model":"test-model","input":"x","metadata":${deep}}`],
      ['/v1/responses', `{"model":"test-model","input":[{"role":"user","content":${deep}}]}`],
      ['/v1/embeddings', `{"model":"test-embed","input":"x","a":${deep}}`],
      ['/v1/images/generations', `{"model":"draw","prompt":"x","a":${deep}}`],
      ['/v1/audio/speech', `{"model":"say","input":"x","voice":"v","a":${deep}}`],
    ]
    for (const [path, body] of bodies)
      for (let times = 0; times < 3; times++) {
        const reply = await send(path, body)
        expect([path, reply.status, reply.json.error.code]).toEqual([path, 400, 'bad_request'])
      }
    expect(app.gateway.app.circuits.openRoutes()).toEqual([])
    expect(app.alpha.requests.map(({ path, raw }) => [path, raw.toString().slice(0, 300)])).toEqual([])
  })

  test('HARD-01 JSON inside a string of a body has separate bounds, which the error names', async () => {
    const text = (args: string) => [
      { role: 'user', content: 'x' },
      { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: args } }] },
      { role: 'tool', tool_call_id: 'c', content: args },
    ]
    const wide = `{"a":[${'{},'.repeat(150_000)}{}]}`
    for (const model of ['anthropic-model', 'gemini-model']) {
      for (const [args, bound] of [
        [deep, 'nested too deeply: at most 128'],
        [wide, 'too many values: at most 150000'],
      ] as const) {
        const reply = await send('/v1/chat/completions', { model, messages: text(args) })
        expect([model, reply.status, reply.json.error.message]).toEqual([model, 400, expect.stringContaining(bound)])
      }
      // The result of a tool is text and is passed on unchanged.
      const results = [...text('{}').slice(0, 2), { role: 'tool', tool_call_id: 'c', content: wide }]
      expect((await send('/v1/chat/completions', { model, messages: results })).status).toBe(200)
    }
    expect(app.others.claude.requests).toHaveLength(1)
    expect(app.others.gem.requests).toHaveLength(1)
    expect(app.gateway.app.circuits.openRoutes()).toEqual([])
  })

  test('HARD-01 every endpoint with tools limits the tool calls of one message and of all messages', async () => {
    const ids = (count: number) => Array.from({ length: count }, (_, index) => `c${index}`)
    const call = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '' } })
    const use = (id: string) => ({ type: 'tool_use', id, name: 'f', input: {} })
    const chat = (counts: readonly number[]) => ({
      model: 'test-model',
      messages: counts.flatMap(count => [
        { role: 'assistant', content: null, tool_calls: ids(count).map(call) },
        { role: 'user', content: 'x' },
      ]),
    })
    const messages = (counts: readonly number[]) => ({
      model: 'test-model',
      max_tokens: 5,
      messages: counts.flatMap(count => [
        { role: 'assistant', content: ids(count).map(use) },
        { role: 'user', content: 'x' },
      ]),
    })
    const bodies = [
      ['/v1/chat/completions', chat([5001]), '"messages[0].tool_calls" has 5001 items; at most 5000 are taken'],
      ['/v1/chat/completions', chat([5000, 5000, 5000, 5000, 1]), '20001 tool calls together; at most 20000 are taken'],
      ['/v1/messages', messages([5001]), 'at most 5000 are taken'],
      ['/v1/messages', messages([5000, 5000, 5000, 5000, 1]), '20001 tool calls together; at most 20000 are taken'],
    ] as const
    for (const [path, body, bound] of bodies) {
      const reply = await send(path, body)
      expect([path, reply.status, reply.json.error.message]).toEqual([path, 400, expect.stringContaining(bound)])
    }
    const most = await send('/v1/chat/completions', { ...chat([5000, 5000, 5000, 5000]), model: 'anthropic-model' })
    expect(most.status).toBe(200)
  })

  test('HARD-01 a reply repeats fields of a very long request up to a bound, and a field that does not fit has its default value', async () => {
    const instructions = 'Be short. '.repeat(2_000_000)
    const metadata = { a: 'b' }
    const repeated = { temperature: 0.5, metadata, tools: [{ type: 'function', name: 'f', strict: false, parameters: { type: 'object' } }] }
    const ask = (body: object) => send('/v1/responses', { model: 'test-model', ...body })
    const whole = await ask({ ...repeated, instructions, input: 'go' })
    expect([whole.status, whole.text.length < 100_000]).toEqual([200, true])
    expect(whole.json).toMatchObject({ ...repeated, instructions: null })
    const stream = await ask({ ...repeated, instructions, input: 'go', stream: true })
    expect([stream.status, stream.text.length < 100_000]).toEqual([200, true])
    expect(stream.text.match(/"instructions":null/g)).toHaveLength(3)
    const tools = Array.from({ length: 2000 }, (_, index) => ({ type: 'function', name: `f${index}`, description: 'x'.repeat(500), strict: false }))
    expect((await ask({ tools, metadata, instructions: 'Be short.', input: 'go' })).json).toMatchObject({ tools: [], metadata, instructions: 'Be short.' })
    // The provider still gets the fields that are not repeated.
    expect(app.alpha.requests.at(-1)?.json?.['tools']).toHaveLength(2000)
  })

  test('a reply with too deeply nested arguments is a failure of the route, not an internal error', async () => {
    const message = { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: `{"a":${deep}}` } }] }
    const body = JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'tool_calls' }] })
    const asked = { model: 'test-model', max_tokens: 5, messages: [{ role: 'user', content: 'x' }] }
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.script([{ body, headers: { 'content-type': 'application/json' } }])
    expect(await send('/v1/messages', asked)).toMatchObject({ status: 502 })
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
    app.gateway.app.circuits.openRoutes()
  })

  test('a schema that refers to itself many times causes no more work than its text', async () => {
    const properties = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`p${index}`, { $ref: '#/$defs/a' }]))
    const schema = { type: 'object', properties, $defs: { a: { type: 'object', properties } } }
    const tools = Array.from({ length: 3 }, (_, index) => ({ name: `t${index}`, input_schema: schema }))
    const reply = await send('/v1/messages', { model: 'gemini-model', max_tokens: 5, messages: [{ role: 'user', content: 'x' }], tools })
    expect([reply.status, reply.headers.get('x-br-dropped-params')]).toEqual([200, expect.stringContaining('$ref')])
    expect(app.others.gem.requests[0]?.raw.length).toBeLessThan(2_000_000)
  })

  test('a compressed image or audio reply is read, and its decoded size is bounded', async () => {
    const gzip = { 'content-encoding': 'gzip' }
    const small = (value: object) => [new Uint8Array(gzipSync(JSON.stringify(value)))]
    const large = [new Uint8Array(gzipSync(Buffer.alloc(80 * 1024 * 1024, 0x20)))]
    const json = { ...gzip, 'content-type': 'application/json' }
    app.alpha.script([{ headers: json, rawStream: small({ data: [{ url: 'https://pictures.example/1.png' }] }) }])
    expect((await send('/v1/images/generations', { model: 'draw', prompt: 'x' })).json.data[0].url).toBe('https://pictures.example/1.png')
    app.alpha.script([{ headers: json, rawStream: small({ text: 'heard' }) }])
    expect(JSON.parse((await transcribe()).text).text).toBe('heard')
    app.alpha.script([{ headers: { ...gzip, 'content-type': 'audio/mpeg' }, rawStream: [new Uint8Array(gzipSync('sound'))] }])
    expect((await send('/v1/audio/speech', { model: 'say', input: 'x' })).text).toBe('sound')
    app.alpha.script([{ headers: json, rawStream: large }])
    expect((await send('/v1/images/generations', { model: 'draw', prompt: 'x' })).status).toBe(502)
    app.alpha.script([{ headers: json, rawStream: large }])
    expect((await transcribe()).status).toBe(502)
  })

  test('a transcript with the content-type of a page or program is refused in any spelling, and subtitles keep their type', async () => {
    for (const type of ['Text/HTML', 'application/xhtml+xml', 'image/svg+xml', 'text/javascript; charset=utf-8', 'text/xml']) {
      app.alpha.script([{ headers: { 'content-type': type }, body: '<script>x</script>' }])
      const { status, text } = await transcribe({ response_format: 'text' })
      expect([type, status, text.includes('<script>')]).toEqual([type, 502, false])
      app.gateway.app.circuits.openRoutes()
    }
  })

  test('an endless event becomes an error at the bound, for any further bytes', () => {
    const reader = new SseEventReader()
    const chunk = Buffer.alloc(4 * 1024 * 1024, 0x61)
    const found = [...reader.push(Buffer.from('data: '))]
    for (let sent = 0; sent < eventMaxBytes + 2 * chunk.length; sent += chunk.length) found.push(...reader.push(chunk))
    found.push(...reader.push(Buffer.from('\n\ndata: more\n\n')), ...reader.end())
    expect(found).toEqual([{ kind: 'event', name: 'error', data: expect.stringContaining('too long') }])
  })
})
