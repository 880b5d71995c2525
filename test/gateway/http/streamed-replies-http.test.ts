import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'

const body = JSON.stringify({ model: 'test-model', stream: true, messages: [{ role: 'user', content: 'hello' }] })

describe('streamed replies on the wire', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp()
  })
  afterAll(() => app.stop())

  /** Sends a streamed call over a plain socket. Returns everything that comes until the connection ends, or until `isWhole`. */
  async function raw(version: string, isWhole: (text: string) => boolean = () => false): Promise<{ head: string; body: string }> {
    const { hostname, port } = new URL(app.baseUrl)
    const socket = connect(Number(port), hostname)
    await once(socket, 'connect')
    let text = ''
    socket.setEncoding('latin1').on('data', piece => {
      text += piece
      if (isWhole(text)) socket.end()
    })
    socket.write(
      `POST /v1/chat/completions HTTP/${version}\r\nhost: localhost\r\ncontent-type: application/json\r\nauthorization: Bearer ${app.key}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    )
    await once(socket, 'close')
    const at = text.indexOf('\r\n\r\n')
    return { head: text.slice(0, at).toLowerCase(), body: text.slice(at + 4) }
  }

  test('a streamed reply is a valid body in chunks, and its connection stays open', async () => {
    const { head, body: wire } = await raw('1.1', text => text.endsWith('\r\n0\r\n\r\n'))
    expect(head).toContain('transfer-encoding: chunked')
    expect(head).toContain('connection: keep-alive')
    const text = unchunked(wire)
    expect(text.startsWith('data: ')).toBe(true)
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
  })

  test('a client of HTTP/1.0 gets the same stream without chunks, and the connection ends with it', async () => {
    const { head, body: wire } = await raw('1.0')
    expect(head).not.toContain('transfer-encoding')
    expect(wire.startsWith('data: ')).toBe(true)
    expect(wire.endsWith('data: [DONE]\n\n')).toBe(true)
  })
})

/** Reads a body in chunks of HTTP. Throws when it is not valid, or when something comes after its end. */
function unchunked(wire: string): string {
  let text = ''
  for (let at = 0; ; ) {
    const end = wire.indexOf('\r\n', at)
    const length = Number.parseInt(wire.slice(at, end), 16)
    if (Number.isNaN(length)) throw new Error(`no length at ${at}: ${wire.slice(at, at + 20)}`)
    const from = end + 2
    if (wire.slice(from + length, from + length + 2) !== '\r\n') throw new Error(`no line end after the chunk at ${at}`)
    text += wire.slice(from, from + length)
    at = from + length + 2
    if (length === 0 && at === wire.length) return text
    if (length === 0) throw new Error('bytes come after the end of the body')
  }
}
