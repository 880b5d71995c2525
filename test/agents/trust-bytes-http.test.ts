/** What a token that nobody signed may cost: an exchange reads the rules of its issuer before it knows the token is genuine. */
import { generateKeyPairSync } from 'node:crypto'
import { SignJWT } from 'jose'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { matchingTrust } from '../../src/agents/federation/trust-queries.ts'
import { statement } from '../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../harness/app.ts'
import { exchange, refusal } from './oauth-calls.ts'

const kib = 1024
const rsa = generateKeyPairSync('rsa', { modulusLength: 4096 }).publicKey.export({ format: 'jwk' })
/** About 31 KB of keys. The bound for one rule is 32 KiB. */
const longKeys = (seed: string) => ({ keys: Array.from({ length: 42 }, (_, index) => ({ kty: 'RSA', n: rsa.n, e: rsa.e, kid: `${seed} ${index}` })) })
/** Rules that were made before the bounds existed. */
const copyRule = statement<[orgId: number, id: number, count: number]>(
  'test.trust_bytes_copy_rule',
  `insert into agent_trust (org_id, name, issuer, audience, subject, claims, jwks, agent_id, key_id, scopes, created_at)
   select org_id, name, issuer, audience, subject, claims, jsonb_set(jwks, '{keys,0,kid}', to_jsonb('copy ' || i)), agent_id, key_id, scopes, created_at
   from agent_trust, generate_series(1, $3::int) i where org_id = $1::int and id = $2::int`,
)
const lengthen = statement<[orgId: number, issuer: string]>(
  'test.trust_bytes_lengthen',
  `update agent_trust set claims = jsonb_build_object('job', repeat('x', 5000)) where org_id = $1::int and issuer = $2::text`,
)
const dropRules = statement<[orgId: number]>('test.trust_bytes_drop_rules', 'delete from agent_trust where org_id = $1::int')

describe('trust rules with many bytes', () => {
  let app: TestApp
  let owner: string
  let audience: string
  let agentId: number
  beforeAll(async () => {
    app = await startApp({ env: { ANON_RPM: '100000' } })
    owner = await app.signIn()
    audience = `${app.baseUrl}/orgs/${app.orgId}`
    agentId = (await app.newAgent('ci')).id
  })
  // An organisation has at most 100 rules.
  afterEach(() => app.db.exec(dropRules, app.orgId))
  afterAll(() => app.stop())

  const create = (issuer: string, more: object = {}) =>
    app.call('POST', '/me/agent-trust', { name: 'rule', issuer, subject: 'job', agent_id: agentId, key_id: app.keyId, ...more }, { cookie: owner })
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const unsigned = (issuer: string) => `${part({ alg: 'RS256', kid: 'none' })}.${part({ iss: issuer, aud: audience, sub: 'job', iat: 1, exp: 9e9 })}.AAAA`

  test('the rules of one issuer have at most 256 KiB together with their keys, and the error names the bound', async () => {
    const issuer = 'https://long.example'
    const replies = []
    for (let at = 0; at < 10; at++) replies.push(await create(issuer, { jwks: longKeys(`rule ${at}`) }))
    expect(replies.map(({ status }) => status)).toEqual([...Array(8).fill(201), 400, 400])
    expect(replies[9]?.json.error).toMatchObject({ code: 'cap', message: expect.stringContaining('262144 bytes') })
    // Another issuer, and another organisation, have bounds of their own.
    expect((await create('https://short.example', { jwks: longKeys('other') })).status).toBe(201)
    expect((await app.call('DELETE', `/me/agent-trust/${replies[0]?.json.id}`, undefined, { cookie: owner })).status).toBe(200)
    expect((await create(issuer, { jwks: longKeys('after') })).status).toBe(201)
  })

  test('an exchange reads no keys with the rules, and keys of at most four places', async () => {
    const issuer = 'https://many.example'
    const { id } = (await create(issuer, { jwks: longKeys('first') })).json
    await app.db.exec(copyRule, app.orgId, id, 80)
    const rows = await app.db.many(matchingTrust, issuer, [audience], 201, 256 * kib)
    expect(rows).toHaveLength(81)
    expect(Buffer.byteLength(JSON.stringify(rows))).toBeLessThan(64 * kib)
    const before = app.db.roundTrips
    const reply = await exchange(app, unsigned(issuer))
    expect([refusal(reply), reply.json.error_description]).toEqual(['400 invalid_request', expect.stringContaining('more than 4 places of keys')])
    expect(app.db.roundTrips - before).toBeLessThan(20)
  })

  test('an exchange refuses a token whose rules have more than 256 KiB without their keys', async () => {
    const issuer = 'https://claims.example'
    const { id } = (await create(issuer, { jwks: longKeys('first') })).json
    await app.db.exec(copyRule, app.orgId, id, 60)
    await app.db.exec(lengthen, app.orgId, issuer)
    const reply = await exchange(app, unsigned(issuer))
    expect([refusal(reply), reply.json.error_description]).toEqual(['400 invalid_request', expect.stringContaining('too many or too long')])
  })

  test('rules with the same pasted keys share one place, and a rule of an earlier version without a digest works', async () => {
    const issuer = 'https://shared.example'
    const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const jwks = { keys: [{ ...pair.publicKey.export({ format: 'jwk' }), kid: 'one' }] }
    for (let at = 0; at < 6; at++) expect((await create(issuer, { jwks, name: `rule ${at}` })).status).toBe(201)
    const token = () =>
      new SignJWT({ sub: 'job' })
        .setProtectedHeader({ alg: 'ES256', kid: 'one' })
        .setIssuer(issuer)
        .setAudience(audience)
        .setIssuedAt()
        .setExpirationTime('5m')
        .sign(pair.privateKey)
    const done = await exchange(app, await token())
    expect(done.status, done.text).toBe(200)
    const old = 'https://older.example'
    const { id } = (await create(old, { jwks })).json
    await app.db.exec(copyRule, app.orgId, id, 1)
    expect((await app.call('DELETE', `/me/agent-trust/${id}`, undefined, { cookie: owner })).status).toBe(200)
    const reply = await exchange(app, unsigned(old))
    expect(reply.json.error_description).toContain('no key of that id')
  })
})
