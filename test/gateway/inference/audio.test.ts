import OpenAI, { toFile } from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp, until } from '../../harness/app.ts'
import { checkAgainstRow } from '../../harness/row-contract.ts'
import type { UpstreamServer } from '../../harness/upstream-server.ts'
import { usageRows } from '../../harness/usage-rows.ts'
import { wavOf } from '../../harness/wav.ts'

/** ₹0.60 a minute = 10,000 micro-rupees a second; ₹50 a million characters = 50 micro-rupees each. */
const perSecondUinr = 10_000n
const perCharacterUinr = 50n
const price = { source: 'test', as_of: '2026-01-01' }
const audioModels = [
  {
    id: 'test-listen',
    kind: 'transcription',
    routes: [
      { provider: 'alpha', upstream_model: 'alpha-listen', inr_per_minute: 0.6, ...price },
      { provider: 'beta', upstream_model: 'beta-listen', inr_per_minute: 0.6, ...price },
      { provider: 'indus', upstream_model: 'indus-listen', inr_per_minute: 0.6, ...price },
    ],
  },
  {
    id: 'test-speak',
    kind: 'speech',
    default_voice: 'hf_alpha',
    routes: [
      { provider: 'alpha', upstream_model: 'alpha-speak', inr_per_million_characters: 50, ...price },
      { provider: 'beta', upstream_model: 'beta-speak', inr_per_million_characters: 50, ...price },
    ],
  },
]

interface Sent {
  readonly fields: readonly (readonly [string, string])[]
  readonly file: Buffer
  readonly filename: string
  readonly type: string
}

const codeOf = async (reply: Response): Promise<string> => ((await reply.json()) as { error: { code: string } }).error.code

/** The form as the provider got it, by a parser that is not ours. */
async function formOf(upstream: UpstreamServer, at = 0): Promise<Sent> {
  const request = upstream.requests[at]
  if (request === undefined) throw new Error('nothing was sent')
  const form = await new Response(new Uint8Array(request.raw), { headers: { 'content-type': String(request.headers['content-type']) } }).formData()
  const entries = [...form.entries()]
  const file = entries.find(([, value]) => typeof value !== 'string')?.[1]
  if (!(file instanceof File)) throw new Error('no file was sent')
  const fields = entries.flatMap(([name, value]) => (typeof value === 'string' ? [[name, value] as const] : []))
  return { fields, file: Buffer.from(await file.arrayBuffer()), filename: file.name, type: file.type }
}

