/** Forms of hostile clients are refused with a message or sent on without injected lines, and the gateway keeps running. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'

const price = { source: 'test', as_of: '2026-01-01' }
const part = (disposition: string, value: string, header = '') => `--XX\r\nContent-Disposition: form-data; ${disposition}\r\n${header}\r\n${value}\r\n`
const file = part('name="file"; filename="a.wav"', 'RIFFabcd', 'Content-Type: audio/wav\r\n')
const model = part('name="model"', 'hear')
const end = '--XX--\r\n'

describe('forms', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({
      operatorFile(urls) {
        const defaults = defaultOperatorFile(urls)
        const hear = { id: 'hear', kind: 'transcription', routes: [{ provider: 'alpha', upstream_model: 'hear-up', inr_per_minute: 0.6, ...price }] }
        return { ...defaults, models: [...defaults.models, hear] }
      },
    })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    app.alpha.reset()
    app.alpha.script(() => ({ body: { text: 'x', usage: { type: 'duration', seconds: 1 } } }))
  })

  async function send(body: string | Buffer) {
    const headers = { authorization: `Bearer ${app.key}`, 'content-type': 'multipart/form-data; boundary=XX' }
    const reply = await fetch(`${app.baseUrl}/v1/audio/transcriptions`, { method: 'POST', headers, body })
    return { status: reply.status, json: (await reply.json()) as { error?: { code: string; message: string } } }
  }

  test('a malformed form is 400 with the reason, reaches no provider and opens no circuit', async () => {
    const wrong: [string, string][] = [
      [file + model + part('name="prompt"', 'x', 'Content-Type: text/plain; charset=utf-16\r\n') + end, 'charset'],
      [file + model + part('name="prompt"', 'x', 'Content-Type: text/plain; charset=nonsense\r\n') + end, 'charset'],
      [file + model + part("name*=UTF-8''a%0D%0Ab", 'x') + end, 'no name'],
      [part('name*=UTF-8\'\'file; filename="a.wav"', 'RIFF') + model + end, 'no name'],
      [`${model}--XX\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF`, 'not well formed'],
      [file + model, 'not well formed'],
      [Array.from({ length: 65 }, (_, index) => part(`name="f${index}"`, 'x')).join('') + file + model + end, 'at most 64'],
      [Array.from({ length: 5000 }, (_, index) => part(`name="f${index}"; filename="x"`, 'x')).join('') + end, 'at most 64'],
      [`${file}${model}--XX\r\nContent-Disposition: form-data; name="${'x'.repeat(100_000)}"\r\n\r\nv\r\n${end}`, 'not well formed'],
      [`${file}${model}--XX\r\nContent-Disposition: form-data; name="x"\r\n${'X-A: b\r\n'.repeat(5000)}\r\nv\r\n${end}`, 'not well formed'],
      [file + model + model + end, 'given twice'],
      // Parts without a name. The parser does not count them.
      [`${'--XX\r\na:b\r\n\r\n\r\n'.repeat(130)}${file}${model}${end}`, 'at most 64'],
      [`${'--XX\r\n\r\n\r\n'.repeat(130)}${file}${model}${end}`, 'at most 64'],
    ]
    for (let round = 0; round < 3; round++)
      for (const [body, reason] of wrong) {
        const { status, json } = await send(body)
        expect([status, json.error?.code, json.error?.message]).toEqual([400, 'bad_request', expect.stringContaining(reason)])
      }
    expect(app.alpha.requests).toEqual([])
    expect(app.gateway.app.circuits.openRoutes()).toEqual([])
    expect((await send(file + model + end)).status).toBe(200)
  })

  test('HARD-02 a form that consists of boundaries is refused after its first bytes, for any size of its pieces', async () => {
    const block = Buffer.from('--XX\r\na:b\r\n\r\n\r\n'.repeat(40_000))
    for (const sizes of [[block.length], [1, 2, 3, 5, 7, 11, 1024]]) {
      let sent = 0
      const body = new ReadableStream<Uint8Array>({
        pull(controller) {
          for (const size of sizes) controller.enqueue(block.subarray(sent % block.length, (sent % block.length) + size))
          sent += sizes.reduce((sum, size) => sum + size, 0)
          if (sent > 60_000_000) controller.close()
        },
      })
      const headers = { authorization: `Bearer ${app.key}`, 'content-type': 'multipart/form-data; boundary="XX"' }
      const reply = await fetch(`${app.baseUrl}/v1/audio/transcriptions`, { method: 'POST', headers, body, duplex: 'half' } as RequestInit)
      expect([reply.status, await reply.text()]).toEqual([400, expect.stringContaining('at most 64')])
    }
    for (const type of ['multipart/form-data; boundary=', 'multipart/form-data; a=b', `multipart/form-data; boundary=${'x'.repeat(71)}`]) {
      const headers = { authorization: `Bearer ${app.key}`, 'content-type': type }
      const reply = await fetch(`${app.baseUrl}/v1/audio/transcriptions`, { method: 'POST', headers, body: file + model + end })
      expect([reply.status, await reply.text()], type).toEqual([400, expect.stringContaining('no boundary')])
    }
  })

  test('HARD-02 a part that contains the text of the boundary many times is read completely', async () => {
    const text = 'a--XX '.repeat(500)
    expect((await send(file + model + part('name="prompt"', text) + end)).status).toBe(200)
    expect(app.alpha.requests[0]?.raw.toString('latin1')).toContain(text)
  })

  test('names of files and fields cannot add lines to the form that the provider receives', async () => {
    const odd: [string, string][] = [
      [part('name="file"; filename*=UTF-8\'\'a%0D%0AX-Evil%3A%201%22.wav', 'RIFF'), 'filename="a%0D%0AX-Evil: 1%22.wav"'],
      [part('name="file"; filename="a\\"; name=\\"model.wav"', 'RIFF'), 'filename="a%22; name=%22model.wav"'],
      [part('name="file"; filename="../../etc/passwd"', 'RIFF'), 'filename="passwd"'],
      [part('name="file"; filename="a.wav"', 'RIFF', 'Content-Type: audio/wav; x="\u00e9"\r\n'), 'content-type: audio/wav\r\n'],
    ]
    for (const [hostile, shown] of odd) {
      app.alpha.requests.length = 0
      expect((await send(hostile + model + part('name="prompt"', 'p') + part('name="__proto__"', 'p') + end)).status).toBe(200)
      const raw = app.alpha.requests[0]?.raw.toString('latin1') ?? ''
      expect(raw).toContain(shown)
      // An unknown field is not sent to the provider.
      expect(raw.match(/^content-disposition:.*$/gim)).toHaveLength(3)
      expect(raw).not.toMatch(/^x-evil/im)
    }
  })

  test('a text that looks like the end of its part cannot add a field, which would have no price', async () => {
    const sent = `a\r\n--brigade-\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-large`
    expect((await send(file + model + part('name="prompt"', sent) + end)).status).toBe(200)
    const [request] = app.alpha.requests
    const form = await new Response(new Uint8Array(request?.raw ?? []), { headers: { 'content-type': String(request?.headers['content-type']) } }).formData()
    expect([form.getAll('model'), form.get('prompt')]).toEqual([['hear-up'], sent])
  })
})
