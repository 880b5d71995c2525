import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createSocketServer, type Socket, type Server as SocketServer } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { gatewayClient } from '../../src/agents/toolkit/gateway-client.ts'
import { CommandError, commandErrorOf } from '../../src/cli/command-error.ts'
import { gatewayFetch } from '../../src/cli/gateway-fetch.ts'

const key = 'br-a-secret-key-00001'

describe('replies that are wrong or missing', () => {
  const open: SocketServer[] = []
  const sockets = new Set<Socket>()
  afterEach(async () => {
    const closed = open.splice(0).map(server => new Promise<void>(done => server.close(() => done())))
    for (const socket of sockets) socket.destroy()
    await Promise.all(closed)
  })

  async function listening(server: SocketServer): Promise<string> {
    open.push(server)
    server.on('connection', (socket: Socket) => {
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
    })
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
  const answering = (listener: RequestListener): Promise<string> => listening(createServer(listener))

  /** Returns the error with which a command would end. */
  async function failureAt(baseUrl: string, timeoutMs = 20_000): Promise<CommandError> {
    const client = gatewayClient({ baseUrl, credential: key, fetch: gatewayFetch(baseUrl, timeoutMs) })
    const thrown = await client.json('GET', '/v1/me/whoami').then(
      () => null,
      (error: unknown) => commandErrorOf(error, { baseUrl, credentialFrom: 'BRIGADE_KEY' }),
    )
    if (!(thrown instanceof CommandError)) throw new Error(`not as commands fail: ${String(thrown)}`)
    expect(thrown.message).toContain(new URL(baseUrl).hostname)
    expect(thrown.message).not.toContain(key)
    expect(thrown.message).not.toContain('\n')
    return thrown
  }

  test('a web page of a proxy, a redirect and JSON of another program are reported as no gateway, and the key is sent nowhere else', async () => {
    const page: RequestListener = (_request, response) => response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end('<h1>Sign in</h1>')
    let followed = 0
    const elsewhere = await answering((_request, response) => {
      followed++
      response.end('{}')
    })
    const redirect: RequestListener = (_request, response) => response.writeHead(302, { location: `${elsewhere}/login?state=very-secret` }).end()
    const notFound: RequestListener = (_request, response) =>
      response.writeHead(404, { 'content-type': 'application/json', 'x-request-id': 'abc' }).end('{"detail":"Not Found"}')
    const notJson: RequestListener = (_request, response) => response.writeHead(200, { 'x-request-id': 'abc', 'content-type': 'text/plain' }).end('ok')
    const messages: string[] = []
    for (const listener of [page, redirect, notFound, notJson]) {
      const failure = await failureAt(await answering(listener))
      expect([failure.code, failure.exitCode]).toEqual(['not_a_gateway', 1])
      expect(failure.message).toContain('is no Brigade gateway')
      messages.push(failure.message)
    }
    expect(messages[0]).toContain('a web page')
    expect(messages[1]).toContain(`leads to ${elsewhere}/login`)
    expect(messages.join(' ')).not.toContain('very-secret')
    expect(followed).toBe(0)
  })

  test('an error page of a proxy is reported as an unreachable gateway', async () => {
    const baseUrl = await answering((_request, response) => response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>Bad gateway</h1>'))
    expect(await failureAt(baseUrl)).toMatchObject({ code: 'unreachable', status: 502, message: expect.stringContaining('is away') })
  })

  test('a closed port, a port without TLS or without HTTP, a cut connection and a missing answer have errors of their own', async () => {
    const silent = await listening(createSocketServer(() => {}))
    const cutting = await listening(createSocketServer(socket => socket.destroy()))
    const other = await listening(createSocketServer(socket => socket.on('error', () => {}).once('data', () => socket.end('220 mail.example.com ESMTP\r\n'))))
    const plain = (await answering((_request, response) => response.end())).replace('http:', 'https:')
    const closed = createServer()
    const nobody = await listening(closed)
    await new Promise(done => closed.close(done))
    open.splice(open.indexOf(closed), 1)
    for (const [baseUrl, message] of [
      [nobody, 'nothing listens'],
      [plain, 'does not speak TLS'],
      [other, 'does not speak HTTP'],
      [cutting, 'was cut'],
      [silent, 'did not answer in time'],
    ] as const)
      expect((await failureAt(baseUrl, baseUrl === silent ? 100 : undefined)).message, baseUrl).toContain(message)
  })
})
