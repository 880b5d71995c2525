import { createPublicKey, verify } from 'node:crypto'
import { createLocalJWKSet, createRemoteJWKSet, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { adminHandler } from '../../src/operations/admin/commands/admin-commands.ts'
import { statement } from '../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../harness/app.ts'
import { movableClock } from '../harness/clock.ts'

const published = statement<[seconds: number]>(
  'test.next_key_published',
  `update signing_keys set created_at = created_at - make_interval(secs => $1::int) where state = 'next'`,
)
const signed = statement<[seconds: number]>(
  'test.current_key_signed',
  `update signing_keys set signs_since = signs_since - make_interval(secs => $1::int) where state = 'current'`,
)
const retired = statement<[seconds: number]>(
  'test.key_retired',
  `update signing_keys set retired_at = retired_at - make_interval(secs => $1::int) where state = 'retired'`,
)

const thirtyDays = 30 * 24 * 3600
const hello = { model: 'alpha-only', messages: [{ role: 'user', content: 'Hello' }] }

describe('keys of agent tokens, over HTTP', () => {
  const clock = movableClock()
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ clock })
  })
  afterAll(() => app.stop())

  const list = async (): Promise<JSONWebKeySet> => (await app.call('GET', '/.well-known/jwks.json', undefined, { token: null })).json
  const kids = async (): Promise<(string | undefined)[]> => (await list()).keys.map(({ kid }) => kid)
  const rotateWhenDue = () => app.gateway.app.jobs.runOnce('signing_keys.rotate')
  const chat = async (token: string) => (await app.call('POST', '/v1/chat/completions', hello, { token })).status
  const verifies = async (token: string, jwks: JSONWebKeySet) =>
    (await jwtVerify(token, createLocalJWKSet(jwks), { issuer: app.baseUrl, audience: app.baseUrl, typ: 'at+jwt', algorithms: ['ES256'] })).protectedHeader.kid

  test('JWKS-02 keys rotate automatically. A verifier that obeys the max-age of the list always has the needed key, and old tokens verify until they expire', async () => {
    const { id } = await app.newAgent('rotating')
    const mint = async (): Promise<string> => (await app.call('POST', `/v1/me/agents/${id}/token`, {})).json.access_token
    const reply = await app.call('GET', '/.well-known/jwks.json', undefined, { token: null })
    const maxAgeSeconds = Number(/max-age=(\d+)/.exec(reply.headers.get('cache-control') ?? '')?.[1])
    expect(maxAgeSeconds).toBe(300)
    const cached: JSONWebKeySet = reply.json
    const before = await mint()
    expect(await verifies(before, cached)).toBe(cached.keys[0]?.kid)

    // Nothing happens before the rotation is due. Nothing happens either when it is due but a verifier may still hold a list without the next key.
    await rotateWhenDue()
    await app.db.exec(signed, thirtyDays)
    await rotateWhenDue()
    await app.db.exec(published, maxAgeSeconds)
    await rotateWhenDue()
    expect(await kids()).toEqual(cached.keys.map(({ kid }) => kid))

    // The rotation is due, and every verifier knows the next key. The next key now signs, and the oldest allowed list contains it.
    await app.db.exec(published, maxAgeSeconds + 30)
    await rotateWhenDue()
    const after = await mint()
    expect(decodeProtectedHeader(after).kid).toBe(cached.keys[1]?.kid)
    await verifies(after, cached)
    const now = await list()
    expect(now.keys.map(({ kid }) => kid)).toEqual([cached.keys[1]?.kid, expect.any(String), cached.keys[0]?.kid])
    for (const token of [before, after]) await verifies(token, now)
    await rotateWhenDue()
    expect(await list()).toEqual(now)

    // Two more verifiers: one fetches the keys itself, and one uses another library.
    const remote = createRemoteJWKSet(new URL(`${app.baseUrl}/.well-known/jwks.json`))
    for (const token of [before, after]) {
      await jwtVerify(token, remote)
      const [head = '', body = '', signature = ''] = token.split('.')
      const jwk = now.keys.find(({ kid }) => kid === decodeProtectedHeader(token).kid)
      const key = createPublicKey({ format: 'jwk', key: jwk as import('node:crypto').JsonWebKey })
      expect(verify('sha256', Buffer.from(`${head}.${body}`), { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'))).toBe(true)
    }

    // The old token works until it expires. Its key is listed for that time, and not longer.
    expect([await chat(before), await chat(after)]).toEqual([200, 200])
    clock.advance(890_000)
    await app.db.exec(retired, 890)
    expect(await kids()).toContain(cached.keys[0]?.kid)
    expect(await chat(before)).toBe(200)
    clock.advance(20_000)
    expect(await chat(before)).toBe(401)
  })

  test('brigade admin rotate-signing-key rotates immediately, prints the time to wait, and writes an audit line', async () => {
    const admin = adminHandler(app.gateway.app)
    const rotate = () => admin({ name: 'rotate-signing-key', args: {} })
    await expect(rotate()).rejects.toThrow(/try again in \d+ minutes/)
    await app.db.exec(published, 3600)
    const [, next] = await kids()
    expect(await rotate()).toEqual({ rotated: true, kid: next })
    expect((await kids())[0]).toBe(next)
    const { entries } = (await admin({ name: 'audit', args: {} })) as { entries: { act: string; outcome: string; actor: { kind: string } }[] }
    expect(entries.filter(({ act }) => act === 'rotateSigningKey').map(({ outcome, actor }) => [outcome, actor.kind])).toEqual([
      ['ok', 'operator'],
      ['failed', 'operator'],
      ['ok', 'system'],
    ])
  })
})
