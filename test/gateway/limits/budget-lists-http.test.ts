/** Lists of budgets: searched, filtered, sorted and paged by the server. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { istMonth } from '../../../src/platform/values/ist-time.ts'
import { startApp, type TestApp, type TestMember } from '../../harness/app.ts'
import { pagesOf } from '../../harness/pages.ts'

const spend = statement<[orgId: number, period: string, scope: string, scopeId: string, uinr: bigint]>(
  'test.spend_of_budget',
  `insert into counters (org_id, scope, scope_id, metric, period, spent) values ($1::int, $3::text, $4::text, 'spend', $2::text, $5::bigint)
   on conflict (org_id, scope, scope_id, metric, period) do update set spent = excluded.spent`,
)
const addAgents = statement<[orgId: number, userId: number, count: number]>(
  'test.add_agents_with_budgets',
  `with made as (
     insert into agents (org_id, name, created_by_user, created_at) select $1::int, 'Worker ' || n, $2::int, now() from generate_series(1, $3::int) n
     returning id)
   insert into budgets (org_id, scope, scope_id, cap_uinr) select $1::int, 'agent', id::text, id * 1000000::bigint from made`,
)

interface Listed {
  readonly scope: string
  readonly name: string
  readonly state: string
}

describe('a list of budgets', () => {
  let app: TestApp
  let cookie: string
  let ann: TestMember
  let pages: ReturnType<typeof pagesOf>
  beforeAll(async () => {
    app = await startApp({ env: { CONSOLE_RPM: '100000' } })
    cookie = await app.signIn()
    ann = await app.newMember('member')
    pages = pagesOf(app, '/me/budgets', 'budgets')
    const set = async (scope: string, target_id: number | null, monthly_budget_inr: number) =>
      expect((await app.call('POST', '/me/budgets', { scope, target_id, monthly_budget_inr }, { cookie })).status).toBe(200)
    const workspace = (await app.call('POST', '/me/workspaces', { name: 'Builders' }, { cookie })).json.id
    const key = (await app.call('POST', '/me/keys', { name: 'key of Ann' }, { cookie: ann.cookie })).json.id
    const agent = (await app.call('POST', '/me/agents', { name: 'agent of Ann' }, { cookie: ann.cookie })).json.id
    const other = (await app.call('POST', '/me/agents', { name: 'builder' }, { cookie })).json.id
    await set('org', null, 500)
    await set('workspace', workspace, 50)
    await set('member', ann.userId, 70)
    await set('key', key, 20)
    await set('agent', agent, 10)
    await set('agent', other, 90)
    const period = istMonth(Date.now())
    await app.db.exec(spend, app.orgId, period, 'workspace', String(workspace), 40_000_000n)
    await app.db.exec(spend, app.orgId, period, 'agent', String(agent), 10_000_000n)
    await app.db.exec(spend, app.orgId, period, 'agent', String(other), 71_000_000n)
  })
  afterAll(async () => {
    // The counters of this test have no events, so its sums are taken back before the invariants are checked.
    await app.db.exec({ name: 'test.drop_spend_of_budgets', text: 'delete from counters' })
    await app.stop()
  })

  const found = async (query: string, as = cookie): Promise<string[]> =>
    (await pages.read(query, as)).json.budgets.map(({ scope, name }: Listed) => (scope === 'org' ? 'org' : name))

  test('a list of budgets is searched by name and id, filtered by state, scope and owner, and sorted', async () => {
    const person = ann.email.split('@')[0] ?? ''
    const all = ['org', 'Builders', person, 'key of Ann', 'agent of Ann', 'builder']
    expect(await found('')).toEqual(all)
    expect(await found('?sort=scope')).toEqual(all)
    expect(await found('?sort=cap')).toEqual(['org', 'builder', person, 'Builders', 'key of Ann', 'agent of Ann'])
    expect(await found('?q=BUILD')).toEqual(['Builders', 'builder'])
    expect(await found('?q=%25')).toEqual([])
    expect(await found('?q=build&sort=cap')).toEqual(['builder', 'Builders'])
    expect(await found('?state=under')).toEqual(['org', person, 'key of Ann', 'builder'])
    expect(await found('?state=warned')).toEqual(['Builders'])
    expect(await found('?state=blocked')).toEqual(['agent of Ann'])
    expect(await found('?scope=agent')).toEqual(['agent of Ann', 'builder'])
    expect(await found('?scope=workspace&sort=cap')).toEqual(['Builders'])
    expect(await found(`?owner=${ann.userId}`)).toEqual([person, 'key of Ann', 'agent of Ann'])
    expect(await found(`?owner=${ann.userId}&scope=key`)).toEqual(['key of Ann'])
    expect(await found('?owner=me')).toEqual(['builder'])
    for (const state of ['under', 'warned', 'blocked'])
      for (const budget of (await pages.read(`?state=${state}`, cookie)).json.budgets) expect(budget.state).toBe(state)
  })

  test('the pages of each order and filter together hold each budget once', async () => {
    for (const query of ['sort=scope', 'sort=cap', 'q=a&sort=cap', 'state=under', `owner=${ann.userId}&sort=cap`, 'scope=agent']) {
      const whole = await found(`?${query}`)
      for (const limit of [1, 2, 3]) {
        const { rows } = await pages.all(`?${query}&limit=${limit}`, cookie)
        expect(
          rows.map(({ scope, name }: Listed) => (scope === 'org' ? 'org' : name)),
          `${query} by ${limit}`,
        ).toEqual(whole)
      }
    }
  })

  test('an invalid filter and a cursor of another order get 400, and a plain member 403', async () => {
    const byCap = (await pages.read('?limit=1&sort=cap', cookie)).json.next_cursor
    for (const query of ['?q=', '?state=x', '?scope=x', '?owner=x', '?sort=x', '?limit=201', `?cursor=${byCap}`, '?sort=cap&cursor=org:1', '?cursor=x:1']) {
      const { status, json } = await pages.read(query, cookie)
      expect([status, json.error?.code], query).toEqual([400, 'bad_request'])
      expect(json.error.message, query).toContain(query.includes('cursor') ? 'cursor' : (/(\w+)=[^=]*$/.exec(query)?.[1] ?? ''))
    }
    expect((await pages.read('?q=build', ann.cookie)).json.error.code).toBe('forbidden')
  })

  test('a list shows no budget of another organisation, and 20,000 are listed and searched quickly', { timeout: 60_000 }, async () => {
    const there = await app.otherOrg('Large Budgets')
    const theirs = await app.signIn(there.userId, there.orgId)
    for (const query of ['', '?q=build', `?owner=${ann.userId}`, '?sort=cap', '?state=warned']) expect(await found(query, theirs)).toEqual([])
    await app.db.exec(addAgents, there.orgId, there.userId, 20_000)
    await app.db.exec({ name: 'test.analyze_budgets', text: 'analyze budgets' })
    for (const query of ['', '?sort=cap', '?q=worker 19999', '?scope=agent&sort=cap', '?state=under']) {
      const begun = performance.now()
      const page = await pages.read(query, theirs)
      expect(performance.now() - begun, query).toBeLessThan(3_000)
      expect(page.json.budgets.length, query).toBeGreaterThan(0)
    }
    expect(await found('?sort=cap&limit=1', theirs)).toEqual(['Worker 20000'])
  })
})
