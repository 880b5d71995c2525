/** Uploads that are refused while they arrive. The sender gets the reason, and the room for bodies of all callers is bounded. */
import { spawn } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/platform/clock.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { until } from '../../harness/until.ts'

const MiB = 1024 * 1024
/** Time limit of a test. Hundreds of uploads take long on a busy machine. */
const longMs = 150_000
const path = '/v1/chat/completions'
const tooLarge = '"code":"payload_too_large"'

describe('a body over the limit', () => {
  let app: TestApp
  const file = join(mkdtempSync(join(tmpdir(), 'brigade-upload-')), 'body.json')
  const body = Buffer.alloc(8 * MiB, 'x')
  beforeAll(async () => {
    app = await startApp({ env: { INFERENCE_BODY_LIMIT_BYTES: String(MiB), FORM_LIMIT_BYTES: String(2 * MiB) } })
    writeFileSync(file, body)
  })
  afterAll(() => app.stop())

  /** Sends `count` requests, ten at a time. */
  async function times(count: number, send: () => Promise<string>): Promise<string[]> {
    const answers: string[] = []
    for (let sent = 0; sent < count; sent += 10) answers.push(...(await Promise.all(Array.from({ length: 10 }, send))))
    return answers
  }

  const refused = (answers: readonly string[]) => answers.filter(text => text.startsWith('413') && text.includes(tooLarge)).length

  test(
    "EDGE-11 Node's fetch gets the 413 envelope 100 of 100 times, with a length and in chunks",
    async () => {
      const send = async (given: Buffer | ReadableStream, more: object = {}): Promise<string> => {
        const headers = { authorization: `Bearer ${app.key}`, 'content-type': 'application/json' }
        const reply = await fetch(app.baseUrl + path, { method: 'POST', headers, body: given, ...more })
        return `${reply.status} ${await reply.text()}`
      }
      expect(refused(await times(100, () => send(body)))).toBe(100)
      expect(refused(await times(100, () => send(new Blob([body]).stream(), { duplex: 'half' })))).toBe(100)
    },
    longMs,
  )

  test(
    'EDGE-11 curl gets the 413 envelope 100 of 100 times, whether it waits for 100 Continue or not',
    async () => {
      const curl = (expect100: string) => (): Promise<string> =>
        new Promise((resolve, reject) => {
          const headers = ['-H', `authorization: Bearer ${app.key}`, '-H', 'content-type: application/json', '-H', expect100]
          const child = spawn('curl', ['-sS', '-w', '\n%{http_code}', ...headers, '--data-binary', `@${file}`, app.baseUrl + path])
          let text = ''
          child.stdout.on('data', chunk => {
            text += chunk
          })
          child.stderr.on('data', chunk => {
            text += chunk
          })
          child.on('error', reject)
          child.on('close', () => resolve(`${text.trim().split('\n').at(-1)} ${text}`))
        })
      expect(refused(await times(100, curl('expect: 100-continue')))).toBe(100)
      expect(refused(await times(100, curl('expect:')))).toBe(100)
    },
    longMs,
  )

  test(
    'EDGE-11 a client that slowly writes its whole body before it reads gets the 413 envelope 100 of 100 times, for every kind of body',
    async () => {
      const send = (at: string, type: string, framing: 'length' | 'chunks') => (): Promise<string> =>
        new Promise((resolve, reject) => {
          const { hostname, port } = new URL(app.baseUrl)
          const socket: Socket = connect(Number(port), hostname)
          let text = ''
          socket.pause()
          socket.on('error', reject)
          socket.on('data', chunk => {
            text += chunk
          })
          socket.on('close', () => resolve(`${text.split(' ')[1]} ${text}`))
          const length = framing === 'length' ? `content-length: ${4 * MiB}` : 'transfer-encoding: chunked'
          socket.write(`POST ${at} HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${app.key}\r\naccept: application/json, text/event-stream\r\n`)
          socket.write(`content-type: ${type}\r\n${length}\r\nconnection: close\r\n\r\n`)
          let left = 32
          const piece = body.subarray(0, (4 * MiB) / 32)
          const next = (): void => {
            if (left-- === 0) {
              if (framing === 'chunks') socket.write('0\r\n\r\n')
              socket.resume()
              return
            }
            if (framing === 'chunks') socket.write(`${piece.length.toString(16)}\r\n`)
            socket.write(piece, () => setImmediate(next))
            if (framing === 'chunks') socket.write('\r\n')
          }
          next()
        })
      const form = 'multipart/form-data; boundary=b'
      expect(refused(await times(100, send(path, 'application/json', 'length')))).toBe(100)
      expect(refused(await times(100, send(path, 'application/json', 'chunks')))).toBe(100)
      expect(refused(await times(20, send('/v1/images/edits', form, 'length')))).toBe(20)
      expect(refused(await times(20, send('/v1/me/agents', 'application/json', 'chunks')))).toBe(20)
    },
    longMs,
  )

  test(
    'EDGE-11 a client that waits for 100 Continue gets it when the body is accepted, and not when it is refused',
    async () => {
      const { hostname, port } = new URL(app.baseUrl)
      const ask = (length: number, token = app.key): Promise<{ status: number; told: boolean }> =>
        new Promise((resolve, reject) => {
          let told = false
          const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'content-length': length, expect: '100-continue' }
          const sent = request({ hostname, port, method: 'POST', path, headers }, response => {
            response.resume()
            response.on('end', () => resolve({ status: response.statusCode ?? 0, told }))
          })
          sent.on('continue', () => {
            told = true
            sent.end(JSON.stringify({ model: 'test-model', messages: [{ role: 'user', content: 'Hi' }] }).padEnd(length))
          })
          sent.on('error', reject)
          sent.flushHeaders()
        })
      expect(await ask(2 * MiB)).toEqual({ status: 413, told: false })
      expect(await ask(200, 'br-wrong')).toEqual({ status: 401, told: false })
      expect(await ask(200)).toEqual({ status: 200, told: true })
    },
    longMs,
  )
})

