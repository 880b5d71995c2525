/** Providers that send informational replies (1xx), without end or instead of a reply. */
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'

const hint = 'HTTP/1.1 103 Early Hints\r\n\r\n'
const body = { max_tokens: 10, messages: [{ role: 'user', content: 'hello' }] }
const head = { id: 'c', object: 'chat.completion', created: 1, model: 'm' }
const reply = JSON.stringify({ ...head, choices: [{ index: 0, message: { role: 'assistant', content: 'late' }, finish_reason: 'stop' }] })

describe('informational replies', () => {
  let app: TestApp
  let calls = 0
  let answer: (socket: Socket) => void = () => {}
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.on('data', () => {
      calls++
      answer(socket)
    })
  })
  beforeAll(async () => {
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
    const alpha = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
    app = await startApp({
      env: { FIRST_BYTE_TIMEOUT_MS: '1500', WHOLE_REPLY_TIMEOUT_MS: '1500' },
      operatorFile: urls => defaultOperatorFile({ ...urls, alpha }),
    })
  })
  afterAll(async () => {
    await app.stop()
    await new Promise(done => server.close(done))
  })
  beforeEach(() => {
    calls = 0
    app.beta.reset()
  })

  test('HARD-03 a provider that sends them without end fails its route, and the call is served by the next one', async () => {
    answer = socket => socket.write(hint.repeat(4000))
    const { status, headers } = await app.call('POST', '/v1/chat/completions', { model: 'test-model', ...body })
    expect([status, headers.get('x-br-provider'), calls, app.beta.requests.length]).toEqual([200, 'beta', 1, 1])
  })

  test.each([true, false])('HARD-03 a provider that sends one now and then is given up after the wait for the first byte (stream: %s)', async stream => {
    let sent = 0
    answer = socket => {
      const timer = setInterval(() => {
        if (!socket.destroyed) socket.write(hint, () => sent++)
      }, 300)
      socket.once('close', () => clearInterval(timer))
    }
    const { status, json } = await app.call('POST', '/v1/chat/completions', { model: 'alpha-only', stream, ...body })
    expect([status, json.error.code]).toEqual([502, 'all_routes_failed'])
    expect(json.error.message).toContain('UND_ERR_HEADERS_TIMEOUT')
    expect(sent).toBeGreaterThan(0)
    expect(sent).toBeLessThan(64)
  })

  test('a provider that sends a few before its reply serves the call', async () => {
    answer = socket => socket.write(`${hint.repeat(5)}HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${reply.length}\r\n\r\n${reply}`)
    const { status, json } = await app.call('POST', '/v1/chat/completions', { model: 'alpha-only', ...body })
    expect([status, json.choices[0].message.content]).toEqual([200, 'late'])
  })
})
