/** Streams of comments and empty events. Compressed, a million of them are a few kilobytes. */
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'

const messages = [{ role: 'user', content: 'hello' }]
const paths = {
  '/v1/chat/completions': { messages },
  '/v1/messages': { messages, max_tokens: 50 },
  '/v1/responses': { input: 'hello' },
} as const
const all = Object.keys(paths) as (keyof typeof paths)[]
const delta = (content: string): string => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`
const end = `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\ndata: [DONE]\n\n`
const compressed = (text: string) => ({
  rawStream: [new Uint8Array(gzipSync(text))],
  headers: { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' },
})

describe('lines without content', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ env: { CIRCUIT_FAILURES: '1000' } })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta]) upstream.reset()
  })
  const ask = (path: keyof typeof paths, more: object = {}) => app.call('POST', path, { model: 'test-model', stream: true, ...paths[path], ...more })

  test.each(all)('HARD-03 a stream of nothing but comments or blank lines is a failure of its route, and another route serves: %s', async path => {
    for (const line of [':\n', '\n', ': \r\n', ': wait\n\n']) {
      app.alpha.script([compressed(line.repeat(300_000) + delta('late') + end)])
      const reply = await ask(path)
      expect([reply.status, reply.text.includes('late')], JSON.stringify(line)).toEqual([200, false])
      expect(app.beta.requests.length).toBe(1)
      app.beta.reset()
    }
  })

  test.each(all)('HARD-03 a stream that goes on with comments alone ends with an error that says so: %s', async path => {
    app.alpha.script([compressed(delta('begins') + ':\n'.repeat(300_000) + end)])
    const reply = await ask(path, { provider: 'alpha' })
    expect(reply.text).toContain('begins')
    expect(reply.text).toContain('too many comments and empty events')
  })

  const empty = ['{}', '1', '{"choices":[]}', '{"choices":[{"index":0,"delta":{"content":""}}]}', `{"pad":"${'x'.repeat(40)}"}`]

  test.each(all)('HARD-03 a stream of nothing but events without output ends with an error, or another route serves: %s', async path => {
    for (const data of empty) {
      app.alpha.script([compressed(`data: ${data}\n\n`.repeat(400_000) + delta('late') + end)])
      const reply = await ask(path)
      expect(reply.status, data).toBe(200)
      expect(reply.text, data).not.toContain('late')
      // A stream whose events have choices has begun.
      const hasBegun = data.includes('"index"')
      expect([app.beta.requests.length, reply.text.includes('too many comments and empty events')], data).toEqual(hasBegun ? [0, true] : [1, false])
      app.beta.reset()
    }
  })

  test.each(all)('HARD-03 a stream that goes on with events without output ends with an error that says so: %s', async path => {
    for (const data of empty) {
      app.alpha.script([compressed(delta('begins') + `data: ${data}\n\n`.repeat(400_000) + end)])
      const reply = await ask(path, { provider: 'alpha' })
      expect(reply.text, data).toContain('begins')
      expect(reply.text, data).toContain('too many comments and empty events')
    }
  })

  test.each(all)('HARD-03 as many short events with output, and some events without output between them, do not end a stream: %s', async path => {
    app.alpha.script([compressed(`${delta('a')}data: {}\n\n`.repeat(300_000) + end)])
    const reply = await ask(path, { provider: 'alpha' })
    expect([reply.status, reply.text.includes('too many')]).toEqual([200, false])
  })

  test('HARD-03 comments between events, and a few more of them than events, do not end a stream', async () => {
    app.alpha.script([compressed(`: wait\n\n`.repeat(30_000) + `: a\n: b\n${delta('a')}`.repeat(60_000) + end)])
    const reply = await ask('/v1/chat/completions', { provider: 'alpha' })
    expect(reply.text).toContain('[DONE]')
    expect(reply.text).not.toContain('too many')
  })

  test.each(all)('HARD-03 a comment after each of many equal events does not end a stream, with either kind of line ends: %s', async path => {
    for (const lineEnd of ['\n', '\r\n']) {
      app.alpha.script([compressed(`${`${delta('a')}: k\n\n`.repeat(60_000)}${end}`.replaceAll('\n', lineEnd))])
      const reply = await ask(path, { provider: 'alpha' })
      expect([reply.status, reply.text.includes('too many')], JSON.stringify(lineEnd)).toEqual([200, false])
    }
  })
})
