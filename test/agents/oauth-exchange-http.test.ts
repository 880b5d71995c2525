import { decodeJwt, type JWTPayload } from 'jose'
import { OAuth2Server } from 'oauth2-mock-server'
import * as oidc from 'openid-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, type TestReply } from '../harness/app.ts'
import { exchange, exchangeParameters, postForm, refusal } from './oauth-calls.ts'
import { type OidcIssuer, startOidcIssuer } from './oidc-issuer.ts'

const subject = 'repo:acme/app:ref:refs/heads/main'
const hello = { model: 'alpha-only', messages: [{ role: 'user', content: 'Hello' }] }

/** Returns the replies up to the first 429. A new minute may begin meanwhile. */
async function untilRefused(call: () => Promise<TestReply>): Promise<TestReply[]> {
  const replies: TestReply[] = []
  do replies.push(await call())
  while (replies.at(-1)?.status !== 429 && replies.length < 30)
  return replies
}

describe('token exchange', () => {
  let app: TestApp
  let owner: string
  let issuer: OidcIssuer
  /** A real OpenID provider from another project. */
  let provider: OAuth2Server
  let providerUrl: string
  let audience: string

  beforeAll(async () => {
    issuer = await startOidcIssuer()
    await issuer.addKey('one')
    await issuer.addKey('small', { alg: 'ES256' })
    provider = new OAuth2Server()
    for (const alg of ['RS256', 'ES256', 'PS256']) await provider.issuer.keys.generate(alg, { kid: alg })
    await provider.start(0, '127.0.0.1')
    providerUrl = provider.issuer.url ?? ''
    app = await startApp({ env: { OUTBOUND_ALLOW: `${issuer.hostPort},${new URL(providerUrl).host}`, ANON_RPM: '100000' } })
    owner = await app.signIn()
    audience = `${app.baseUrl}/orgs/${app.orgId}`
  })
  afterAll(async () => {
    await app?.stop()
    await issuer?.close()
    await provider?.stop()
  })

  const trust = async (more: object = {}) => {
    const requested = { name: 'rule', issuer: issuer.url, subject, key_id: app.keyId, ...more }
    const made = await app.call('POST', '/me/agent-trust', requested, { cookie: owner })
    expect(made.status, made.text).toBe(201)
    return made.json as { id: number; agent_id: number }
  }
  const untrust = async (id: number) => expect((await app.call('DELETE', `/me/agent-trust/${id}`, undefined, { cookie: owner })).status).toBe(200)
  const signed = (claims: object = {}, header: Readonly<Record<string, unknown>> = {}) => issuer.token({ aud: audience, ...claims }, header)
  const fromProvider = (kid: string, change: (payload: Record<string, unknown>) => void = () => undefined) =>
    provider.issuer.buildToken({
      kid,
      scopesOrTransform: (_header, payload) => {
        Object.assign(payload, { aud: audience, sub: subject })
        change(payload as Record<string, unknown>)
      },
    })
  const chat = (token: string) => app.call('POST', '/v1/chat/completions', hello, { token })

  test('TXCH-01 a token of a trusted issuer becomes a token of the agent that the rule names. It contains the actor, and no more rights than the rule, the key and the first token allow', async () => {
    const agent = (await app.call('POST', '/v1/me/agents', { name: 'deployer' })).json
    const key = await app.newKey()
    const rule = await trust({
      issuer: providerUrl,
      agent_id: agent.id,
      key_id: key.keyId,
      scope: 'inference memory:read',
      ttl_s: 600,
      claims: { environment: 'prod*' },
    })
    for (const alg of ['RS256', 'ES256', 'PS256']) {
      const external = await fromProvider(alg, payload => Object.assign(payload, { environment: 'production' }))
      const reply = await exchange(app, external)
      expect(reply.status, reply.text).toBe(200)
      expect(reply.headers.get('cache-control')).toBe('no-store')
      expect(reply.json).toEqual({
        access_token: expect.any(String),
        issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        token_type: 'Bearer',
        expires_in: 600,
        scope: 'inference memory:read',
      })
      expect(decodeJwt(reply.json.access_token)).toMatchObject({
        iss: app.baseUrl,
        sub: `agent:${agent.id}`,
        client_id: `agent:${agent.id}`,
        key_id: key.keyId,
        scope: 'inference memory:read',
        act: { iss: providerUrl, sub: subject },
      })
    }
    const external = await fromProvider('RS256', payload => Object.assign(payload, { environment: 'production' }))
    const { access_token: token } = (await exchange(app, external)).json

    // The token acts as that agent, under the limits of that key.
    expect((await chat(token)).status).toBe(200)
    expect((await app.call('GET', '/v1/me/whoami', undefined, { token })).json).toMatchObject({ principal: { kind: 'agent', id: agent.id } })
    expect((await app.call('GET', '/v1/me/budgets', undefined, { token })).status).toBe(403)

    // A request can only narrow the scopes, both in the first exchange and in an exchange of its result.
    expect((await exchange(app, external, { scope: 'inference' })).json.scope).toBe('inference')
    expect(refusal(await exchange(app, external, { scope: 'inference memory:write' }))).toBe('400 invalid_scope')
    expect(refusal(await exchange(app, external, { scope: 'admin' }))).toBe('400 invalid_scope')
    const narrower = (await exchange(app, token, { scope: 'memory:read' })).json
    expect(narrower).toMatchObject({ scope: 'memory:read', token_type: 'Bearer' })
    expect(refusal(await exchange(app, narrower.access_token, { scope: 'inference' }))).toBe('400 invalid_scope')
    expect((await exchange(app, narrower.access_token)).json.scope).toBe('memory:read')
    expect((await chat(narrower.access_token)).status).toBe(403)
    const [before, after] = [decodeJwt(token), decodeJwt(narrower.access_token)]
    expect(after).toMatchObject({ sub: before.sub, key_id: key.keyId, act: { iss: providerUrl, sub: subject }, exp: before.exp })

    // A token whose subject or claims do not fit the rule is refused.
    const elsewhere = await fromProvider('RS256', payload => Object.assign(payload, { environment: 'staging' }))
    expect(refusal(await exchange(app, elsewhere))).toBe('400 invalid_request')
    const fork = await fromProvider('RS256', payload => Object.assign(payload, { environment: 'production', sub: 'repo:evil/app:ref:refs/heads/main' }))
    expect(refusal(await exchange(app, fork))).toBe('400 invalid_request')

    // The limits of the key and the life of the rule apply to the token.
    expect((await chat(token)).status).toBe(200)
    await untrust(rule.id)
    expect((await chat(token)).json.reason).toBe('token_revoked')
    expect((await chat(narrower.access_token)).json.reason).toBe('token_revoked')
    expect(refusal(await exchange(app, external))).toBe('400 invalid_request')
    const again = await trust({ issuer: providerUrl, agent_id: agent.id, key_id: key.keyId, claims: { environment: 'production' } })
    const last = (await exchange(app, external)).json.access_token
    expect((await chat(last)).status).toBe(200)
    await app.gateway.app.keys.revoke(app.orgId, key.keyId)
    expect((await chat(last)).json.reason).toBe('key_revoked')
    expect(refusal(await exchange(app, external))).toBe('400 invalid_request')
    await untrust(again.id)
  })

  test('an exchange has an audit line and counts as a call of the key, and the calls of its token count for the agent', async () => {
    const { id: agentId } = await app.newAgent('audited')
    const key = await app.newKey({ rpm: 3 })
    const { id } = await trust({ agent_id: agentId, key_id: key.keyId })
    const replies = await untilRefused(async () => exchange(app, await signed()))
    const made = replies.length - 1
    expect(made).toBeGreaterThanOrEqual(3)
    expect(replies.slice(0, -1).every(({ status }) => status === 200)).toBe(true)
    expect(replies.at(-1)?.json).toEqual({ error: 'temporarily_unavailable', error_description: expect.any(String) })
    expect(Number(replies.at(-1)?.headers.get('retry-after'))).toBeGreaterThan(0)
    const { entries } = (await app.call('GET', `/me/audit?act=exchangeToken&actor=agent:${agentId}`, undefined, { cookie: owner })).json
    expect(entries).toHaveLength(made)
    expect(entries[0]).toMatchObject({ actor: { kind: 'agent', id: agentId }, target: `id=${id}`, outcome: 'ok', source_ip: '127.0.0.1' })
    await untrust(id)
  })

  test('the oldest rule that accepts a token wins, and agent_id chooses between rules for different agents', async () => {
    const [one, two] = [await app.newAgent('one of two'), await app.newAgent('two of two')]
    const first = await trust({ agent_id: one.id, scope: 'inference' })
    const second = await trust({ agent_id: one.id })
    expect((await exchange(app, await signed())).json.scope).toBe('inference')
    const third = await trust({ agent_id: two.id, subject: 'repo:acme/*' })
    const unclear = await exchange(app, await signed())
    expect(refusal(unclear)).toBe('400 invalid_request')
    expect(unclear.json.error_description).toContain(`${one.id}, ${two.id}`)
    const named = await exchange(app, await signed(), { agent_id: String(two.id) })
    expect(decodeJwt(named.json.access_token).sub).toBe(`agent:${two.id}`)
    for (const agentId of ['x', '0', '999999']) expect(refusal(await exchange(app, await signed(), { agent_id: agentId })), agentId).toBe('400 invalid_request')
    for (const { id } of [first, second, third]) await untrust(id)
  })

  test('a token for an audience that another organisation had before is refused unless the request names the agent', async () => {
    const shared = 'api://passed-on'
    const agent = (await app.call('POST', '/v1/me/agents', { name: 'former' }, {})).json
    const rule = await trust({ audience: shared, agent_id: agent.id })
    expect((await exchange(app, await signed({ aud: shared }))).status).toBe(200)
    await untrust(rule.id)
    const other = await app.otherOrg('Next')
    const next = (await app.call('POST', '/v1/me/agents', { name: 'next' }, { token: other.key })).json
    const requested = { name: 'rule', issuer: issuer.url, subject, audience: shared, key_id: other.keyId, agent_id: next.id }
    const made = await app.call('POST', '/me/agent-trust', requested, { cookie: await app.signIn(other.userId, other.orgId) })
    expect(made.status, made.text).toBe(201)
    const unnamed = await exchange(app, await signed({ aud: shared }))
    expect(refusal(unnamed)).toBe('400 invalid_request')
    expect(unnamed.json.error_description).toContain('agent_id')
    expect(refusal(await exchange(app, await signed({ aud: shared }), { agent_id: String(agent.id) }))).toBe('400 invalid_request')
    const named = await exchange(app, await signed({ aud: shared }), { agent_id: String(next.id) })
    expect(decodeJwt(named.json.access_token)).toMatchObject({ sub: `agent:${next.id}` })
  })

  test('a token that its issuer signed for another gateway or another time is refused with the reason', async () => {
    const { id: agentId } = await app.newAgent('careful')
    const { id } = await trust({ agent_id: agentId })
    await issuer.addKey('hidden', { hidden: true })
    const now = Math.floor(Date.now() / 1000)
    const [head = '', body = '', signature = ''] = (await signed()).split('.')
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const payload = { ...decodeJwt(`${head}.${body}.`), aud: audience }
    const pem = JSON.stringify(issuer.publicKey('one'))
    const hmac = async (kid: string) => {
      const text = `${part({ alg: 'HS256', kid })}.${body}`
      const { createHmac } = await import('node:crypto')
      return `${text}.${createHmac('sha256', pem).update(text).digest('base64url')}`
    }
    const rows: readonly [what: string, token: string, says: RegExp][] = [
      ['no JWT', 'abc', /no JWT/],
      ['an API key', app.key, /no JWT/],
      ['nothing signed', `${part({ alg: 'none' })}.${body}.`, /algorithm|signature/],
      ['a shared secret made of the public key', await hmac('one'), /algorithm/],
      ['another signature', `${head}.${body}.${signature.slice(0, -6)}AAAAAA`, /signature/],
      ['other claims below the signature', `${head}.${part({ ...payload, sub: 'repo:acme/app:x' })}.${signature}`, /signature/],
      ['a key that is not published', await signed({}, { kid: 'hidden' }), /no key of that id/],
      ['a key id that is a path', await signed({}, { kid: '../../../../dev/null' }), /no key of that id/],
      ['a key id that is SQL', await signed({}, { kid: "x' union select 'a" }), /no key of that id/],
      ['a key brought along', await signed({}, { kid: 'hidden', jwk: issuer.publicKey('hidden') }), /no key of that id/],
      ['a place of keys brought along', await signed({}, { kid: 'hidden', jku: `${issuer.url}/mine` }), /no key of that id/],
      ['another algorithm than the key has', `${part({ alg: 'PS256', kid: 'one' })}.${body}.${signature}`, /no key of that id|signature/],
      [
        'a critical header that nobody knows',
        await signed({}, { crit: ['x'], x: 1 }).catch(() => `${part({ alg: 'RS256', kid: 'one', crit: ['x'], x: 1 })}.${body}.${signature}`),
        /signature/,
      ],
      ['another issuer', await signed({ iss: `${issuer.url}/` }), /no trust rule/],
      ['no issuer', await signed({ iss: undefined }), /names its issuer/],
      ['another audience', await signed({ aud: 'https://elsewhere.example' }), /no trust rule/],
      ['no audience', await signed({ aud: undefined }), /audience/],
      ['expired', await signed({ iat: now - 700, nbf: now - 700, exp: now - 100 }), /expired/],
      ['without an end', await signed({ exp: undefined }), /exp/],
      ['without a beginning', await signed({ iat: undefined }), /iat/],
      ['not yet', await signed({ nbf: now + 200 }), /nbf/],
      ['issued tomorrow', await signed({ iat: now + 3_600, exp: now + 4_000 }), /iat/],
      ['issued the day before yesterday', await signed({ iat: now - 90_000, nbf: now - 90_000, exp: now + 90_000 }), /more than a day/],
      ['no subject', await signed({ sub: undefined }), /sub/],
      ['a subject that is a list', await signed({ sub: [subject] }).catch(() => ''), /sub|JWT/],
      ['a longer subject', await signed({ sub: `${subject}x` }), /not those of any trust rule/],
      ['much too long', `${head}.${'A'.repeat(20_000)}.${signature}`, /too long/],
    ]
    for (const [what, token, says] of rows) {
      const reply = await exchange(app, token)
      expect(reply.status, `${what}: ${reply.text}`).toBe(400)
      expect(reply.json, what).toEqual({ error: 'invalid_request', error_description: expect.stringMatching(token === '' ? /subject_token/ : says) })
    }
    expect(issuer.seen).not.toContain('/mine')
    expect((await exchange(app, await signed({ aud: ['https://elsewhere.example', audience] }))).status).toBe(200)
    expect((await exchange(app, await signed({}, { kid: 'small', alg: 'ES256' }))).status).toBe(200)
    await untrust(id)
    expect(app.logLines.filter(line => line.includes('internal_error'))).toEqual([])
  })

  test('a revoked or forged token of this gateway is refused, and a revocation also ends the tokens made from it', async () => {
    const { id, token } = await app.newAgent('narrowing')
    const [head = '', body = ''] = token.split('.')
    const forged = `${head}.${body}.${Buffer.alloc(64, 1).toString('base64url')}`
    expect(refusal(await exchange(app, forged))).toBe('400 invalid_request')
    const made = [token]
    for (let i = 0; i < 8; i++) made.push((await exchange(app, made.at(-1) ?? '')).json.access_token)
    expect(refusal(await exchange(app, made.at(-1) ?? ''))).toBe('400 invalid_request')
    const [, , middle = ''] = made
    expect((await postForm(app, '/oauth/revoke', { token: middle }, { token: app.key })).status).toBe(200)
    expect(await Promise.all(made.map(async each => (await chat(each)).status))).toEqual([200, 200, ...made.slice(2).map(() => 401)])
    await app.call('POST', `/v1/me/agents/${id}/revoke`, {})
    const reply = await exchange(app, token)
    expect([refusal(reply), reply.json.error_description]).toEqual(['400 invalid_request', expect.stringContaining('revoked')])
    expect(refusal(await exchange(app, token, { subject_token_type: 'urn:ietf:params:oauth:token-type:access_token' }))).toBe('400 invalid_request')
  })

  test('malformed requests get the errors of RFC 6749 and RFC 8693', async () => {
    const { id: agentId, token } = await app.newAgent('strict')
    const rows: readonly [form: Parameters<typeof exchange>[2], expected: string][] = [
      [{ grant_type: undefined }, '400 invalid_request'],
      [{ grant_type: 'client_credentials' }, '400 unsupported_grant_type'],
      [{ grant_type: [exchangeParameters.grant_type, exchangeParameters.grant_type] }, '400 invalid_request'],
      [{ subject_token: undefined }, '400 invalid_request'],
      [{ subject_token: '' }, '400 invalid_request'],
      [{ subject_token_type: undefined }, '400 invalid_request'],
      [{ subject_token_type: 'urn:ietf:params:oauth:token-type:saml2' }, '400 invalid_request'],
      [{ requested_token_type: 'urn:ietf:params:oauth:token-type:refresh_token' }, '400 invalid_request'],
      [{ actor_token: token, actor_token_type: exchangeParameters.subject_token_type }, '400 invalid_request'],
      [{ resource: 'https://elsewhere.example' }, '400 invalid_target'],
      [{ resource: `${app.baseUrl}.evil.example` }, '400 invalid_target'],
      [{ resource: [app.baseUrl, 'https://elsewhere.example'] }, '400 invalid_target'],
      [{ audience: 'somebody' }, '400 invalid_target'],
      [{ agent_id: String(agentId + 1) }, '400 invalid_request'],
      [{ scope: ' ' }, '400 invalid_scope'],
    ]
    for (const [form, expected] of rows) {
      const reply = await exchange(app, token, form)
      expect(refusal(reply), JSON.stringify(form)).toBe(expected)
      expect(Object.keys(reply.json)).toEqual(['error', 'error_description'])
      expect(reply.headers.get('cache-control')).toBe('no-store')
    }
    expect(
      (await exchange(app, token, { resource: [app.baseUrl, `${app.baseUrl}/mcp`], audience: app.baseUrl, agent_id: String(agentId), unknown: 'x' })).status,
    ).toBe(200)
    const asJwt = await exchange(app, token, { requested_token_type: exchangeParameters.subject_token_type })
    expect(asJwt.json.issued_token_type).toBe(exchangeParameters.subject_token_type)
    const json = await app.call('POST', '/oauth/token', { ...exchangeParameters, subject_token: token }, { token: null })
    expect(refusal(json)).toBe('415 invalid_request')
    const get = await app.call('GET', '/oauth/token', undefined, { token: null })
    expect([refusal(get), get.headers.get('allow')]).toEqual(['405 invalid_request', 'POST'])
    const large = await postForm(app, '/oauth/token', { ...exchangeParameters, subject_token: 'x'.repeat(70_000) })
    expect(refusal(large)).toBe('413 invalid_request')
  })

  test('an OAuth library can exchange a token', async () => {
    const { token } = await app.newAgent('library')
    const server = {
      issuer: app.baseUrl,
      token_endpoint: `${app.baseUrl}/oauth/token`,
      introspection_endpoint: `${app.baseUrl}/oauth/introspect`,
      revocation_endpoint: `${app.baseUrl}/oauth/revoke`,
    }
    const client = new oidc.Configuration(server, 'any', undefined, oidc.ClientSecretBasic(app.key))
    oidc.allowInsecureRequests(client)
    const { grant_type, ...parameters } = exchangeParameters
    const made = await oidc.genericGrantRequest(client, grant_type, { ...parameters, subject_token: token, scope: 'usage:read' })
    expect([made.token_type, made.scope, made['issued_token_type']]).toEqual(['bearer', 'usage:read', 'urn:ietf:params:oauth:token-type:access_token'])
    expect(await oidc.tokenIntrospection(client, made.access_token)).toMatchObject({ active: true, scope: 'usage:read' })
    await oidc.tokenRevocation(client, made.access_token)
    expect(await oidc.tokenIntrospection(client, made.access_token)).toEqual({ active: false })
    const wrong = oidc.genericGrantRequest(client, grant_type, { ...parameters, subject_token: 'x' })
    await expect(wrong).rejects.toMatchObject({ error: 'invalid_request', status: 400 })
    const stranger = new oidc.Configuration(server, 'any', undefined, oidc.ClientSecretBasic('br-wrong'))
    oidc.allowInsecureRequests(stranger)
    await expect(oidc.tokenIntrospection(stranger, token)).rejects.toMatchObject({ status: 401 })
  })

  test("the actors of an external token are also in the gateway's token", async () => {
    const { id: agentId } = await app.newAgent('delegated')
    const { id } = await trust({ agent_id: agentId })
    const actOf = async (act: unknown) => (decodeJwt((await exchange(app, await signed({ act }))).json.access_token) as JWTPayload & { act: unknown }).act
    const self = { iss: issuer.url, sub: subject }
    expect(await actOf({ sub: 'robot', iss: 'https://a.example', extra: 'x' })).toEqual({ ...self, act: { sub: 'robot', iss: 'https://a.example' } })
    for (const odd of ['x', 1, [], { sub: 1 }, { sub: 'a', act: { sub: 'b', act: { sub: 'c', act: { sub: 'd' } } } }])
      expect(await actOf(odd), JSON.stringify(odd)).toEqual(self)
    await untrust(id)
  })
})

