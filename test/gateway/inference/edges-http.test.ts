import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { endpointTable } from '../../../src/gateway/http/rows/endpoint-table.ts'
import { defaultOperatorFile, startApp, type TestApp, type TestReply } from '../../harness/app.ts'
import { wavOf } from '../../harness/wav.ts'

const hello = [{ role: 'user', content: 'Hello there' }]
const price = { source: 'test', as_of: '2026-01-01' }
const picture = { created: 1, data: [{ b64_json: Buffer.from('89504e470d0a1a0a', 'hex').toString('base64') }] }
const mediaModels = [
  { id: 'test-image', kind: 'image', inr_per_image: 2, routes: [{ provider: 'alpha', upstream_model: 'alpha-image', ...price }] },
  { id: 'test-listen', kind: 'transcription', routes: [{ provider: 'alpha', upstream_model: 'alpha-listen', inr_per_minute: 0.6, ...price }] },
]

describe('every inference endpoint', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({
      dialects: true,
      env: { CIRCUIT_FAILURES: '1000' },
      operatorFile(urls) {
        const file = defaultOperatorFile(urls)
        return { ...file, models: [...file.models, ...mediaModels] }
      },
    })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta, app.indus, app.others.claude, app.others.gem, app.others.resp]) upstream.reset()
  })
  const post = (path: string, body: object, options = {}) => app.call('POST', path, body, options)
  const transcribe = async (model: string, headers: Record<string, string> = {}): Promise<TestReply> => {
    const form = new FormData()
    form.append('model', model)
    form.append('file', new Blob([new Uint8Array(wavOf(1))], { type: 'audio/wav' }), 'a.wav')
    const response = await fetch(`${app.baseUrl}/v1/audio/transcriptions`, {
      method: 'POST',
      body: form,
      headers: { authorization: `Bearer ${app.key}`, ...headers },
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, json: JSON.parse(text) }
  }
  /** Returns a call of each API for a chat model. */
  const callsOf = (chatModel: string): Record<string, (headers?: Record<string, string>) => Promise<TestReply>> => ({
    chat: headers => post('/v1/chat/completions', { model: chatModel, messages: hello }, { headers }),
    'chat stream': headers => post('/v1/chat/completions', { model: chatModel, messages: hello, stream: true }, { headers }),
    messages: headers => post('/v1/messages', { model: chatModel, messages: hello, max_tokens: 50 }, { headers }),
    'messages stream': headers => post('/v1/messages', { model: chatModel, messages: hello, max_tokens: 50, stream: true }, { headers }),
    responses: headers => post('/v1/responses', { model: chatModel, input: 'hi' }, { headers }),
    'responses stream': headers => post('/v1/responses', { model: chatModel, input: 'hi', stream: true }, { headers }),
  })

  test('HDR-12 HDR-13 on every endpoint and dialect, provider headers are not relayed, and the caller’s credential and cookies are not sent', async () => {
    const theirs = {
      'set-cookie': 'a=b',
      server: 'upstream-thing',
      'x-internal': '1',
      'keep-alive': 'timeout=99',
      'proxy-authenticate': 'Basic',
      'x-ratelimit-limit-requests': '7',
      'strict-transport-security': 'max-age=1',
    }
    const servers = [app.alpha, app.others.claude, app.others.gem, app.others.resp]
    const calls: [string, (headers?: Record<string, string>) => Promise<TestReply>][] = []
    for (const model of ['test-model', 'anthropic-model', 'gemini-model', 'responses-model'])
      for (const [name, call] of Object.entries(callsOf(model))) calls.push([`${name} on ${model}`, call])
    calls.push(['embeddings', headers => post('/v1/embeddings', { model: 'test-embed', input: 'a' }, { headers })])
    for (const [name, call] of calls) {
      for (const server of servers) {
        server.reset()
        server.script(() => ({ headers: theirs }))
      }
      await check(name, call)
    }
    app.alpha.script([{ body: picture, headers: theirs }])
    await check('images', headers => post('/v1/images/generations', { model: 'test-image', prompt: 'a hat' }, { headers }))
    app.alpha.reset()
    app.alpha.script([{ body: { text: 'heard' }, headers: theirs }])
    await check('audio', headers => transcribe('test-listen', headers))

    async function check(name: string, call: (headers?: Record<string, string>) => Promise<TestReply>): Promise<void> {
      const reply = await call({ cookie: 'session=mine', 'x-custom': 'secret', connection: 'keep-alive' })
      expect([reply.status, reply.headers.get('x-br-provider')], name).toEqual([200, expect.stringMatching(/^(alpha|claude|gem|resp)$/)])
      for (const header of Object.keys(theirs).filter(header => header !== 'keep-alive')) expect(reply.headers.get(header), `${name}: ${header}`).toBeNull()
      expect(reply.headers.get('keep-alive')).not.toBe(theirs['keep-alive'])
      expect(reply.headers.get('x-request-id')).toMatch(/^req_/)
      const sent = servers.flatMap(server => server.requests).at(-1)
      expect(sent, name).toBeDefined()
      const said = JSON.stringify(sent?.headers)
      for (const secret of [app.key, 'session=mine', 'x-custom']) expect(said, name).not.toContain(secret)
    }
  })

  test('HDR-01 HDR-02 HDR-03 every endpoint names the serving provider, before the first byte of a stream, but not on errors without a provider call', async () => {
    for (const [name, call] of Object.entries(callsOf('test-model'))) {
      app.alpha.reset()
      app.alpha.script([{ status: 503 }])
      expect((await call()).headers.get('x-br-provider'), name).toBe('beta')
    }
    for (const [name, call] of Object.entries(callsOf('nothing'))) {
      const reply = await call()
      expect([reply.status, reply.headers.get('x-br-provider')], name).toEqual([404, null])
    }
  })

  test('HDR-07 the x-br-* headers are printable ASCII on one line and contain no text of a user', async () => {
    const marker = 'zebra7731'
    const said = `${marker} कृपया इस कोड को ठीक करें\r\nx-evil: 1 \u0000 def f(x): return "é"`
    const calls = [
      post('/v1/chat/completions', { model: 'auto', messages: [{ role: 'user', content: said }] }),
      post('/v1/chat/completions', { model: 'auto:cheapest', messages: [{ role: 'user', content: said }] }),
      post('/v1/chat/completions', { model: 'test-model', route: 'best', messages: [{ role: 'user', content: said }], stream: true }),
      post('/v1/messages', { model: 'test-model', max_tokens: 9, messages: [{ role: 'user', content: said }], 'naïve\r\nx-evil': said }),
      post('/v1/messages', { model: 'gemini-model', max_tokens: 9, messages: [{ role: 'user', content: said }], 'naïve\r\nx-evil': said }),
      post('/v1/chat/completions', { model: 'anthropic-model', messages: [{ role: 'user', content: said }], 'naïve\r\nx-evil': said }),
    ]
    for (const reply of await Promise.all(calls)) {
      expect(reply.status, reply.text).toBe(200)
      expect(reply.headers.get('x-evil')).toBeNull()
      const ours = [...reply.headers].filter(([name]) => name.startsWith('x-br-'))
      expect(ours.length).toBeGreaterThan(0)
      for (const [name, value] of ours) {
        expect(value, name).toMatch(/^[\x20-\x7e]*$/)
        expect(value, name).not.toContain(marker)
      }
    }
  })

  test('ERR-10 an unknown model is 404 on text endpoints and 400 on image and audio endpoints, with the same code', async () => {
    const codeOf = ({ status, json }: TestReply): unknown[] => [status, json.error.code ?? json.error.type]
    for (const [name, call] of Object.entries(callsOf('nothing'))) {
      const reply = await call()
      expect(reply.status, name).toBe(404)
      expect(reply.text, name).toContain('model_not_found')
    }
    expect(codeOf(await post('/v1/embeddings', { model: 'nothing', input: 'a' }))).toEqual([404, 'model_not_found'])
    expect(codeOf(await app.call('GET', '/v1/models/nothing'))).toEqual([404, 'model_not_found'])
    expect(codeOf(await app.call('GET', '/v1/models/nothing/stats'))).toEqual([404, 'model_not_found'])
    expect(codeOf(await post('/v1/images/generations', { model: 'nothing', prompt: 'a' }))).toEqual([400, 'model_not_found'])
    expect(codeOf(await post('/v1/audio/speech', { model: 'nothing', input: 'a', voice: 'b' }))).toEqual([400, 'model_not_found'])
    expect(codeOf(await transcribe('nothing'))).toEqual([400, 'model_not_found'])
  })

  test('ERR-12 /v1/me accepts only a key, /me accepts only a session, and both have the same endpoints', async () => {
    const cookie = await app.signIn()
    const rows = Object.values(endpointTable)
    const reads = rows.flatMap(row => {
      const twin = 'twin' in row && row.twin !== undefined ? [row.twin.at] : []
      return [row.at, ...twin].filter(at => at.startsWith('GET ') && !at.includes('{')).map(at => at.slice(4))
    })
    const personal = reads.filter(path => path === '/me' || path.startsWith('/me/'))
    const programs = reads.filter(path => path.startsWith('/v1/me/'))
    expect(personal.length).toBeGreaterThan(5)
    expect(programs.length).toBeGreaterThan(3)
    for (const path of personal) {
      expect((await app.call('GET', path)).json.error.code, path).toBe('no_session')
      expect((await app.call('GET', path, undefined, { cookie })).status, path).not.toBe(401)
    }
    for (const path of programs) {
      expect((await app.call('GET', path, undefined, { cookie })).status, path).toBe(401)
      expect((await app.call('GET', path)).status, path).not.toBe(401)
    }
  })

  test('ERR-13 extra fields of an error are next to the error object and never replace it', async () => {
    const { key, keyId } = await app.newKey({ budgetInr: 0.000001 })
    await post('/v1/chat/completions', { model: 'test-model', messages: hello }, { token: key })
    const broke = await post('/v1/chat/completions', { model: 'test-model', messages: hello }, { token: key })
    const headers = { 'idempotency-key': `edges-${keyId}` }
    await post('/v1/chat/completions', { model: 'test-model', messages: hello }, { headers })
    const again = await post('/v1/chat/completions', { model: 'test-model', messages: hello }, { headers })
    const agent = await app.newAgent('edges')
    await app.call('POST', `/v1/me/agents/${agent.id}/revoke`, {})
    const revoked = await post('/v1/chat/completions', { model: 'test-model', messages: hello }, { token: agent.token })
    expect([broke.status, again.status, revoked.status], broke.text).toEqual([429, 409, 401])
    expect([broke, again, revoked].map(({ status, json }) => [status, json.error.code])).toEqual([
      [429, 'budget_exceeded'],
      [409, 'idempotency_replayed'],
      [401, 'invalid_api_key'],
    ])
    expect(revoked.json.reason).toBe('agent_revoked')
    expect(again.json.usage).toMatchObject({ prompt_tokens: expect.any(Number) })
    for (const { json } of [broke, again, revoked]) {
      expect(Object.keys(json.error).sort()).toEqual(['code', 'message', 'type'])
      for (const field of Object.values(json.error)) expect(typeof field === 'string' && field.length > 0).toBe(true)
    }
  })

  test('the text of a user is in no log line and no table, for every endpoint and every end of a call', async () => {
    const marker = 'zebra-crossing-7731'
    const said = [{ role: 'user', content: marker }]
    for (const ends of [
      {},
      { status: 500, body: `cannot process ${marker}` },
      { status: 400, body: { error: { message: `bad ${marker}` } } },
      { breakAfterChunks: 1 },
    ]) {
      for (const stream of [false, true]) {
        for (const [path, body] of [
          ['/v1/chat/completions', { messages: said }],
          ['/v1/messages', { messages: said, system: marker, max_tokens: 9 }],
          ['/v1/responses', { input: marker, instructions: marker }],
        ] as const) {
          for (const model of ['alpha-only', 'anthropic-model', 'gemini-model', 'responses-model']) {
            for (const server of [app.alpha, app.others.claude, app.others.gem, app.others.resp]) {
              server.reset()
              server.script([ends])
            }
            await post(path, { model, stream, ...body })
          }
        }
      }
    }
    app.alpha.reset()
    app.alpha.script([{ body: picture }, { body: { text: marker } }])
    await post('/v1/images/generations', { model: 'test-image', prompt: marker })
    await transcribe('test-listen')
    await post('/v1/embeddings', { model: 'test-embed', input: marker })
    await app.gateway.app.limits.flushNow()
    expect(app.logLines.join('\n')).not.toContain(marker)
    expect(await app.dump()).not.toContain(marker)
  })
})
