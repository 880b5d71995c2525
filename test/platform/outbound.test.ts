import { createServer, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type LookupFunction } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createOutbound, type Outbound } from '../../src/platform/outbound/outbound.ts'
import { until } from '../harness/until.ts'

const options = { connectTimeoutMs: 2000, firstByteTimeoutMs: 5000, streamIdleTimeoutMs: 5000 }

describe('outbound', () => {
  let server: Server
  let port: number
  let hits = 0
  let accepted = 0
  const opened: Outbound[] = []
  const outbound = (allow: string[] = [], lookup?: LookupFunction): Outbound => {
    const made = createOutbound({ ...options, allow, ...(lookup ? { lookup } : {}) })
    opened.push(made)
    return made
  }

  beforeAll(async () => {
    server = createServer((request, response) => {
      hits++
      if (request.url === '/redirect') response.writeHead(302, { location: `http://127.0.0.1:${port}/secret` }).end()
      else if (request.url === '/chunks') {
        response.write('one ')
        setImmediate(() => response.end('two'))
      } else if (request.url === '/hang') response.write('begun')
      else response.end(`${request.method} ${request.url}`)
    })
    server.on('connection', () => accepted++)
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
    port = (server.address() as AddressInfo).port
  })
  afterAll(async () => {
    await Promise.all(opened.map(each => each.close()))
    server.closeAllConnections()
    await new Promise(done => server.close(done))
  })
  const get = (path: string) => ({ method: 'GET' as const, url: `http://127.0.0.1:${port}${path}`, headers: {} })

  test('a provider is called as the operator configured it, even on loopback, and its body can be read whole or in chunks', async () => {
    const { status, body } = await outbound().toProvider(get('/chunks'))
    expect(status).toBe(200)
    expect((await body.buffer(100)).toString()).toBe('one two')
    const again = await outbound().toProvider(get('/chunks'))
    const chunks: string[] = []
    for await (const chunk of again.body) chunks.push(Buffer.from(chunk).toString())
    expect(chunks.join('')).toBe('one two')
  })

  test('a reply larger than the limit is refused', async () => {
    const { body } = await outbound().toProvider(get('/chunks'))
    await expect(body.buffer(3)).rejects.toThrow('larger')
  })

  test('an aborted call rejects with the reason of its signal, even while the body is read', async () => {
    const controller = new AbortController()
    const { body } = await outbound().toProvider({ ...get('/hang'), signal: controller.signal })
    const reading = body.buffer(100)
    controller.abort(new Error('client gone'))
    await expect(reading).rejects.toThrow('client gone')
    await expect(outbound().toProvider({ ...get('/'), signal: AbortSignal.abort(new Error('too late')) })).rejects.toThrow('too late')
  })

  test('a URL from a user with a private address is refused before any request is sent', async () => {
    const before = hits
    for (const url of [
      `https://127.0.0.1:${port}/`,
      `https://localhost:${port}/`,
      'https://[::1]/',
      'https://169.254.169.254/latest',
      'https://[::ffff:10.0.0.1]/',
      'https://0x7f000001/',
      `http://127.0.0.1:${port}/`,
    ])
      await expect(
        Promise.resolve().then(() => outbound().toUserUrl({ method: 'GET', url, headers: {} })),
        url,
      ).rejects.toThrow()
    expect(hits).toBe(before)
  })

  test('OUTBOUND_ALLOW allows one host and port, and the refusal of plain http names it', async () => {
    const { status } = await outbound([`127.0.0.1:${port}`]).toUserUrl(get('/ok'))
    expect(status).toBe(200)
    expect(() => outbound().guard.check(new URL('http://example.test/'))).toThrow('OUTBOUND_ALLOW')
    expect(() => outbound().guard.check(new URL('https://user:pass@example.test/'))).toThrow('password')
  })

  test('a redirect is not followed', async () => {
    const { status } = await outbound([`127.0.0.1:${port}`]).toUserUrl(get('/redirect'))
    expect(status).toBe(302)
  })

  describe('calls of URLs from users', () => {
    let connections = 0
    const listener = createTcpServer(socket => {
      connections++
      socket.destroy()
    })
    let at = 0
    /** Answers each look-up with the next list of addresses. The last list is used repeatedly. */
    const answering = (...answers: string[][]) => {
      const asked: string[] = []
      const lookup: LookupFunction = (hostname, _given, callback) => {
        const found = answers[Math.min(asked.length, answers.length - 1)] ?? []
        asked.push(hostname)
        callback(
          null,
          found.map(address => ({ address, family: address.includes(':') ? 6 : 4 })),
        )
      }
      return { lookup, asked }
    }
    const dial = (out: Outbound, url: string) => out.toUserUrl({ method: 'POST', url, headers: { authorization: 'Bearer secret' }, body: '{}' })

    beforeAll(async () => {
      await new Promise<void>(done => listener.listen(0, '127.0.0.1', done))
      at = (listener.address() as AddressInfo).port
    })
    afterAll(() => new Promise(done => listener.close(done)))

    test('a name that resolves to this machine is refused without a connection, even when only one of its addresses does', async () => {
      const out = outbound(
        [],
        answering(['127.0.0.1'], ['::1'], ['93.184.216.34', '127.0.0.1'], ['::ffff:127.0.0.1'], ['64:ff9b::7f00:1'], ['::7f00:1']).lookup,
      )
      for (let count = 0; count < 6; count++) await expect(dial(out, `https://name.test:${at}/v1`)).rejects.toMatchObject({ code: 'BLOCKED_ADDRESS' })
      for (const name of ['localhost', 'localhost.', 'a.localhost'])
        await expect(dial(outbound(), `https://${name}:${at}/v1`), name).rejects.toMatchObject({ name: 'GatewayError' })
      expect(connections).toBe(0)
    })

    test('a name that was public and later resolves to a private address is refused at the next call', async () => {
      // The first address is in an unassigned part of the internet, so nothing answers there.
      const { lookup, asked } = answering(['2d00::1'], ['127.0.0.1'])
      const out = createOutbound({ ...options, connectTimeoutMs: 200, allow: [], lookup })
      opened.push(out)
      await expect(dial(out, `https://rebind.test:${at}/v1`)).rejects.not.toMatchObject({ code: 'BLOCKED_ADDRESS' })
      await expect(dial(out, `https://rebind.test:${at}/v1`)).rejects.toMatchObject({ code: 'BLOCKED_ADDRESS' })
      expect(asked).toEqual(['rebind.test', 'rebind.test'])
      expect(connections).toBe(0)
    })

    test('each connection makes one look-up, and uses the address that was checked', async () => {
      const { lookup, asked } = answering(['127.0.0.1'])
      const out = outbound([`models.test:${port}`], lookup)
      const before = accepted
      for (let count = 0; count < 3; count++) {
        const { status, body } = await out.toUserUrl({ method: 'GET', url: `http://models.test:${port}/ok`, headers: {} })
        expect([status, (await body.buffer(100)).toString()]).toEqual([200, 'GET /ok'])
      }
      await until(() => asked.length === accepted - before, 'as many questions as connections')
    })

    test('permission for one port does not allow another port, whatever connections are open', async () => {
      const before = connections
      const { lookup } = answering(['127.0.0.1'])
      const out = outbound([`models.test:${port}`], lookup)
      const { body } = await out.toUserUrl({ method: 'GET', url: `http://models.test:${port}/ok`, headers: {} })
      await body.buffer(100)
      await expect(dial(out, `http://models.test:${at}/`)).rejects.toMatchObject({ code: 'bad_request' })
      await expect(dial(out, `https://models.test:${at}/`)).rejects.toMatchObject({ code: 'BLOCKED_ADDRESS' })
      expect(connections).toBe(before)
    })
  })

  describe('a server that sends informational replies', () => {
    let sent = 0
    let peer: ReturnType<typeof createTcpServer>
    /** What the server does with a request. */
    let answer: (write: (text: string) => boolean) => void = () => {}
    beforeAll(async () => {
      peer = createTcpServer(socket => {
        socket.on('error', () => {})
        socket.on('data', () => answer(text => !socket.destroyed && socket.write(text)))
      })
      await new Promise<void>(done => peer.listen(0, '127.0.0.1', done))
    })
    afterAll(() => new Promise(done => peer.close(done)))
    const url = () => `http://127.0.0.1:${(peer.address() as AddressInfo).port}/`
    const hint = 'HTTP/1.1 103 Early Hints\r\n\r\n'

    test('some of them precede the reply, and a server that sends more than 64 is given up', async () => {
      const client = outbound()
      answer = write => write(`${hint.repeat(64)}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok`)
      const { status, body } = await client.toProvider({ method: 'GET', url: url(), headers: {} })
      expect([status, String(await body.buffer(10))]).toEqual([200, 'ok'])
      answer = write => write(`${hint.repeat(65)}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok`)
      await expect(client.toProvider({ method: 'GET', url: url(), headers: {} })).rejects.toThrow('informational replies without end')
    })

    test('they do not extend the wait for the first byte', async () => {
      const client = outbound()
      const waiting = new Set<NodeJS.Timeout>()
      answer = write => {
        const timer = setInterval(() => {
          if (write(hint)) sent++
          else clearInterval(timer)
        }, 200)
        waiting.add(timer)
      }
      const request = { method: 'GET' as const, url: url(), headers: {}, headersTimeoutMs: 1500 }
      await expect(client.toProvider(request)).rejects.toMatchObject({ code: 'UND_ERR_HEADERS_TIMEOUT' })
      for (const timer of waiting) clearInterval(timer)
      // The bound of their number was not reached.
      expect(sent).toBeGreaterThan(0)
      expect(sent).toBeLessThan(64)
    })
  })
})
