/** How bodies and URLs are read. The same rules apply to inference, management, forms and MCP. */
import { request } from 'node:http'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'

interface Answer {
  readonly status: number
  readonly text: string
}

describe('bodies and URLs', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ env: { FOLDER_STORE: 'on' } })
  })
  afterAll(() => app.stop())

  /** Sends a request with path and headers exactly as written. Each character of the path is one byte. */
  function raw(method: string, path: string, body: Buffer | string, headers: Record<string, string> = {}): Promise<Answer> {
    const { hostname, port } = new URL(app.baseUrl)
    return new Promise((resolve, reject) => {
      const sent = request({ hostname, port, method, path, headers: { authorization: `Bearer ${app.key}`, ...headers } }, response => {
        let text = ''
        response.on('data', chunk => {
          text += chunk
        })
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
      })
      sent.on('error', reject)
      sent.end(body)
    })
  }

  const chat = JSON.stringify({ model: 'test-model', messages: [{ role: 'user', content: 'Hello' }] })
  const agent = (): string => JSON.stringify({ name: `agent ${Math.random()}` })
  const accept = { accept: 'application/json, text/event-stream' }
  const list = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
  const json = { 'content-type': 'application/json' }
  const rows: readonly [string, string, () => string, Record<string, string>][] = [
    ['inference', '/v1/chat/completions', () => chat, {}],
    ['management', '/v1/me/agents', agent, {}],
    ['MCP', '/mcp', () => list, accept],
  ]

  test.each(rows)(
    'EDGE-09 %s: a body that is not UTF-8 is 400 and reaches no provider, and a byte order mark is skipped',
    async (_name, path, body, headers) => {
      const before = app.alpha.requests.length
      const broken = Buffer.concat([Buffer.from(body().slice(0, -1)), Buffer.from(',"x":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')])
      const refused = await raw('POST', path, broken, { ...json, ...headers })
      expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('UTF-8')])
      expect(app.alpha.requests.length).toBe(before)
      const marked = await raw('POST', path, Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(body())]), { ...json, ...headers })
      expect([200, 201]).toContain(marked.status)
    },
  )

  test('EDGE-09 a content-encoding header with thousands of spaces does not delay the answer', async () => {
    const spaces = '\u00a0'.repeat(15_000)
    const begun = performance.now()
    for (let times = 0; times < 5; times++) {
      expect((await raw('POST', '/v1/chat/completions', Buffer.from(chat), { ...json, 'content-encoding': `${spaces}x${spaces.slice(0, 100)}` })).status).toBe(
        415,
      )
      expect((await raw('POST', '/v1/chat/completions', Buffer.from(chat), { ...json, authorization: `Basic${spaces}x y` })).status).toBe(401)
    }
    expect(performance.now() - begun).toBeLessThan(1000)
    expect((await raw('POST', '/v1/chat/completions', chat, { ...json, 'content-encoding': ' Identity ' })).status).toBe(200)
  })

  test('EDGE-09 a body that is relayed unchanged reaches the provider without its byte order mark', async () => {
    const body = JSON.stringify({ model: 'same-id', messages: [{ role: 'user', content: 'Hello' }] })
    expect((await raw('POST', '/v1/chat/completions', Buffer.from(`\ufeff${body}`), json)).status).toBe(200)
    expect(app.alpha.requests.at(-1)?.raw.toString()).toBe(body)
  })

  test.each(rows)('EDGE-09 %s: a body with a content-encoding is 415, and the message names the encoding', async (_name, path, body, headers) => {
    const packed = await raw('POST', path, gzipSync(body()), { ...json, ...headers, 'content-encoding': 'gzip' })
    expect([packed.status, packed.text]).toEqual([415, expect.stringContaining('gzip')])
    expect((await raw('POST', path, body(), { ...json, ...headers, 'content-encoding': 'identity' })).status).toBeLessThan(300)
  })

  test('EDGE-09 inference and management accept the content-types of curl and careless clients, and a 415 for any other names it', async () => {
    for (const [, path, body] of rows.slice(0, 2)) {
      for (const type of ['application/json; charset=utf-8', 'application/vnd.api+json', 'text/plain', 'application/x-www-form-urlencoded'])
        expect((await raw('POST', path, body(), { 'content-type': type })).status, type).toBeLessThan(300)
      expect((await raw('POST', path, body())).status).toBeLessThan(300)
      for (const type of ['application/xml', 'multipart/form-data; boundary=x', 'image/png']) {
        const refused = await raw('POST', path, body(), { 'content-type': type })
        expect([refused.status, refused.text], type).toEqual([415, expect.stringContaining(type.split(';')[0] ?? '')])
      }
    }
    expect((await raw('POST', '/mcp', list, { ...accept, 'content-type': 'text/plain' })).status).toBe(415)
    const form = await raw('POST', '/v1/audio/transcriptions', gzipSync('x'), { 'content-type': 'multipart/form-data; boundary=x', 'content-encoding': 'br' })
    expect([form.status, form.text]).toEqual([415, expect.stringContaining('br')])
  })

  test('EDGE-10 a malformed percent sign or bytes that are not UTF-8 are 400 in the query and path of every row', async () => {
    const bad = ['%', '%z', '%zz', '%ff', '%fe', '%c3', '%ed%a0%80', '%c0%80', '\xff', '\xc3']
    for (const text of bad)
      for (const [method, path, body] of [
        ['GET', `/v1/models?x=${text}`, ''],
        ['GET', `/v1/models/${text}`, ''],
        ['GET', `/v1/me/memory/o?key=users/2/${text}`, ''],
        ['PUT', `/v1/me/memory/o?key=users/2/${text}`, 'content'],
        ['POST', `/v1/chat/completions?x=${text}`, chat],
        ['POST', `/mcp?x=${text}`, list],
        ['GET', `/no-such-path/${text}`, ''],
      ] as const) {
        const answer = await raw(method, path, body, method === 'POST' ? { ...json, ...accept } : {})
        expect([answer.status, JSON.parse(answer.text).error.code], `${method} ${path}`).toEqual([400, 'bad_request'])
      }
  })

  test('EDGE-10 UTF-8 names of memory objects are kept unchanged, so two different names never become one', async () => {
    await app.call('PUT', '/v1/me/memory-store', { store: 'folder' })
    const mine = `users/${app.userId}`
    for (const [key, content] of [
      ['%C3%A9', 'composed'],
      ['%C3%83%C2%A9', 'mistaken'],
      ['a+b%2Bc', 'plus'],
    ] as const)
      expect((await raw('PUT', `/v1/me/memory/o?key=${mine}/${key}`, content)).status).toBeLessThan(300)
    const read = async (key: string) => (await raw('GET', `/v1/me/memory/o?key=${mine}/${key}`, '')).text
    expect(await read('%C3%A9')).toBe('composed')
    expect(await read('%c3%83%c2%a9')).toBe('mistaken')
    expect(await read('a%20b%2Bc')).toBe('plus')
  })
})
