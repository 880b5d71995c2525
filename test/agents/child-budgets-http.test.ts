import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { startApp, type TestApp, until } from '../harness/app.ts'
import { familyOf, type Member, newName, said } from './family.ts'

/** Counts the transactions that last wrote these rows. */
const writers = statement<[ids: readonly number[]], { count: number }>(
  'test.writers_of_agents',
  'select count(distinct xmin::text)::int as "count" from agents where id = any($1::int[])',
)
/** The cost of one call in these tests: 12 tokens at ₹10 per million and 5 tokens at ₹40 per million. */
const callInr = 0.00032

describe('budgets of child agents', () => {
  let app: TestApp
  let family: ReturnType<typeof familyOf>
  beforeAll(async () => {
    app = await startApp()
    family = familyOf(app)
  })
  afterAll(() => app.stop())
  beforeEach(() => app.alpha.reset())

  const spentOf = async (...members: Member[]): Promise<number[]> => {
    await app.gateway.app.limits.flushNow()
    return Promise.all(members.map(async ({ id }) => (await family.listed(id)).spend_month_inr))
  }
  /** Returns the sum of the budgets of an agent's children, as the public list shows it. */
  const givenBy = async ({ id }: Member): Promise<number> => {
    const { agents } = (await app.call('GET', '/v1/me/agents')).json
    const caps = agents.flatMap((agent: { parent_id: number | null; status: string; monthly_budget_inr: number | null }) =>
      agent.parent_id === id && agent.status === 'active' ? [agent.monthly_budget_inr ?? 0] : [],
    )
    return caps.reduce((sum: number, cap: number) => sum + cap, 0)
  }

  test("BUDX-06 the budgets of active children together fit into their parent's budget. A child's call counts in all agents above it. A revocation ends the family in one transaction", async () => {
    const top = await family.lead(0.004)
    const middle = await family.born(top, { may_delegate: true, monthly_budget_inr: 0.002 })
    const lowest = await family.born(middle, { monthly_budget_inr: 0.0015 })
    const tooMuch = await family.child(top, { monthly_budget_inr: 0.0025 })
    expect(said(tooMuch)).toEqual([409, 'budget_not_available'])
    expect(tooMuch.json).toMatchObject({ parent_id: top.id, parent_cap_inr: 0.004, other_children_cap_inr: 0.002, most_inr: 0.002 })
    const sibling = await family.born(top, { monthly_budget_inr: 0.002 })
    expect(said(await family.child(top, { monthly_budget_inr: 0.000001 }))).toEqual([409, 'budget_not_available'])
    expect(await givenBy(top)).toBeCloseTo(0.004, 9)

    expect((await family.chat(lowest.token)).status).toBe(200)
    expect((await family.chat(sibling.token)).status).toBe(200)
    expect(await spentOf(lowest, middle, sibling, top)).toEqual([callInr, callInr, callInr, 2 * callInr])

    // When the parent has spent its budget itself, its children can spend nothing more, even with budget of their own left.
    await family.chatUntilRefused(top.token)
    for (const { token } of [lowest, middle, sibling]) {
      const refused = await family.chat(token)
      expect([...said(refused), refused.json.scope, refused.json.cap_inr]).toEqual([429, 'agent_budget_exceeded', 'agent', 0.004])
    }

    expect((await family.revoke(top.id)).status).toBe(200)
    for (const { id, token } of [top, middle, lowest, sibling]) {
      const dead = await family.chat(token)
      expect([...said(dead), dead.json.reason]).toEqual([401, 'invalid_api_key', 'agent_revoked'])
      expect((await family.listed(id)).status).toBe('revoked')
    }
    expect(await app.db.one(writers, [top.id, middle.id, lowest.id, sibling.id])).toEqual({ count: 1 })
  })

  test('a running call of a child holds budget of the child and of all agents above it', async () => {
    const top = await family.lead(1)
    const middle = await family.born(top, { may_delegate: true, monthly_budget_inr: 1 })
    const lowest = await family.born(middle, { monthly_budget_inr: 1 })
    app.alpha.hold()
    const running = family.chat(lowest.token)
    await until(() => app.alpha.requests.length === 1)
    const { budgets } = (await app.call('GET', '/v1/me/budgets', undefined, { token: lowest.token })).json
    const ofAgents = budgets.filter((budget: { scope: string }) => budget.scope === 'agent')
    expect(ofAgents.map((budget: { id: string }) => Number(budget.id))).toEqual([lowest.id, middle.id, top.id])
    for (const budget of ofAgents) expect(budget.held_inr).toBeGreaterThan(0)
    for (const { id } of [top, middle, lowest]) expect((await family.listed(id)).held_inr).toBeGreaterThan(0)
    app.alpha.release()
    expect((await running).status).toBe(200)
  })

  test("a child gets at most what its parent has left in the month, and the child's own spending is not counted twice", async () => {
    const parent = await family.lead(0.004)
    for (let i = 0; i < 5; i++) expect((await family.chat(parent.token)).status).toBe(200)
    await app.gateway.app.limits.flushNow()
    const refused = await family.child(parent, { monthly_budget_inr: 0.003 })
    expect(said(refused)).toEqual([409, 'budget_not_available'])
    const left = 0.004 - 5 * callInr
    expect(refused.json.parent_remaining_inr).toBeCloseTo(left, 9)
    expect(refused.json.most_inr).toBeCloseTo(left, 9)
    const name = newName('late')
    const late = await family.born(parent, { name, monthly_budget_inr: 0.002 })
    for (let i = 0; i < 2; i++) expect((await family.chat(late.token)).status).toBe(200)
    await app.gateway.app.limits.flushNow()
    expect((await family.child(parent, { name, monthly_budget_inr: refused.json.most_inr })).status).toBe(200)
    expect(said(await family.child(parent, { name, monthly_budget_inr: 0.0025 }))).toEqual([409, 'budget_not_available'])
  })

  test('a child must have a budget when its parent has one, and otherwise needs none', async () => {
    const parent = await family.lead(10)
    for (const body of [{}, { monthly_budget_inr: null }]) {
      const refused = await family.child(parent, body)
      expect([...said(refused), refused.json.most_inr]).toEqual([409, 'budget_not_available', 10])
      expect(refused.json.error.message).toContain('monthly_budget_inr')
    }
    const free = await family.lead()
    expect((await family.child(free)).json.agent.monthly_budget_inr).toBeNull()
    expect((await family.child(free, { monthly_budget_inr: 1_000_000 })).json.agent.monthly_budget_inr).toBe(1_000_000)
  })

  test('creating a child again changes its budget within the budget of its parent, and an omitted budget stays the same', async () => {
    const parent = await family.lead(10)
    const name = newName('moved')
    const budgetOf = async (body: object): Promise<unknown> => (await family.child(parent, { name, ...body })).json.agent?.monthly_budget_inr
    expect(await budgetOf({ monthly_budget_inr: 4 })).toBe(4)
    expect(await budgetOf({})).toBe(4)
    expect(await budgetOf({ monthly_budget_inr: 10 })).toBe(10)
    expect(said(await family.child(parent, { name, monthly_budget_inr: 10.01 }))).toEqual([409, 'budget_not_available'])
    expect(await budgetOf({ monthly_budget_inr: 1 })).toBe(1)
    expect(said(await family.child(parent, { name, monthly_budget_inr: null }))).toEqual([409, 'budget_not_available'])
    expect((await family.child(parent, { monthly_budget_inr: 9 })).status).toBe(201)
    expect(await givenBy(parent)).toBe(10)
  })

  test('the budget of an agent stays within its family, whether an agent endpoint or the console sets it', async () => {
    const cookie = await app.signIn()
    const ways: Record<string, (id: number, inr: number | null) => ReturnType<TestApp['call']>> = {
      endpoint: (id, inr) => family.budget(id, inr),
      console: (id, inr) => app.call('POST', '/me/budgets', { scope: 'agent', target_id: id, monthly_budget_inr: inr }, { cookie }),
    }
    for (const [way, set] of Object.entries(ways)) {
      const parent = await family.lead(10)
      const first = await family.born(parent, { may_delegate: true, monthly_budget_inr: 4 })
      const second = await family.born(parent, { monthly_budget_inr: 3 })
      expect((await set(first.id, 7)).status, way).toBe(200)
      for (const inr of [7.01, null]) expect(said(await set(first.id, inr)), `${way} ${inr}`).toEqual([409, 'budget_not_available'])
      expect((await set(first.id, 0)).status, `${way} 0`).toBe(way === 'console' ? 400 : 409)
      const tooLow = await set(parent.id, 9.99)
      expect([...said(tooLow), tooLow.json.least_inr], way).toEqual([409, 'budget_not_available', 10])
      for (const [id, inr] of [
        [first.id, 7],
        [second.id, 3],
        [parent.id, 10],
      ] as const)
        expect((await family.listed(id)).monthly_budget_inr, way).toBe(inr)
      // Lowering a budget always succeeds. A higher budget of the parent makes room, and a revoked child frees its part.
      expect((await set(first.id, 5)).status, way).toBe(200)
      expect((await set(parent.id, 8)).status, way).toBe(200)
      expect((await set(parent.id, 20)).status, way).toBe(200)
      expect((await set(first.id, 17)).status, way).toBe(200)
      await family.revoke(first.id)
      expect((await set(parent.id, 3)).status, way).toBe(200)
      expect((await set(parent.id, null)).status, way).toBe(200)
      expect((await set(second.id, null)).status, way).toBe(200)
      expect(said(await set(first.id, 1)), way).toEqual([409, 'agent_revoked'])
    }
  })

  test('twenty concurrent new children together get no more than what is left', async () => {
    const parent = await family.lead(10)
    const replies = await Promise.all(Array.from({ length: 20 }, () => family.child(parent, { monthly_budget_inr: 1.5 })))
    const made = replies.filter(reply => reply.status === 201)
    expect(made).toHaveLength(6)
    for (const reply of replies) if (reply.status !== 201) expect([...said(reply), reply.json.most_inr]).toEqual([409, 'budget_not_available', 1])
    expect(await givenBy(parent)).toBe(9)
  })

  test('children that are created while a budget is lowered never exceed it together', async () => {
    for (let round = 0; round < 4; round++) {
      const parent = await family.lead(4)
      const makers = Array.from({ length: 6 }, () => family.child(parent, { monthly_budget_inr: 1 }))
      const [lowered, ...replies] = await Promise.all([family.budget(parent.id, 2), ...makers])
      const { monthly_budget_inr: cap } = await family.listed(parent.id)
      expect(cap).toBe(lowered.status === 200 ? 2 : 4)
      expect(await givenBy(parent)).toBeLessThanOrEqual(cap)
      expect(replies.filter(reply => reply.status === 201)).toHaveLength(await givenBy(parent))
    }
  })
})
