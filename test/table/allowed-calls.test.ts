/**
 * What an allowed caller may do is done: each row of the table of rights is called with a valid request by every kind of caller that it lets in,
 * and the effect is read back through the API. access.test.ts shows who is turned away.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OwnServer, startOwnServer } from '../gateway/byok/own-server.ts'
import { startApp, type TestApp, type TestReply } from '../harness/app.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'
import { useStore } from '../memory/rights-people.ts'

type Credential = { readonly cookie: string } | { readonly token: string }

let app: TestApp
let store: S3TestServer
let server: OwnServer
let owner: Credential
let admin: Credential
let member: Credential
let count = 0

beforeAll(async () => {
  store = await startS3Server()
  server = await startOwnServer()
  app = await startApp({ env: { OUTBOUND_ALLOW: `${store.hostPort},${server.hostPort}`, MEMBERS_MAX: '1000' } })
  server.behave('own-server-key-0123456789')
  owner = { cookie: await app.signIn() }
  admin = { cookie: (await app.newMember('admin')).cookie }
  member = { cookie: (await app.newMember('member')).cookie }
})
afterAll(async () => {
  await app.stop()
  await Promise.all([store.close(), server.close()])
})

const call = (by: Credential, method: string, path: string, body?: unknown): Promise<TestReply> => app.call(method, path, body, by)
/** A call that has to succeed. */
async function done(by: Credential, method: string, path: string, body?: unknown): Promise<TestReply['json']> {
  const reply = await call(by, method, path, body)
  expect([200, 201], `${method} ${path}: ${reply.status} ${reply.text.slice(0, 300)}`).toContain(reply.status)
  return reply.json
}
const read = (path: string, by: Credential = member) => done(by, 'GET', path)
const newName = (what: string): string => `${what} ${++count}`
/** A collection of the organisation, as an owner makes it. */
const newCollection = (more: object = {}, by: Credential = owner) =>
  done(by, 'POST', '/me/collections', { name: newName('Chain'), model: 'test-model', steps: ['alpha-only'], ...more })
const endpointOf = (name: string) => ({
  name,
  model: 'test-model',
  base_url: server.url,
  upstream_model: 'own-model',
  key: 'own-server-key-0123456789',
})
const ids = (rows: readonly { readonly id: number }[]): number[] => rows.map(({ id }) => id)

/** Runs the body once for each kind of caller that the row lets in. */
function allowed(title: string, who: readonly ('owner' | 'admin' | 'member')[], body: (by: Credential) => Promise<void>): void {
  for (const role of who)
    test(`${title}, by ${role === 'member' ? 'a' : 'an'} ${role}`, () => body(role === 'owner' ? owner : role === 'admin' ? admin : member))
}
const managers = ['owner', 'admin'] as const
const everybody = ['owner', 'admin', 'member'] as const

describe('PERM-01 PERM-02 PERM-03 PERM-04 PERM-10 an allowed caller changes the organisation, its keys and its members', () => {
  allowed('PERM-01 PATCH /me/org renames the organisation', ['owner'], async by => {
    const name = newName('Renamed')
    await done(by, 'PATCH', '/me/org', { name })
    expect((await read('/me')).org.name).toBe(name)
  })

  allowed('PERM-02 POST /me/keys makes a key that works', everybody, async by => {
    const { key, id } = await done(by, 'POST', '/me/keys', { name: newName('key') })
    expect((await call({ token: key }, 'GET', '/v1/me/whoami')).status).toBe(200)
    expect(ids((await done(by, 'GET', '/me/keys')).keys)).toContain(id)
  })

  allowed('PERM-03 PATCH and DELETE /me/keys/{id} limit and end a key', managers, async by => {
    const { key, id } = await done(member, 'POST', '/me/keys', { name: newName('key') })
    await done(by, 'PATCH', `/me/keys/${id}`, { enabled: false })
    expect((await call({ token: key }, 'GET', '/v1/me/whoami')).status).toBe(401)
    await done(by, 'PATCH', `/me/keys/${id}`, { enabled: true })
    expect((await call({ token: key }, 'GET', '/v1/me/whoami')).status).toBe(200)
    await done(by, 'DELETE', `/me/keys/${id}`)
    expect((await call({ token: key }, 'GET', '/v1/me/whoami')).status).toBe(401)
  })

  allowed('PERM-04 PUT, test and DELETE /me/byok/{provider} save, try and remove a key', ['owner'], async by => {
    app.alpha.script(() => ({ body: { data: [{ id: 'alpha-large' }] } }))
    await done(by, 'PUT', '/me/byok/alpha', { key: 'sk-own-0123456789abcdef', label: 'ours' })
    const saved = async () => (await read('/me/byok')).keys.map((each: { provider: string }) => each.provider)
    expect(await saved()).toContain('alpha')
    expect((await done(by, 'POST', '/me/byok/alpha/test')).status).toBe('ok')
    await done(by, 'DELETE', '/me/byok/alpha')
    expect(await saved()).not.toContain('alpha')
    app.alpha.reset()
  })

  allowed('PERM-10 PATCH /me/members/{id} changes a role', ['owner'], async by => {
    const person = await app.newMember('member')
    await done(by, 'PATCH', `/me/members/${person.userId}`, { role: 'admin' })
    expect((await done({ cookie: person.cookie }, 'GET', '/me')).role).toBe('admin')
    expect((await call({ cookie: person.cookie }, 'POST', '/me/workspaces', { name: newName('Space') })).status).toBe(201)
  })
})

