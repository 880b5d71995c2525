/** Lists of workspaces: searched, filtered, sorted and paged by the server. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { pagesOf } from '../../harness/pages.ts'

const addMany = statement<[orgId: number, count: number]>(
  'test.add_many_workspaces',
  `insert into workspaces (org_id, name, created_at, archived_at)
   select $1::int, 'Team ' || n, now(), case when n > 100 then now() end from generate_series(1, $2::int) n`,
)

describe('a list of workspaces', () => {
  let app: TestApp
  let cookie: string
  let pages: ReturnType<typeof pagesOf>
  let alphaId: number
  beforeAll(async () => {
    app = await startApp({ env: { CONSOLE_RPM: '100000' } })
    cookie = await app.signIn()
    pages = pagesOf(app, '/me/workspaces', 'workspaces')
    const make = async (name: string): Promise<number> => (await app.call('POST', '/me/workspaces', { name }, { cookie })).json.id
    await make('zeta')
    alphaId = await make('Alpha')
    const [old, older] = [await make('Old beta'), await make('ancient')]
    await make('beta')
    for (const id of [old, older]) await app.call('DELETE', `/me/workspaces/${id}`, undefined, { cookie })
  })
  afterAll(() => app.stop())

  const names = async (query: string, as = cookie): Promise<string[]> =>
    (await pages.read(query, as)).json.workspaces.map((workspace: { name: string }) => workspace.name)

  test('a list of workspaces is searched by name and id, filtered by state, and sorted', async () => {
    expect(await names('')).toEqual(['zeta', 'Alpha', 'beta', 'Old beta', 'ancient'])
    expect(await names('?sort=created')).toEqual(['zeta', 'Alpha', 'beta', 'Old beta', 'ancient'])
    expect(await names('?sort=name')).toEqual(['Alpha', 'beta', 'zeta', 'ancient', 'Old beta'])
    expect(await names('?q=BETA')).toEqual(['beta', 'Old beta'])
    expect(await names(`?q=${alphaId}`)).toContain('Alpha')
    expect(await names('?q=%25')).toEqual([])
    expect(await names('?state=active&sort=name')).toEqual(['Alpha', 'beta', 'zeta'])
    expect(await names('?state=archived&sort=name')).toEqual(['ancient', 'Old beta'])
    expect(await names('?state=archived&q=beta')).toEqual(['Old beta'])
  })

  test('the pages of each order and filter together hold each workspace once', async () => {
    for (const query of ['sort=created', 'sort=name', 'q=beta&sort=name', 'state=archived', 'state=active&sort=name']) {
      const whole = await names(`?${query}`)
      for (const limit of [1, 2, 3]) {
        const { rows } = await pages.all(`?${query}&limit=${limit}`, cookie)
        expect(
          rows.map(row => row.name),
          `${query} by ${limit}`,
        ).toEqual(whole)
      }
    }
  })

  test('an invalid filter and a cursor of another order get 400, which names the field', async () => {
    const byName = (await pages.read('?limit=1&sort=name', cookie)).json.next_cursor
    for (const query of ['?q=', '?state=x', '?sort=x', '?limit=1001', `?cursor=${byName}`, '?sort=name&cursor=active-1']) {
      const { status, json } = await pages.read(query, cookie)
      expect([status, json.error?.code], query).toEqual([400, 'bad_request'])
      expect(json.error.message, query).toContain(query.includes('cursor') ? 'cursor' : (/(\w+)=[^=]*$/.exec(query)?.[1] ?? ''))
    }
  })

  test('a list shows no workspace of another organisation, and 20,000 are listed quickly', { timeout: 60_000 }, async () => {
    const there = await app.otherOrg('Large Teams')
    const theirs = await app.signIn(there.userId, there.orgId)
    for (const query of ['', '?q=beta', `?q=${alphaId}`, '?sort=name', '?state=archived']) expect(await names(query, theirs)).toEqual([])
    await app.db.exec(addMany, there.orgId, 20_000)
    await app.db.exec({ name: 'test.analyze_workspaces', text: 'analyze workspaces' })
    for (const query of ['?limit=50', '?sort=name&limit=50', '?q=team 19999', '?state=archived&sort=name&limit=50']) {
      const begun = performance.now()
      const page = await pages.read(query, theirs)
      expect(performance.now() - begun, query).toBeLessThan(2_000)
      expect(page.json.workspaces.length).toBeGreaterThan(0)
    }
  })
})
