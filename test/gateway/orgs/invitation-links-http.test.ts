/** Links of invitations to hand over, and many invitations in one call. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestMember } from '../../harness/app.ts'
import { TestBrowser } from '../../harness/browser.ts'
import { codeOf, teamsOf } from './teams.ts'

const mailedLink = statement<[to: string], { link: string }>(
  'test.link_of_mail',
  `select data->>'link' as "link" from emails where to_address = $1::text order by id desc limit 1`,
)
const countMails = statement<[like: string], { count: number }>(
  'test.count_mails',
  'select count(*)::int as "count" from emails where to_address like $1::text',
)
const makePersonal = statement<[orgId: number]>('test.make_personal_for_links', `update orgs set kind = 'personal' where id = $1::int`)

describe('links of invitations and many invitations', () => {
  let app: TestApp
  let teams: ReturnType<typeof teamsOf>
  beforeAll(async () => {
    app = await startApp({ env: { MEMBERS_MAX: '300', CONSOLE_RPM: '100000' } })
    teams = teamsOf(app)
  })
  afterAll(() => app.stop())

  const linkOf = (who: TestMember, id: number | string) => teams.as(who)('POST', `/me/members/pending/${id}/link`)
  const bulk = (who: TestMember, emails: unknown, role: unknown = 'member') => teams.as(who)('POST', '/me/members/bulk', { emails, role })

  test('CAPI-09 an invitation has a link to hand over, with which only the invited person joins, and one call invites 200 addresses', async () => {
    const { owner, orgId } = await teams.team()
    const guest = await teams.stranger()
    const other = await teams.stranger()
    const { json: pending } = await teams.invite(owner, guest.email)
    const { status, json } = await linkOf(owner, pending.id)
    expect(status).toBe(200)
    expect(json).toEqual({ ok: true, ...pending, link: (await app.db.one(mailedLink, guest.email)).link })

    const open = async (person: TestMember) => {
      const browser = new TestBrowser()
      expect((await browser.open(json.link)).location, 'sign in first').toBe(`${app.baseUrl}/auth?return_to=%2Finvitations`)
      const { url } = await app.gateway.app.makeSignInLink(person.email)
      await browser.open(`${app.baseUrl}/auth/link`, { form: { token: new URL(url).searchParams.get('token') ?? '' } })
      const page = await browser.open(json.link)
      const joined = await browser.open(`${app.baseUrl}/invitations`, {
        form: { id: String(pending.id), decision: 'accept' },
        headers: { origin: app.baseUrl },
      })
      return { page: page.text, joined }
    }
    const stranger = await open(other)
    expect(stranger.page).toContain('no open invitation')
    expect(stranger.joined.status).toBe(404)
    expect(await teams.roleOf(orgId, other)).toBeNull()
    expect((await open(guest)).joined.status).toBe(303)
    expect(await teams.roleOf(orgId, guest)).toBe('member')
    expect(codeOf(await linkOf(owner, pending.id)), 'an accepted invitation has no link').toEqual([404, 'not_found'])

    const emails = Array.from({ length: 200 }, (_, n) => `many-${n}@bulk.example`)
    const many = await bulk(owner, emails)
    expect(many.status, many.text).toBe(200)
    expect(many.json.invited).toBe(200)
    expect(many.json.results.map((result: { email: string }) => result.email)).toEqual(emails)
    for (const { email, invitation, error } of many.json.results) expect([email, invitation.email, error]).toEqual([email, email, null])
    expect((await teams.members(owner)).pending).toHaveLength(200)
    expect((await app.db.one(countMails, 'many-%@bulk.example')).count).toBe(200)
  })

  test('each address of a call has its own result, and a repeated call invites nobody twice', async () => {
    const { owner, admin, member } = await teams.team()
    const emails = ['good@bulk.example', 'not an address', member.email.toUpperCase(), 'GOOD@bulk.example', ' fine@bulk.example ']
    const { json } = await bulk(admin, emails, 'admin')
    expect(json.invited).toBe(2)
    expect(
      json.results.map(({ error, invitation }: { error: { code: string } | null; invitation: { email: string } | null }) => error?.code ?? invitation?.email),
    ).toEqual(['good@bulk.example', 'bad_email', 'already_member', 'already_invited', 'fine@bulk.example'])
    for (const { error } of json.results) if (error !== null) expect(error.message.length).toBeGreaterThan(10)
    expect((await bulk(owner, ['good@bulk.example'])).json).toMatchObject({ invited: 0, results: [{ invitation: null, error: { code: 'already_invited' } }] })
    const [first] = (await teams.members(owner)).pending
    expect(first).toMatchObject({ email: 'good@bulk.example', role: 'admin' })
  })

  test('a person has one such call at a time, and others are not concerned', async () => {
    const { owner, admin } = await teams.team()
    const emails = (who: string) => Array.from({ length: 100 }, (_, n) => `${who}-${n}@at-a-time.example`)
    const [first, second, third, ofAdmin] = await Promise.all([
      bulk(owner, emails('first')),
      bulk(owner, emails('second')),
      bulk(owner, emails('third')),
      bulk(admin, emails('admin')),
    ])
    expect([first.status, second.status, third.status].sort()).toEqual([200, 429, 429])
    const refused = [first, second, third].find(reply => reply.status === 429)
    expect([refused?.json.error.code, refused?.headers.get('retry-after')]).toEqual(['rate_limit_exceeded', '1'])
    expect(ofAdmin.json.invited).toBe(100)
    expect((await bulk(owner, ['later@at-a-time.example'])).json.invited).toBe(1)
  })

  test('a full organisation invites as many as it has room for', async () => {
    const { owner } = await teams.team()
    const emails = (from: number) => Array.from({ length: 200 }, (_, n) => `full-${from + n}@bulk.example`)
    expect((await bulk(owner, emails(0))).json.invited).toBe(200)
    const second = (await bulk(owner, emails(200))).json
    expect(second.invited).toBe(300 - 3 - 200)
    expect(second.results.at(-1).error.code).toBe('member_cap')
  })

  test('only who may invite gets a link or invites many, and an admin neither for an owner', async () => {
    const { owner, admin, member, orgId } = await teams.team()
    const { json: asOwner } = await teams.invite(owner, 'boss@bulk.example', 'owner')
    const { json: asMember } = await teams.invite(owner, 'hand@bulk.example')
    expect(codeOf(await linkOf(member, asMember.id))).toEqual([403, 'forbidden'])
    expect(codeOf(await linkOf(admin, asOwner.id))).toEqual([403, 'forbidden'])
    expect((await linkOf(admin, asMember.id)).status).toBe(200)
    expect((await linkOf(owner, asOwner.id)).status).toBe(200)
    const there = await teams.team()
    for (const id of [asMember.id, 99_999, 'x', 0]) expect(codeOf(await linkOf(there.owner, id)), String(id)).toEqual([404, 'not_found'])
    await teams.as(owner)('DELETE', `/me/members/pending/${asMember.id}`)
    expect(codeOf(await linkOf(owner, asMember.id)), 'a withdrawn invitation has no link').toEqual([404, 'not_found'])

    expect(codeOf(await bulk(member, ['a@bulk.example']))).toEqual([403, 'forbidden'])
    expect(codeOf(await bulk(admin, ['a@bulk.example'], 'owner'))).toEqual([400, 'bad_role'])
    expect(codeOf(await bulk(owner, ['a@bulk.example'], 'boss'))).toEqual([400, 'bad_role'])
    for (const emails of [[], Array.from({ length: 201 }, (_, n) => `x${n}@bulk.example`), ['x'.repeat(321)], 'a@bulk.example', [5]])
      expect(codeOf(await bulk(owner, emails))).toEqual([400, 'bad_request'])
    await app.db.exec(makePersonal, orgId)
    expect(codeOf(await bulk(owner, ['a@bulk.example']))).toEqual([400, 'personal_org'])
  })
})
