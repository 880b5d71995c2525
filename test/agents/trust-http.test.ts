import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'

const jwkOf = (key: KeyObject) => ({ ...key.export({ format: 'jwk' }), kid: '1' })
const publicKey = jwkOf(generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey)
const shortKey = jwkOf(generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey)

describe('trust rules', () => {
  let app: TestApp
  let owner: string
  let agentId: number
  beforeAll(async () => {
    app = await startApp({ env: { OUTBOUND_ALLOW: '127.0.0.1:9' } })
    owner = await app.signIn()
    agentId = (await app.newAgent('ci')).id
  })
  afterAll(() => app.stop())

  const params = (more: object = {}) => ({
    name: 'deploy',
    issuer: 'https://issuer.example',
    subject: 'repo:acme/app:*',
    agent_id: agentId,
    key_id: app.keyId,
    ...more,
  })
  const create = (more: object = {}, cookie = owner) => app.call('POST', '/me/agent-trust', params(more), { cookie })
  const list = async (cookie = owner) => (await app.call('GET', '/me/agent-trust', undefined, { cookie })).json.rules

  test('an owner creates, lists and deletes rules, and omitted fields have defaults', async () => {
    const made = await create({ claims: { ref: 'refs/heads/main' }, scope: 'usage:read  inference', ttl_s: 300 })
    expect(made.status).toBe(201)
    expect(made.json).toEqual({
      id: expect.any(Number),
      name: 'deploy',
      issuer: 'https://issuer.example',
      audience: `${app.baseUrl}/orgs/${app.orgId}`,
      subject: 'repo:acme/app:*',
      claims: { ref: 'refs/heads/main' },
      jwks_uri: null,
      jwks: null,
      agent_id: agentId,
      key_id: app.keyId,
      scope: 'inference usage:read',
      ttl_s: 300,
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
    })
    const plain = (await create({ name: 'plain', audience: 'plain' })).json
    expect(plain).toMatchObject({ claims: {}, scope: 'inference memory:read memory:write usage:read tools:call', ttl_s: null })
    expect(await list()).toEqual([made.json, plain])
    for (const { id } of [made.json, plain])
      expect((await app.call('DELETE', `/me/agent-trust/${id}`, undefined, { cookie: owner })).json).toEqual({ ok: true })
    expect(await list()).toEqual([])
    const again = await app.call('DELETE', `/me/agent-trust/${plain.id}`, undefined, { cookie: owner })
    expect([again.status, again.json.error.code]).toEqual([404, 'not_found'])
  })

  test('owners write rules, admins read them, and members can do neither. Every act and every refused act has an audit line', async () => {
    const admin = (await app.newMember('admin')).cookie
    const member = (await app.newMember('member')).cookie
    const { id } = (await create()).json
    expect(await list(admin)).toHaveLength(1)
    expect((await app.call('GET', '/me/agent-trust', undefined, { cookie: member })).status).toBe(403)
    for (const cookie of [admin, member]) {
      expect((await create({}, cookie)).status).toBe(403)
      expect((await app.call('DELETE', `/me/agent-trust/${id}`, undefined, { cookie })).status).toBe(403)
    }
    expect((await app.call('DELETE', `/me/agent-trust/${id}`, undefined, { cookie: owner })).status).toBe(200)
    const acts = async (name: string) =>
      (await app.call('GET', `/me/audit?act=${name}&limit=200`, undefined, { cookie: owner })).json.entries.map(
        (entry: { outcome: string; target: string }) => [entry.outcome, entry.target],
      )
    expect(await acts('createTrust')).toContainEqual(['ok', `id=${id}`])
    expect(await acts('deleteTrust')).toContainEqual(['ok', `id=${id}`])
    expect((await acts('createTrust')).filter(([outcome]: [string]) => outcome === 'forbidden')).toHaveLength(2)
    expect((await acts('deleteTrust')).filter(([outcome]: [string]) => outcome === 'forbidden')).toHaveLength(2)
  })

  test('agents, keys and rules of another organisation are not found', async () => {
    const other = await app.otherOrg('Elsewhere')
    const theirs = (await app.call('POST', '/v1/me/agents', { name: 'theirs' }, { token: other.key })).json.id
    for (const more of [{ agent_id: theirs }, { key_id: other.keyId }, { agent_id: 999_999 }, { key_id: 2 ** 40 }])
      expect((await create(more)).json.error, JSON.stringify(more)).toMatchObject({ code: 'not_found' })
    const { id } = (await create()).json
    const stranger = await app.signIn(other.userId, other.orgId)
    expect((await app.call('DELETE', `/me/agent-trust/${id}`, undefined, { cookie: stranger })).status).toBe(404)
    expect(await list(stranger)).toEqual([])
    await app.call('DELETE', `/me/agent-trust/${id}`, undefined, { cookie: owner })
  })

  test('an invalid rule is refused with 400 and the reason', async () => {
    const inference = await app.newKey({ scope: 'inference' })
    const dead = await app.newKey()
    await app.gateway.app.keys.revoke(app.orgId, dead.keyId)
    const rows: readonly [more: object, code: string, says: RegExp][] = [
      [{ name: '' }, 'bad_name', /1 to 100/],
      [{ issuer: 'http://issuer.example' }, 'bad_request', /https:\/\//],
      [{ issuer: 'https://10.0.0.1' }, 'bad_request', /private/],
      [{ issuer: 'https://u:p@issuer.example' }, 'bad_request', /password/],
      [{ issuer: 'issuer' }, 'bad_request', /issuer: must be/],
      [{ issuer: 'https://issuer.example/?a=1' }, 'bad_request', /query/],
      [{ issuer: app.baseUrl }, 'bad_request', /gateway itself/],
      [{ jwks_uri: 'https://127.0.0.1/keys' }, 'bad_request', /private/],
      [{ jwks_uri: 'https://a.example/keys', jwks: { keys: [publicKey] } }, 'bad_request', /not both/],
      [{ jwks: { keys: [{ kty: 'RSA', n: 'a', e: 'b', d: 'c' }] } }, 'bad_request', /private key/],
      [{ jwks: { keys: [{ kty: 'oct', k: 'secret' }] } }, 'bad_request', /shared secrets/],
      [{ jwks: { keys: [] } }, 'bad_request', /jwks/],
      [{ jwks: { keys: [publicKey, { ...publicKey, x: 'AAAA' }] } }, 'bad_request', /jwks.keys.1.*whole public key/],
      [{ jwks: { keys: [shortKey] } }, 'bad_request', /2048/],
      [{ subject: '*' }, 'bad_request', /names somebody/],
      [{ subject: '*:acme' }, 'bad_request', /names somebody/],
      [{ subject: '' }, 'bad_request', /subject/],
      [{ subject: undefined }, 'bad_request', /subject/],
      [{ claims: { aud: 'x' } }, 'bad_request', /aud/],
      [{ claims: { a: 1 } }, 'bad_request', /claims/],
      [{ audience: `${app.baseUrl}/orgs/${app.orgId + 1}` }, 'bad_request', /another organisation/],
      [{ scope: 'everything' }, 'bad_request', /scope/],
      [{ ttl_s: 901 }, 'bad_request', /900/],
      [{ ttl_s: 0 }, 'bad_request', /ttl_s/],
      [{ key_id: inference.keyId }, 'bad_request', /scope full/],
      [{ key_id: dead.keyId }, 'bad_request', /works/],
    ]
    for (const [more, code, says] of rows) {
      const { status, json } = await create(more)
      expect([status, json.error?.code], JSON.stringify(more)).toEqual([400, code])
      expect(json.error.message).toMatch(says)
    }
    expect(await list()).toEqual([])
  })

  test("an owner lets jobs act with the owner's own keys and with keys without a user, but not with a member's key", async () => {
    const member = await app.newMember('owner')
    const { id: theirs } = (await app.call('POST', '/me/keys', {}, { cookie: member.cookie })).json
    const refused = await create({ key_id: theirs })
    expect([refused.status, refused.json.error]).toEqual([400, expect.objectContaining({ code: 'bad_request', message: expect.stringContaining('your own') })])
    const { keyId: nobodys } = await app.newKey({ withUser: false })
    for (const [key_id, cookie] of [
      [theirs, member.cookie],
      [nobodys, owner],
    ]) {
      const made = await create({ key_id }, cookie)
      expect(made.status, made.text).toBe(201)
      await app.call('DELETE', `/me/agent-trust/${made.json.id}`, undefined, { cookie: owner })
    }
  })

  test('a rule for a revoked agent is refused', async () => {
    const { id } = await app.newAgent('gone')
    await app.call('POST', `/v1/me/agents/${id}/revoke`, {})
    expect((await create({ agent_id: id })).json.error.code).toBe('agent_revoked')
  })

  test('a rule for a public issuer must name whose tokens it accepts', async () => {
    const github = 'https://token.actions.githubusercontent.com'
    const rows: readonly [more: object, status: number][] = [
      [{ issuer: github, subject: 'repo:*' }, 400],
      [{ issuer: github, subject: 'repo:acme*' }, 400],
      [{ issuer: github, subject: 'repo:acme/*' }, 201],
      [{ issuer: github, subject: 'repo:*', claims: { repository_owner: 'ac*' } }, 400],
      [{ issuer: github, subject: 'repo:*', claims: { repository_owner: 'acme' } }, 201],
      [{ issuer: 'https://gitlab.com', subject: 'project_path:*' }, 400],
      [{ issuer: 'https://gitlab.com', subject: 'project_path:acme/*' }, 201],
      [{ issuer: 'https://accounts.google.com', subject: '1*' }, 400],
      [{ issuer: 'https://accounts.google.com', subject: '118' }, 201],
      [{ issuer: 'accounts.google.com', subject: '1*', jwks_uri: 'https://www.googleapis.com/oauth2/v3/certs' }, 400],
      [{ issuer: `${github}/`, subject: 'repo:*' }, 400],
      // This is the issuer's default audience. A stranger who claimed it would receive the tokens of jobs that set no audience.
      [{ issuer: github, subject: 'repo:acme/*', audience: 'https://github.com/acme' }, 400],
      [{ issuer: github, subject: 'repo:acme/*', audience: `${app.baseUrl}/orgs/${app.orgId}x` }, 400],
      [{ issuer: github, subject: 'repo:acme/*', audience: `${app.baseUrl}/orgs/${app.orgId}/deploys` }, 201],
    ]
    for (const [more, status] of rows) {
      const made = await create(more)
      expect(made.status, JSON.stringify(more)).toBe(status)
      if (status === 201) await app.call('DELETE', `/me/agent-trust/${made.json.id}`, undefined, { cookie: owner })
    }
  })

  test('when the rule contains the keys, the issuer may be any text. Otherwise its address must be one to which users may direct requests', async () => {
    const jwks = { keys: [publicKey] }
    const cluster = await create({ issuer: 'https://kubernetes.default.svc.cluster.local', subject: 'system:serviceaccount:ci:runner', jwks })
    expect([cluster.status, cluster.json.jwks]).toEqual([201, jwks])
    const elsewhere = await create({ issuer: 'kubernetes/serviceaccount', subject: 'system:serviceaccount:ci:runner', jwks_uri: 'http://127.0.0.1:9/keys' })
    expect(elsewhere.status).toBe(201)
    for (const { json } of [cluster, elsewhere]) await app.call('DELETE', `/me/agent-trust/${json.id}`, undefined, { cookie: owner })
  })

  test('an audience of an issuer belongs to one organisation while it has a rule, and the refusal of another organisation does not reveal that', async () => {
    const audience = 'api://gateway'
    const other = await app.otherOrg('Late')
    const late = await app.signIn(other.userId, other.orgId)
    const lateAgent = (await app.call('POST', '/v1/me/agents', { name: 'late' }, { token: other.key })).json.id
    const first = (await create({ audience })).json
    const second = (await create({ audience, name: 'second' })).json
    const theirs = { audience, agent_id: lateAgent, key_id: other.keyId }
    const remove = (id: number, cookie = owner) => app.call('DELETE', `/me/agent-trust/${id}`, undefined, { cookie })
    const refused = (await create(theirs, late)).json.error
    expect(refused.message).toContain(`${app.baseUrl}/orgs/${other.orgId}`)
    expect(refused.message).not.toMatch(/another|organisation|taken|somebody/)
    await remove(first.id)
    expect((await create(theirs, late)).status, 'the second rule holds it').toBe(400)
    expect((await create({ ...theirs, issuer: 'https://other.example' }, late)).status).toBe(201)
    await remove(second.id)
    const taken = await create(theirs, late)
    expect(taken.status, 'it was given back').toBe(201)
    expect((await create({ audience })).status).toBe(400)
    await remove(taken.json.id, late)
    const back = await create({ audience })
    expect(back.status).toBe(201)
    await remove(back.json.id)
  })

  test('when several organisations request a free audience concurrently, one of them gets it', async () => {
    const audience = 'api://contested'
    await app.call('DELETE', `/me/agent-trust/${(await create({ audience })).json.id}`, undefined, { cookie: owner })
    const askers = await Promise.all(
      [1, 2, 3].map(async number => {
        const other = await app.otherOrg(`Asker ${number}`)
        const agent = (await app.call('POST', '/v1/me/agents', { name: 'asker' }, { token: other.key })).json.id
        return { cookie: await app.signIn(other.userId, other.orgId), more: { audience, agent_id: agent, key_id: other.keyId } }
      }),
    )
    const replies = await Promise.all(askers.flatMap(({ cookie, more }) => [create(more, cookie), create({ ...more, name: 'again' }, cookie)]))
    expect(replies.map(({ status }) => status).sort()).toEqual([201, 201, 400, 400, 400, 400])
  })
})
