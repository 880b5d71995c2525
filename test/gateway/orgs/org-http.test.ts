import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { defaultOperatorFile, startApp, type TestApp, type TestReply } from '../../harness/app.ts'

const setPicture = statement<[userId: number]>('test.set_picture', `update users set avatar_url = 'https://pictures.example/1' where id = $1::int`)
const attributionOf = statement<[userId: number], { source: string; detail: string | null }>(
  'test.attribution_of',
  `select source, detail from attributions where user_id = $1::int`,
)

const codeOf = (reply: TestReply) => [reply.status, reply.json.error?.code]

describe('the signed-in person and the organisation over HTTP', () => {
  let app: TestApp
  let owner: string
  beforeAll(async () => {
    app = await startApp({
      env: { TEAM_ORGS_MAX: '2' },
      operatorFile: urls => {
        const file = defaultOperatorFile(urls)
        const [first] = file.models
        return { ...file, models: [...file.models, { ...first, id: 'gated-model', gated: true }] }
      },
    })
    owner = await app.signIn()
  })
  afterAll(() => app.stop())
  const me = async (cookie: string) => (await app.call('GET', '/me', undefined, { cookie })).json
  const chat = (model: string) => app.call('POST', '/v1/chat/completions', { model, messages: [{ role: 'user', content: 'Hello' }], max_tokens: 10 })

  test('SESS-09 SHAPE-03 GET /me returns the signed-in person, role and organisation, nested and flat', async () => {
    const reply = await app.call('GET', '/me', undefined, { cookie: owner })
    expect(reply.status).toBe(200)
    expect(reply.json).toEqual({
      user: { id: app.userId, email: 'owner@test-org.test', name: null, avatar_url: null },
      role: 'owner',
      capabilities: [],
      org: {
        id: app.orgId,
        name: 'Test Org',
        domain: 'test-org.test',
        kind: 'team',
        data_retention_days: 0,
        key_inactivity_days: 90,
        display_currency: null,
        display_rate: null,
      },
      id: app.userId,
      email: 'owner@test-org.test',
      org_name: 'Test Org',
      domain: 'test-org.test',
      is_operator: false,
      attributed: false,
    })
    const admin = await app.newMember('admin')
    expect(await me(admin.cookie)).toMatchObject({ role: 'admin', id: admin.userId, email: admin.email })
  })

  test('an agent token may read GET /me like a member, also when its key has no user, and may not change anything', async () => {
    const { token } = await app.newAgent('reader')
    const seen = await app.call('GET', '/me', undefined, { token })
    expect([seen.status, seen.json.role, seen.json.user.id]).toEqual([200, 'member', app.userId])
    const orgs = await app.call('GET', '/me/orgs', undefined, { token })
    expect(orgs.json.orgs).toEqual([{ id: app.orgId, name: 'Test Org', kind: 'team', role: 'member', member_count: expect.any(Number), active: true }])
    expect((await app.call('GET', '/me/invitations', undefined, { token })).json).toEqual({ invitations: [] })
    expect(codeOf(await app.call('PATCH', '/me', { name: 'Robot' }, { token }))).toEqual([403, 'forbidden'])

    const { key } = await app.newKey({ withUser: false })
    const made = await app.call('POST', '/v1/me/agents', { name: 'nobody' }, { token: key })
    const minted = await app.call('POST', `/v1/me/agents/${made.json.id}/token`, {}, { token: key })
    const alone = await app.call('GET', '/me', undefined, { token: minted.json.access_token })
    expect(alone.json).toMatchObject({ user: { id: null, email: null }, role: 'member', id: null, email: null, org_name: 'Test Org' })
    expect((await app.call('GET', '/me/orgs', undefined, { token: minted.json.access_token })).json.orgs).toHaveLength(1)
  })

  test('SESS-10 PATCH /me sets the display name and removes the picture; other fields are ignored', async () => {
    const { userId, cookie, email } = await app.newMember('member')
    await app.db.exec(setPicture, userId)
    const named = await app.call('PATCH', '/me', { name: '  Mira Ö.  ', email: 'other@people.test', role: 'owner', id: 1 }, { cookie })
    expect(named.status).toBe(200)
    expect(named.json).toMatchObject({ ok: true, role: 'member', user: { id: userId, name: 'Mira Ö.', email, avatar_url: 'https://pictures.example/1' } })
    expect((await app.call('PATCH', '/me', { avatar_url: null }, { cookie })).json.user).toEqual({ id: userId, email, name: 'Mira Ö.', avatar_url: null })
    expect((await me(cookie)).user).toMatchObject({ name: 'Mira Ö.', avatar_url: null })
    for (const name of ['', '   ', 'x'.repeat(101), 'a\nb', 'a\u0000b', 'a\u0085b'])
      expect(codeOf(await app.call('PATCH', '/me', { name }, { cookie })), JSON.stringify(name)).toEqual([400, 'bad_name'])
    expect((await app.call('PATCH', '/me', { name: '𝒳'.repeat(100) }, { cookie })).status).toBe(200)
    for (const body of [{ avatar_url: 'https://pictures.example/2' }, { name: 5 }, { name: null }, [], 'no json'])
      expect(codeOf(await app.call('PATCH', '/me', body, { cookie }))).toEqual([400, 'bad_request'])
  })

  test('ORG-01 PERM-01 the owner renames the organisation; admins and members get 403; an invalid name is bad_name', async () => {
    const { orgId, userId } = await app.otherOrg('Renamed')
    const [cookie, admin, member] = [await app.signIn(userId, orgId), await app.newMember('admin', { orgId }), await app.newMember('member', { orgId })]
    for (const { cookie } of [admin, member]) expect(codeOf(await app.call('PATCH', '/me/org', { name: 'Mine' }, { cookie }))).toEqual([403, 'forbidden'])
    for (const name of ['', ' ', 'x'.repeat(101), 'tab\there'])
      expect(codeOf(await app.call('PATCH', '/me/org', { name }, { cookie }))).toEqual([400, 'bad_name'])
    expect(codeOf(await app.call('PATCH', '/me/org', {}, { cookie }))).toEqual([400, 'bad_request'])
    const renamed = await app.call('PATCH', '/me/org', { name: ' New Name ' }, { cookie })
    expect([renamed.status, renamed.json.ok, renamed.json.org.name, renamed.json.org_name]).toEqual([200, true, 'New Name', 'New Name'])
    expect((await me(member.cookie)).org_name).toBe('New Name')
  })

  test('ORG-02 ORG-03 SHAPE-23 a person owns the team organisations that they make and sees them in the list, up to a limit for each person', async () => {
    const { cookie, userId } = await app.newMember('member')
    const made = await app.call('POST', '/me/orgs', { name: 'Team One' }, { cookie })
    expect(made.status).toBe(201)
    expect(made.json).toEqual({ id: expect.any(Number), name: 'Team One', kind: 'team', role: 'owner', member_count: 1, active: false })
    const { orgs } = (await app.call('GET', '/me/orgs', undefined, { cookie })).json
    expect(orgs).toEqual([{ id: app.orgId, name: 'Test Org', kind: 'team', role: 'member', member_count: expect.any(Number), active: true }, made.json])
    expect(codeOf(await app.call('POST', '/me/orgs', { name: '\u0007' }, { cookie }))).toEqual([400, 'bad_name'])
    // One place is left for four concurrent requests.
    const statuses = await Promise.all([2, 3, 4, 5].map(async n => codeOf(await app.call('POST', '/me/orgs', { name: `Team ${n}` }, { cookie }))))
    expect(statuses.sort()).toEqual([[201, undefined], ...Array(3).fill([400, 'team_cap'])])
    expect((await app.call('GET', '/me/orgs', undefined, { cookie })).json.orgs).toHaveLength(3)
    // Organisations that others made do not count for this person, and this person's organisations do not count for others.
    expect((await app.call('POST', '/me/orgs', { name: 'Of the owner' }, { cookie: owner })).status).toBe(201)
    expect(await app.gateway.app.orgs.roleOf(made.json.id, userId)).toBe('owner')
  })

  test('ORG-04 a switch moves the session to another organisation of the person; any other organisation is 404', async () => {
    const { cookie, userId } = await app.newMember('member')
    const second = await app.signIn(userId)
    const { json: team } = await app.call('POST', '/me/orgs', { name: 'Second' }, { cookie })
    const moved = await app.call('POST', '/me/orgs/switch', { org_id: team.id }, { cookie })
    expect(moved.status).toBe(200)
    expect(moved.json).toEqual({ ok: true, org: { ...team, active: true } })
    expect(await me(cookie)).toMatchObject({ role: 'owner', org: { id: team.id, name: 'Second' } })
    expect((await app.call('GET', '/me/orgs', undefined, { cookie })).json.orgs.map((org: { id: number; active: boolean }) => [org.id, org.active])).toEqual([
      [app.orgId, false],
      [team.id, true],
    ])
    expect((await me(second)).org.id, 'another session of the same person stays').toBe(app.orgId)
    const strange = await app.otherOrg('Strange')
    for (const org_id of [strange.orgId, 999_999, 0, -1, 2 ** 31, 1e300, 1.5])
      expect(codeOf(await app.call('POST', '/me/orgs/switch', { org_id }, { cookie })), String(org_id)).toEqual([404, 'not_found'])
    expect(codeOf(await app.call('POST', '/me/orgs/switch', { org_id: 'x' }, { cookie }))).toEqual([400, 'bad_request'])
    expect((await me(cookie)).org.id).toBe(team.id)
  })

  test('ORG-16 when an owner or admin sets a data-retention window, gated models are allowed immediately; when it is set to 0, they are refused again', async () => {
    const admin = await app.newMember('admin')
    const member = await app.newMember('member')
    const put = (days: unknown, cookie = owner) => app.call('PUT', '/me/org/data-retention', { days }, { cookie })
    expect(codeOf(await chat('gated-model'))).toEqual([403, 'model_gated'])
    expect(codeOf(await put(7, member.cookie))).toEqual([403, 'forbidden'])
    expect(codeOf(await chat('gated-model'))).toEqual([403, 'model_gated'])
    const set = await put(7, admin.cookie)
    expect([set.status, set.json]).toEqual([200, { ok: true, days: 7 }])
    expect((await chat('gated-model')).status).toBe(200)
    expect((await me(owner)).org.data_retention_days).toBe(7)
    for (const days of [-1, 31, 1.5, '7', null, undefined]) expect(codeOf(await put(days)), String(days)).toEqual([400, 'bad_request'])
    expect((await me(owner)).org.data_retention_days).toBe(7)
    expect((await put(30)).status).toBe(200)
    expect((await put(0)).status).toBe(200)
    expect(codeOf(await chat('gated-model'))).toEqual([403, 'model_gated'])
    expect((await chat('test-model')).status).toBe(200)
  })

  test('KEY-18 SHAPE-30 owners and admins set after how many days without use a key is disabled; the default is 90, and null means never', async () => {
    const { orgId, userId } = await app.otherOrg('Idle')
    const cookie = await app.signIn(userId, orgId)
    const admin = await app.newMember('admin', { orgId })
    const member = await app.newMember('member', { orgId })
    const put = (days: unknown, who = cookie) => app.call('PUT', '/me/org/key-inactivity', { days }, { cookie: who })
    expect((await me(cookie)).org.key_inactivity_days).toBe(90)
    expect(codeOf(await put(30, member.cookie))).toEqual([403, 'forbidden'])
    expect((await put(30, admin.cookie)).json).toEqual({ ok: true, days: 30 })
    expect((await me(member.cookie)).org.key_inactivity_days).toBe(30)
    expect((await put(null)).json).toEqual({ ok: true, days: null })
    expect((await me(cookie)).org.key_inactivity_days).toBe(null)
    for (const days of [0, -5, 1.5, '90', undefined, 1e12]) expect(codeOf(await put(days)), String(days)).toEqual([400, 'bad_request'])
    expect((await put(1)).status).toBe(200)
    for (const path of ['data-retention', 'key-inactivity'])
      expect((await app.call('PUT', `/me/org/${path}`, { days: 2 }, { cookie })).json, path).toEqual({ ok: true, days: 2 })
    for (const days of [0, 31]) expect((await app.call('PUT', '/me/org/data-retention', { days }, { cookie })).status).toBe(days === 0 ? 200 : 400)
  })

  test('SESS-15 POST /me/attribution stores the first answer; a second answer is 200 and changes nothing', async () => {
    const { cookie, userId } = await app.newMember('member')
    const post = (body: object) => app.call('POST', '/me/attribution', body, { cookie })
    for (const body of [{}, { source: '' }, { source: 'x'.repeat(101) }, { source: 'a\u0000' }, { source: 'ok', detail: 'x'.repeat(501) }])
      expect(codeOf(await post(body)), JSON.stringify(body)).toEqual([400, 'bad_request'])
    expect((await me(cookie)).attributed).toBe(false)
    const first = await post({ source: 'a friend', detail: 'at lunch' })
    expect([first.status, first.json]).toEqual([200, { ok: true, attributed: true }])
    const second = await post({ source: 'a search' })
    expect([second.status, second.json]).toEqual([200, { ok: true, attributed: true }])
    expect(await app.db.one(attributionOf, userId)).toEqual({ source: 'a friend', detail: 'at lunch' })
    expect((await me(cookie)).attributed).toBe(true)
    expect((await me(owner)).attributed).toBe(false)
  })
})
