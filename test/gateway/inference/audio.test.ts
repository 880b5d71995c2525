import OpenAI, { toFile } from 'openai'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { HeavyTurns } from '../../../src/platform/loop/heavy-turns.ts'
import { startApp, type TestApp, until } from '../../harness/app.ts'
import { lyingRecordings } from '../../harness/lying-recordings.ts'
import { usageRows } from '../../harness/usage-rows.ts'
import { wavOf } from '../../harness/wav.ts'
import { audioSuite, clip, codeOf, formOf, perCharacterUinr, perSecondUinr, piece, sound, transcript } from './audio-suite.ts'

describe('audio', () => {
  const suite = audioSuite()
  const { listen, postForm, speak } = suite
  let app: TestApp
  let client: OpenAI
  beforeAll(() => {
    app = suite.app()
    client = suite.client()
  })

  test('AUD-01 the SDK gets a transcript, and the provider gets the same bytes, all fields except router fields, and its own model name', async () => {
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
      // Router fields of the gateway are sent in addition.
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

  test('AUD-02 a transcript in any format has the content-type and bytes of the provider', async () => {
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

  test('when the provider reports no length, the gateway measures it, rounds up to the second and marks it as an estimate', async () => {
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
    // The file is not audio, so 500 bytes count as one second.
    listen({ text: '' })
    expect(
      (
        await postForm([
          ['file', new Blob([new Uint8Array(10_000)])],
          ['model', 'test-listen'],
        ])
      ).status,
    ).toBe(200)
    expect((await usageRows(app))[0]).toMatchObject({ audioSeconds: 20, estimated: true })
  })

  test('a header with a shorter length than the sound does not make a transcription cheaper', async () => {
    for (const [name, made] of lyingRecordings) {
      listen({ text: 'hello' })
      const reply = await postForm([
        ['file', new Blob([new Uint8Array(made(20))])],
        ['model', 'test-listen'],
      ])
      expect(reply.status, name).toBe(200)
      const { audioSeconds, costUinr } = (await usageRows(app))[0] ?? {}
      expect(Number(audioSeconds), name).toBeGreaterThanOrEqual(19)
      expect(costUinr, name).toBe(BigInt(Number(audioSeconds)) * perSecondUinr)
    }
  })

  test('a transcript as a stream of events is relayed as it arrives, and charged by the length in its last event', async () => {
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
    // A stream that breaks off ends with an error, and the SDK throws.
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

  test('a length far from the measured one is not charged, and the row is estimated', async () => {
    const { key, keyId } = await app.newKey({ budgetInr: 1 })
    const cookie = await app.signIn()
    await app.call('POST', '/me/budgets', { scope: 'key', target_id: keyId, monthly_budget_inr: 1, strict: true }, { cookie })
    for (const [seconds, body] of [
      [1, { text: 'hello', usage: { type: 'duration', seconds: 1_000_000 } }],
      [1, { text: 'hello', duration: 1000 }],
      [25, { text: 'hello', duration: 0.01 }],
    ] as const) {
      app.alpha.script([{ body }])
      const reply = await postForm(
        [
          ['file', clip(seconds)],
          ['model', 'test-listen'],
        ],
        key,
      )
      expect(reply.status, reply.text).toBe(200)
      expect((await usageRows(app))[0]).toMatchObject({ audioSeconds: seconds, estimated: true, costUinr: BigInt(seconds) * perSecondUinr })
    }
  })

  test('AUD-03 the SDK gets the audio unchanged, and the code points of text and instructions are charged exactly', async () => {
    app.alpha.script([sound([piece(1), piece(2), piece(3)])])
    const input = 'नमस्ते 👋🏽'
    const reply = await client.audio.speech.create({ model: 'test-speak', voice: 'hf_beta', input, response_format: 'mp3', speed: 1.5, instructions: 'slowly' })
    expect(reply.headers.get('content-type')).toBe('audio/mpeg')
    expect(reply.headers.get('x-br-provider')).toBe('alpha')
    expect(Buffer.from(await reply.arrayBuffer()).equals(Buffer.concat([piece(1), piece(2), piece(3)]))).toBe(true)
    expect(app.alpha.requests[0]?.path).toBe('/v1/audio/speech')
    expect(app.alpha.requests[0]?.json).toEqual({ model: 'alpha-speak', voice: 'hf_beta', input, response_format: 'mp3', speed: 1.5, instructions: 'slowly' })
    expect([...input, ...'slowly']).toHaveLength(15)
    const [row] = await usageRows(app)
    expect(row).toMatchObject({ kind: 'speech', characters: 15n, estimated: false, outcome: 'ok', costUinr: 15n * perCharacterUinr })
    expect(Number(reply.headers.get('x-br-cost-inr'))).toBe(0.00075)
  })

  test('a heavy body of speech on an own key is written in turns of its organisation and arrives with its digits', async () => {
    app.alpha.script([sound([piece(1)])])
    const vendor = { note: 'नमस्ते 😀'.repeat(200_000), list: Array.from({ length: 20_000 }, (_, index) => index) }
    const body = `{"model":"test-speak","input":"Hello","voice":"hf_beta","provider":"alpha","upstream_key":"sk-my-own-key-0001","seed":9007199254740993,"vendor":${JSON.stringify(vendor)}}`
    const turns = vi.spyOn(HeavyTurns.prototype, 'run')
    const reply = await fetch(`${app.baseUrl}/v1/audio/speech`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${app.key}` },
      body,
    })
    expect(reply.status, reply.status === 200 ? '' : await reply.clone().text()).toBe(200)
    const sent = app.alpha.requests[0]?.raw.toString() ?? ''
    expect(sent).toContain('"seed":9007199254740993')
    expect(JSON.stringify(JSON.parse(sent).vendor) === JSON.stringify(vendor)).toBe(true)
    // The slices of the written body and its restored pieces, beside the turns of the parser.
    expect(turns.mock.calls.length).toBeGreaterThan(12)
    turns.mockRestore()
  })

  test('speech as a stream of events is relayed as it arrives and charged by the character, and a break-off is reported in an event', async () => {
    const headers = { 'content-type': 'text/event-stream' }
    const delta = `data: ${JSON.stringify({ type: 'speech.audio.delta', audio: 'AAAA' })}\n\n`
    const done = `data: ${JSON.stringify({ type: 'speech.audio.done', usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3 } })}\n\n`
    app.alpha.script([{ headers, rawStream: [delta, done] }])
    const reply = await client.audio.speech.create({ model: 'test-speak', voice: 'hf_beta', input: 'Hello', stream_format: 'sse' })
    expect([reply.headers.get('content-type'), await reply.text()]).toEqual(['text/event-stream', delta + done])
    expect((await usageRows(app))[0]).toMatchObject({ kind: 'speech', outcome: 'ok', characters: 5n, costUinr: 5n * perCharacterUinr, estimated: false })
    app.alpha.script([{ headers, rawStream: [delta], breakAfterRaw: true }])
    const broken = await speak({ stream_format: 'sse' })
    const events = (await broken.text()).trim().split('\n\n')
    expect(JSON.parse(events.at(-1)?.replace(/^\s*data: /, '') ?? '')).toMatchObject({ type: 'error', error: { code: 'upstream_stream_error' } })
    expect((await usageRows(app))[0]).toMatchObject({ outcome: 'upstream_broke', characters: 5n })
  })

  test('the client gets the first bytes while the provider still sends, and a request without a voice uses the default of the model', async () => {
    app.alpha.script([sound([piece(7)], { holdAfterRaw: true })])
    const reply = await speak({ voice: undefined, provider: 'alpha' })
    const reader = reply.body?.getReader()
    expect((await reader?.read())?.value?.[0]).toBe(7)
    expect(app.alpha.requests[0]?.json).toEqual({ model: 'alpha-speak', input: 'Hello', voice: 'hf_alpha' })
    app.alpha.release()
    expect((await reader?.read())?.done).toBe(true)
  })

  test('when a provider fails, or answers with something other than audio, before the first byte, the next route is tried', async () => {
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

  test('a refusal of the provider is relayed unchanged', async () => {
    app.alpha.script([{ status: 400, body: { error: { message: 'voice nope does not exist', type: 'invalid_request_error', code: 'bad_voice' } } }])
    const reply = await speak({ voice: 'nope' })
    expect([reply.status, await codeOf(reply)]).toEqual([400, 'bad_voice'])
    expect(app.beta.requests).toHaveLength(0)
  })

  test("when the provider breaks off, the client's connection breaks instead of giving a shorter file, and the call is settled once", async () => {
    app.alpha.script([sound([piece(1)], { breakAfterRaw: true })])
    const reply = await speak()
    expect(reply.status).toBe(200)
    await expect(reply.arrayBuffer()).rejects.toThrow()
    expect((await usageRows(app))[0]).toMatchObject({ outcome: 'upstream_broke', characters: 5n, costUinr: 5n * perCharacterUinr })
  })

  test('when a client disconnects, the connection to the provider ends, and the call is settled once', async () => {
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

  test('a client that does not read pauses the provider, and the gateway does not buffer the audio', async () => {
    let given = 0
    const long = {
      *[Symbol.iterator]() {
        for (; given < 400; given++) yield piece(given % 250, 256 * 1024)
      },
    }
    app.alpha.script([sound(long)])
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
    // The provider has 100 MB to send. Only the buffers of the sockets in between are filled.
    expect(given).toBeLessThan(200)
    for (;;) {
      const next = await reader?.read()
      if (next?.done !== false) break
      bytes += next.value.length
    }
    expect(bytes).toBe(400 * 256 * 1024)
  })

  test('revoking the agent immediately ends the audio, and no further bytes are sent', async () => {
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
})

describe('audio of the sandbox', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ env: { SANDBOX: 'on' } })
  })
  afterAll(() => app.stop())

  test('the sandbox makes playable speech, and answers a recording with a simulated transcript that names its length', async () => {
    const client = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 })
    const spoken = await client.audio.speech.create({ model: 'sandbox-speech', input: 'Good morning', voice: 'alloy', response_format: 'wav' })
    expect(spoken.headers.get('content-type')).toBe('audio/wav')
    const wav = Buffer.from(await spoken.arrayBuffer())
    expect(wav.toString('latin1', 0, 4)).toBe('RIFF')
    // 12 characters, each 60 ms long.
    expect(wav).toHaveLength(44 + 12 * 0.06 * 48_000)
    const heard = await client.audio.transcriptions.create({ model: 'sandbox-audio', file: await toFile(wav, 'said.wav') })
    expect(heard.text).toMatch(/simulated.*said\.wav lasts 0\.72 seconds/)
    expect((await usageRows(app))[0]).toMatchObject({ audioSeconds: 1, estimated: false, provider: 'sandbox' })
    await expect(client.audio.speech.create({ model: 'sandbox-speech', input: 'x', voice: 'alloy', response_format: 'mp3' })).rejects.toThrow(/wav/)
    const longest = await client.audio.speech.create({ model: 'sandbox-speech', input: '👋'.repeat(4096), voice: 'alloy', response_format: 'pcm' })
    expect(Number(longest.headers.get('x-br-cost-inr'))).toBeCloseTo(4096 * 50e-6)
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
