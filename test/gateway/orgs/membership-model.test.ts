/** After any sequence of membership changes, with two of them concurrent, an organisation has an owner and does not exceed its size. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { propertyRuns } from '../../harness/property-runs.ts'

const peopleOf = statement<[orgId: number], { owners: number; members: number; pending: number; strayTeam: number }>(
  'test.people_of',
  `select (select count(*) from org_members where org_id = $1::int and status = 'active' and role = 'owner')::int as owners,
     (select count(*) from org_members where org_id = $1::int and status = 'active')::int as members,
     (select count(*) from invitations where org_id = $1::int and status = 'pending')::int as pending,
     (select count(*) from workspace_members w join org_members m on m.org_id = w.org_id and m.user_id = w.user_id
       where w.org_id = $1::int and m.status <> 'active')::int as "strayTeam"`,
)
const openInvitation = statement<[orgId: number, email: string], { id: number }>(
  'test.open_invitation',
  `select id from invitations where org_id = $1::int and status = 'pending' and lower(email) = lower($2::text)`,
)

const crowd = 5
const membersMax = 4
const role = fc.constantFrom('member', 'admin', 'owner')
const person = fc.nat(crowd - 1)
const act = fc.oneof(
  fc.record({ kind: fc.constant('invite' as const), by: person, whom: person, role }),
  fc.record({ kind: fc.constant('answer' as const), by: person, how: fc.constantFrom('accept', 'accept', 'decline') }),
  fc.record({ kind: fc.constant('role' as const), by: person, whom: person, role }),
  fc.record({ kind: fc.constant('remove' as const), by: person, whom: person }),
  fc.record({ kind: fc.constant('leave' as const), by: person }),
  fc.record({ kind: fc.constant('team' as const), by: person, whom: person }),
)
type Act = typeof act extends fc.Arbitrary<infer A> ? A : never

describe('membership', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ env: { MEMBERS_MAX: String(membersMax), CACHE_TTL_MS: '60000' } })
  })
  afterAll(() => app.stop())

  let worlds = 0
  async function world() {
    const { orgId, userId } = await app.otherOrg(`World ${++worlds}`)
    const people = [{ userId, email: `owner@world-${worlds}.test`, home: '' }]
    for (let i = 1; i < crowd; i++) {
      const lone = await app.otherOrg(`Lone ${worlds} ${i}`)
      people.push({ userId: lone.userId, email: `owner@lone-${worlds}-${i}.test`, home: await app.signIn(lone.userId, lone.orgId) })
    }
    const owner = await app.signIn(userId, orgId)
    const { json: space } = await app.call('POST', '/me/workspaces', { name: 'Space' }, { cookie: owner })
    const at = (index: number) => {
      const found = people[index]
      if (found === undefined) throw new Error('nobody there')
      return found
    }
    /** Makes a session of the person in the organisation, whether or not the person is a member. */
    const session = (index: number) => app.signIn(at(index).userId, orgId)
    const run = async (step: Act): Promise<number> => {
      const cookie = await session(step.by)
      const call = async (method: string, path: string, body?: object, who = cookie) => (await app.call(method, path, body, { cookie: who })).status
      switch (step.kind) {
        case 'invite':
          return call('POST', '/me/members', { email: at(step.whom).email, role: step.role })
        case 'role':
          return call('PATCH', `/me/members/${at(step.whom).userId}`, { role: step.role })
        case 'remove':
          return call('DELETE', `/me/members/${at(step.whom).userId}`)
        case 'leave':
          return call('DELETE', `/me/members/${at(step.by).userId}`)
        case 'team':
          return call('PATCH', `/me/workspaces/${space.id}`, { member_uids: [at(step.whom).userId] })
        case 'answer': {
          const open = await app.db.maybe(openInvitation, orgId, at(step.by).email)
          return call('POST', `/me/invitations/${open?.id ?? 999_999}/${step.how}`, undefined, at(step.by).home || cookie)
        }
      }
    }
    return { orgId, run }
  }

  test('after any sequence of changes, also concurrent ones, an owner remains, the member limit holds, and former members are in no team', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(act, fc.option(act)), { minLength: 8, maxLength: 24 }), async steps => {
        const { orgId, run } = await world()
        for (const [one, other] of steps) {
          const statuses = await Promise.all([run(one), ...(other === null ? [] : [run(other)])])
          for (const status of statuses) expect(status).toBeLessThan(500)
          const { owners, members, pending, strayTeam } = await app.db.one(peopleOf, orgId)
          expect({ owned: owners >= 1, fits: members + pending <= membersMax, strayTeam }, JSON.stringify([one, other])).toEqual({
            owned: true,
            fits: true,
            strayTeam: 0,
          })
        }
      }),
      { numRuns: propertyRuns(12) },
    )
  }, 60_000)
})
