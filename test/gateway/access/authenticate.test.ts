import { createHmac, generateKeyPairSync } from 'node:crypto'
import { SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../../harness/app.ts'

const soften = statement<[id: number]>('test.disable_for_inactivity', `update api_keys set enabled = false, disabled_reason = 'inactivity' where id = $1::int`)
const expire = statement<[id: number]>('test.expire_key', `update api_keys set expires_at = now() - interval '1 minute' where id = $1::int`)

describe('credentials', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp()
  })
  afterAll(() => app.stop())
  const whoami = (token: string | null, headers: Record<string, string> = {}) => app.call('GET', '/v1/me/whoami', undefined, { token, headers })
  const codeOf = async (token: string | null, headers: Record<string, string> = {}) => {
    const reply = await whoami(token, headers)
    return [reply.status, reply.json.error?.code]
  }

  test('AUTH-06 a key is br- and random text, and no two keys are the same', async () => {
    const keys = await Promise.all(Array.from({ length: 5 }, () => app.newKey()))
    for (const { key } of keys) expect(key).toMatch(/^br-[A-Za-z0-9_-]{32,}$/)
    expect(new Set(keys.map(({ key }) => key)).size).toBe(5)
  })

  test('AUTH-02 a malformed or unknown key is 401 invalid_api_key and says what to do', async () => {
    for (const token of ['br-', 'br-short', `br-${'x'.repeat(32)}`, `${app.key}x`, app.key.slice(0, -1), 'sk-something', 'not.a.token', "br-' or 1=1 --"])
      expect(await codeOf(token), token).toEqual([401, 'invalid_api_key'])
    expect(await codeOf(null, { authorization: `Basic ${Buffer.from(app.key).toString('base64')}` })).toEqual([401, 'invalid_api_key'])
    const reply = await whoami(`br-${'x'.repeat(32)}`)
    expect(reply.headers.get('www-authenticate')).toContain('Bearer')
    expect(reply.text).not.toContain('xxxx')
  })

  test('FIRST-06 no key, a malformed key and a wrong key get messages of their own at every door, and two wrong keys cannot be told apart', async () => {
    const doors = [
      ['POST', '/v1/chat/completions', { model: 'test-model', messages: [{ role: 'user', content: 'Hello' }] }],
      ['POST', '/v1/messages', { model: 'test-model', max_tokens: 10, messages: [{ role: 'user', content: 'Hello' }] }],
      ['GET', '/v1/me/whoami', undefined],
      ['POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'ping' }],
    ] as const
    const usual = {
      none: /^No credential was sent\. Send "Authorization: Bearer <API key or agent token>"\.$/,
      other: /^The Authorization header is not a bearer credential\. Send/,
      foreign: /^This is no credential of this gateway: its API keys begin with "br-"/,
    }
    // A foreign credential at /v1/messages may be meant for the provider. Clients of MCP often have an unfinished setting.
    const withProvider = /^The credential is not one of this gateway\. Send the gateway key in "x-br-api-key"/
    const sentences: Readonly<Record<string, typeof usual>> = {
      '/v1/messages': { ...usual, other: withProvider, foreign: withProvider },
      '/mcp': {
        none: /^No credential came\. Send/,
        other: /^The credential has another form than Bearer\. Send/,
        foreign: /^The credential is neither an API key of this gateway/,
      },
    }
    const mcp = { accept: 'application/json, text/event-stream' }
    for (const [method, path, body] of doors) {
      const said = async (token: string | null, headers: Record<string, string> = {}) => {
        const reply = await app.call(method, path, body, { token, headers: { ...mcp, ...headers } })
        expect([reply.status, reply.json.error?.code], path).toEqual([401, 'invalid_api_key'])
        return reply.json.error.message as string
      }
      const { none, other, foreign } = sentences[path] ?? usual
      expect(await said(null), path).toMatch(none)
      expect(await said(null, { authorization: 'Basic YTpi' }), path).toMatch(other)
      expect(await said('sk-proj-abcdefghijklmnopqrstuvwxyz'), path).toMatch(foreign)
      expect(await said(app.key.slice(0, 14)), path).toMatch(/^This has the beginning of an API key .* Check that it was copied whole\.$/)
      const unknown = await said(`br-${'x'.repeat(32)}`)
      expect(unknown, path).toMatch(/^This API key is not known\./)
      expect(await said(`${app.key}x`), path).toBe(unknown)
    }
  })

  test('AUTH-18 the scheme of the authorization header is accepted in any case and with extra spaces', async () => {
    for (const header of [`bearer ${app.key}`, `BEARER   ${app.key}`, `Bearer ${app.key} `])
      expect((await whoami(null, { authorization: header })).status, header).toBe(200)
  })

  test('AUTH-03 a revoked and an expired key are 401 invalid_api_key', async () => {
    const revoked = await app.newKey()
    expect((await whoami(revoked.key)).status).toBe(200)
    await app.gateway.app.keys.revoke(app.orgId, revoked.keyId)
    expect(await codeOf(revoked.key)).toEqual([401, 'invalid_api_key'])
    const expired = await app.newKey()
    await app.db.exec(expire, expired.keyId)
    expect(await codeOf(expired.key)).toEqual([401, 'invalid_api_key'])
  })

  test('AUTH-04 a key that was disabled for inactivity is 401 key_disabled_inactive', async () => {
    const { key, keyId } = await app.newKey()
    await app.db.exec(soften, keyId)
    expect(await codeOf(key)).toEqual([401, 'key_disabled_inactive'])
  })

  test('AUTH-05 a key that a person disabled is 401 invalid_api_key until it is enabled again', async () => {
    const { key, keyId } = await app.newKey()
    await app.gateway.app.keys.setEnabled(app.orgId, keyId, false)
    expect(await codeOf(key)).toEqual([401, 'invalid_api_key'])
    await app.gateway.app.keys.setEnabled(app.orgId, keyId, true)
    expect((await whoami(key)).status).toBe(200)
  })

  test('AUTH-11 an agent token works as a bearer credential for inference', async () => {
    const agent = await app.newAgent('auth-agent')
    const reply = await app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }, { token: agent.token })
    expect(reply.status).toBe(200)
  })

  test('AUTH-12 an agent token that is expired, for another audience, unsigned or signed with another key is 401 invalid_api_key', async () => {
    const { token } = await app.newAgent('forged-agent')
    expect((await whoami(token)).status).toBe(200)
    const [head = '', body = '', signature = ''] = token.split('.')
    const claims = JSON.parse(Buffer.from(body, 'base64url').toString())
    const header = JSON.parse(Buffer.from(head, 'base64url').toString())
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const sign = (payload: object, more: object = {}) => new SignJWT({ ...claims, ...payload }).setProtectedHeader({ ...header, ...more }).sign(privateKey)
    const hs = part({ ...header, alg: 'HS256' })
    const forged: Record<string, string> = {
      'alg none': `${part({ ...header, alg: 'none' })}.${body}.`,
      'alg swapped to HMAC with the public key': `${hs}.${body}.${createHmac(
        'sha256',
        JSON.stringify((await app.call('GET', '/.well-known/jwks.json')).json.keys[0]),
      )
        .update(`${hs}.${body}`)
        .digest('base64url')}`,
      'a foreign key under our kid': await sign({}),
      'changed claims': `${head}.${part({ ...claims, agent: { ...claims.agent, id: 1 } })}.${signature}`,
      'a broken signature': `${head}.${body}.${signature.slice(0, -4)}AAAA`,
      'an unknown kid': await sign({}, { kid: 'other' }),
    }
    for (const [what, text] of Object.entries(forged)) expect(await codeOf(text), what).toEqual([401, 'invalid_api_key'])
  })

  test("AUTH-12 a token with the gateway's own signature is refused when its issuer, audience or type is wrong or when it has expired", async () => {
    const { token } = await app.newAgent('strayed-agent')
    const { kid, key } = await app.gateway.app.agents.signingKeys.current()
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    const sign = (change: object, typ = 'at+jwt') => new SignJWT({ ...claims, ...change }).setProtectedHeader({ alg: 'ES256', typ, kid }).sign(key)
    expect((await whoami(await sign({}))).status).toBe(200)
    const wrong = {
      iss: await sign({ iss: 'https://elsewhere.test' }),
      aud: await sign({ aud: ['https://elsewhere.test'] }),
      typ: await sign({}, 'JWT'),
      org: await sign({ org: claims.org + 1 }),
    }
    for (const [what, text] of Object.entries(wrong)) expect(await codeOf(text), what).toEqual([401, 'invalid_api_key'])
    const ended = await whoami(await sign({ iat: claims.iat - 2000, nbf: claims.iat - 2000, exp: claims.iat - 1000 }))
    expect([ended.status, ended.json.error.code, ended.json.reason]).toEqual([401, 'invalid_api_key', 'token_expired'])
  })
})
