import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp, until } from '../../harness/app.ts'

const hello = [{ role: 'user', content: 'Hello there' }]

describe('streams with long silences', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ dialects: true, env: { KEEP_ALIVE_MS: '100' } })
  })
  afterAll(() => app.stop())
  beforeEach(() => app.alpha.reset())

  /** Opens a stream. `text` returns its text so far. */
  async function open(path: string, body: object): Promise<{ text(): string; done: Promise<string> }> {
    const response = await fetch(app.baseUrl + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${app.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...body, stream: true }),
    })
    let text = ''
    const done = (async () => {
      const decoder = new TextDecoder()
      for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) text += decoder.decode(chunk, { stream: true })
      return text
    })()
    return { text: () => text, done }
  }
  const count = (text: string, part: string): number => text.split(part).length - 1

  test('LONG-01 case 72 a silent stream gets one keep-alive per period in the client’s format, and an active stream gets none', async () => {
    for (const [path, body, comment] of [
      ['/v1/chat/completions', { model: 'test-model', messages: hello }, ': keep-alive\n\n'],
      ['/v1/messages', { model: 'test-model', messages: hello, max_tokens: 50 }, 'event: ping\ndata: {"type":"ping"}\n\n'],
      ['/v1/responses', { model: 'test-model', input: 'hi' }, ': keep-alive\n\n'],
    ] as const) {
      app.alpha.reset()
      app.alpha.script([{ holdAfterChunks: 2 }])
      const stream = await open(path, body)
      await until(() => count(stream.text(), comment) >= 3)
      app.alpha.release()
      const text = await stream.done
      expect(text, path).toContain('upstream')
      for (const event of text.split('\n\n').filter(part => part.includes('data: {'))) expect(() => JSON.parse(event.slice(event.indexOf('{')))).not.toThrow()
    }
    app.alpha.script([{ chunks: Array.from({ length: 40 }, (_, index) => `word${index} `), chunkIntervalMs: 15 }])
    const flowing = await open('/v1/chat/completions', { model: 'test-model', messages: hello })
    expect(await flowing.done).not.toContain('keep-alive')
  })

  test('no keep-alive is put into an incomplete event, and the stream continues normally', async () => {
    const event = 'data: {"id":"c","choices":[{"index":0,"delta":{"content":"whole"},"finish_reason":null}]}\n\n'
    app.alpha.script([{ rawStream: [event, event.slice(0, 30)], holdAfterRaw: true }])
    const stream = await open('/v1/chat/completions', { model: 'test-model', messages: hello })
    await until(() => count(stream.text(), 'keep-alive') >= 2)
    expect(stream.text().replaceAll(': keep-alive\n\n', '')).toBe(event)
    app.alpha.release()
    await stream.done
  })
})