describe('audio', () => {
  let app: TestApp
  let client: OpenAI
  beforeAll(async () => {
    app = await startApp({
      env: { CIRCUIT_FAILURES: '1000', FORM_FILE_LIMIT_BYTES: '500000' },
      operatorFile(urls) {
        const file = defaultOperatorFile(urls)
        return { ...file, models: [...file.models, ...audioModels] }
      },
    })
    client = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })

  const transcript = { text: 'hello from the recording', usage: { type: 'duration', seconds: 3 } }
  const listen = (body: object = transcript) => app.alpha.script([{ body }])
  const postForm = async (fields: readonly (readonly [string, string | Blob])[], token: string | null = app.key, headers: Record<string, string> = {}) => {
    const form = new FormData()
    for (const [name, value] of fields) {
      if (typeof value === 'string') form.append(name, value)
      else form.append(name, value, 'clip.wav')
    }
    const reply = await fetch(`${app.baseUrl}/v1/audio/transcriptions`, {
      method: 'POST',
      body: form,
      headers: { ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...headers },
    })
    const text = await reply.text()
    const json = reply.headers.get('content-type')?.includes('json') ? JSON.parse(text) : null
    checkAgainstRow('POST', '/v1/audio/transcriptions', reply.status, json)
    return { status: reply.status, headers: reply.headers, text, json }
  }
  const clip = (seconds = 1) => new Blob([new Uint8Array(wavOf(seconds))], { type: 'audio/wav' })
  const speak = (body: object = {}, options: { token?: string | null; signal?: AbortSignal } = {}) =>
    fetch(`${app.baseUrl}/v1/audio/speech`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(options.token === null ? {} : { authorization: `Bearer ${options.token ?? app.key}` }) },
      body: JSON.stringify({ model: 'test-speak', input: 'Hello', voice: 'hf_beta', ...body }),
      ...(options.signal ? { signal: options.signal } : {}),
    })
  const sound = (chunks: readonly Uint8Array[], more: object = {}) => ({ headers: { 'content-type': 'audio/mpeg' }, rawStream: chunks, ...more })
  const piece = (fill: number, bytes = 1000) => new Uint8Array(bytes).fill(fill)

  test('AUD-01 the SDK gets a transcript; the provider gets the same bytes, all fields but ours, and its own name of the model', async () => {
    listen()
    const recording = wavOf(2.4)
    const reply = await client.audio.transcriptions.create({
      file: await toFile(recording, 'नमस्ते "a".wav', { type: 'audio/wav' }),
      model: 'test-listen',
      language: 'hi',
      prompt: 'Krutrim',
      temperature: 0.2,
      timestamp_granularities: ['word', 'segment'],
      response_format: 'json',
      // Fields of the gateway ride along.
      ...{ provider: 'alpha', exclude: ['beta'] },
    })
    expect(reply.text).toBe(transcript.text)
    const sent = await formOf(app.alpha)
    expect(sent.file.equals(recording)).toBe(true)
    expect([sent.filename, sent.type]).toEqual(['नमस्ते "a".wav', 'audio/wav'])
    expect(Object.fromEntries(sent.fields)).toMatchObject({
      model: 'alpha-listen',
      language: 'hi',
      prompt: 'Krutrim',
      temperature: '0.2',
      response_format: 'json',
    })
    expect(sent.fields.filter(([name]) => name.startsWith('timestamp_granularities')).map(([, value]) => value)).toEqual(['word', 'segment'])
    expect(sent.fields.map(([name]) => name).filter(name => /provider|exclude/.test(name))).toEqual([])
    expect(app.alpha.requests[0]?.path).toBe('/v1/audio/transcriptions')
    expect(app.alpha.requests[0]?.headers['authorization']).toBe('Bearer alpha-platform-secret')
    const [row] = await usageRows(app)
    expect(row).toMatchObject({ kind: 'transcription', audioSeconds: 3, estimated: false, outcome: 'ok', promptTokens: 0n, completionTokens: 0n })
    expect(row?.costUinr).toBe(3n * perSecondUinr)
  })

  test('AUD-02 every format comes with the type and the bytes of the provider', async () => {
    const formats = [
      ['text', 'text/plain; charset=utf-8', 'hello\n'],
      ['srt', 'text/plain', '1\n00:00:00,000 --> 00:00:01,000\nhello\n'],
      ['vtt', 'text/vtt', 'WEBVTT\n\n00:00.000 --> 00:01.000\nhello\n'],
      ['verbose_json', 'application/json', JSON.stringify({ text: 'hello', language: 'english', duration: 1.2, segments: [] })],
    ] as const
    for (const [format, type, text] of formats) {
      app.alpha.script([{ body: text, headers: { 'content-type': type } }])
      const reply = await postForm([
        ['file', clip()],
        ['model', 'test-listen'],
        ['response_format', format],
      ])
      expect([reply.status, reply.headers.get('content-type'), reply.text], format).toEqual([200, type, text])
      expect(reply.headers.get('x-br-provider')).toBe('alpha')
    }
    const [row] = await usageRows(app)
    expect(row).toMatchObject({ audioSeconds: 2, estimated: false })
    expect(
      (
        await postForm([
          ['file', clip()],
          ['model', 'test-listen'],
          ['response_format', 'docx'],
        ])
      ).json.error.code,
    ).toBe('bad_request')
  })

  test('a length that the provider does not say is measured here, rounded up to the second and marked as an estimate', async () => {
    for (const [seconds, charged] of [
      [0.2, 1],
      [7.3, 8],
    ] as const) {
      listen({ text: 'hello' })
      expect(
        (
          await postForm([
            ['file', clip(seconds)],
            ['model', 'test-listen'],
          ])
        ).status,
      ).toBe(200)
      const [row] = await usageRows(app)
      expect(row).toMatchObject({ audioSeconds: charged, estimated: true, costUinr: BigInt(charged) * perSecondUinr })
    }
    // No audio at all: 4,000 bytes are taken for a second.
    listen({ text: '' })
    expect(
      (
        await postForm([
          ['file', new Blob([new Uint8Array(10_000)])],
          ['model', 'test-listen'],
        ])
      ).status,
    ).toBe(200)
    expect((await usageRows(app))[0]).toMatchObject({ audioSeconds: 3, estimated: true })
  })

  test('a transcript that comes in events is passed on as it comes, and charged by what its end says', async () => {
    const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`
    app.alpha.script([
      {
        headers: { 'content-type': 'text/event-stream' },
        rawStream: [
          event({ type: 'transcript.text.delta', delta: 'hello' }),
          event({ type: 'transcript.text.delta', delta: ' there' }),
          event({ type: 'transcript.text.done', text: 'hello there', usage: { type: 'duration', seconds: 5 } }),
        ],
      },
    ])
    const events = []
    for await (const one of await client.audio.transcriptions.create({ file: await toFile(wavOf(1), 'a.wav'), model: 'test-listen', stream: true }))
      events.push(one)
    expect(events.map(({ type }) => type)).toEqual(['transcript.text.delta', 'transcript.text.delta', 'transcript.text.done'])
    expect((await usageRows(app))[0]).toMatchObject({ audioSeconds: 5, estimated: false, costUinr: 5n * perSecondUinr })
    // One that breaks off says so, and the SDK throws.
    app.alpha.script([
      { headers: { 'content-type': 'text/event-stream' }, rawStream: [event({ type: 'transcript.text.delta', delta: 'hel' })], breakAfterRaw: true },
    ])
    const broken = await client.audio.transcriptions.create({ file: await toFile(wavOf(1), 'a.wav'), model: 'test-listen', stream: true })
    await expect(
      (async () => {
        for await (const _ of broken);
      })(),
    ).rejects.toThrow(/broke off/)
    expect((await usageRows(app))[0]).toMatchObject({ outcome: 'upstream_broke', audioSeconds: 1, estimated: true })
  })

  test('AUD-03 the SDK gets the audio byte for byte with its type; characters are counted as code points and charged exactly', async () => {
    app.alpha.script([sound([piece(1), piece(2), piece(3)])])
    const input = 'नमस्ते 👋🏽'
    const reply = await client.audio.speech.create({ model: 'test-speak', voice: 'hf_beta', input, response_format: 'mp3', speed: 1.5, instructions: 'slowly' })
    expect(reply.headers.get('content-type')).toBe('audio/mpeg')
    expect(reply.headers.get('x-br-provider')).toBe('alpha')
    expect(Buffer.from(await reply.arrayBuffer()).equals(Buffer.concat([piece(1), piece(2), piece(3)]))).toBe(true)
    expect(app.alpha.requests[0]?.path).toBe('/v1/audio/speech')
    expect(app.alpha.requests[0]?.json).toEqual({ model: 'alpha-speak', voice: 'hf_beta', input, response_format: 'mp3', speed: 1.5, instructions: 'slowly' })
    expect([...input]).toHaveLength(9)
    const [row] = await usageRows(app)
    expect(row).toMatchObject({ kind: 'speech', characters: 9n, estimated: false, outcome: 'ok', costUinr: 9n * perCharacterUinr })
    expect(Number(reply.headers.get('x-br-cost-inr'))).toBe(0.00045)
  })

  test('the first bytes are with the client while the provider still speaks, and a voice that is left out is the default of the model', async () => {
    app.alpha.script([sound([piece(7)], { holdAfterRaw: true })])
    const reply = await speak({ voice: undefined, provider: 'alpha' })
    const reader = reply.body?.getReader()
    expect((await reader?.read())?.value?.[0]).toBe(7)
    expect(app.alpha.requests[0]?.json).toEqual({ model: 'alpha-speak', input: 'Hello', voice: 'hf_alpha' })
    app.alpha.release()
    expect((await reader?.read())?.done).toBe(true)
  })

  test('a provider that fails, or answers with something else, before the first byte is failed over', async () => {
    for (const failure of [{ status: 503 }, { body: { error: 'no' } }, sound([], {}), { body: '<html>', headers: { 'content-type': 'text/html' } }]) {
      app.alpha.script([failure])
      app.beta.script([sound([piece(4)])])
      const reply = await speak()
      expect([reply.status, reply.headers.get('x-br-provider')], JSON.stringify(failure)).toEqual([200, 'beta'])
      await reply.arrayBuffer()
    }
    app.alpha.script([{ status: 500 }])
    app.beta.script([{ body: transcript }])
    expect(
      (
        await postForm([
          ['file', clip()],
          ['model', 'test-listen'],
        ])
      ).headers.get('x-br-provider'),
    ).toBe('beta')
    expect((await formOf(app.beta, 4)).file.equals(wavOf(1))).toBe(true)
  })

  test('a refusal of the provider comes back as it is', async () => {
    app.alpha.script([{ status: 400, body: { error: { message: 'voice nope does not exist', type: 'invalid_request_error', code: 'bad_voice' } } }])
    const reply = await speak({ voice: 'nope' })
    expect([reply.status, await codeOf(reply)]).toEqual([400, 'bad_voice'])
    expect(app.beta.requests).toHaveLength(0)
  })

  test('audio that the provider breaks off ends in a broken connection, never in a shorter file; it is settled once', async () => {
    app.alpha.script([sound([piece(1)], { breakAfterRaw: true })])
    const reply = await speak()
    expect(reply.status).toBe(200)
    await expect(reply.arrayBuffer()).rejects.toThrow()
    expect((await usageRows(app))[0]).toMatchObject({ outcome: 'upstream_broke', characters: 5n, costUinr: 5n * perCharacterUinr })
  })

  test('a client that goes away hangs up on the provider, and the call is settled once', async () => {
    const before = (await app.call('GET', '/v1/usage')).json.totals.requests
    app.alpha.script([sound([piece(1)], { holdAfterRaw: true })])
    const controller = new AbortController()
    const reply = await speak({}, { signal: controller.signal })
    await reply.body?.getReader().read()
    controller.abort()
    await until(() => app.alpha.requests[0]?.aborted === true)
    await until(async () => (await app.call('GET', '/v1/usage')).json.totals.requests === before + 1)
    expect((await usageRows(app))[0]).toMatchObject({ outcome: 'client_gone', characters: 5n })
  })

  test('a client that does not read stops the provider: audio is not piled up here', async () => {
    let given = 0
    const long = {
      *[Symbol.iterator]() {
        for (; given < 400; given++) yield piece(given % 250, 256 * 1024)
      },
    }
    app.alpha.script([sound(long as unknown as readonly Uint8Array[])])
    const reply = await speak()
    const reader = reply.body?.getReader()
    let bytes = (await reader?.read())?.value?.length ?? 0
    let last = -1
    await until(async () => {
      const isStill = given === last
      last = given
      await new Promise(resolve => setTimeout(resolve, 300))
      return isStill
    })
    // 100 MB want to come; what came is what the sockets between take.
    expect(given).toBeLessThan(200)
    for (;;) {
      const next = await reader?.read()
      if (next?.done !== false) break
      bytes += next.value.length
    }
    expect(bytes).toBe(400 * 256 * 1024)
  })

  test('revoking the agent breaks the audio off at once: no byte of the provider follows', async () => {
    const { id, token } = await app.newAgent('speaker')
    app.alpha.script([sound([piece(1)], { holdAfterRaw: true })])
    const reply = await speak({}, { token })
    const reader = reply.body?.getReader()
    await reader?.read()
    const rest = (async () => {
      for (;;) if ((await reader?.read())?.done !== false) return 'ended well'
    })()
    const broken = expect(rest).rejects.toThrow()
    expect((await app.call('POST', `/v1/me/agents/${id}/revoke`, {})).status).toBe(200)
    await broken
    await until(() => app.alpha.requests[0]?.aborted === true)
    expect((await usageRows(app))[0]).toMatchObject({ outcome: 'cut', characters: 5n })
  })

  test('AUD-04 an unknown model is 400 model_not_found on both, a model of another kind 400 no_route', async () => {
    const speech = await speak({ model: 'nothing' })
    expect([speech.status, await codeOf(speech)]).toEqual([400, 'model_not_found'])
    const form = await postForm([
      ['file', clip()],
      ['model', 'nothing'],
    ])
    expect([form.status, form.json.error.code]).toEqual([400, 'model_not_found'])
    const wrong = await speak({ model: 'test-listen' })
    expect([wrong.status, await codeOf(wrong)]).toEqual([400, 'no_route'])
    expect(
      (
        await postForm([
          ['file', clip()],
          ['model', 'test-speak'],
        ])
      ).json.error.code,
    ).toBe('no_route')
  })

  test('AUD-05 a missing file or input, and every field that is wrong, is 400 bad_request that names it; nothing is dialed', async () => {
    const file = ['file', clip()] as const
    const model = ['model', 'test-listen'] as const
    const forms = [
      [[model], '"file"'],
      [[['file', ''], model], '"file"'],
      [[['file', new Blob([])], model], '"file"'],
      [[file], '"model"'],
      [[file, ['file', clip()], model], 'one file'],
      [[file, model, ['model', 'other']], '"model"'],
      [[file, model, ['temperature', 'hot']], '"temperature"'],
      [[file, model, ['stream', 'maybe']], '"stream"'],
      [[file, model, ['exclude', '[']], '"exclude"'],
      [[file, model, ['data_policy', 'moon']], '"data_policy"'],
    ] as const
    for (const [fields, named] of forms) {
      const reply = await postForm(fields)
      expect([reply.status, reply.json.error.code, reply.json.error.message.includes(named)], named + reply.text).toEqual([400, 'bad_request', true])
    }
    const bodies = [
      [{ input: undefined }, '"input"'],
      [{ input: '' }, '"input"'],
      [{ input: 5 }, '"input"'],
      [{ input: 'x'.repeat(4097) }, '4097'],
      [{ model: undefined }, '"model"'],
      [{ voice: '' }, '"voice"'],
      [{ speed: 9 }, '"speed"'],
      [{ response_format: 'midi' }, '"response_format"'],
      [{ stream_format: 'x' }, '"stream_format"'],
      [{ instructions: 1 }, '"instructions"'],
    ] as const
    for (const [body, named] of bodies) {
      const reply = await app.call('POST', '/v1/audio/speech', { model: 'test-speak', input: 'Hello', voice: 'hf_beta', ...body })
      expect([reply.status, reply.json.error.code, reply.json.error.message.includes(named)], named).toEqual([400, 'bad_request', true])
    }
    const json = await app.call('POST', '/v1/audio/transcriptions', { model: 'test-listen' })
    expect([json.status, json.json.error.code]).toEqual([415, 'unsupported_media_type'])
    const large = await postForm([
      ['file', new Blob([new Uint8Array(600_000)])],
      ['model', 'test-listen'],
    ])
    expect([large.status, large.json.error.code]).toEqual([413, 'payload_too_large'])
    expect(app.alpha.requests).toHaveLength(0)
  })

  test('AUD-06 credential, rate, daily limit and budgets are those of chat, and refuse before anything is dialed', async () => {
    for (const token of [null, 'br-wrong']) {
      expect([
        (
          await postForm(
            [
              ['file', clip()],
              ['model', 'test-listen'],
            ],
            token,
          )
        ).status,
        (await speak({}, { token })).status,
      ]).toEqual([401, 401])
    }
    const { key: rated } = await app.newKey({ rpm: 1 })
    app.alpha.script(() => sound([piece(1)]))
    expect((await speak({}, { token: rated })).status).toBe(200)
    const limited = await speak({}, { token: rated })
    expect([limited.status, await codeOf(limited)]).toEqual([429, 'rate_limit_exceeded'])
    const { key: daily } = await app.newKey({ daily: 1 })
    expect((await speak({}, { token: daily })).status).toBe(200)
    expect(await codeOf(await speak({}, { token: daily }))).toBe('daily_limit_reached')
    app.alpha.reset()
    // ₹0.05 is 5 seconds, or 1,000 characters: the call that spends it is the last.
    listen({ text: 'hello', usage: { type: 'duration', seconds: 5 } })
    const { key: poor } = await app.newKey({ budgetInr: 0.05 })
    expect(
      (
        await postForm(
          [
            ['file', clip(5)],
            ['model', 'test-listen'],
          ],
          poor,
        )
      ).status,
    ).toBe(200)
    app.alpha.reset()
    const refused = await postForm(
      [
        ['file', clip(1)],
        ['model', 'test-listen'],
      ],
      poor,
    )
    expect([refused.status, refused.json.error.code, refused.json.spent_inr]).toEqual([429, 'budget_exceeded', 0.05])
    const silent = await speak({}, { token: poor })
    expect([silent.status, await codeOf(silent)]).toEqual([429, 'budget_exceeded'])
    expect(app.alpha.requests).toHaveLength(0)
    const agent = await app.newAgent('listener')
    await app.setBudget('agent', agent.id, 0.00025)
    app.alpha.script([sound([piece(1)])])
    await (await speak({}, { token: agent.token })).arrayBuffer()
    expect(await codeOf(await speak({}, { token: agent.token }))).toBe('agent_budget_exceeded')
    expect(
      (
        await postForm(
          [
            ['file', clip(3)],
            ['model', 'test-listen'],
          ],
          agent.token,
        )
      ).json.error.code,
    ).toBe('agent_budget_exceeded')
    // A cap of one call is held against the length that was measured.
    const { key: capped, keyId } = await app.newKey()
    expect((await app.call('PATCH', `/me/keys/${keyId}`, { max_cost_inr_per_call: 0.03 }, { cookie: await app.signIn() })).status).toBe(200)
    expect(
      (
        await postForm(
          [
            ['file', clip(4)],
            ['model', 'test-listen'],
          ],
          capped,
        )
      ).json.error.code,
    ).toBe('call_cap_exceeded')
    expect(await codeOf(await speak({ input: 'x'.repeat(601) }, { token: capped }))).toBe('call_cap_exceeded')
    expect(app.alpha.requests).toHaveLength(1)
  })

  test('router fields of the form are honoured on both endpoints and stripped', async () => {
    app.indus.script([{ body: transcript }])
    const india = await postForm([
      ['file', clip()],
      ['model', 'test-listen'],
      ['data_policy', 'india_only'],
      ['optimize', 'latency'],
    ])
    expect([india.status, india.headers.get('x-br-provider')]).toEqual([200, 'indus'])
    expect((await formOf(app.indus)).fields).toEqual([['model', 'indus-listen']])
    const none = await speak({ data_policy: 'india_only' })
    expect([none.status, await codeOf(none)]).toEqual([422, 'no_route'])
    app.beta.script([{ body: transcript }, { body: transcript }])
    for (const exclude of [
      [['exclude', '["alpha"]']],
      [
        ['exclude', 'alpha'],
        ['exclude', 'indus'],
      ],
    ] as const)
      expect((await postForm([['file', clip()], ['model', 'test-listen'], ...exclude])).headers.get('x-br-provider')).toBe('beta')
    app.beta.script([sound([piece(1)])])
    expect((await speak({ exclude: ['alpha'] })).headers.get('x-br-provider')).toBe('beta')
    expect(app.beta.requests.at(-1)?.json).toEqual({ model: 'beta-speak', input: 'Hello', voice: 'hf_beta' })
  })

  test("on the caller's own key value is metered and nothing is debited", async () => {
    listen()
    expect(
      (
        await postForm([
          ['file', clip()],
          ['model', 'test-listen'],
          ['provider', 'alpha'],
          ['upstream_key', 'sk-mine'],
        ])
      ).status,
    ).toBe(200)
    expect(app.alpha.requests[0]?.headers['authorization']).toBe('Bearer sk-mine')
    expect((await usageRows(app))[0]).toMatchObject({ byok: true, costUinr: 0n, valueUinr: 3n * perSecondUinr })
  })

  test('a call with an Idempotency-Key is made once, whatever boundary its form has', async () => {
    listen()
    const once = () =>
      postForm(
        [
          ['file', clip()],
          ['model', 'test-listen'],
        ],
        app.key,
        { 'idempotency-key': 'clip-1' },
      )
    expect((await once()).status).toBe(200)
    expect((await once()).json.error.code).toBe('idempotency_replayed')
    const other = await postForm(
      [
        ['file', clip(2)],
        ['model', 'test-listen'],
      ],
      app.key,
      { 'idempotency-key': 'clip-1' },
    )
    expect([other.status, other.json.error.code]).toEqual([422, 'idempotency_mismatch'])
    expect(app.alpha.requests).toHaveLength(1)
  })

  test('neither texts nor recordings get into logs', () => {
    const lines = app.logLines.join('\n')
    for (const word of ['Krutrim', 'Hello', 'recording', 'slowly']) expect(lines).not.toContain(word)
  })
})

describe('audio of the sandbox', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ env: { SANDBOX: 'on' } })
  })
  afterAll(() => app.stop())

  test('what it says can be played, and what it hears is what was said', async () => {
    const client = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 })
    const spoken = await client.audio.speech.create({ model: 'sandbox-speech', input: 'Good morning', voice: 'alloy', response_format: 'wav' })
    expect(spoken.headers.get('content-type')).toBe('audio/wav')
    const wav = Buffer.from(await spoken.arrayBuffer())
    expect(wav.toString('latin1', 0, 4)).toBe('RIFF')
    // 12 characters of 60 ms each.
    expect(wav).toHaveLength(44 + 12 * 0.06 * 48_000)
    const heard = await client.audio.transcriptions.create({ model: 'sandbox-audio', file: await toFile(wav, 'said.wav') })
    expect(heard.text).toMatch(/simulated.*said\.wav lasts 0\.72 seconds/)
    expect((await usageRows(app))[0]).toMatchObject({ audioSeconds: 1, estimated: false, provider: 'sandbox' })
    await expect(client.audio.speech.create({ model: 'sandbox-speech', input: 'x', voice: 'alloy', response_format: 'mp3' })).rejects.toThrow(/wav/)
    const subtitles = await client.audio.transcriptions.create({ model: 'sandbox-audio', file: await toFile(wav, 'said.wav'), response_format: 'vtt' })
    expect(subtitles).toContain('WEBVTT')
    const verbose = await client.audio.transcriptions.create({ model: 'sandbox-audio', file: await toFile(wav, 'said.wav'), response_format: 'verbose_json' })
    expect(verbose.duration).toBeCloseTo(0.72)
    let text = ''
    for await (const event of await client.audio.transcriptions.create({ model: 'sandbox-audio', file: await toFile(wav, 'said.wav'), stream: true }))
      if (event.type === 'transcript.text.delta') text += event.delta
    expect(text).toBe(heard.text)
  })
})