describe('PERM-07 an allowed caller changes routing, collections and custom endpoints', () => {
  allowed('PERM-07 PUT and DELETE /me/routing/{model} route calls and stop doing so', managers, async by => {
    const provider = async () => {
      const reply = await call({ token: app.key }, 'POST', '/v1/chat/completions', { model: 'test-model', messages: [{ role: 'user', content: 'Hi' }] })
      return reply.headers.get('x-br-provider')
    }
    expect(await provider()).toBe('alpha')
    await done(by, 'PUT', '/me/routing/test-model', { steps: [{ model: 'test-model', provider: 'beta' }] })
    expect((await read('/me/routing/test-model')).steps).toEqual([{ model: 'test-model', provider: 'beta' }])
    expect(await provider()).toBe('beta')
    await done(by, 'DELETE', '/me/routing/test-model')
    expect((await read('/me/routing')).chains).toEqual([])
    expect(await provider()).toBe('alpha')
  })

  allowed('PERM-07 POST, PATCH and DELETE /me/collections make, edit and remove a collection', managers, async by => {
    const made = await newCollection({}, by)
    const name = newName('Edited')
    await done(by, 'PATCH', `/me/collections/${made.id}`, { name })
    expect((await read('/me/collections')).collections.find((each: { id: number }) => each.id === made.id)).toMatchObject({ name, version: 2 })
    await done(by, 'DELETE', `/me/collections/${made.id}`)
    expect(ids((await read('/me/collections')).collections)).not.toContain(made.id)
  })

  allowed("PERM-07 POST /me/collections/import/{slug} makes a foreign chain the organisation's routing", managers, async by => {
    const other = await app.otherOrg(newName('Author'))
    const author = { cookie: await app.signIn(other.userId, other.orgId) }
    const made = await newCollection({ public: true, steps: [{ model: 'test-model', provider: 'beta' }] }, author)
    await done(by, 'POST', `/me/collections/import/${made.slug}`)
    expect((await read('/me/routing/test-model')).steps).toEqual([{ model: 'test-model', provider: 'beta' }])
    await done(by, 'DELETE', '/me/routing/test-model')
  })

  allowed('PERM-07 monitor and alerts of a collection are switched on, listed and removed', managers, async by => {
    const { slug } = await newCollection()
    await done(by, 'POST', `/me/collections/${slug}/monitor`, { monitored: true })
    expect((await read('/me/collections')).collections.find((each: { slug: string }) => each.slug === slug).monitored).toBe(true)
    const alert = await done(by, 'POST', `/me/collections/${slug}/alerts`, {
      metric: 'error_rate',
      threshold: 0.5,
      channel: 'email',
    })
    expect(ids((await read(`/me/collections/${slug}/alerts`)).alerts)).toEqual([alert.id])
    await done(by, 'DELETE', `/me/collections/${slug}/alerts/${alert.id}`)
    expect((await read(`/me/collections/${slug}/alerts`)).alerts).toEqual([])
  })

  allowed('PERM-07 a custom endpoint is tested, created, tested again and removed', managers, async by => {
    const name = newName('Server')
    expect((await done(by, 'POST', '/me/endpoints/test', endpointOf(name))).compliance.pass).toBe(true)
    expect(ids((await read('/me/endpoints')).endpoints)).toEqual([])
    const { endpoint } = await done(by, 'POST', '/me/endpoints', endpointOf(name))
    expect(ids((await read('/me/endpoints')).endpoints)).toEqual([endpoint.id])
    const asked = server.requests.length
    expect((await done(by, 'POST', `/me/endpoints/${endpoint.id}/retest`)).compliance.pass).toBe(true)
    expect(server.requests.length).toBeGreaterThan(asked)
    await done(by, 'DELETE', `/me/endpoints/${endpoint.id}`)
    expect((await read('/me/endpoints')).endpoints).toEqual([])
  })
})

