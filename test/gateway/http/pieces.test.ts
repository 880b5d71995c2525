/** Bodies that arrive in very small pieces. Each piece takes processor time, so the number of pieces is bounded in relation to the bytes. */
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'

const price = { source: 'test', as_of: '2026-01-01' }
const chat = (words: number): string => JSON.stringify({ model: 'test-model', messages: [{ role: 'user', content: 'word '.repeat(words) }] })
const part = (disposition: string, value: string): string => `--XX\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${value}\r\n`
const form = (bytes: number): string => `${part('name="file"; filename="a.wav"', 'R'.repeat(bytes))}${part('name="model"', 'scribe')}--XX--\r\n`

describe('a body in small pieces', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({
      env: { CORS_ORIGINS: '*' },
      operatorFile(urls) {
        const defaults = defaultOperatorFile(urls)
        const scribe = { id: 'scribe', kind: 'transcription', routes: [{ provider: 'beta', upstream_model: 'hear-up', inr_per_minute: 0.6, ...price }] }
        return { ...defaults, models: [...defaults.models, scribe] }
      },
    })
    app.beta.script(() => ({ body: { text: 'x', usage: { type: 'duration', seconds: 1 } } }))
  })
  afterAll(() => app.stop())

  interface Answer {
    readonly status: number
    readonly text: string
    /** Number of blocks that were sent before the connection ended. */
    readonly sentBlocks: number
  }

  /** Sends the head and the blocks one after the other, and reads until the connection ends. */
  function wire(head: string, blocks: readonly Buffer[]): Promise<Answer> {
    const { hostname, port } = new URL(app.baseUrl)
    return new Promise(resolve => {
      const socket = connect(Number(port), hostname)
      let text = ''
      let sentBlocks = 0
      const next = (): void => {
        const block = blocks[sentBlocks]
        if (block === undefined || socket.destroyed) return
        socket.write(block, error => {
          if (error) return
          sentBlocks++
          next()
        })
      }
      socket.on('data', bytes => {
        text += bytes.toString('latin1')
        // The end of a streamed answer. Its connection would stay open.
        if (text.endsWith('\r\n0\r\n\r\n')) socket.destroy()
      })
      // The gateway may close the connection while the rest is being sent.
      socket.on('error', () => undefined)
      socket.on('close', () => resolve({ status: Number(text.split(' ')[1] ?? 0), text, sentBlocks }))
      socket.write(head)
      next()
    })
  }

  const chunk = (piece: Buffer): Buffer => Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')])
  const last = Buffer.from('0\r\n\r\n')

  /** Returns the body in chunks of that many bytes. */
  function chunked(body: string, bytes: number): Buffer {
    const all = Buffer.from(body)
    const pieces: Buffer[] = []
    for (let at = 0; at < all.length; at += bytes) pieces.push(chunk(all.subarray(at, at + bytes)))
    return Buffer.concat([...pieces, last])
  }

  const headOf = (method: string, path: string, type: string, token: string | null, more = 'connection: close\r\n'): string =>
    `${method} ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: ${type}\r\naccept: application/json, text/event-stream\r\n${token === null ? '' : `authorization: Bearer ${token}\r\n`}${more}transfer-encoding: chunked\r\n\r\n`

  const json = 'application/json'
  const formType = 'multipart/form-data; boundary=XX'
  const padded = (body: string): string => body.padEnd(6000, ' ')
  const rows: readonly [string, string, string, string][] = [
    ['inference', '/v1/chat/completions', json, padded(chat(1))],
    ['management', '/v1/me/agents', json, padded('{"name":"small"}')],
    ['MCP', '/mcp', json, padded('{"jsonrpc":"2.0","id":1,"method":"tools/list"}')],
    ['a form', '/v1/audio/transcriptions', formType, form(6000)],
  ]

  test.each(rows)(
    'HARD-02 %s: a body in one-byte chunks is 400 with a message that names the bound, and the connection ends',
    async (_name, path, type, body) => {
      const answer = await wire(headOf('POST', path, type, app.key, ''), [chunked(body, 1)])
      expect(answer.status).toBe(400)
      expect(answer.text).toContain('"code":"bad_request"')
      expect(answer.text).toContain('after the first 4096 pieces they must have at least 32 bytes on average')
      expect(answer.text.toLowerCase()).toContain('connection: close')
    },
  )

  test.each(rows)('HARD-02 %s: a body of up to 4,096 one-byte chunks, or of many chunks of 40 bytes, is accepted', async (_name, path, type, body) => {
    const short = type === formType ? form(3500) : body.trimEnd()
    expect((await wire(headOf('POST', path, type, app.key), [chunked(short, 1)])).text).toMatch(/^HTTP\/1.1 20[01]/)
    const long = type === formType ? form(400_000) : body.trimEnd().padEnd(400_000, ' ')
    expect((await wire(headOf('POST', path, type, app.key), [chunked(long, 40)])).text).toMatch(/^HTTP\/1.1 (20[01]|409)/)
  })

  test('HARD-02 the content of a form in small pieces reaches the provider as it was sent', async () => {
    app.beta.reset()
    app.beta.script(() => ({ body: { text: 'x', usage: { type: 'duration', seconds: 1 } } }))
    const content = Array.from({ length: 8000 }, (_, index) => `line ${index}\r\n--X${index}`).join('')
    const body = `${part('name="model"', 'scribe')}${part('name="file"; filename="a.wav"', content)}--XX--\r\n`
    expect((await wire(headOf('POST', '/v1/audio/transcriptions', formType, app.key), [chunked(body, 37)])).status).toBe(200)
    expect(app.beta.requests.at(-1)?.raw.includes(content)).toBe(true)
  })

  // 24 MB in total, which is more than the socket buffers of the system hold. When the gateway stops reading, the sender stops too.
  const block = Buffer.from('1\r\na\r\n'.repeat(100_000))
  const endless = Array.from({ length: 40 }, () => block)

  const unread: readonly [string, string, string, (key: string) => string | null, string, number][] = [
    ['a refused credential', 'POST', '/v1/chat/completions', () => 'br-wrong', '', 401],
    ['no credential', 'POST', '/v1/me/agents', () => null, '', 401],
    ['an unknown path', 'POST', '/nowhere', () => null, '', 404],
    ['an endpoint without a body', 'GET', '/v1/models', key => key, '', 200],
    ['a preflight', 'OPTIONS', '/v1/models', () => null, 'origin: https://a.test\r\naccess-control-request-method: POST\r\n', 204],
  ]

  test.each(unread)('HARD-02 the connection ends soon when a discarded body comes in one-byte chunks: %s', async (...row) => {
    const [, method, path, tokenOf, more, status] = row
    const answer = await wire(headOf(method, path, json, tokenOf(app.key), more), endless)
    // The connection may end before the answer is read.
    expect([0, status]).toContain(answer.status)
    expect(answer.sentBlocks).toBeLessThan(endless.length)
  })
})
