/** Attacks by somebody who holds an agent token, runs another issuer, or writes trust rules. */
import { generateKeyPairSync } from 'node:crypto'
import { decodeJwt } from 'jose'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { movableClock } from '../harness/clock.ts'
import { familyOf, said } from './family.ts'
import { exchange, postForm, refusal } from './oauth-calls.ts'
import { type OidcIssuer, startOidcIssuer } from './oidc-issuer.ts'

const publicKey = { ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' }), kid: '1' }
const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const unsigned = (payload: object): string => `${part({ alg: 'RS256', kid: 'one' })}.${part(payload)}.AAAA`

describe('attacks with tokens and trust rules', () => {
  const clock = movableClock()
  let app: TestApp
  let owner: string
  let issuer: OidcIssuer
  let family: ReturnType<typeof familyOf>
  let agentId: number
  beforeAll(async () => {
    issuer = await startOidcIssuer()
    await issuer.addKey('one')
    app = await startApp({ clock, env: { OUTBOUND_ALLOW: issuer.hostPort, ANON_RPM: '100000' } })
    owner = await app.signIn()
    family = familyOf(app)
    agentId = (await app.newAgent('target')).id
  })
  afterEach(() => expect(app.logLines.filter(line => line.includes('internal_error'))).toEqual([]))
  afterAll(async () => {
    await app?.stop()
    await issuer?.close()
  })

  const trust = (more: object) =>
    app.call('POST', '/me/agent-trust', { name: 'rule', issuer: issuer.url, subject: 'a', agent_id: agentId, key_id: app.keyId, ...more }, { cookie: owner })
  const untrust = (id: number) => app.call('DELETE', `/me/agent-trust/${id}`, undefined, { cookie: owner })
  const whoami = async (token: string) => (await app.call('GET', '/v1/me/whoami', undefined, { token })).status

  test('issuers and audiences that no rule can name are refused, and do not hide a valid audience in the same token', async () => {
    for (const payload of [
      { iss: 'a\u0000b', aud: 'x' },
      { iss: 'a', aud: ['x', 'y\u0000'] },
      { iss: 'a\ud800', aud: 'x' },
      { iss: 'a', aud: '\udfff' },
    ])
      expect(refusal(await exchange(app, unsigned(payload))), JSON.stringify(payload)).toBe('400 invalid_request')
    const { id } = (await trust({})).json
    const token = await issuer.token({ sub: 'a', aud: ['\u0000', '\ud800', `${app.baseUrl}/orgs/${app.orgId}`] })
    expect((await exchange(app, token)).status).toBe(200)
    await untrust(id)
  })

  test('an exchange whose rule, key or agent ends meanwhile is refused as a bad request, or gives an ended token. It never says that the credential is wrong', async () => {
    const token = await issuer.token({ sub: 'a', aud: `${app.baseUrl}/orgs/${app.orgId}` })
    const ends: readonly ((made: { id: number; agentId: number; keyId: number }) => Promise<unknown>)[] = [
      ({ id }) => untrust(id),
      made => family.revoke(made.agentId),
      ({ keyId }) => app.gateway.app.keys.revoke(app.orgId, keyId),
    ]
    for (const [i, end] of ends.entries()) {
      const { id: ofRule } = await app.newAgent(`ended ${i}`)
      const { keyId } = await app.newKey()
      const { id } = (await trust({ agent_id: ofRule, key_id: keyId })).json
      const running = Array.from({ length: 12 }, () => exchange(app, token))
      await end({ id, agentId: ofRule, keyId })
      for (const reply of await Promise.all(running)) {
        if (reply.status === 200) expect(await whoami(reply.json.access_token)).toBe(401)
        else expect(refusal(reply)).toBe('400 invalid_request')
      }
      expect(refusal(await exchange(app, token))).toBe('400 invalid_request')
      await untrust(id)
    }
  })

  test('a token with a subject or actors that are too long is refused with that reason', async () => {
    const { id } = (await trust({ subject: '漢*' })).json
    const long = '漢'.repeat(499)
    const names = { iss: long, sub: long }
    const token = await issuer.token({ aud: `${app.baseUrl}/orgs/${app.orgId}`, sub: '漢'.repeat(900), act: { ...names, act: { ...names, act: names } } })
    const reply = await exchange(app, token)
    expect([refusal(reply), reply.json.error_description]).toEqual(['400 invalid_request', expect.stringContaining('too long')])
    await untrust(id)
  })

  test('a trust rule stores only text that the database accepts, and only the fields of pasted keys that verification needs', async () => {
    for (const more of [
      { claims: { 'a\ud800': 'x' } },
      { claims: { a: 'x\udc00' } },
      { claims: { 'a\u0000': 'x' } },
      { subject: 'x\ud800' },
      { audience: 'x\ud800' },
      { jwks: { keys: [{ ...publicKey, kid: 'a\u0000' }] } },
      { jwks: { keys: [{ ...publicKey, kid: 'a\ud800' }] } },
      { jwks: { keys: [{ ...publicKey, d: '' }] } },
      { jwks: { keys: [{ ...publicKey, x: 'A'.repeat(3_000) }] } },
      { jwks: { keys: Array.from({ length: 50 }, (_, i) => ({ ...publicKey, kid: `${i}`.repeat(100), use: 'u'.repeat(200), alg: 'a'.repeat(200) })) } },
    ])
      expect(said(await trust(more)), JSON.stringify(more).slice(0, 100)).toEqual([400, 'bad_request'])
    const noise = { x5c: ['x'.repeat(100_000)], note: 'a\u0000\ud800', 'b\u0000': { c: [] } }
    const made = await trust({ jwks: { keys: [{ ...publicKey, ...noise }], note: 'a\u0000' } })
    expect([made.status, made.json.jwks]).toEqual([201, { keys: [publicKey] }])
    await untrust(made.json.id)
  })

  test("a child's token gets at most the life of the token that requested it, and a refused request creates no child", async () => {
    const lead = await family.lead()
    const short = { id: lead.id, token: (await family.mint(lead.id, { ttl_s: 60 })).json.access_token }
    const child = await family.child(short, { may_delegate: true })
    expect([child.status, child.json.expires_in]).toEqual([201, 60])
    const grandchild = await family.child({ id: child.json.agent.id, token: child.json.access_token })
    expect([grandchild.status, grandchild.json.expires_in]).toEqual([201, 60])
    expect((await family.child(short, { ttl_s: 30 })).json.expires_in).toBe(30)
    const more = await family.child(short, { name: 'never made', ttl_s: 61 })
    expect([said(more), more.json.error.message]).toEqual([[403, 'forbidden'], expect.stringContaining('60')])
    expect((await family.child(lead)).json.expires_in).toBe(900)

    let last = lead.token
    for (let i = 0; i < 8; i++) last = (await exchange(app, last)).json.access_token
    expect(said(await family.child({ id: lead.id, token: last }, { name: 'never made' }))).toEqual([400, 'bad_request'])
    const { agents } = (await app.call('GET', '/v1/me/agents')).json
    expect(agents.filter(({ name }: { name: string }) => name === 'never made')).toEqual([])
  })

  test('a token without the scope inference can create children, but cannot change an existing child', async () => {
    const lead = await family.lead(10)
    const narrow = { id: lead.id, token: (await family.mint(lead.id, { scope: 'memory:read' })).json.access_token }
    const params = { name: 'worker of both', monthly_budget_inr: 5, max_output_tokens: 100 }
    expect((await family.child(narrow, params)).status).toBe(201)
    for (const same of [params, { name: params.name }]) expect((await family.child(narrow, same)).status).toBe(200)
    for (const change of [{ monthly_budget_inr: 1 }, { monthly_budget_inr: 6 }, { max_output_tokens: 1 }, { allowed_models: ['alpha-only'] }]) {
      const refused = await family.child(narrow, { ...params, ...change })
      expect([said(refused), refused.json.error.message], JSON.stringify(change)).toEqual([[403, 'forbidden'], expect.stringContaining('inference')])
    }
    expect((await family.child(lead, { ...params, monthly_budget_inr: 6, max_output_tokens: 50 })).json.agent).toMatchObject({
      monthly_budget_inr: 6,
      max_output_tokens: 50,
    })
  })

  test('the revocation of an expired token ends the tokens that were made from it', async () => {
    const lead = await family.lead()
    const asked = (await family.mint(lead.id, { ttl_s: 600 })).json.access_token
    clock.advance(300_000)
    const child = await family.born({ id: lead.id, token: asked })
    const other = await family.born({ id: lead.id, token: (await family.mint(lead.id)).json.access_token })
    clock.advance(400_000)
    expect([await whoami(asked), await whoami(child.token), await whoami(other.token)]).toEqual([401, 200, 200])
    const stranger = await app.otherOrg('Elsewhere')
    expect((await postForm(app, '/oauth/revoke', { token: asked }, { token: stranger.key })).status).toBe(200)
    expect(await whoami(child.token)).toBe(200)
    expect((await postForm(app, '/oauth/introspect', { token: asked }, { token: app.key })).json).toEqual({ active: false })
    const [head, body] = asked.split('.')
    for (const text of [`${head}.${body}.${'A'.repeat(86)}`, unsigned(decodeJwt(asked))])
      expect((await postForm(app, '/oauth/revoke', { token: text }, { token: app.key })).status).toBe(200)
    expect(await whoami(child.token)).toBe(200)
    expect((await postForm(app, '/oauth/revoke', { token: asked }, { token: app.key })).status).toBe(200)
    expect([await whoami(child.token), await whoami(other.token)]).toEqual([401, 200])
  })
})