describe('PERM-08 PERM-09 an allowed caller shares collections and manages the organisation', () => {
  allowed('PERM-08 star, fork, check and health of a collection', everybody, async by => {
    const other = await app.otherOrg(newName('Author'))
    const author = { cookie: await app.signIn(other.userId, other.orgId) }
    const { slug } = await newCollection({ public: true }, author)
    expect((await done(by, 'POST', `/me/collections/star/${slug}`)).starred).toBe(true)
    const forked = await done(by, 'POST', `/me/collections/fork/${slug}`)
    expect(ids((await read('/me/collections')).collections)).toContain(forked.id)
    const step = { model: 'alpha-only', checks: 1, uptime: 1 }
    expect((await done(by, 'POST', `/me/collections/${forked.slug}/check`)).health).toMatchObject([step])
    expect((await done(by, 'GET', `/me/collections/${forked.slug}/health`)).health).toMatchObject([step])
  })

  allowed('PERM-09 workspaces, invitations, budgets, retention, key inactivity, memory store and webhooks', managers, async by => {
    const email = `invited-${++count}@people.test`
    const invited = await done(by, 'POST', '/me/members', { email, role: 'member' })
    expect((await read('/me/members')).pending.map((each: { email: string }) => each.email)).toContain(email)
    await done(by, 'DELETE', `/me/members/pending/${invited.id}`)

    const space = await done(by, 'POST', '/me/workspaces', { name: newName('Space') })
    await done(by, 'PATCH', `/me/workspaces/${space.id}`, { monthly_budget_inr: 12 })
    expect((await read('/me/workspaces')).workspaces.find((each: { id: number }) => each.id === space.id).monthly_budget_inr).toBe(12)
    await done(by, 'DELETE', `/me/workspaces/${space.id}`)

    await done(by, 'POST', '/me/budgets', { scope: 'org', monthly_budget_inr: 1234 })
    expect((await read('/me/budgets', by)).budgets.find((each: { scope: string }) => each.scope === 'org').cap_inr).toBe(1234)
    await done(by, 'POST', '/me/budgets', { scope: 'org', monthly_budget_inr: null })

    await done(by, 'PUT', '/me/org/data-retention', { days: 2 })
    expect((await done(by, 'PUT', '/me/org/data-retention', { days: 0 })).days).toBe(0)
    expect((await done(by, 'PUT', '/me/org/key-inactivity', { days: 9 })).days).toBe(9)

    const { endpoint, bucket, accessKey, secretKey } = store
    await done(by, 'PUT', '/me/memory-store', { endpoint, bucket, access_key: accessKey, secret_key: secretKey })
    expect((await done(by, 'GET', '/me/memory-store')).bucket).toBe(bucket)

    const hook = await done(by, 'POST', '/me/webhooks', { url: `https://${store.hostPort}/hook`, subscribe_all: true })
    const hooks = async () => ids((await done(by, 'GET', '/me/webhooks')).webhooks)
    expect(await hooks()).toContain(hook.id)
    await done(by, 'DELETE', `/me/webhooks/${hook.id}`)
    expect(await hooks()).not.toContain(hook.id)
  })
})

