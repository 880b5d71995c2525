/** How the gateway fetches the keys of other issuers: over real HTTP, through the client that checks addresses, with a clock that the test moves. */
import type { LookupFunction } from 'node:net'
import { decodeProtectedHeader, jwtVerify } from 'jose'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { IssuerKeys, type KeySource } from '../../src/agents/federation/oauth-issuer-keys.ts'
import { makeLog } from '../../src/platform/observe/log.ts'
import { createOutbound, type Outbound } from '../../src/platform/outbound/outbound.ts'
import { type OidcIssuer, startOidcIssuer } from './oidc-issuer.ts'
import { type MovableClock, movableClock, thrownBy } from './setup.ts'

let issuer: OidcIssuer
let outbound: Outbound
let keys: IssuerKeys
let clock: MovableClock
let source: KeySource
let lines: string[]
const lookup: LookupFunction = (_host, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }])

beforeAll(async () => {
  issuer = await startOidcIssuer('/tenant')
  await issuer.addKey('one')
  outbound = createOutbound({ connectTimeoutMs: 2_000, firstByteTimeoutMs: 2_000, streamIdleTimeoutMs: 2_000, allow: [issuer.hostPort], lookup })
  source = { issuer: issuer.url }
})
afterAll(async () => {
  await outbound.close()
  await issuer.close()
})
beforeEach(() => {
  lines = []
  clock = movableClock()
  keys = new IssuerKeys({ clock, log: makeLog('info', { write: line => lines.push(line) }), outbound, founderOf })
})
afterEach(() => {
  issuer.seen.length = 0
  issuer.answer = null
})

/** The founder of these tests: organisations below 100 belong to one person, and every other organisation has a founder of its own. */
const founderOf = (orgId: number): string => (orgId < 100 ? 'user 1' : `org ${orgId}`)
const discoveryPath = '/tenant/.well-known/openid-configuration'
const both = [discoveryPath, '/tenant/keys']
const unavailable = { errorName: 'issuer_unavailable', status: 503 }

test('keys are found through the discovery document. Concurrent callers share one fetch, and old keys are fetched again', async () => {
  const token = await issuer.token()
  const sets = await Promise.all(Array.from({ length: 20 }, () => keys.of(source, 1)))
  for (const set of sets) await jwtVerify(token, set)
  expect(issuer.seen).toEqual(both)
  clock.advance(9 * 60_000)
  await keys.of(source, 1)
  expect(issuer.seen).toEqual(both)
  clock.advance(2 * 60_000)
  await keys.of(source, 1)
  expect(issuer.seen).toEqual([...both, ...both])
})

test('keys at a given URL are found without discovery', async () => {
  await jwtVerify(await issuer.token(), await keys.of({ jwksUri: `${issuer.url}/keys` }, 1))
  expect(issuer.seen).toEqual(['/tenant/keys'])
})

test('an unknown key id causes a new fetch, but only after a minimum time', async () => {
  await keys.of(source, 1)
  await issuer.addKey('two')
  const token = await issuer.token({}, { kid: 'two' })
  expect(decodeProtectedHeader(token).kid).toBe('two')
  expect(await keys.again(source, 1)).toBeNull()
  expect(issuer.seen).toHaveLength(2)
  clock.advance(31_000)
  const [newer] = await Promise.all(Array.from({ length: 10 }, () => keys.again(source, 1)))
  expect(issuer.seen).toHaveLength(4)
  if (newer === null || newer === undefined) throw new Error('no newer keys')
  await jwtVerify(token, newer)
  await jwtVerify(token, await keys.of(source, 1))
})

test('an issuer that does not answer gives 503 and is asked again only after a while. Keys that are less than an hour old are still used', async () => {
  await issuer.close()
  expect(await thrownBy(() => keys.of(source, 1))).toMatchObject(unavailable)
  await issuer.listen()
  expect(await thrownBy(() => keys.of(source, 1))).toMatchObject(unavailable)
  expect(issuer.seen).toEqual([])
  clock.advance(11_000)
  const set = await keys.of(source, 1)
  await issuer.close()
  clock.advance(30 * 60_000)
  expect(await keys.of(source, 1)).toBe(set)
  clock.advance(31 * 60_000)
  expect(await thrownBy(() => keys.of(source, 1))).toMatchObject(unavailable)
  await issuer.listen()
  expect(lines.filter(line => line.includes('issuer_keys_unavailable')).length).toBeGreaterThan(0)
})

