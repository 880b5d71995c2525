/** Lists of members and open invitations: searched, filtered, sorted and paged by the server. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { pagesOf } from '../../harness/pages.ts'

const addPeople = statement<[orgId: number, names: readonly (string | null)[], emails: readonly string[], roles: readonly string[]]>(
  'test.add_listed_people',
  `with people as (
     insert into users (email, name, created_at)
     select p.email, nullif(p.name, ''), now() from unnest($2::text[], $3::text[]) with ordinality as p(name, email, place) order by p.place
     returning id, email)
   insert into org_members (org_id, user_id, role, created_at)
   select $1::int, people.id, p.role, now() from people join unnest($3::text[], $4::text[]) as p(email, role) on p.email = people.email`,
)

interface Listed {
  readonly id: number
  readonly email: string
}

describe('a list of members', () => {
  let app: TestApp
  let orgId: number
  let cookie: string
  let pages: ReturnType<typeof pagesOf>
  beforeAll(async () => {
    app = await startApp({ env: { CONSOLE_RPM: '100000', MEMBERS_MAX: '5000' } })
    const there = await app.otherOrg('Listed Members')
    orgId = there.orgId
    cookie = await app.signIn(there.userId, orgId)
    pages = pagesOf(app, '/me/members', 'members')
    const people = [
      ['Zoe', 'a1@list.example', 'member'],
      ['adam', 'z1@list.example', 'admin'],
      ['', 'middle@list.example', 'member'],
      ['Bea', 'b1@list.example', 'member'],
    ]
    await app.db.exec(
      addPeople,
      orgId,
      people.map(each => each[0] ?? ''),
      people.map(each => each[1] ?? ''),
      people.map(each => each[2] ?? ''),
    )
    for (const [email, role] of [
      ['new@list.example', 'member'],
      ['boss@other.example', 'admin'],
    ])
      expect((await app.call('POST', '/me/members', { email, role }, { cookie })).status).toBe(201)
  })
  afterAll(() => app.stop())

  const emails = (rows: readonly Listed[]): string[] => rows.map(row => row.email.replace('@list.example', ''))
  const found = async (query: string) => {
    const { json } = await pages.read(query, cookie)
    return { members: emails(json.members).filter(email => !email.startsWith('owner@')), pending: emails(json.pending) }
  }

  test('a list of members is searched by name, address and id, filtered by state and role, and sorted', async () => {
    expect(await found('')).toEqual({ members: ['a1', 'z1', 'middle', 'b1'], pending: ['new', 'boss@other.example'] })
    expect((await found('?sort=name')).members).toEqual(['z1', 'b1', 'middle', 'a1'])
    expect((await found('?sort=email')).members).toEqual(['a1', 'b1', 'middle', 'z1'])
    expect(await found('?q=ADAM')).toEqual({ members: ['z1'], pending: [] })
    expect(await found('?q=list.example')).toEqual({ members: ['a1', 'z1', 'middle', 'b1'], pending: ['new'] })
    expect(await found('?q=%25')).toEqual({ members: [], pending: [] })
    const [{ id }] = (await pages.read('?q=adam', cookie)).json.members
    expect((await found(`?q=${id}`)).members).toContain('z1')
    expect(await found('?state=active')).toEqual({ members: ['a1', 'z1', 'middle', 'b1'], pending: [] })
    expect(await found('?state=invited')).toEqual({ members: [], pending: ['new', 'boss@other.example'] })
    expect(await found('?role=admin')).toEqual({ members: ['z1'], pending: ['boss@other.example'] })
    expect(await found('?state=invited&q=new&role=member')).toEqual({ members: [], pending: ['new'] })
  })

  test('the pages of each order and filter together hold each member once, and only the first has the invitations', async () => {
    for (const query of ['sort=created', 'sort=name', 'sort=email', 'q=list&sort=name', 'role=member&sort=email']) {
      const whole = (await pages.read(`?${query}`, cookie)).json.members
      for (const limit of [1, 2, 3]) {
        const { rows, pages: read } = await pages.all(`?${query}&limit=${limit}`, cookie)
        expect(emails(rows), `${query} by ${limit}`).toEqual(emails(whole))
        expect(read.slice(1).every(page => page.json.pending.length === 0)).toBe(true)
      }
    }
  })

  test('an invalid filter and a cursor of another order get 400, which names the field', async () => {
    const byName = (await pages.read('?limit=1&sort=name', cookie)).json.next_cursor
    for (const query of ['?q=', '?state=x', '?role=x', '?sort=x', '?limit=201', `?cursor=${byName}`, `?sort=email&cursor=${byName}`, '?sort=name&cursor=1']) {
      const { status, json } = await pages.read(query, cookie)
      expect([status, json.error?.code], query).toEqual([400, 'bad_request'])
      expect(json.error.message, query).toContain(query.includes('cursor') ? 'cursor' : (/(\w+)=[^=]*$/.exec(query)?.[1] ?? ''))
    }
  })

  test('a list shows nobody of another organisation, and 4,000 members are sorted quickly', { timeout: 60_000 }, async () => {
    const there = await app.otherOrg('Large Members')
    const theirs = await app.signIn(there.userId, there.orgId)
    for (const query of ['', '?q=list.example', '?sort=name', '?state=invited']) {
      const { members, pending } = (await pages.read(query, theirs)).json
      expect([...members, ...pending].map((row: Listed) => row.id).filter(id => id !== there.userId)).toEqual([])
    }
    const people = Array.from({ length: 4_000 }, (_, n) => n)
    await app.db.exec(
      addPeople,
      there.orgId,
      people.map(n => `Person ${n}`),
      people.map(n => `person-${n}@crowd.example`),
      people.map(() => 'member'),
    )
    for (const query of ['?sort=name', '?sort=email', '?q=person 3999']) {
      const begun = performance.now()
      const page = await pages.read(query, theirs)
      expect(performance.now() - begun, query).toBeLessThan(2_000)
      expect(page.json.members.length).toBeGreaterThan(0)
    }
  })
})
