import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createOutbound, isBlockedAddress, type Outbound } from '../../src/platform/outbound.ts'

const options = { connectTimeoutMs: 2000, firstByteTimeoutMs: 5000, streamIdleTimeoutMs: 5000 }

describe('outbound', () => {
  let server: Server
  let port: number
  let hits = 0
  const opened: Outbound[] = []
  const outbound = (allow: string[] = []): Outbound => {
    const made = createOutbound({ ...options, allow })
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
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
    port = (server.address() as AddressInfo).port
  })
  afterAll(async () => {
    await Promise.all(opened.map(each => each.close()))
    server.closeAllConnections()
    await new Promise(done => server.close(done))
  })
  const get = (path: string) => ({ method: 'GET' as const, url: `http://127.0.0.1:${port}${path}`, headers: {} })

  test('a provider is dialed as the operator says, loopback included, and its body is read whole or in chunks', async () => {
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

  test('an aborted call rejects with the reason of its signal, also while the body is read', async () => {
    const controller = new AbortController()
    const { body } = await outbound().toProvider({ ...get('/hang'), signal: controller.signal })
    const reading = body.buffer(100)
    controller.abort(new Error('client gone'))
    await expect(reading).rejects.toThrow('client gone')
    await expect(outbound().toProvider({ ...get('/'), signal: AbortSignal.abort(new Error('too late')) })).rejects.toThrow('too late')
  })

  test('a user-given URL to a private place is refused before anything is dialed', async () => {
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

  test('OUTBOUND_ALLOW lets one host and port through, and the refusal of plain http names it', async () => {
    const { status } = await outbound([`127.0.0.1:${port}`]).toUserUrl(get('/ok'))
    expect(status).toBe(200)
    expect(() => outbound().guard.check(new URL('http://example.test/'))).toThrow('OUTBOUND_ALLOW')
    expect(() => outbound().guard.check(new URL('https://user:pass@example.test/'))).toThrow('password')
  })

  test('a redirect is not followed', async () => {
    const { status } = await outbound([`127.0.0.1:${port}`]).toUserUrl(get('/redirect'))
    expect(status).toBe(302)
  })

  test('no private, loopback, link-local or mapped address counts as public', () => {
    const octet = fc.integer({ min: 0, max: 255 })
    fc.assert(
      fc.property(octet, octet, octet, (a, b, c) => {
        for (const address of [
          `10.${a}.${b}.${c}`,
          `127.${a}.${b}.${c}`,
          `192.168.${a}.${b}`,
          `169.254.${a}.${b}`,
          `172.${16 + (a % 16)}.${b}.${c}`,
          `::ffff:10.${a}.${b}.${c}`,
          `fd00::${a.toString(16)}`,
          `fe80::${b.toString(16)}`,
        ])
          expect(isBlockedAddress(address)).toBe(true)
      }),
    )
    expect(isBlockedAddress('93.184.216.34')).toBe(false)
    expect(isBlockedAddress('2606:2800:220:1:248:1893:25c8:1946')).toBe(false)
    expect(isBlockedAddress('not an address')).toBe(true)
  })
})