test('exchanges by unknown callers are limited for each address', async () => {
  const app = await startApp({ env: { ANON_RPM: '5' } })
  try {
    const seen = (await untilRefused(() => exchange(app, 'abc'))).map(refusal)
    expect(seen.length).toBeGreaterThan(5)
    expect(seen).toEqual([...seen.slice(1).map(() => '400 invalid_request'), '429 temporarily_unavailable'])
    // Endpoints that take a credential count wrong credentials in the same limit, with the same error.
    const wrong = await untilRefused(() => postForm(app, '/oauth/introspect', { token: 'x' }, { token: 'br-wrong' }))
    expect(refusal(wrong.at(-1) as TestReply)).toBe('429 temporarily_unavailable')
    // Known callers do not count in this limit.
    const known = await postForm(app, '/oauth/token', { ...exchangeParameters, subject_token: 'abc' }, { token: app.key })
    const authorization = `Basic ${Buffer.from(`any:${app.key}`).toString('base64')}`
    const byBasic = await postForm(app, '/oauth/token', { ...exchangeParameters, subject_token: 'abc' }, { headers: { authorization } })
    expect([refusal(known), refusal(byBasic)]).toEqual(['400 invalid_request', '400 invalid_request'])
  } finally {
    await app.stop()
  }
})
