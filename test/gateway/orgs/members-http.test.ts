import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db.ts'
import { startApp, type TestApp, type TestMember, type TestReply } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'

const mailsTo = statement<[to: string], { template: string; data: { orgName: string; inviter: string; role: string; link: string } }>(
  'test.mails_to',
  `select template, data from emails where to_address = $1::text order by id`,
)
const addPerson = statement<[email: string], { id: number }>(
  'test.add_invited',
  `insert into users (email, name, created_at) values ($1::text, null, now()) returning id`,
)

const codeOf = (reply: TestReply) => [reply.status, reply.json.error?.code]
const membersMax = 6

interface Team {
  readonly orgId: number
  readonly owner: TestMember
  readonly admin: TestMember
  readonly member: TestMember
}

describe('members and invitations over HTTP', () => {
  const clock = movableClock()
  let app: TestApp
  let home: Team
  beforeAll(async () => {
    app = await startApp({ clock, env: { MEMBERS_MAX: String(membersMax) } })
    home = await team()
  })
  afterAll(() => app.stop())

  let named = 0
  /** A team organisation of three. */
  async function team(): Promise<Team> {
    const name = `Team ${++named}`
    const { orgId, userId } = await app.otherOrg(name)
    const owner = { userId, email: `owner@team-${named}.test`, cookie: await app.signIn(userId, orgId) }
    return { orgId, owner, admin: await app.newMember('admin', { orgId }), member: await app.newMember('member', { orgId }) }
  }
  /** Somebody who is in an organisation of their own and in no other. */
  async function stranger(): Promise<TestMember> {
    const name = `Lone ${++named}`
    const { orgId, userId } = await app.otherOrg(name)
    return { userId, email: `owner@lone-${named}.test`, cookie: await app.signIn(userId, orgId) }
  }
  const as =
    (who: { cookie: string }) =>
    (method: string, path: string, body?: unknown): Promise<TestReply> =>
      app.call(method, path, body, { cookie: who.cookie })
  const invite = (who: { cookie: string }, email: string, role = 'member') => as(who)('POST', '/me/members', { email, role })
  const members = async (who: { cookie: string }) => (await as(who)('GET', '/me/members')).json
  const roleOf = (orgId: number, { userId }: TestMember) => app.gateway.app.orgs.roleOf(orgId, userId)
  const invitations = async (who: { cookie: string }) => (await as(who)('GET', '/me/invitations')).json.invitations
  /** Makes the person a member of the organisation by invitation. */
  async function join(orgOwner: TestMember, person: TestMember, role = 'member'): Promise<void> {
    const { json } = await invite(orgOwner, person.email, role)
    expect((await as(person)('POST', `/me/invitations/${json.id}/accept`)).status).toBe(200)
  }
  const newKey = async (orgId: number, { userId }: TestMember) => {
    const wish = { orgId, userId, workspaceId: null, name: `key ${++named}`, scope: 'full', rpmLimit: null, dailyLimit: null } as const
    return (await app.gateway.app.keys.create(wish)).key
  }
  const chat = (token: string, more: object = {}) =>
    app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 20, ...more }, { token })

  test('ORG-05 SHAPE-24 everybody in the organisation, and an agent, reads members and open invitations', async () => {
    const { orgId, owner, admin, member } = await team()
    const watcher = await app.newMember('member', { orgId, capabilities: ['usage:org:view'] })
    const made = await invite(owner, 'New.Person@people.test', 'admin')
    expect(made.status).toBe(201)
    expect(made.json).toEqual({ id: expect.any(Number), email: 'New.Person@people.test', role: 'admin', created_at: expect.any(String) })
    const entry = ({ userId, email }: TestMember, role: string, name: unknown = expect.any(String), capabilities: string[] = []) => ({
      id: userId,
      uid: userId,
      email,
      name,
      role,
      capabilities,
    })
    const expected = {
      members: [entry(owner, 'owner', null), entry(admin, 'admin'), entry(member, 'member'), entry(watcher, 'member', expect.any(String), ['usage:org:view'])],
      pending: [made.json],
      next_cursor: null,
    }
    for (const who of [owner, admin, member]) expect(await members(who)).toEqual(expected)
    const key = await newKey(orgId, member)
    const { json: agent } = await app.call('POST', '/v1/me/agents', { name: 'list reader' }, { token: key })
    const { json: minted } = await app.call('POST', `/v1/me/agents/${agent.id}/token`, {}, { token: key })
    expect((await app.call('GET', '/me/members', undefined, { token: minted.access_token })).json).toEqual(expected)
  })

  test('the list of members comes in pages when asked for', async () => {
    const { owner } = await team()
    await invite(owner, 'waiting@people.test')
    const all = (await members(owner)).members
    const first = (await as(owner)('GET', '/me/members?limit=2')).json
    expect([first.members, first.pending.length]).toEqual([all.slice(0, 2), 1])
    const second = (await as(owner)('GET', `/me/members?limit=2&cursor=${first.next_cursor}`)).json
    expect([second.members, second.pending, second.next_cursor]).toEqual([all.slice(2), [], null])
    for (const query of ['limit=0', 'limit=201', 'limit=x', 'cursor=x', 'cursor=-1', 'cursor=99999999999'])
      expect(codeOf(await as(owner)('GET', `/me/members?${query}`)), query).toEqual([400, 'bad_request'])
  })

  test('ORG-06 owner and admin invite by address and role; what cannot be is told apart', async () => {
    const { owner, admin, member } = await team()
    expect(codeOf(await invite(member, 'x@people.test'))).toEqual([403, 'forbidden'])
    for (const email of [
      '',
      'nobody',
      'a@',
      '@b.test',
      'a b@c.test',
      'a@b@c.test',
      'a,b@c.test',
      'a\u0000@c.test',
      'a@b..c',
      'Ann <ann@c.test>',
      `${'x'.repeat(65)}@c.test`,
    ])
      expect(codeOf(await invite(owner, email)), JSON.stringify(email)).toEqual([400, 'bad_email'])
    for (const role of ['', 'boss', 'Owner']) expect(codeOf(await invite(owner, 'x@people.test', role)), role).toEqual([400, 'bad_role'])
    expect(codeOf(await invite(admin, 'x@people.test', 'owner')), 'only an owner invites an owner').toEqual([400, 'bad_role'])
    for (const body of [{}, { email: 'x@people.test' }, { email: 5, role: 'member' }])
      expect(codeOf(await as(owner)('POST', '/me/members', body))).toEqual([400, 'bad_request'])
    for (const { email } of [owner, admin, member]) expect(codeOf(await invite(admin, email.toUpperCase()))).toEqual([400, 'already_member'])
    expect((await invite(admin, ' one@people.test ')).json).toMatchObject({ email: 'one@people.test', role: 'member' })
    expect(codeOf(await invite(owner, 'ONE@people.test', 'admin'))).toEqual([400, 'already_invited'])
    expect((await invite(owner, 'two@people.test', 'owner')).status).toBe(201)
    // Members and open invitations count together: three and two so far, room for one, and four ask at once.
    const replies = await Promise.all(['a', 'b', 'c', 'd'].map(name => invite(owner, `${name}@people.test`)))
    expect(replies.map(codeOf).sort()).toEqual([[201, undefined], ...Array(3).fill([400, 'member_cap'])])
    expect((await members(owner)).pending).toHaveLength(3)
    const full = await invite(owner, 'late@people.test')
    expect(full.json.error.message).toContain(String(membersMax))
  })

  test('nobody can be invited into a personal organisation', async () => {
    const { userId } = await app.db.one(addPerson, 'solo@people.test').then(({ id }) => ({ userId: id }))
    const { orgId } = await app.gateway.app.orgs.createOrg({ name: 'Solo', ownerEmail: 'solo@people.test', kind: 'personal' })
    const cookie = await app.signIn(userId, orgId)
    expect(codeOf(await invite({ cookie }, 'x@people.test'))).toEqual([400, 'personal_org'])
    expect(codeOf(await as({ cookie })('DELETE', `/me/members/${userId}`))).toEqual([400, 'last_owner'])
  })

  test('an invitation is mailed, at most once an hour to the same address, and only when it was made', async () => {
    const { owner } = await team()
    const { json } = await invite(owner, 'post@people.test', 'admin')
    const mail = {
      template: 'invitation',
      data: { orgName: `Team ${named}`, inviter: owner.email, role: 'admin', link: `${app.baseUrl}/me/invitations` },
    }
    expect(await app.db.many(mailsTo, 'post@people.test')).toEqual([mail])
    await invite(owner, 'POST@people.test')
    await as(owner)('DELETE', `/me/members/pending/${json.id}`)
    expect((await invite(owner, 'post@people.test')).status).toBe(201)
    expect(await app.db.many(mailsTo, 'post@people.test')).toHaveLength(1)
    const { pending } = await members(owner)
    await as(owner)('DELETE', `/me/members/pending/${pending[0].id}`)
    clock.advance(3_600_000)
    expect((await invite(owner, 'post@people.test')).status).toBe(201)
    expect(await app.db.many(mailsTo, 'post@people.test')).toHaveLength(2)
  })

  test('ORG-11 a person sees the open invitations to their own address, in any case of letters, and no others', async () => {
    const person = await stranger()
    const [one, two] = [await team(), await team()]
    const first = await invite(one.owner, person.email.toUpperCase(), 'admin')
    const second = await invite(two.admin, person.email)
    await invite(two.owner, 'somebody.else@people.test')
    const view = (made: TestReply, from: Team, invitedBy: string) => ({
      ...made.json,
      org: { id: from.orgId, name: expect.stringMatching(/^Team /), kind: 'team' },
      invited_by: invitedBy,
    })
    expect(await invitations(person)).toEqual([view(first, one, one.owner.email), view(second, two, two.admin.email.split('@')[0] ?? '')])
    expect(await invitations(one.owner)).toEqual([])
    expect(await invitations(two.member)).toEqual([])
  })

  test('ORG-12 who accepts is a member with the invited role, and the invitation is gone; the session stays where it was', async () => {
    const { orgId, owner } = await team()
    const person = await stranger()
    const { json: made } = await invite(owner, person.email, 'admin')
    const accepted = await as(person)('POST', `/me/invitations/${made.id}/accept`)
    expect(accepted.status).toBe(200)
    expect(accepted.json).toMatchObject({ ok: true, id: made.id, role: 'admin', org: { id: orgId } })
    const { members: people, pending } = await members(owner)
    expect(people.find((each: { uid: number }) => each.uid === person.userId)).toMatchObject({ email: person.email, role: 'admin', capabilities: [] })
    expect(pending).toEqual([])
    expect(await invitations(person)).toEqual([])
    expect((await as(person)('GET', '/me')).json.org.id).not.toBe(orgId)
    expect((await as(person)('POST', '/me/orgs/switch', { org_id: orgId })).status).toBe(200)
    expect((await as(person)('GET', '/me')).json).toMatchObject({ role: 'admin', org: { id: orgId } })
    expect((await invite(person, 'by.admin@people.test')).status).toBe(201)
  })

  test('ORG-13 ORG-14 LIFE-14 only the invited person decides, once: declined, accepted or withdrawn, it is 404 from then on', async () => {
    const { orgId, owner, admin, member } = await team()
    const person = await stranger()
    const other = await stranger()
    const decide = (who: TestMember, id: unknown, how: string) => as(who)('POST', `/me/invitations/${id}/${how}`)
    const { json: made } = await invite(owner, person.email)
    for (const who of [owner, admin, member, other])
      for (const how of ['accept', 'decline']) expect(codeOf(await decide(who, made.id, how)), how).toEqual([404, 'not_found'])
    expect((await invitations(person)).map((each: { id: number }) => each.id)).toEqual([made.id])
    expect((await decide(person, made.id, 'decline')).json).toEqual({ ok: true, id: made.id })
    for (const how of ['accept', 'decline']) expect(codeOf(await decide(person, made.id, how))).toEqual([404, 'not_found'])
    expect(await roleOf(orgId, person)).toBeNull()

    const { json: again } = await invite(owner, person.email)
    expect(codeOf(await as(member)('DELETE', `/me/members/pending/${again.id}`))).toEqual([403, 'forbidden'])
    expect((await as(admin)('DELETE', `/me/members/pending/${again.id}`)).json).toEqual({ ok: true, id: again.id })
    expect(codeOf(await as(admin)('DELETE', `/me/members/pending/${again.id}`))).toEqual([404, 'not_found'])
    expect(codeOf(await decide(person, again.id, 'accept'))).toEqual([404, 'not_found'])

    const { json: third } = await invite(owner, person.email)
    const both = await Promise.all([decide(person, third.id, 'accept'), decide(person, third.id, 'decline'), decide(person, third.id, 'accept')])
    expect(both.map(reply => reply.status).sort()).toEqual([200, 404, 404])
    for (const id of [999_999, 'abc', 0]) expect(codeOf(await decide(person, id, 'accept')), String(id)).toEqual([404, 'not_found'])
  })

  test('ORG-07 PERM-10 only an owner changes roles, and the new role holds from the next call on', async () => {
    const { owner, admin, member } = await team()
    const patch = (who: TestMember, id: unknown, body: object) => as(who)('PATCH', `/me/members/${id}`, body)
    for (const who of [admin, member]) {
      expect(codeOf(await patch(who, member.userId, { role: 'owner' }))).toEqual([403, 'forbidden'])
      expect(codeOf(await patch(who, 999_999, { role: 'owner' })), 'the role comes before the question whether the id exists').toEqual([403, 'forbidden'])
    }
    expect(codeOf(await invite(member, 'by.member@people.test'))).toEqual([403, 'forbidden'])
    const raised = await patch(owner, member.userId, { role: 'admin' })
    expect([raised.status, raised.json]).toEqual([
      200,
      { ok: true, id: member.userId, uid: member.userId, email: member.email, name: expect.any(String), role: 'admin', capabilities: [] },
    ])
    expect((await invite(member, 'by.member@people.test')).status).toBe(201)
    expect((await patch(owner, admin.userId, { role: 'member' })).status).toBe(200)
    expect(codeOf(await invite(admin, 'by.admin@people.test'))).toEqual([403, 'forbidden'])
    const granted = await patch(owner, admin.userId, { capabilities: ['cost:org:view', 'audit:view', 'audit:view'] })
    expect(granted.json).toMatchObject({ role: 'member', capabilities: ['cost:org:view', 'audit:view'] })
    expect((await as(admin)('GET', '/me')).json.capabilities).toEqual(['cost:org:view', 'audit:view'])
    expect((await patch(owner, admin.userId, { capabilities: [] })).json.capabilities).toEqual([])
    for (const role of ['boss', '']) expect(codeOf(await patch(owner, member.userId, { role }))).toEqual([400, 'bad_role'])
    for (const body of [{}, { role: 5 }, { capabilities: ['everything'] }, { capabilities: 'audit:view' }])
      expect(codeOf(await patch(owner, member.userId, body)), JSON.stringify(body)).toEqual([400, 'bad_request'])
    const key = await newKey((await as(owner)('GET', '/me')).json.org.id, member)
    expect((await app.call('GET', '/v1/me/whoami', undefined, { token: key })).json.role).toBe('admin')
    await patch(owner, member.userId, { role: 'member' })
    expect((await app.call('GET', '/v1/me/whoami', undefined, { token: key })).json.role).toBe('member')
  })

  test('ORG-08 the last owner is neither demoted nor removed and does not leave, also when two owners do it to each other at once', async () => {
    const { orgId, owner, admin } = await team()
    const call = as(owner)
    for (const role of ['member', 'admin']) expect(codeOf(await call('PATCH', `/me/members/${owner.userId}`, { role }))).toEqual([400, 'last_owner'])
    expect(codeOf(await call('DELETE', `/me/members/${owner.userId}`))).toEqual([400, 'last_owner'])
    expect((await call('PATCH', `/me/members/${owner.userId}`, { role: 'owner' })).status, 'what changes nothing is fine').toBe(200)

    for (let round = 0; round < 4; round++) {
      expect((await as(owner)('PATCH', `/me/members/${admin.userId}`, { role: 'owner' })).status).toBe(200)
      const [a, b] = await Promise.all([
        as(owner)('PATCH', `/me/members/${admin.userId}`, { role: 'member' }),
        as(admin)('PATCH', `/me/members/${owner.userId}`, { role: 'member' }),
      ])
      expect([a.status, b.status].sort()).toEqual([200, 403])
      // The one who is left makes the other an owner again.
      if (a.status !== 200) expect((await as(admin)('PATCH', `/me/members/${owner.userId}`, { role: 'owner' })).status).toBe(200)
    }
    await as(owner)('PATCH', `/me/members/${admin.userId}`, { role: 'owner' })
    const leaving = await Promise.all([as(owner)('DELETE', `/me/members/${owner.userId}`), as(admin)('DELETE', `/me/members/${admin.userId}`)])
    expect(leaving.map(codeOf).sort()).toEqual([
      [200, undefined],
      [400, 'last_owner'],
    ])
    expect([await roleOf(orgId, owner), await roleOf(orgId, admin)].filter(role => role === 'owner')).toHaveLength(1)
  })

  test('ORG-09 ORG-10 members leave by themselves; only admins and owners remove others, and an owner is removed by an owner only', async () => {
    const { orgId, owner, admin, member } = await team()
    const remove = (who: TestMember, id: unknown) => as(who)('DELETE', `/me/members/${id}`)
    const peer = await app.newMember('member', { orgId })
    for (const id of [peer.userId, admin.userId, owner.userId, 999_999]) expect(codeOf(await remove(member, id))).toEqual([403, 'forbidden'])
    expect(codeOf(await remove(admin, owner.userId))).toEqual([403, 'forbidden'])
    const left = await remove(member, member.userId)
    expect([left.status, left.json]).toEqual([200, { ok: true, id: member.userId }])
    expect((await remove(admin, peer.userId)).status).toBe(200)
    const second = await app.newMember('admin', { orgId })
    expect((await remove(admin, second.userId)).status, 'an admin removes an admin').toBe(200)
    const coOwner = await app.newMember('owner', { orgId })
    expect(codeOf(await remove(admin, coOwner.userId))).toEqual([403, 'forbidden'])
    expect((await remove(owner, coOwner.userId)).status).toBe(200)
    expect((await members(owner)).members.map((each: { id: number }) => each.id)).toEqual([owner.userId, admin.userId])
    expect((await remove(admin, admin.userId)).status, 'an admin leaves').toBe(200)
  })

  test('ORG-15 ORG-18 ids that do not exist and ids of another organisation are 404 alike', async () => {
    const { owner } = home
    const other = await team()
    const { json: theirs } = await invite(other.owner, 'theirs@people.test')
    const { json: space } = await as(other.owner)('POST', '/me/workspaces', { name: 'Theirs' })
    const mine = (await as(owner)('POST', '/me/workspaces', { name: 'Mine' })).json.id
    const calls = (ids: { uid: unknown; invitation: unknown; workspace: unknown; org: number }) =>
      [
        ['PATCH', `/me/members/${ids.uid}`, { role: 'admin' }],
        ['DELETE', `/me/members/${ids.uid}`],
        ['DELETE', `/me/members/pending/${ids.invitation}`],
        ['POST', `/me/invitations/${ids.invitation}/accept`],
        ['POST', `/me/invitations/${ids.invitation}/decline`],
        ['PATCH', `/me/workspaces/${ids.workspace}`, { name: 'Stolen' }],
        ['DELETE', `/me/workspaces/${ids.workspace}`],
        ['PATCH', `/me/workspaces/${mine}`, { member_uids: [ids.uid] }],
        ['POST', '/me/orgs/switch', { org_id: ids.org }],
      ] as const
    const foreign = { uid: other.member.userId, invitation: theirs.id, workspace: space.id, org: other.orgId }
    const unknown = { uid: 999_999, invitation: 999_999, workspace: 999_999, org: 999_999 }
    for (const [at, [method, path, body]] of calls(foreign).entries()) {
      const reply = await as(owner)(method, path, body)
      expect(codeOf(reply), `${method} ${path}`).toEqual([404, 'not_found'])
      const [, unknownPath = '', unknownBody] = calls(unknown)[at] ?? []
      const nothing = await as(owner)(method, unknownPath, unknownBody)
      expect(codeOf(nothing)).toEqual([404, 'not_found'])
      // Nothing but the id that was asked for may differ.
      const plain = (text: string) => text.replaceAll(/\d+/g, 'n')
      expect(plain(nothing.json.error.message)).toBe(plain(reply.json.error.message))
    }
    for (const id of ['abc', '0', '-1', '1.5', String(2 ** 31), '9'.repeat(30), '%00'])
      expect(codeOf(await as(owner)('PATCH', `/me/members/${id}`, { role: 'admin' })), id).toEqual([404, 'not_found'])
    const after = await members(other.owner)
    expect([after.members.length, after.pending]).toEqual([3, [theirs]])
    expect((await as(other.owner)('GET', '/me/workspaces')).json.workspaces).toEqual([space])
  })

  test('AUTH-20 when a membership ends, the keys, agent tokens and sessions of that person there end at once, running calls too, and stay ended', async () => {
    const { orgId, owner } = await team()
    const person = await stranger()
    await join(owner, person)
    const session = { cookie: await app.signIn(person.userId, orgId) }
    const key = await newKey(orgId, person)
    const { json: agent } = await app.call('POST', '/v1/me/agents', { name: 'of the leaver' }, { token: key })
    const { json: minted } = await app.call('POST', `/v1/me/agents/${agent.id}/token`, {}, { token: key })
    const whoami = (token: string) => app.call('GET', '/v1/me/whoami', undefined, { token })
    expect([(await whoami(key)).status, (await whoami(minted.access_token)).status]).toEqual([200, 200])

    app.alpha.script({ holdAfterChunks: 2 })
    const running = chat(key, { stream: true })
    await app.alpha.arrived(1)
    expect((await as(owner)('DELETE', `/me/members/${person.userId}`)).status).toBe(200)
    expect((await running).text).toContain('revoked')

    const isOut = async () => {
      for (const token of [key, minted.access_token]) expect(codeOf(await whoami(token))).toEqual([401, 'invalid_api_key'])
      expect(codeOf(await as(session)('GET', '/me'))).toEqual([401, 'no_session'])
      expect((await as(person)('GET', '/me')).status, 'their session elsewhere goes on').toBe(200)
    }
    await isOut()
    // A key that was being made while the membership ended: it must not wake up with the next one either.
    const late = await newKey(orgId, person)
    expect(codeOf(await whoami(late))).toEqual([401, 'invalid_api_key'])
    expect((await members(owner)).members.map((each: { id: number }) => each.id)).not.toContain(person.userId)

    await join(owner, person, 'admin')
    expect(await roleOf(orgId, person)).toBe('admin')
    await isOut()
    expect(codeOf(await whoami(late))).toEqual([401, 'invalid_api_key'])
    expect((await whoami(await newKey(orgId, person))).json.role).toBe('admin')
    const back = { cookie: await app.signIn(person.userId, orgId) }
    expect((await as(back)('GET', '/me')).json).toMatchObject({ role: 'admin', org: { id: orgId } })
  })

  test('SHAPE-07 a change without a natural body of its own answers ok: true together with what it changed', async () => {
    const { orgId, owner, member } = await team()
    const [person, decliner] = [await stranger(), await stranger()]
    const invited = async (email: string) => (await invite(owner, email)).json.id
    const { json: space } = await as(owner)('POST', '/me/workspaces', { name: 'Shape' })
    const { json: made } = await as(person)('POST', '/me/orgs', { name: 'Own' })
    const [withdrawn, declined, accepted] = [await invited('gone@people.test'), await invited(decliner.email), await invited(person.email)]
    for (const [who, method, path, body, resource] of [
      [owner, 'PATCH', '/me', { name: 'Olga' }, { user: { name: 'Olga' } }],
      [owner, 'PATCH', '/me/org', { name: 'Shapes' }, { org: { id: orgId, name: 'Shapes' } }],
      [owner, 'PUT', '/me/org/data-retention', { days: 1 }, { days: 1 }],
      [owner, 'PUT', '/me/org/key-inactivity', { days: 7 }, { days: 7 }],
      [owner, 'POST', '/me/attribution', { source: 'a friend' }, { attributed: true }],
      [owner, 'DELETE', `/me/members/pending/${withdrawn}`, undefined, { id: withdrawn }],
      [decliner, 'POST', `/me/invitations/${declined}/decline`, undefined, { id: declined }],
      [person, 'POST', `/me/invitations/${accepted}/accept`, undefined, { id: accepted, role: 'member', org: { id: orgId } }],
      [person, 'POST', '/me/orgs/switch', { org_id: made.id }, { org: { id: made.id, active: true } }],
      [owner, 'PATCH', `/me/members/${member.userId}`, { role: 'admin' }, { id: member.userId, role: 'admin' }],
      [owner, 'DELETE', `/me/members/${member.userId}`, undefined, { id: member.userId }],
      [owner, 'PATCH', `/me/workspaces/${space.id}`, { name: 'Round' }, { id: space.id, name: 'Round' }],
      [owner, 'DELETE', `/me/workspaces/${space.id}`, undefined, { id: space.id, archived: true }],
    ] as const) {
      const reply = await as(who)(method, path, body)
      expect([reply.status, reply.json], `${method} ${path}`).toMatchObject([200, { ok: true, ...resource }])
    }
  })

  test('who leaves loses what a membership gave: capabilities and role do not come back with the next invitation', async () => {
    const { orgId, owner } = await team()
    const person = await stranger()
    await join(owner, person, 'admin')
    await as(owner)('PATCH', `/me/members/${person.userId}`, { capabilities: ['audit:view'] })
    const there = { cookie: await app.signIn(person.userId, orgId) }
    expect((await as(there)('DELETE', `/me/members/${person.userId}`)).status).toBe(200)
    expect(codeOf(await as(there)('GET', '/me'))).toEqual([401, 'no_session'])
    await join(owner, person)
    const { members: people } = await members(owner)
    expect(people.find((each: { id: number }) => each.id === person.userId)).toMatchObject({ role: 'member', capabilities: [] })
  })
})
