import { request as httpRequest } from 'node:http'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildConsoleIfChanged } from '../../../scripts/build.mjs'
import { startApp, type TestApp } from '../../harness/app.ts'

const html = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

interface RawReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly bytes: Buffer
}

/** Sends a request without the help of fetch, which would decode the body and set headers of its own. */
function send(app: TestApp, path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<RawReply> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(app.baseUrl + path, { method, headers }, reply => {
      const pieces: Buffer[] = []
      reply.on('data', (piece: Buffer) => pieces.push(piece))
      reply.on('end', () => resolve({ status: reply.statusCode ?? 0, headers: reply.headers, bytes: Buffer.concat(pieces) }))
    })
    sent.on('error', reject)
    sent.end()
  })
}

const codeOf = ({ bytes }: RawReply): string => JSON.parse(bytes.toString()).error.code

describe('the files of the console', () => {
  let app: TestApp
  let asset: string
  beforeAll(async () => {
    expect(await buildConsoleIfChanged()).toBe(true)
    app = await startApp()
    const page = await send(app, '/console', { accept: html })
    asset = /src="(\/console\/assets\/shell-[^"]+\.js)"/.exec(page.bytes.toString())?.[1] ?? ''
  }, 60_000)
  afterAll(() => app.stop())

  const expectPages = async (): Promise<void> => {
    for (const path of ['/console', '/console/', '/console/keys', '/console/keys?key=4', '/console/memory/agents/reviewer/notes.md']) {
      const { status, headers, bytes } = await send(app, path, { accept: html })
      expect([status, headers['content-type'], headers['cache-control']], path).toEqual([200, 'text/html; charset=utf-8', 'no-cache'])
      expect(bytes.toString()).toContain('<div id="root">')
      const policy = String(headers['content-security-policy'])
      for (const rule of [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
      ])
        expect(policy.split('; '), path).toContain(rule)
      expect(policy).not.toContain('unsafe')
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'same-origin',
        'cross-origin-opener-policy': 'same-origin',
        'permissions-policy': expect.stringContaining('camera=()'),
        vary: 'accept, accept-encoding',
      })
      const again = await send(app, path, { accept: html, 'if-none-match': String(headers['etag']) })
      expect([again.status, again.bytes.length, again.headers['etag']], path).toEqual([304, 0, headers['etag']])
    }
  }

  const expectAssets = async (): Promise<void> => {
    const plain = await send(app, asset)
    expect([plain.status, plain.headers['content-encoding'], plain.headers['cache-control']]).toEqual([200, undefined, 'public, max-age=31536000, immutable'])
    expect(plain.headers).toMatchObject({ 'content-type': 'text/javascript; charset=utf-8', 'x-content-type-options': 'nosniff', vary: 'accept-encoding' })
    const cases = [
      ['br, gzip', 'br', brotliDecompressSync],
      ['gzip', 'gzip', gunzipSync],
      ['br;q=0, gzip;q=0.5', 'gzip', gunzipSync],
      ['deflate', undefined, (bytes: Buffer) => bytes],
    ] as const
    const etags = new Set([plain.headers['etag']])
    for (const [accepted, encoding, decode] of cases) {
      const reply = await send(app, asset, { 'accept-encoding': accepted })
      expect([reply.status, reply.headers['content-encoding']], accepted).toEqual([200, encoding])
      expect(Buffer.compare(decode(reply.bytes), plain.bytes), accepted).toBe(0)
      etags.add(reply.headers['etag'])
      const again = await send(app, asset, { 'accept-encoding': accepted, 'if-none-match': `"other", ${String(reply.headers['etag'])}` })
      expect([again.status, again.bytes.length]).toEqual([304, 0])
    }
    expect(etags.size).toBe(3)
  }

  test('CONS-01 every path below /console gives a browser the page under a strict policy with Trusted Types, assets are immutable and precompressed, ETags hold, and CONSOLE=off ends it', async () => {
    await expectPages()
    await expectAssets()
    await expectOff()
  })

  test('HEAD gets the headers of GET, and other methods get 405', async () => {
    for (const path of ['/console', asset]) {
      const get = await send(app, path, { accept: html, 'accept-encoding': 'br' })
      const head = await send(app, path, { accept: html, 'accept-encoding': 'br' }, 'HEAD')
      expect([head.status, head.bytes.length, head.headers['content-length'], head.headers['etag']]).toEqual([
        200,
        0,
        get.headers['content-length'],
        get.headers['etag'],
      ])
      const post = await send(app, path, { accept: html }, 'POST')
      expect([post.status, codeOf(post), post.headers['allow']]).toEqual([405, 'method_not_allowed', 'GET, HEAD'])
    }
  })

  test('an Accept-Encoding header with thousands of spaces does not delay the answer, and spaces around a weight change nothing', async () => {
    const spaces = '\t'.repeat(15_000)
    const begun = performance.now()
    for (let times = 0; times < 10; times++)
      for (const accepted of [`a${spaces}b`, `a;${spaces}b`, `a${spaces};q=${'0'.repeat(500)}`])
        expect((await send(app, '/console', { accept: html, 'accept-encoding': accepted })).headers['content-encoding']).toBe(undefined)
    expect(performance.now() - begun).toBeLessThan(2_000)
    for (const [accepted, encoding] of [
      ['br ; q=0 , gzip ; q=1', 'gzip'],
      ['BR ; q=0.001', 'br'],
      ['br;q=0.000,gzip;q=0', undefined],
    ] as const)
      expect((await send(app, asset, { 'accept-encoding': accepted })).headers['content-encoding'], accepted).toBe(encoding)
  })

  test('an unknown asset is 404 and not the page, also for a browser and for names that leave the folder', async () => {
    for (const name of ['nothing.js', 'index-00000000.js', '../index.html', '..%2F..%2Fpackage.json', '%2e%2e/index.html', 'index.html', '__proto__']) {
      const reply = await send(app, `/console/assets/${name}`, { accept: html })
      expect(reply.bytes.toString(), name).not.toContain('"dependencies"')
      if (!name.startsWith('..') && !name.startsWith('%2e')) expect([reply.status, codeOf(reply)], name).toEqual([404, 'not_found'])
    }
  })

  const expectAddresses = async (): Promise<void> => {
    const start = await send(app, '/', { accept: html })
    expect([start.status, start.headers['location'], start.headers['cache-control']]).toEqual([302, '/console', 'no-store'])
    const mcp = await send(app, '/mcp', { accept: html })
    expect([mcp.status, mcp.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
    expect(mcp.bytes.toString()).toContain(`${app.baseUrl}/mcp`)
    expect(mcp.bytes.toString()).toContain('npx brigade connect')
    for (const accept of [{}, { accept: '*/*' }, { accept: 'application/json' }]) {
      for (const path of ['/', '/console', '/console/keys']) {
        const reply = await send(app, path, accept)
        expect([reply.status, codeOf(reply)], path).toEqual([404, 'not_found'])
      }
      const reply = await send(app, '/mcp', accept)
      expect([reply.status, codeOf(reply)]).toEqual([405, 'method_not_allowed'])
    }
    const stream = await send(app, '/mcp', { accept: 'text/event-stream' })
    expect(stream.status).toBe(405)
  }

  const expectReturn = async (): Promise<void> => {
    const link = async (): Promise<string> => (await app.gateway.app.makeSignInLink('owner@test-org.test')).url
    const press = async (accept: string) =>
      fetch(`${app.baseUrl}/auth/link`, {
        method: 'POST',
        redirect: 'manual',
        headers: { accept },
        body: new URLSearchParams({ token: new URL(await link()).searchParams.get('token') ?? '' }),
      })
    expect((await press(html)).headers.get('location')).toBe('/console')
    expect((await press('*/*')).headers.get('location')).toBe('/me')
  }

  test('FIRST-02 a browser at / goes to the console, reads at /mcp what it is for, and returns to the console after signing in. Programs get the replies of before', async () => {
    await expectAddresses()
    await expectReturn()
  })
})

async function expectOff(): Promise<void> {
  const app = await startApp({ env: { CONSOLE: 'off' } })
  try {
    const start = await send(app, '/', { accept: html })
    expect([start.status, start.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
    expect(start.bytes.toString()).toContain('/openapi.json')
    const page = await send(app, '/console/keys', { accept: html })
    expect(page.status).toBe(404)
    expect(page.bytes.toString()).toContain('CONSOLE=off')
    expect((await send(app, '/console/assets/x.js')).status).toBe(404)
    expect((await send(app, '/auth', { accept: html })).status).toBe(200)
  } finally {
    await app.stop()
  }
}
