import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestMember, type TestReply } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { codeOf, type Team, teamsOf } from './teams.ts'

const mailsTo = statement<[to: string], { template: string; data: { orgName: string; inviter: string; role: string; link: string } }>(
  'test.mails_to',
  `select template, data from emails where to_address = $1::text order by id`,
)
const addPerson = statement<[email: string], { id: number }>(
  'test.add_invited',
  `insert into users (email, name, created_at) values ($1::text, null, now()) returning id`,
)
const addWithdrawn = statement<[orgId: number, by: number, email: string, at: Date]>(
  'test.add_withdrawn',
  `insert into invitations (org_id, email, role, invited_by, created_at, status, decided_at)
   values ($1::int, $3::text, 'member', $2::int, $4::timestamptz, 'withdrawn', $4::timestamptz)`,
)
const membersMax = 6

describe('invitations over HTTP', () => {
  const clock = movableClock()
  let app: TestApp
  let teams: ReturnType<typeof teamsOf>
  beforeAll(async () => {
    app = await startApp({ clock, env: { MEMBERS_MAX: String(membersMax) } })
    teams = teamsOf(app)
  })
  afterAll(() => app.stop())

  test('ORG-06 owners and admins invite by address and role; each kind of invalid invitation has its own error', async () => {
    const { owner, admin, member } = await teams.team()
    expect(codeOf(await teams.invite(member, 'x@people.test'))).toEqual([403, 'forbidden'])
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
      // Letters that are or may become other letters: the Kelvin sign, capitals, a dotless i, a full-width letter, and a letter with a separate
      // accent.
      '\u212aate@c.test',
      'a@\u212aelvin.test',
      '\u00c9va@c.test',
      '\u0130rma@c.test',
      'k\u0131m@c.test',
      '\u017fam@c.test',
      '\uff41nn@c.test',
      'e\u0301va@c.test',
    ])
      expect(codeOf(await teams.invite(owner, email)), JSON.stringify(email)).toEqual([400, 'bad_email'])
    for (const role of ['', 'boss', 'Owner']) expect(codeOf(await teams.invite(owner, 'x@people.test', role)), role).toEqual([400, 'bad_role'])
    expect(codeOf(await teams.invite(admin, 'x@people.test', 'owner')), 'only an owner invites an owner').toEqual([400, 'bad_role'])
    for (const body of [{}, { email: 'x@people.test' }, { email: 5, role: 'member' }])
      expect(codeOf(await teams.as(owner)('POST', '/me/members', body))).toEqual([400, 'bad_request'])
    for (const { email } of [owner, admin, member]) expect(codeOf(await teams.invite(admin, email.toUpperCase()))).toEqual([400, 'already_member'])
    expect((await teams.invite(admin, ' one@people.test ')).json).toMatchObject({ email: 'one@people.test', role: 'member' })
    expect(codeOf(await teams.invite(owner, 'ONE@people.test', 'admin'))).toEqual([400, 'already_invited'])
    expect((await teams.invite(owner, 'two@people.test', 'owner')).status).toBe(201)
    // Members and open invitations count together. There are three members and two invitations, so one place is left for four concurrent requests.
    const replies = await Promise.all(['a', 'b', 'c', 'd'].map(name => teams.invite(owner, `${name}@people.test`)))
    expect(replies.map(codeOf).sort()).toEqual([[201, undefined], ...Array(3).fill([400, 'member_cap'])])
    expect((await teams.members(owner)).pending).toHaveLength(3)
    const full = await teams.invite(owner, 'late@people.test')
    expect(full.json.error.message).toContain(String(membersMax))
  })

  test('nobody can be invited into a personal organisation', async () => {
    const { userId } = await app.db.one(addPerson, 'solo@people.test').then(({ id }) => ({ userId: id }))
    const { orgId } = await app.gateway.app.orgs.createOrg({ name: 'Solo', ownerEmail: 'solo@people.test', kind: 'personal' })
    const cookie = await app.signIn(userId, orgId)
    expect(codeOf(await teams.invite({ cookie }, 'x@people.test'))).toEqual([400, 'personal_org'])
    expect(codeOf(await teams.as({ cookie })('DELETE', `/me/members/${userId}`))).toEqual([400, 'last_owner'])
  })

  test('an invitation is mailed only when it was made, and at most once an hour to the same address', async () => {
    const { owner, name } = await teams.team()
    const { json } = await teams.invite(owner, 'post@people.test', 'admin')
    const mail = {
      template: 'invitation',
      data: { orgName: name, inviter: owner.email, role: 'admin', link: `${app.baseUrl}/invitations` },
    }
    expect(await app.db.many(mailsTo, 'post@people.test')).toEqual([mail])
    await teams.invite(owner, 'POST@people.test')
    await teams.as(owner)('DELETE', `/me/members/pending/${json.id}`)
    expect((await teams.invite(owner, 'post@people.test')).status).toBe(201)
    expect(await app.db.many(mailsTo, 'post@people.test')).toHaveLength(1)
    const { pending } = await teams.members(owner)
    await teams.as(owner)('DELETE', `/me/members/pending/${pending[0].id}`)
    clock.advance(3_600_000)
    expect((await teams.invite(owner, 'post@people.test')).status).toBe(201)
    expect(await app.db.many(mailsTo, 'post@people.test')).toHaveLength(2)
  })

  test('ORG-11 a person sees only the open invitations to their own address, in upper or lower case', async () => {
    const person = await teams.stranger()
    const [one, two] = [await teams.team(), await teams.team()]
    const first = await teams.invite(one.owner, person.email.toUpperCase(), 'admin')
    const second = await teams.invite(two.admin, person.email)
    await teams.invite(two.owner, 'somebody.else@people.test')
    const view = (made: TestReply, from: Team, invitedBy: string) => ({
      ...made.json,
      org: { id: from.orgId, name: expect.stringMatching(/^Team /), kind: 'team' },
      invited_by: invitedBy,
    })
    expect(await teams.invitations(person)).toEqual([view(first, one, one.owner.email), view(second, two, two.admin.email.split('@')[0] ?? '')])
    expect(await teams.invitations(one.owner)).toEqual([])
    expect(await teams.invitations(two.member)).toEqual([])
  })

  test('ORG-12 accepting makes the person a member with the invited role and closes the invitation; their session does not move', async () => {
    const { orgId, owner } = await teams.team()
    const person = await teams.stranger()
    const { json: made } = await teams.invite(owner, person.email, 'admin')
    const accepted = await teams.as(person)('POST', `/me/invitations/${made.id}/accept`)
    expect(accepted.status).toBe(200)
    expect(accepted.json).toMatchObject({ ok: true, id: made.id, role: 'admin', org: { id: orgId } })
    const { members: people, pending } = await teams.members(owner)
    expect(people.find((each: { uid: number }) => each.uid === person.userId)).toMatchObject({ email: person.email, role: 'admin', capabilities: [] })
    expect(pending).toEqual([])
    expect(await teams.invitations(person)).toEqual([])
    expect((await teams.as(person)('GET', '/me')).json.org.id).not.toBe(orgId)
    expect((await teams.as(person)('POST', '/me/orgs/switch', { org_id: orgId })).status).toBe(200)
    expect((await teams.as(person)('GET', '/me')).json).toMatchObject({ role: 'admin', org: { id: orgId } })
    expect((await teams.invite(person, 'by.admin@people.test')).status).toBe(201)
  })

  test('ORG-13 ORG-14 LIFE-14 only the invited person decides, and only once; afterwards a declined, accepted or withdrawn invitation is 404', async () => {
    const { orgId, owner, admin, member } = await teams.team()
    const person = await teams.stranger()
    const other = await teams.stranger()
    const decide = (who: TestMember, id: unknown, how: string) => teams.as(who)('POST', `/me/invitations/${id}/${how}`)
    const { json: made } = await teams.invite(owner, person.email)
    for (const who of [owner, admin, member, other])
      for (const how of ['accept', 'decline']) expect(codeOf(await decide(who, made.id, how)), how).toEqual([404, 'not_found'])
    expect((await teams.invitations(person)).map((each: { id: number }) => each.id)).toEqual([made.id])
    expect((await decide(person, made.id, 'decline')).json).toEqual({ ok: true, id: made.id })
    for (const how of ['accept', 'decline']) expect(codeOf(await decide(person, made.id, how))).toEqual([404, 'not_found'])
    expect(await teams.roleOf(orgId, person)).toBeNull()

    const { json: again } = await teams.invite(owner, person.email)
    expect(codeOf(await teams.as(member)('DELETE', `/me/members/pending/${again.id}`))).toEqual([403, 'forbidden'])
    expect((await teams.as(admin)('DELETE', `/me/members/pending/${again.id}`)).json).toEqual({ ok: true, id: again.id })
    expect(codeOf(await teams.as(admin)('DELETE', `/me/members/pending/${again.id}`))).toEqual([404, 'not_found'])
    expect(codeOf(await decide(person, again.id, 'accept'))).toEqual([404, 'not_found'])

    const { json: third } = await teams.invite(owner, person.email)
    const both = await Promise.all([decide(person, third.id, 'accept'), decide(person, third.id, 'decline'), decide(person, third.id, 'accept')])
    expect(both.map(reply => reply.status).sort()).toEqual([200, 404, 404])
    for (const id of [999_999, 'abc', 0]) expect(codeOf(await decide(person, id, 'accept')), String(id)).toEqual([404, 'not_found'])
  })

  test('when a person loses a role or leaves, their open invitations that they could no longer make are withdrawn', async () => {
    const { orgId, owner, admin } = await teams.team()
    const pending = async () => (await teams.as(owner)('GET', '/me/members')).json.pending.map((each: { email: string }) => each.email).sort()
    const second = await app.newMember('owner', { orgId })
    const by = (cookie: string, email: string, role: string) => app.call('POST', '/me/members', { email, role }, { cookie })
    for (const role of ['owner', 'member']) expect((await by(second.cookie, `by-second-${role}@people.test`, role)).status).toBe(201)
    expect((await teams.as(owner)('PATCH', `/me/members/${second.userId}`, { role: 'admin' })).status).toBe(200)
    expect(await pending()).toEqual(['by-second-member@people.test'])
    expect((await teams.invite(admin, 'by-admin@people.test')).status).toBe(201)
    expect((await teams.as(owner)('DELETE', `/me/members/${second.userId}`)).status).toBe(200)
    expect(await pending()).toEqual(['by-admin@people.test'])
    expect((await teams.as(owner)('PATCH', `/me/members/${admin.userId}`, { role: 'member' })).status).toBe(200)
    expect(await pending()).toEqual([])
  })

  test('repeated inviting and withdrawing cannot send an unlimited number of mails', async () => {
    const { orgId, owner } = await teams.team()
    for (let count = 0; count < 100; count++) await app.db.exec(addWithdrawn, orgId, owner.userId, `w${count}@people.test`, new Date(clock.nowMs()))
    const refused = await teams.invite(owner, 'one-more@people.test')
    expect([codeOf(refused), Number(refused.headers.get('retry-after')) > 0]).toEqual([[429, 'rate_limit_exceeded'], true])
    clock.advance(24 * 3600_000)
    expect((await teams.invite({ cookie: await app.signIn(owner.userId, orgId) }, 'one-more@people.test')).status).toBe(201)
  })
})
