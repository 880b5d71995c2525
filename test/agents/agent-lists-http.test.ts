/** Lists of agents: filtered, sorted and paged by the server. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { istMonth } from '../../src/platform/values/ist-time.ts'
import { startApp, type TestApp, type TestMember } from '../harness/app.ts'
import { said } from './family.ts'

const many = 25_000
const addMany = statement<[orgId: number, userId: number, count: number]>(
  'test.add_many_agents',
  `insert into agents (org_id, name, created_by_user, created_at, status, revoked_at, last_call_at, pause_seq)
   select $1::int, 'Worker ' || n, $2::int, now(), case when n % 10 = 0 then 'revoked' else 'active' end, case when n % 10 = 0 then now() end,
     case when n % 3 = 0 then now() - n * interval '1 minute' end, case when n % 1000 = 1 then 1 else 0 end
   from generate_series(1, $3::int) n`,
)
const addSpend = statement<[orgId: number, period: string, every: number]>(
  'test.add_spend_of_agents',
  `insert into counters (org_id, scope, scope_id, metric, period, spent)
   select org_id, 'agent', id::text, 'spend', $2::text, id * 1000 from agents where org_id = $1::int and id % $3::int = 0`,
)

const addSpendOf = statement<[orgId: number, agentId: string, period: string, uinr: bigint]>(
  'test.add_spend_of_agent',
  `insert into counters (org_id, scope, scope_id, metric, period, spent) values ($1::int, 'agent', $2::text, 'spend', $3::text, $4::bigint)
   on conflict (org_id, scope, scope_id, metric, period) do update set spent = excluded.spent`,
)

interface Listed {
  readonly id: number
  readonly name: string
  readonly status: string
  readonly last_call_at: string | null
  readonly spend_month_inr: number
}

describe('a list of agents', () => {
  let app: TestApp
  let cookie: string
  let ann: TestMember
  beforeAll(async () => {
    app = await startApp()
    cookie = await app.signIn()
    ann = await app.newMember('member')
  })
  afterAll(() => app.stop())

  const list = (query: string, as = cookie) => app.call('GET', `/me/agents${query}`, undefined, { cookie: as })
  const names = async (query: string, as = cookie) => (await list(query, as)).json.agents.map((agent: Listed) => agent.name)
  /** Reads all pages. */
  const all = async (query: string, limit: number, as = cookie) => {
    const found: Listed[] = []
    let pages = 0
    for (let cursor: string | null = ''; cursor !== null; pages++) {
      const page = await list(`?limit=${limit}${query}${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`, as)
      expect(page.status, page.text).toBe(200)
      expect('total_estimate' in page.json, 'only the first page has a total').toBe(cursor === '')
      found.push(...page.json.agents)
      cursor = page.json.next_cursor
    }
    return { found, pages }
  }

  test('a list is searched, filtered by state, owner and parent, and sorted, and its pages together hold each agent once', async () => {
    const make = async (name: string, as = cookie) => (await app.call('POST', '/me/agents', { name }, { cookie: as })).json.id
    const [zeta, alpha, beta] = [await make('zeta'), await make('Alpha'), await make('beta')]
    const gamma = await make('gamma', ann.cookie)
    const child = (await app.call('POST', `/me/agents/${zeta}/children`, { name: 'child of zeta' }, { cookie })).json.id
    await app.call('POST', `/me/agents/${beta}/pause`, undefined, { cookie })
    const gone = await make('Gone')
    await app.call('POST', `/me/agents/${gone}/revoke`, undefined, { cookie })

    expect(await names('')).toEqual(['child of zeta', 'gamma', 'beta', 'Alpha', 'zeta', 'Gone'])
    expect(await names('?sort=name')).toEqual(['Alpha', 'beta', 'child of zeta', 'gamma', 'zeta', 'Gone'])
    expect(await names('?q=ZETA')).toEqual(['child of zeta', 'zeta'])
    expect(await names(`?q=${alpha}`), 'by id').toContain('Alpha')
    expect(await names('?q=%25')).toEqual([])
    expect(await names('?state=active')).toEqual(['child of zeta', 'gamma', 'Alpha', 'zeta'])
    expect(await names('?state=paused')).toEqual(['beta'])
    expect(await names('?state=revoked')).toEqual(['Gone'])
    expect(await names(`?owner=${ann.userId}`)).toEqual(['gamma'])
    expect(await names('?owner=me', ann.cookie)).toEqual(['gamma'])
    expect(await names(`?owner=me&parent=${zeta}`)).toEqual(['child of zeta'])
    expect(await names(`?owner=me&parent=${zeta}`, ann.cookie)).toEqual([])
    expect(await names('?parent=none&sort=name&state=active')).toEqual(['Alpha', 'gamma', 'zeta'])
    expect((await list(`?parent=${zeta}&sort=last_call`)).json).toMatchObject({ agents: [{ id: child }], next_cursor: null, total_estimate: 1 })

    await app.setBudget('agent', beta, 5)
    const period = istMonth(Date.now())
    await app.db.exec(addSpend, app.orgId, period, beta)
    for (const sort of ['created', 'name', 'last_call', 'spend']) {
      const whole = await names(`?sort=${sort}`)
      for (const limit of [1, 2, 4]) {
        const { found } = await all(`&sort=${sort}`, limit)
        expect(
          found.map(agent => agent.name),
          `${sort} by ${limit}`,
        ).toEqual(whole)
      }
    }
    // Every agent whose id is a multiple of beta's has spent something, and the one with the higher id has spent more.
    expect((await names('?sort=spend')).slice(0, 2)).toEqual(['Gone', 'beta'])
    expect(gone).toBe(beta * 2)
    expect(gamma).toBeGreaterThan(0)
  })

  test('an invalid filter and a cursor of another order get 400, which names the field', async () => {
    const next = (await list('?limit=1&sort=name')).json.next_cursor
    for (const query of [
      '?q=',
      `?q=${'x'.repeat(101)}`,
      '?state=x',
      '?owner=x',
      '?owner=0',
      '?parent=x',
      '?parent=99999999999',
      '?sort=x',
      '?limit=0',
      '?limit=201',
      `?cursor=${next}`,
      `?sort=spend&cursor=${next}`,
      '?sort=name&cursor=a1',
      '?sort=name&cursor=name.a1',
      '?sort=last_call&cursor=last_call.a1.eA',
      '?sort=spend&cursor=spend.1',
      '?budget_used_percent=0',
      '?budget_used_percent=101',
      '?budget_used_percent=x',
      `?cursor=${'a'.repeat(1001)}`,
    ]) {
      const reply = await list(query)
      expect(said(reply), query).toEqual(query === '?sort=name&cursor=name.a1' ? [200, undefined] : [400, 'bad_request'])
      if (reply.status === 400)
        expect(reply.json.error.message, query).toContain(query.startsWith('?sort=spend') ? 'cursor' : (/(\w+)=[^=]*$/.exec(query)?.[1] ?? ''))
    }
    const ownerless = (await app.newKey({ withUser: false })).key
    expect(said(await app.call('GET', '/v1/me/agents?owner=me', undefined, { token: ownerless }))).toEqual([400, 'bad_request'])
  })

  test('the agents that have spent a share of their budget are found by the server, most spend first, page by page', async () => {
    const there = await app.otherOrg('Budgets Org')
    const owner = await app.signIn(there.userId, there.orgId)
    const make = async (name: string, capInr: number | null, spentInr: number): Promise<number> => {
      const { id } = (await app.call('POST', '/me/agents', { name }, { cookie: owner })).json
      if (capInr !== null) await app.call('POST', `/me/agents/${id}/budget`, { monthly_budget_inr: capInr }, { cookie: owner })
      await app.db.exec(addSpendOf, there.orgId, String(id), istMonth(Date.now()), BigInt(spentInr) * 1_000_000n)
      return id
    }
    await make('half', 100, 50)
    await make('at 80', 100, 80)
    const over = await make('used up', 10, 12)
    await make('large', 1_000, 790)
    await make('near its end', 500, 450)
    await make('without a budget', null, 9_000)
    await app.call('POST', `/me/agents/${over}/pause`, undefined, { cookie: owner })

    expect(await names('?budget_used_percent=80', owner)).toEqual(['near its end', 'at 80', 'used up'])
    expect(await names('?budget_used_percent=100&sort=spend', owner)).toEqual(['used up'])
    expect(await names('?budget_used_percent=80&state=active', owner)).toEqual(['near its end', 'at 80'])
    expect(await names('?budget_used_percent=1&q=LARGE', owner)).toEqual(['large'])
    expect(await names('?budget_used_percent=80'), 'another organisation has none of them').not.toContain('used up')
    const pages: string[][] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page = await list(`?budget_used_percent=80&limit=1${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`, owner)
      expect(page.json).not.toHaveProperty('total_estimate')
      pages.push(page.json.agents.map((agent: Listed) => agent.name))
      cursor = page.json.next_cursor
    }
    expect(pages.flat()).toEqual(['near its end', 'at 80', 'used up'])
    const refused = await list('?budget_used_percent=80&sort=name', owner)
    expect([refused.status, refused.json.error.message]).toEqual([400, expect.stringContaining('sort=spend')])
  })

  test('25,000 agents are listed, searched and sorted quickly, and the total is known', { timeout: 120_000 }, async () => {
    const there = await app.otherOrg('Large Org')
    const owner = await app.signIn(there.userId, there.orgId)
    await app.db.exec(addMany, there.orgId, there.userId, many)
    await app.db.exec(addSpend, there.orgId, istMonth(Date.now()), 50)
    await app.db.exec({ name: 'test.analyze', text: 'analyze agents, counters' })
    const slowest: [number, string][] = []
    for (const query of [
      '',
      '?sort=name',
      '?sort=last_call',
      '?sort=spend',
      '?budget_used_percent=80',
      '?q=worker 24999',
      '?q=nothing',
      '?state=paused',
      `?owner=${there.userId}&sort=name`,
      '?parent=none',
      '?state=revoked&sort=last_call',
    ]) {
      const begun = performance.now()
      const page = await list(query, owner)
      slowest.push([Math.round(performance.now() - begun), query])
      expect(page.status, page.text).toBe(200)
    }
    expect(Math.max(...slowest.map(([ms]) => ms)), JSON.stringify(slowest)).toBeLessThan(2_000)
    expect((await list('', owner)).json.total_estimate).toBe(many)
    expect((await list('?state=revoked', owner)).json.total_estimate).toBe(many / 10)
    expect((await list('?q=worker 24999', owner)).json.agents).toMatchObject([{ name: 'Worker 24999' }])
    const { found, pages } = await all('&sort=spend&state=active', 200, owner)
    expect(pages).toBeGreaterThan(100)
    expect(new Set(found.map(agent => agent.id)).size).toBe((many * 9) / 10 - many / 1000)
    const spends = found.map(agent => agent.spend_month_inr)
    expect(spends).toEqual([...spends].sort((a, b) => b - a))
    // The whole list of a key still ends after a thousand.
    expect((await app.call('GET', '/v1/me/agents', undefined, { token: there.key })).json.agents).toHaveLength(1_000)
  })
})
