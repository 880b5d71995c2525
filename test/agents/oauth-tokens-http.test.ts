import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { startApp, type TestApp, until } from '../harness/app.ts'
import { exchange, postForm, refusal } from './oauth-calls.ts'
import { type OidcIssuer, startOidcIssuer } from './oidc-issuer.ts'

const hello = { model: 'alpha-only', messages: [{ role: 'user', content: 'Hello there' }] }
const expireRevocations = statement<[]>('test.expire_revocations', `update revoked_tokens set expires_at = now() - interval '1 hour'`)
const revocations = statement<[], { tokenId: string }>('test.revocations', `select token_id as "tokenId" from revoked_tokens order by token_id`)

describe('introspection and revocation', () => {
  let app: TestApp
  let issuer: OidcIssuer
  beforeAll(async () => {
    issuer = await startOidcIssuer()
    await issuer.addKey('one')
    app = await startApp({ env: { OUTBOUND_ALLOW: issuer.hostPort, ANON_RPM: '100000' } })
  })
  afterAll(async () => {
    await app?.stop()
    await issuer?.close()
  })

  const introspect = (token: string, credential = app.key) => postForm(app, '/oauth/introspect', { token }, { token: credential })
  const revoke = (token: string, credential: string | null = app.key) => postForm(app, '/oauth/revoke', { token }, { token: credential })
  const chat = (token: string) => app.call('POST', '/v1/chat/completions', hello, { token })
  const basic = (password: string) => ({ headers: { authorization: `Basic ${Buffer.from(`anybody:${password}`).toString('base64')}` } })

  test('INTR-01 a full key reads the rights of a token of its organisation and revokes it. Every other text is {"active": false}, and revoking it returns 200', async () => {
    const { id } = await app.newAgent('watched')
    await app.call('POST', `/v1/me/agents/${id}/budget`, { monthly_budget_inr: 2 })
    const minted = (await app.call('POST', `/v1/me/agents/${id}/token`, { scope: 'inference usage:read', ttl_s: 300 })).json
    const claims = decodeJwt(minted.access_token)
    const reply = await introspect(minted.access_token)
    expect([reply.status, reply.headers.get('cache-control')]).toEqual([200, 'no-store'])
    const expected = {
      active: true,
      iss: app.baseUrl,
      sub: `agent:${id}`,
      aud: [app.baseUrl, `${app.baseUrl}/mcp`],
      client_id: `agent:${id}`,
      token_type: 'Bearer',
      scope: 'inference usage:read',
      iat: claims.iat,
      nbf: claims.nbf,
      exp: claims.exp,
      jti: claims.jti,
      agent: { id, name: 'watched', status: 'active', ancestor_ids: [] },
      key_id: app.keyId,
      monthly_budget_inr: 2,
      budget_remaining_inr: 2,
    }
    expect(reply.json).toEqual(expected)

    // The remaining budget in the reply equals the limits' own value.
    expect((await chat(minted.access_token)).status).toBe(200)
    await app.gateway.app.limits.flushNow()
    const { spend_month_inr, held_inr } = (await app.call('GET', '/v1/me/agents')).json.agents.find((agent: { id: number }) => agent.id === id)
    const later = (await introspect(minted.access_token)).json
    expect(spend_month_inr).toBeGreaterThan(0)
    expect(later.budget_remaining_inr).toBeCloseTo(2 - spend_month_inr - held_inr, 6)

    // Client authentication is a key of scope full, as bearer or as the password of HTTP Basic.
    const asBasic = await postForm(app, '/oauth/introspect', { token: minted.access_token, token_type_hint: 'access_token' }, basic(app.key))
    expect(asBasic.json).toMatchObject({ active: true, jti: claims.jti })
    const encoded = await postForm(app, '/oauth/introspect', { token: minted.access_token }, basic(app.key.replaceAll('-', '%2D')))
    expect(encoded.json).toMatchObject({ active: true })
    const inference = (await app.newKey({ scope: 'inference' })).key
    for (const credential of [inference, minted.access_token]) expect(refusal(await introspect(minted.access_token, credential))).toBe('403 insufficient_scope')
    const wrong = await postForm(app, '/oauth/introspect', { token: 'x' }, basic('br-wrong'))
    expect([refusal(wrong), wrong.headers.get('www-authenticate')]).toEqual(['401 invalid_client', 'Basic realm="brigade"'])
    for (const odd of ['Basic', 'Basic x', 'Basic !!!', `Basic ${Buffer.from('a:%zz').toString('base64')}`])
      expect(refusal(await postForm(app, '/oauth/introspect', { token: 'x' }, { headers: { authorization: odd } })), odd).toBe('401 invalid_client')
    const none = await postForm(app, '/oauth/introspect', { token: 'x' })
    expect([refusal(none), none.headers.get('www-authenticate')]).toEqual(['401 invalid_client', expect.stringContaining('Bearer')])

    // These texts are not valid tokens of this organisation.
    const other = await app.otherOrg('Nosy')
    const [head = '', body = ''] = minted.access_token.split('.')
    for (const text of ['x', 'a.b.c', app.key, `${head}.${body}.AAAA`, 'é'.repeat(10), 'x'.repeat(20_000)])
      expect((await introspect(text)).json, text.slice(0, 20)).toEqual({ active: false })
    expect((await introspect(minted.access_token, other.key)).json).toEqual({ active: false })
    expect((await revoke(minted.access_token, other.key)).status).toBe(200)
    expect((await introspect(minted.access_token)).json).toMatchObject({ active: true })

    // A revocation returns 200 for every text and may be repeated. The revoked token is refused from now on, and other tokens are not.
    const sibling = (await app.call('POST', `/v1/me/agents/${id}/token`, {})).json.access_token
    for (const text of [minted.access_token, minted.access_token, 'x', `${head}.${body}.AAAA`]) {
      const ended = await revoke(text)
      expect([ended.status, ended.text, ended.headers.get('cache-control')]).toEqual([200, '{}', 'no-store'])
    }
    const refused = await chat(minted.access_token)
    expect([refused.status, refused.json.reason]).toEqual([401, 'token_revoked'])
    expect((await introspect(minted.access_token)).json).toEqual({ active: false })
    expect((await chat(sibling)).status).toBe(200)
    await app.call('POST', `/v1/me/agents/${id}/revoke`, {})
    expect((await introspect(sibling)).json).toEqual({ active: false })
    expect((await revoke(sibling)).status).toBe(200)
    expect(refusal(await postForm(app, '/oauth/introspect', {}, { token: app.key }))).toBe('400 invalid_request')
  })

  test('a revocation cuts the running stream of the revoked token, and the stream of another token continues', async () => {
    const { id, token } = await app.newAgent('streaming')
    const sibling = (await app.call('POST', `/v1/me/agents/${id}/token`, {})).json.access_token
    app.alpha.reset()
    app.alpha.script(() => ({ chunks: Array.from({ length: 4 }, () => 'x'.repeat(30)), holdAfterChunks: 2 }))
    const streams = [token, sibling].map(each => app.call('POST', '/v1/chat/completions', { ...hello, stream: true }, { token: each }))
    await until(() => app.alpha.requests.length === 2)
    expect((await revoke(token)).status).toBe(200)
    expect((await streams[0])?.text).toContain('This agent token has been revoked.')
    let whole = ''
    const ended = streams[1]?.then(({ text }) => {
      whole = text
    })
    // The call may not have reached its pause at the provider yet.
    await until(() => {
      app.alpha.release()
      return whole !== ''
    })
    await ended
    expect(whole).toContain('[DONE]')
    expect(whole).not.toContain('revoked')
    app.alpha.reset()
  })

  test('the token of a child agent ends with the token that requested it, and not with another token of the parent', async () => {
    const { id } = (await app.call('POST', '/v1/me/agents', { name: 'parent', may_delegate: true })).json
    const [one, two] = await Promise.all([1, 2].map(async () => (await app.call('POST', `/v1/me/agents/${id}/token`, {})).json.access_token))
    const childOf = async (token: string, name: string) => (await app.call('POST', `/v1/me/agents/${id}/children`, { name }, { token })).json.access_token
    const children = [await childOf(one, 'child of one'), await childOf(two, 'child of two')]
    await revoke(one)
    expect(await Promise.all([one, two, ...children].map(async each => (await chat(each)).status))).toEqual([401, 200, 401, 200])
  })

  test('an agent token can end only itself, a key of scope inference can end no token, and this endpoint ends no API keys', async () => {
    const { token } = await app.newAgent('leaving')
    const { token: another } = await app.newAgent('staying')
    expect(refusal(await revoke(another, token))).toBe('403 insufficient_scope')
    expect(refusal(await revoke('x', token))).toBe('403 insufficient_scope')
    expect(refusal(await revoke(token, (await app.newKey({ scope: 'inference' })).key))).toBe('403 insufficient_scope')
    expect(refusal(await revoke(app.key))).toBe('400 unsupported_token_type')
    expect(refusal(await revoke(token, null))).toBe('401 invalid_client')
    expect((await revoke(token, token)).status).toBe(200)
    expect(refusal(await revoke(token, token))).toBe('401 invalid_client')
    expect((await chat(another)).status).toBe(200)
    const owner = await app.signIn()
    const { entries } = (await app.call('GET', '/me/audit?act=revokeToken', undefined, { cookie: owner })).json
    expect(entries.map((entry: { outcome: string }) => entry.outcome)).toContain('ok')
  })

  test('an exchange gets 503, and never 401, when the issuer does not answer', async () => {
    const { id } = await app.newAgent('waiting')
    const owner = await app.signIn()
    const params = { name: 'down', issuer: issuer.url, subject: 'repo:acme/*', agent_id: id, key_id: app.keyId }
    await app.call('POST', '/me/agent-trust', params, { cookie: owner })
    const token = await issuer.token({ aud: `${app.baseUrl}/orgs/${app.orgId}` })
    await issuer.close()
    const reply = await exchange(app, token)
    expect([refusal(reply), reply.headers.get('retry-after')]).toEqual(['503 temporarily_unavailable', '10'])
    await issuer.listen()
  })

  test('when the rule contains the keys, the gateway sends no request to the issuer, and the issuer may be any text', async () => {
    const { id } = await app.newAgent('in a cluster')
    const owner = await app.signIn()
    const cluster = 'https://kubernetes.default.svc.cluster.local'
    const sub = 'system:serviceaccount:ci:runner'
    const made = await app.call(
      'POST',
      '/me/agent-trust',
      { name: 'cluster', issuer: cluster, audience: 'brigade', subject: sub, agent_id: id, key_id: app.keyId, jwks: { keys: [issuer.publicKey('one')] } },
      { cookie: owner },
    )
    const asked = issuer.seen.length
    const account = { 'kubernetes.io': { namespace: 'ci', serviceaccount: { name: 'runner', uid: 'u' } } }
    const token = await issuer.token({ iss: cluster, aud: ['brigade'], sub, ...account })
    expect((await exchange(app, token)).status).toBe(200)
    expect(refusal(await exchange(app, await issuer.token({ iss: cluster, aud: ['brigade'], sub: 'system:serviceaccount:ci:other' })))).toBe(
      '400 invalid_request',
    )
    expect(issuer.seen.length).toBe(asked)
    await app.call('DELETE', `/me/agent-trust/${made.json.id}`, undefined, { cookie: owner })
  })

  test('revocations of expired tokens are deleted', async () => {
    const { token } = await app.newAgent('forgotten')
    await revoke(token)
    const { jobs } = app.gateway.app
    await jobs.runOnce('tokens.sweep')
    expect((await app.db.many(revocations)).map(row => row.tokenId)).toContain(decodeJwt(token).jti)
    await app.db.exec(expireRevocations)
    await jobs.runOnce('tokens.sweep')
    expect(await app.db.many(revocations)).toEqual([])
  })
})