test('an invalid answer of an issuer gives 503, and a redirect is not followed', async () => {
  const big = (bytes: number) => JSON.stringify({ keys: [{ kty: 'RSA', n: 'A'.repeat(bytes) }] })
  const rows: readonly [what: string, path: string, answer: (issuerUrl: string) => { status?: number; headers?: Record<string, string>; body?: string }][] = [
    ['a redirect of the document', discoveryPath, url => ({ status: 302, headers: { location: `${url}/other` } })],
    ['a redirect of the keys', '/tenant/keys', url => ({ status: 307, headers: { location: `${url}/other` } })],
    ['a failure', discoveryPath, () => ({ status: 500 })],
    ['no document', discoveryPath, () => ({ status: 404 })],
    ['no JSON', discoveryPath, () => ({ body: '<html>' })],
    ['the document of another issuer', discoveryPath, url => ({ body: JSON.stringify({ issuer: 'https://other.example', jwks_uri: `${url}/keys` }) })],
    ['keys at a private address', discoveryPath, url => ({ body: JSON.stringify({ issuer: url, jwks_uri: 'https://169.254.169.254/keys' }) })],
    ['keys at a name that leads to one', discoveryPath, url => ({ body: JSON.stringify({ issuer: url, jwks_uri: 'https://inside.example/keys' }) })],
    ['keys over plain http', discoveryPath, url => ({ body: JSON.stringify({ issuer: url, jwks_uri: 'http://keys.example/keys' }) })],
    ['keys in a file', discoveryPath, url => ({ body: JSON.stringify({ issuer: url, jwks_uri: 'file:///etc/passwd' }) })],
    ['keys at no URL', discoveryPath, url => ({ body: JSON.stringify({ issuer: url, jwks_uri: 'keys' }) })],
    ['too large a document', discoveryPath, () => ({ body: big(70_000) })],
    ['too large keys', '/tenant/keys', () => ({ body: big(300_000) })],
    ['too many keys', '/tenant/keys', () => ({ body: JSON.stringify({ keys: Array.from({ length: 101 }, () => ({ kty: 'RSA' })) }) })],
    [
      'long keys',
      '/tenant/keys',
      () => ({ body: JSON.stringify({ keys: Array.from({ length: 100 }, () => ({ kty: 'RSA', n: 'A'.repeat(680), e: 'AQAB' })) }) }),
    ],
    ['keys that are no list', '/tenant/keys', () => ({ body: '{"keys":{}}' })],
  ]
  for (const [what, path, answer] of rows) {
    issuer.answer = (request, response) => {
      if (request.url !== path) return false
      const { status = 200, headers = {}, body = '' } = answer(issuer.url)
      response.writeHead(status, headers).end(body)
      return true
    }
    const fresh = new IssuerKeys({ clock, log: makeLog('info', { write: line => lines.push(line) }), outbound, founderOf })
    expect(await thrownBy(() => fresh.of(source, 1)), what).toMatchObject(unavailable)
  }
  expect(issuer.seen).not.toContain('/tenant/other')
})

test('an endless answer of an issuer is abandoned', async () => {
  issuer.answer = (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.write('{')
    return true
  }
  const quick = createOutbound({ connectTimeoutMs: 500, firstByteTimeoutMs: 500, streamIdleTimeoutMs: 500, allow: [issuer.hostPort], lookup })
  const hurried = { toUserUrl: (request: Parameters<Outbound['toUserUrl']>[0]) => quick.toUserUrl({ ...request, bodyTimeoutMs: 500 }) }
  const impatient = new IssuerKeys({ clock, log: makeLog('silent'), outbound: hurried, founderOf })
  expect(await thrownBy(() => impatient.of(source, 1))).toMatchObject(unavailable)
  await quick.close()
})

test('only the members of a key that verification needs are kept, and a key of another form is ignored', async () => {
  const [good] = issuer.jwks
  const own = { ...good, x5c: ['A'.repeat(20_000)], more: [[], {}] }
  const others = [null, 'key', { ...good, kid: 'x'.repeat(300) }, { ...good, kid: 'private', d: 'AQAB' }, { ...good, kid: 'odd', alg: 5 }]
  issuer.answer = (request, response) => {
    if (request.url !== '/tenant/keys') return false
    response.end(JSON.stringify({ keys: [...others, own] }))
    return true
  }
  const set = await keys.of(source, 1)
  await jwtVerify(await issuer.token(), set)
  expect(set.jwks().keys).toEqual([good])
})

test("shared secrets among an issuer's keys are ignored", async () => {
  const { createHmac } = await import('node:crypto')
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const text = `${part({ alg: 'HS256', kid: 'shared' })}.${part({ sub: 'x' })}`
  const token = `${text}.${createHmac('sha256', 'secret').update(text).digest('base64url')}`
  issuer.jwks.push({ kty: 'oct', k: Buffer.from('secret').toString('base64url'), kid: 'shared', alg: 'HS256' })
  await expect(jwtVerify(token, await keys.of(source, 1))).rejects.toThrow()
  issuer.jwks.pop()
})
