import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ProviderUnreachableError, providerFetch } from '../../../src/gateway/access/identity/provider-fetch.ts'
import { createOutbound, type Outbound } from '../../../src/platform/outbound/outbound.ts'

describe('fetch for identity providers', () => {
  let server: Server
  let outbound: Outbound
  let url: string
  beforeAll(async () => {
    server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', chunk => chunks.push(chunk))
      request.on('end', () => {
        switch (request.url) {
          case '/large':
            return response.end(Buffer.alloc(600 * 1024, 'x'))
          case '/redirect':
            return response.writeHead(302, { location: '/echo' }).end()
          case '/empty':
            return response.writeHead(204).end()
          case '/silent':
            return undefined
          default:
            response.writeHead(201, { 'content-type': 'application/json', 'set-cookie': ['a=1', 'b=2'] })
            return response.end(JSON.stringify({ method: request.method, headers: request.headers, body: Buffer.concat(chunks).toString() }))
        }
      })
    })
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    outbound = createOutbound({ connectTimeoutMs: 1000, firstByteTimeoutMs: 1000, streamIdleTimeoutMs: 1000, allow: [] })
  })
  afterAll(async () => {
    await outbound.close()
    server.closeAllConnections()
    await new Promise(done => server.close(done))
  })
  const call = (path: string, more: object = {}) =>
    providerFetch(outbound)(url + path, { method: 'GET', headers: {}, body: undefined, redirect: 'manual', ...more })

  test('a form is sent with its headers, and the caller gets the status and headers of the reply', async () => {
    const response = await call('/echo', {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ a: 'b c' }),
    })
    expect([response.status, response.headers.get('content-type'), response.headers.getSetCookie()]).toEqual([201, 'application/json', ['a=1', 'b=2']])
    const echo = await response.json()
    expect(echo).toMatchObject({ method: 'POST', body: 'a=b+c', headers: { 'user-agent': 'brigade', 'content-type': 'application/x-www-form-urlencoded' } })
  })

  test('a redirect is not followed, and a reply without a body is accepted', async () => {
    expect((await call('/redirect')).status).toBe(302)
    const empty = await call('/empty')
    expect([empty.status, await empty.text()]).toEqual([204, ''])
  })

  test('a reply that is too large, a provider that does not answer and a closed port give a ProviderUnreachableError', async () => {
    await expect(call('/large')).rejects.toThrow(ProviderUnreachableError)
    await expect(call('/silent', { signal: AbortSignal.timeout(50) })).rejects.toThrow(ProviderUnreachableError)
    await expect(providerFetch(outbound)('http://127.0.0.1:9/', { method: 'GET', headers: {}, body: undefined, redirect: 'manual' })).rejects.toThrow(
      '127.0.0.1:9 did not answer',
    )
  })
})
