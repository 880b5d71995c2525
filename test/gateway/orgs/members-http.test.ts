import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, type TestMember } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { codeOf, type Team, teamsOf } from './teams.ts'

const membersMax = 6

describe('members over HTTP', () => {
  const clock = movableClock()
  let app: TestApp
  let teams: ReturnType<typeof teamsOf>
  let home: Team
  beforeAll(async () => {
    app = await startApp({ clock, env: { MEMBERS_MAX: String(membersMax) } })
    teams = teamsOf(app)
    home = await teams.team()
  })
  afterAll(() => app.stop())

  test('ORG-05 SHAPE-24 every member and an agent can read members and open invitations', async () => {
    const { orgId, owner, admin, member } = await teams.team()
    const watcher = await app.newMember('member', { orgId, capabilities: ['usage:org:view'] })
    const made = await teams.invite(owner, 'New.Person@people.test', 'admin')
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
    const listed = [
      entry(owner, 'owner', null),
      entry(admin, 'admin'),
      entry(member, 'member'),
      entry(watcher, 'member', expect.any(String), ['usage:org:view']),
    ]
    /** Owners and admins see what everybody spends, members their own, and agents nothing. */
    const seenBy = (sees: (userId: number) => boolean) => ({
      members: listed.map(each => ({ ...each, monthly_budget_inr: null, spend_month_inr: sees(each.uid) ? 0 : null })),
      pending: [made.json],
      next_cursor: null,
    })
    for (const who of [owner, admin]) expect(await teams.members(who)).toEqual(seenBy(() => true))
    expect(await teams.members(member)).toEqual(seenBy(userId => userId === member.userId))
    const key = await teams.newKey(orgId, member)
    const { json: agent } = await app.call('POST', '/v1/me/agents', { name: 'list reader' }, { token: key })
    const { json: minted } = await app.call('POST', `/v1/me/agents/${agent.id}/token`, {}, { token: key })
    expect((await app.call('GET', '/me/members', undefined, { token: minted.access_token })).json).toEqual(seenBy(() => false))
  })

  test('the list of members has pages when the request asks for them', async () => {
    const { owner } = await teams.team()
    await teams.invite(owner, 'waiting@people.test')
    const all = (await teams.members(owner)).members
    const first = (await teams.as(owner)('GET', '/me/members?limit=2')).json
    expect([first.members, first.pending.length]).toEqual([all.slice(0, 2), 1])
    const second = (await teams.as(owner)('GET', `/me/members?limit=2&cursor=${first.next_cursor}`)).json
    expect([second.members, second.pending, second.next_cursor]).toEqual([all.slice(2), [], null])
    for (const query of ['limit=0', 'limit=201', 'limit=x', 'cursor=x', 'cursor=-1', 'cursor=99999999999'])
      expect(codeOf(await teams.as(owner)('GET', `/me/members?${query}`)), query).toEqual([400, 'bad_request'])
  })

  test('ORG-07 PERM-10 only an owner changes roles, and the new role applies from the next call on', async () => {
    const { owner, admin, member } = await teams.team()
    const patch = (who: TestMember, id: unknown, body: object) => teams.as(who)('PATCH', `/me/members/${id}`, body)
    for (const who of [admin, member]) {
      expect(codeOf(await patch(who, member.userId, { role: 'owner' }))).toEqual([403, 'forbidden'])
      expect(codeOf(await patch(who, 999_999, { role: 'owner' })), 'the role comes before the question whether the id exists').toEqual([403, 'forbidden'])
    }
    expect(codeOf(await teams.invite(member, 'by.member@people.test'))).toEqual([403, 'forbidden'])
    const raised = await patch(owner, member.userId, { role: 'admin' })
    expect([raised.status, raised.json]).toEqual([
      200,
      { ok: true, id: member.userId, uid: member.userId, email: member.email, name: expect.any(String), role: 'admin', capabilities: [] },
    ])
    expect((await teams.invite(member, 'by.member@people.test')).status).toBe(201)
    expect((await patch(owner, admin.userId, { role: 'member' })).status).toBe(200)
    expect(codeOf(await teams.invite(admin, 'by.admin@people.test'))).toEqual([403, 'forbidden'])
    const granted = await patch(owner, admin.userId, { capabilities: ['cost:org:view', 'audit:view', 'audit:view'] })
    expect(granted.json).toMatchObject({ role: 'member', capabilities: ['cost:org:view', 'audit:view'] })
    expect((await teams.as(admin)('GET', '/me')).json.capabilities).toEqual(['cost:org:view', 'audit:view'])
    expect((await patch(owner, admin.userId, { capabilities: [] })).json.capabilities).toEqual([])
    for (const role of ['boss', '']) expect(codeOf(await patch(owner, member.userId, { role }))).toEqual([400, 'bad_role'])
    for (const body of [{}, { role: 5 }, { capabilities: ['everything'] }, { capabilities: 'audit:view' }])
      expect(codeOf(await patch(owner, member.userId, body)), JSON.stringify(body)).toEqual([400, 'bad_request'])
    const key = await teams.newKey((await teams.as(owner)('GET', '/me')).json.org.id, member)
    expect((await app.call('GET', '/v1/me/whoami', undefined, { token: key })).json.role).toBe('admin')
    await patch(owner, member.userId, { role: 'member' })
    expect((await app.call('GET', '/v1/me/whoami', undefined, { token: key })).json.role).toBe('member')
  })

  test('ORG-08 the last owner cannot be demoted, cannot be removed and cannot leave, also when two owners demote or remove each other concurrently', async () => {
    const { orgId, owner, admin } = await teams.team()
    const call = teams.as(owner)
    for (const role of ['member', 'admin']) expect(codeOf(await call('PATCH', `/me/members/${owner.userId}`, { role }))).toEqual([400, 'last_owner'])
    expect(codeOf(await call('DELETE', `/me/members/${owner.userId}`))).toEqual([400, 'last_owner'])
    expect((await call('PATCH', `/me/members/${owner.userId}`, { role: 'owner' })).status, 'what changes nothing is fine').toBe(200)

    for (let round = 0; round < 4; round++) {
      expect((await teams.as(owner)('PATCH', `/me/members/${admin.userId}`, { role: 'owner' })).status).toBe(200)
      const [a, b] = await Promise.all([
        teams.as(owner)('PATCH', `/me/members/${admin.userId}`, { role: 'member' }),
        teams.as(admin)('PATCH', `/me/members/${owner.userId}`, { role: 'member' }),
      ])
      expect([a.status, b.status].sort()).toEqual([200, 403])
      // The remaining owner makes the other person an owner again.
      if (a.status !== 200) expect((await teams.as(admin)('PATCH', `/me/members/${owner.userId}`, { role: 'owner' })).status).toBe(200)
    }
    await teams.as(owner)('PATCH', `/me/members/${admin.userId}`, { role: 'owner' })
    const leaving = await Promise.all([teams.as(owner)('DELETE', `/me/members/${owner.userId}`), teams.as(admin)('DELETE', `/me/members/${admin.userId}`)])
    expect(leaving.map(codeOf).sort()).toEqual([
      [200, undefined],
      [400, 'last_owner'],
    ])
    expect([await teams.roleOf(orgId, owner), await teams.roleOf(orgId, admin)].filter(role => role === 'owner')).toHaveLength(1)
  })

  test('ORG-09 ORG-10 members may leave; only admins and owners remove others, and only owners remove owners', async () => {
    const { orgId, owner, admin, member } = await teams.team()
    const remove = (who: TestMember, id: unknown) => teams.as(who)('DELETE', `/me/members/${id}`)
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
    expect((await teams.members(owner)).members.map((each: { id: number }) => each.id)).toEqual([owner.userId, admin.userId])
    expect((await remove(admin, admin.userId)).status, 'an admin leaves').toBe(200)
  })

  test('ORG-15 ORG-18 unknown ids and ids of another organisation are both 404', async () => {
    const { owner } = home
    const other = await teams.team()
    const { json: theirs } = await teams.invite(other.owner, 'theirs@people.test')
    const { json: space } = await teams.as(other.owner)('POST', '/me/workspaces', { name: 'Theirs' })
    const mine = (await teams.as(owner)('POST', '/me/workspaces', { name: 'Mine' })).json.id
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
      const reply = await teams.as(owner)(method, path, body)
      expect(codeOf(reply), `${method} ${path}`).toEqual([404, 'not_found'])
      const [, unknownPath = '', unknownBody] = calls(unknown)[at] ?? []
      const nothing = await teams.as(owner)(method, unknownPath, unknownBody)
      expect(codeOf(nothing)).toEqual([404, 'not_found'])
      // The two messages may differ only in the id.
      const plain = (text: string) => text.replaceAll(/\d+/g, 'n')
      expect(plain(nothing.json.error.message)).toBe(plain(reply.json.error.message))
    }
    for (const id of ['abc', '0', '-1', '1.5', String(2 ** 31), '9'.repeat(30), '%00'])
      expect(codeOf(await teams.as(owner)('PATCH', `/me/members/${id}`, { role: 'admin' })), id).toEqual([404, 'not_found'])
    const after = await teams.members(other.owner)
    expect([after.members.length, after.pending]).toEqual([3, [theirs]])
    expect((await teams.as(other.owner)('GET', '/me/workspaces')).json.workspaces).toEqual([space])
  })

  test("AUTH-20 when a membership ends, the person's keys, agent tokens, sessions and running calls there end immediately and permanently", async () => {
    const { orgId, owner } = await teams.team()
    const person = await teams.stranger()
    await teams.join(owner, person)
    const session = { cookie: await app.signIn(person.userId, orgId) }
    const key = await teams.newKey(orgId, person)
    const { json: agent } = await app.call('POST', '/v1/me/agents', { name: 'of the leaver' }, { token: key })
    const { json: minted } = await app.call('POST', `/v1/me/agents/${agent.id}/token`, {}, { token: key })
    const whoami = (token: string) => app.call('GET', '/v1/me/whoami', undefined, { token })
    expect([(await whoami(key)).status, (await whoami(minted.access_token)).status]).toEqual([200, 200])

    app.alpha.script({ holdAfterChunks: 2 })
    const running = teams.chat(key, { stream: true })
    await app.alpha.arrived(1)
    expect((await teams.as(owner)('DELETE', `/me/members/${person.userId}`)).status).toBe(200)
    expect((await running).text).toContain('revoked')

    const isOut = async () => {
      for (const token of [key, minted.access_token]) expect(codeOf(await whoami(token))).toEqual([401, 'invalid_api_key'])
      expect(codeOf(await teams.as(session)('GET', '/me'))).toEqual([401, 'no_session'])
      expect((await teams.as(person)('GET', '/me')).status, 'their session elsewhere goes on').toBe(200)
    }
    await isOut()
    // A key that was made while the membership ended. It must not become valid with a later membership either.
    const late = await teams.newKey(orgId, person)
    expect(codeOf(await whoami(late))).toEqual([401, 'invalid_api_key'])
    expect((await teams.members(owner)).members.map((each: { id: number }) => each.id)).not.toContain(person.userId)

    await teams.join(owner, person, 'admin')
    expect(await teams.roleOf(orgId, person)).toBe('admin')
    await isOut()
    expect(codeOf(await whoami(late))).toEqual([401, 'invalid_api_key'])
    expect((await whoami(await teams.newKey(orgId, person))).json.role).toBe('admin')
    const back = { cookie: await app.signIn(person.userId, orgId) }
    expect((await teams.as(back)('GET', '/me')).json).toMatchObject({ role: 'admin', org: { id: orgId } })
  })

  test('SHAPE-07 a change whose reply has no other natural content returns ok: true with what it changed', async () => {
    const { orgId, owner, member } = await teams.team()
    const [person, decliner] = [await teams.stranger(), await teams.stranger()]
    const invited = async (email: string) => (await teams.invite(owner, email)).json.id
    const { json: space } = await teams.as(owner)('POST', '/me/workspaces', { name: 'Shape' })
    const { json: made } = await teams.as(person)('POST', '/me/orgs', { name: 'Own' })
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
      const reply = await teams.as(who)(method, path, body)
      expect([reply.status, reply.json], `${method} ${path}`).toMatchObject([200, { ok: true, ...resource }])
    }
  })

  test('a new invitation does not restore the capabilities and the role of a former member', async () => {
    const { orgId, owner } = await teams.team()
    const person = await teams.stranger()
    await teams.join(owner, person, 'admin')
    await teams.as(owner)('PATCH', `/me/members/${person.userId}`, { capabilities: ['audit:view'] })
    const there = { cookie: await app.signIn(person.userId, orgId) }
    expect((await teams.as(there)('DELETE', `/me/members/${person.userId}`)).status).toBe(200)
    expect(codeOf(await teams.as(there)('GET', '/me'))).toEqual([401, 'no_session'])
    await teams.join(owner, person)
    const { members: people } = await teams.members(owner)
    expect(people.find((each: { id: number }) => each.id === person.userId)).toMatchObject({ role: 'member', capabilities: [] })
  })
})
