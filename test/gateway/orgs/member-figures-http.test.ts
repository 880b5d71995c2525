/** What members spend, as the list of members shows it, and invitations that are mailed once more. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestMember } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { codeOf, teamsOf } from './teams.ts'

const countMailsTo = statement<[to: string], { count: number }>(
  'test.count_mails_to_one',
  'select count(*)::int as "count" from emails where to_address = $1::text',
)

describe('figures of members and mails of invitations', () => {
  const clock = movableClock(Date.now())
  let app: TestApp
  let teams: ReturnType<typeof teamsOf>
  beforeAll(async () => {
    app = await startApp({ clock, env: { CONSOLE_RPM: '10000' } })
    teams = teamsOf(app)
  })
  afterAll(() => app.stop())

  interface Figures {
    readonly uid: number
    readonly monthly_budget_inr: number | null
    readonly spend_month_inr: number | null
  }
  const figuresOf = async (reader: TestMember, of: TestMember): Promise<(number | null)[]> => {
    const found = ((await teams.members(reader)).members as Figures[]).find(({ uid }) => uid === of.userId)
    return [found?.monthly_budget_inr ?? null, found?.spend_month_inr ?? null]
  }

  test('owners, admins and who may see costs read what each member spends and may spend; a member reads the own figures only', async () => {
    const { owner, admin, member, orgId } = await teams.team()
    const seer = await app.newMember('member', { orgId, capabilities: ['cost:org:view'] })
    const { key } = (await teams.as(member)('POST', '/me/keys', { scope: 'inference' })).json
    const call = { model: 'test-model', messages: [{ role: 'user', content: 'Hello' }] }
    expect((await app.call('POST', '/v1/chat/completions', call, { token: key })).status).toBe(200)
    expect((await teams.as(owner)('POST', '/me/budgets', { scope: 'member', target_id: member.userId, monthly_budget_inr: 750.5 })).status).toBe(200)
    const [cap, spent] = await figuresOf(owner, member)
    expect(cap).toBe(750.5)
    expect(spent).toBeGreaterThan(0)
    for (const reader of [admin, seer, member]) expect(await figuresOf(reader, member)).toEqual([cap, spent])
    expect(await figuresOf(owner, admin)).toEqual([null, 0])
    expect(await figuresOf(member, admin)).toEqual([null, null])
    const there = await teams.team()
    expect(await figuresOf(there.owner, member)).toEqual([null, null])
  })

  test('an open invitation is mailed again at most once an hour, by those who could make it', async () => {
    const { owner, admin, member } = await teams.team()
    const { json: invitation } = await teams.invite(owner, 'again@mail.example')
    const { json: asOwner } = await teams.invite(owner, 'boss@mail.example', 'owner')
    const resend = (who: TestMember, id: number | string = invitation.id) => teams.as(who)('POST', `/me/members/pending/${id}/resend`)
    const mails = async (): Promise<number> => (await app.db.one(countMailsTo, 'again@mail.example')).count
    expect(codeOf(await resend(owner))).toEqual([400, 'already_invited'])
    clock.advance(3_600_000)
    const sent = await resend(admin)
    expect([sent.status, sent.json]).toEqual([200, { ok: true, ...invitation }])
    expect(codeOf(await resend(owner))).toEqual([400, 'already_invited'])
    expect(await mails()).toBe(2)
    expect(codeOf(await resend(member))).toEqual([403, 'forbidden'])
    expect(codeOf(await resend(admin, asOwner.id))).toEqual([403, 'forbidden'])
    const there = await teams.team()
    for (const id of [invitation.id, 99_999, 'x', 0]) expect(codeOf(await resend(there.owner, id)), String(id)).toEqual([404, 'not_found'])
    await teams.as(owner)('DELETE', `/me/members/pending/${invitation.id}`)
    expect(codeOf(await resend(owner))).toEqual([404, 'not_found'])
    expect(await mails()).toBe(2)
  })
})