describe('bodies under way', () => {
  let app: TestApp
  let other: { key: string }
  let aheadMs = 0
  const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs }
  const opened: ReturnType<typeof request>[] = []
  beforeAll(async () => {
    const limits = { INFERENCE_BODY_LIMIT_BYTES: String(MiB), FORM_LIMIT_BYTES: String(MiB), BODIES_MAX_BYTES: String(3 * MiB), BODIES_ORG_PERCENT: '50' }
    app = await startApp({ clock, env: limits })
    other = await app.otherOrg('Neighbours')
  })
  afterAll(async () => {
    for (const each of opened) each.destroy()
    await app.stop()
  })

  /** Sends a request that announces its body but sends only a part of it. Resolves with the answer. */
  function upload(
    token: string,
    announced: number | null,
    bytes: number,
    at = path,
  ): Promise<{ status: number; retryAfter: string | undefined; text: string }> {
    const { hostname, port } = new URL(app.baseUrl)
    return new Promise((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${token}`,
        'content-type': at.startsWith('/v1/images') ? 'multipart/form-data; boundary=b' : 'application/json',
        accept: 'application/json, text/event-stream',
        ...(announced === null ? { 'transfer-encoding': 'chunked' } : { 'content-length': announced }),
      }
      const sent = request({ hostname, port, method: 'POST', path: at, headers, agent: false }, response => {
        let text = ''
        response.on('data', chunk => {
          text += chunk
        })
        const { statusCode = 0, headers: told } = response
        // The reply states its length, so it ends although the rest of the request body never arrives.
        response.on('end', () => resolve({ status: statusCode, retryAfter: told['retry-after'], text }))
        response.on('error', reject)
      })
      sent.on('error', reject)
      opened.push(sent)
      sent.flushHeaders()
      if (bytes > 0) sent.write(Buffer.alloc(bytes, ' '))
    })
  }

  /** Sends a whole body in chunks. */
  const chunked = (token: string, text: string): Promise<Response> =>
    fetch(app.baseUrl + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: new Blob([text]).stream(),
      ...{ duplex: 'half' },
    })

  const figure = async (name: string): Promise<number> => {
    const line = (await app.call('GET', '/metrics', undefined, { token: null })).text.split('\n').find(each => each.startsWith(`${name} `))
    return Number(line?.split(' ')[1] ?? Number.NaN)
  }

  test('HARD-02 above the total bound, or the share of an organisation, an arriving body is 503 with retry-after on every kind of row', async () => {
    const nearly = MiB - 1
    const held = upload(app.key, MiB, nearly).catch(() => null)
    await until(async () => (await figure('brigade_request_bodies_bytes')) === nearly, 'bytes of bodies')
    // The share is half of three MiB. Another MiB of the same organisation does not fit, but a small body does.
    for (const at of [path, '/v1/images/edits']) {
      const refused = await upload(app.key, MiB, 0, at)
      expect([refused.status, refused.retryAfter], at).toEqual([503, '2'])
      expect(refused.text).toContain('temporarily_unavailable')
      expect(refused.text).toContain('your organisation')
    }
    expect((await app.call('POST', path, { model: 'test-model', messages: [{ role: 'user', content: 'Hi' }] })).status).toBe(200)
    // Without a content-length, bytes count as they arrive.
    expect((await upload(app.key, null, MiB - 10)).status).toBe(503)
    // Other organisations are not affected until all room is taken.
    const first = upload(other.key, MiB, nearly).catch(() => null)
    await until(async () => (await figure('brigade_request_bodies_bytes')) === 2 * nearly, 'bytes of bodies')
    const third = await app.otherOrg('Third')
    const second = upload(third.key, MiB, nearly).catch(() => null)
    await until(async () => (await figure('brigade_request_bodies_bytes')) === 3 * nearly, 'bytes of bodies')
    const fourth = await app.otherOrg('Fourth')
    const full = await upload(fourth.key, MiB, 0)
    expect([full.status, full.retryAfter, full.text]).toEqual([503, '2', expect.stringContaining('this process')])
    // When the room is full, a reserve remains for small bodies of all senders, with a length and in chunks.
    const small = { model: 'test-model', messages: [{ role: 'user', content: 'Hi'.padEnd(60_000) }] }
    for (const { key } of [fourth, third, app]) expect((await app.call('POST', path, small, { token: key })).status).toBe(200)
    expect((await chunked(fourth.key, JSON.stringify(small))).status).toBe(200)
    // A body in chunks that grows is no longer small.
    expect((await upload(fourth.key, null, 200_000)).status).toBe(503)
    expect(await figure('brigade_request_bodies_refused_total{reason="organisation"}')).toBe(3)
    expect(await figure('brigade_request_bodies_refused_total{reason="total"}')).toBe(2)
    // A client that disconnects gives its room back.
    for (const each of opened.splice(0)) each.destroy()
    await Promise.all([held, first, second])
    await until(async () => (await figure('brigade_request_bodies_bytes')) === 0, 'bytes of bodies')
  })

  test('HARD-02 announced bodies that are never sent take no room, and the arrived bytes of many bodies are bounded', async () => {
    const third = await app.otherOrg('Announcers')
    for (let count = 0; count < 12; count++) void upload(third.key, MiB, 100).catch(() => null)
    await until(async () => (await figure('brigade_request_bodies_bytes')) === 12 * 100, 'bytes of bodies')
    const body = JSON.stringify({ model: 'test-model', messages: [{ role: 'user', content: 'Hi' }] })
    for (const { key } of [third, other]) expect((await chunked(key, body.padEnd(900_000))).status).toBe(200)
    // Two bodies of 900 kB do not fit into the share of 1.5 MiB, so the second one is refused while it arrives.
    const [first, ...rest] = [1, 2, 3].map(() => upload(third.key, 950_000, 900_000))
    const refused = await Promise.race([first, ...rest])
    expect([refused?.status, refused?.text]).toEqual([503, expect.stringContaining('your organisation')])
    expect(await figure('brigade_request_bodies_bytes')).toBeLessThanOrEqual(1.5 * MiB)
    for (const each of opened.splice(0)) each.destroy()
    await Promise.allSettled([first, ...rest])
    await until(async () => (await figure('brigade_request_bodies_bytes')) === 0, 'bytes of bodies')
  })

  test('HARD-02 a body that arrives more slowly than the minimum speed is 503 with retry-after and gives its room back', async () => {
    const slow = [upload(app.key, 500_000, 1000), upload(other.key, null, 1000), upload(app.key, 500_000, 1000, '/mcp')]
    await until(async () => (await figure('brigade_request_bodies_bytes')) === 3000, 'bytes of bodies')
    aheadMs = 9000
    expect(await figure('brigade_request_bodies_bytes')).toBe(3000)
    aheadMs += 5000
    for (const answer of await Promise.all(slow)) expect([answer.status, answer.retryAfter, answer.text]).toEqual([503, '2', expect.stringContaining('slowly')])
    expect(await figure('brigade_request_bodies_refused_total{reason="slow"}')).toBe(3)
    for (const each of opened.splice(0)) each.destroy()
    await until(async () => (await figure('brigade_request_bodies_bytes')) === 0, 'bytes of bodies')
  })
})