describe('SCOPE-01 SCOPE-02 SCOPE-03 SCOPE-04 SCOPE-05 SCOPE-06 SCOPE-07 an allowed kind of key gets what it asks for', () => {
  const kinds = {
    'a full key of an admin': async () => (await done(admin, 'POST', '/me/keys', { name: newName('key') })).key,
    'a full key of a member': async () => (await done(member, 'POST', '/me/keys', { name: newName('key') })).key,
    'a full key without a user': async () => (await app.newKey({ withUser: false, name: newName('robot') })).key,
    'an inference key': async () => (await app.newKey({ scope: 'inference', name: newName('inference') })).key,
    'an agent token': async () => (await app.newAgent(newName('agent'))).token,
  }
  const fullKeys = ['a full key of an admin', 'a full key of a member', 'a full key without a user'] as const
  const say = { model: 'test-model', messages: [{ role: 'user', content: 'Hello there' }] }

  for (const [kind, make] of Object.entries(kinds)) {
    test(`SCOPE-01 SCOPE-02 inference serves ${kind}, and its usage counts the call`, async () => {
      const by = { token: await make() }
      const before = (await read('/v1/usage', by)).totals.requests
      expect((await done(by, 'POST', '/v1/chat/completions', say)).choices[0].message.content).toContain('Hello')
      expect((await read('/v1/usage', by)).totals.requests).toBe(before + 1)
    })

    test(`SCOPE-05 GET /v1/me/agents lists every agent of the organisation with its budget to ${kind}`, async () => {
      const name = newName('listed')
      const { id } = await app.newAgent(name)
      await done(owner, 'POST', '/me/budgets', { scope: 'agent', target_id: id, monthly_budget_inr: 7 })
      const { agents } = await read('/v1/me/agents', { token: await make() })
      expect(agents.find((each: { id: number }) => each.id === id)).toMatchObject({ id, name, monthly_budget_inr: 7 })
    })

    test(`SCOPE-03 GET /v1/me/profile answers ${kind}`, async () => {
      expect(await read('/v1/me/profile', { token: await make() })).toMatchObject({ connectors: expect.any(Array) })
    })
  }

  test('SCOPE-04 PUT /v1/me/profile keeps what a full key with a user says', async () => {
    const by = { token: await kinds['a full key of a member']() }
    await done(by, 'PUT', '/v1/me/profile', { model: 'test-model', rules: 'Answer briefly.' })
    expect(await read('/v1/me/profile', by)).toMatchObject({ model: 'test-model', rules: 'Answer briefly.' })
  })

  for (const kind of fullKeys)
    test(`SCOPE-06 SCOPE-07 ${kind} makes an agent whose token works, gives it a budget and ends it`, async () => {
      const by = { token: await kinds[kind]() }
      const { id } = await done(by, 'POST', '/v1/me/agents', { name: newName('made') })
      const { access_token } = await done(by, 'POST', `/v1/me/agents/${id}/token`, {})
      expect((await read('/v1/me/whoami', { token: access_token })).agent.id).toBe(id)
      await done(by, 'POST', `/v1/me/agents/${id}/budget`, { monthly_budget_inr: 5 })
      const listed = async () => (await read('/v1/me/agents', by)).agents.find((each: { id: number }) => each.id === id)
      expect((await listed()).monthly_budget_inr).toBe(5)
      await done(by, 'POST', `/v1/me/agents/${id}/revoke`)
      expect((await call({ token: access_token }, 'GET', '/v1/me/whoami')).status).toBe(401)
    })
})

describe('PERM-13 a share is retired by whoever may', () => {
  test("PERM-13 SHARE-12 the organisation's owner and an admin retire a member's share; another member may not", async () => {
    await useStore(app, store)
    for (const retiring of ['owner', 'admin'] as const) {
      const space = `retired-by-${retiring}`
      const [opener, other] = [await app.newMember('member'), await app.newMember('member')]
      const keyOf = async (cookie: string) => ({ token: (await done({ cookie }, 'POST', '/me/keys', {})).key as string })
      const [openers, others] = [await keyOf(opener.cookie), await keyOf(other.cookie)]
      await done(openers, 'POST', '/v1/me/memory/shares', { space, member_uids: [other.userId] })
      const key = `/v1/me/memory/o?key=shared/${space}/a`
      await done(openers, 'PUT', key, 'kept')
      expect((await call(others, 'DELETE', `/v1/me/memory/shares/${space}`)).status).toBe(403)
      expect((await call(others, 'GET', key)).status).toBe(200)
      const by = retiring === 'owner' ? { token: app.key } : await keyOf((admin as { cookie: string }).cookie)
      expect(await done(by, 'DELETE', `/v1/me/memory/shares/${space}`)).toMatchObject({ ok: true, space, owner: opener.userId })
      for (const each of [openers, others, by]) expect((await call(each, 'GET', key)).status).toBe(403)
    }
  })
})
