import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { istMonth } from '../../src/platform/values/ist-time.ts'
import { testDatabase } from '../harness/database.ts'
import { newCaller, type Process, startProcess, until } from './setup.ts'

const database = await testDatabase()
let process: Process

beforeEach(async () => {
  process = await startProcess(database.db)
})
afterEach(() => process.stop())
afterAll(() => database.dispose())

const spend = statement<[orgId: number, agentId: string, month: string, uinr: bigint]>(
  'test.spend_of_agent',
  `insert into counters (org_id, scope, scope_id, metric, period, spent) values ($1::int, 'agent', $2::text, 'spend', $3::text, $4::bigint)`,
)
const setParent = statement<[childId: number, parentId: number]>('test.set_parent', 'update agents set parent_id = $2::int where id = $1::int')

const addPerson = statement<[email: string], { id: number }>(
  'test.agents_add_person',
  `insert into users (email, created_at) values ($1::text, now()) returning id`,
)
const addMember = statement<[orgId: number, userId: number]>(
  'test.agents_add_member',
  `insert into org_members (org_id, user_id, role, created_at) values ($1::int, $2::int, 'member', now())`,
)

async function newMember(orgId: number): Promise<number> {
  const { id } = await process.db.one(addPerson, `colleague-${orgId}@example.com`)
  await process.db.exec(addMember, orgId, id)
  return id
}

/** Creates a line of agents. Each agent is a child of the previous one. */
async function family(caller: Awaited<ReturnType<typeof newCaller>>, names: readonly string[]): Promise<number[]> {
  const ids: number[] = []
  for (const name of names) {
    const { agent } = await process.agents.createOrReuse(caller.principal, name)
    const parent = ids.at(-1)
    if (parent !== undefined) await process.db.exec(setParent, agent.id, parent)
    ids.push(agent.id)
  }
  return ids
}

test('a name creates an agent once, and then returns that agent', async () => {
  const { principal, userId, keyId } = await newCaller(process)
  const first = await process.agents.createOrReuse(principal, 'triage')
  expect(first).toEqual({
    isNew: true,
    agent: {
      id: expect.any(Number),
      name: 'triage',
      status: 'active',
      parent_id: null,
      depth: 0,
      monthly_budget_inr: null,
      spend_month_inr: 0,
      held_inr: 0,
      in_doubt_inr: 0,
      may_delegate: false,
      allowed_models: null,
      allowed_providers: null,
      max_cost_inr_per_call: null,
      max_output_tokens: null,
      max_concurrency: null,
      tpm_limit: null,
      allowed_tools: null,
      run: null,
      active_children: 0,
      owner_uid: userId,
      owner_name: expect.stringMatching(/@example\.com$/),
      created_by: { kind: 'key', id: keyId },
      playground: false,
      last_call_at: null,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    },
  })
  expect(await process.agents.createOrReuse(principal, '  triage ')).toEqual({ isNew: false, agent: first.agent })
})

test('the same name in another organisation is a different agent', async () => {
  const [a, b] = [await newCaller(process), await newCaller(process)]
  const [one, two] = [await process.agents.createOrReuse(a.principal, 'same'), await process.agents.createOrReuse(b.principal, 'same')]
  expect(two.isNew).toBe(true)
  expect(two.agent.id).not.toBe(one.agent.id)
})

test('twenty concurrent creates with one name create one agent', async () => {
  const { principal, orgId } = await newCaller(process)
  const made = await Promise.all(Array.from({ length: 20 }, () => process.agents.createOrReuse(principal, 'crowd')))
  expect(new Set(made.map(one => one.agent.id)).size).toBe(1)
  expect(made.filter(one => one.isNew)).toHaveLength(1)
  expect((await process.agents.list(orgId)).agents).toHaveLength(1)
})

test.each(['', '   ', 'a'.repeat(101), 'tab\there', 'nul\u0000', 'line\nbreak', 'c1\u0085'])('the name %j is refused', async name => {
  const { principal } = await newCaller(process)
  await expect(process.agents.createOrReuse(principal, name)).rejects.toMatchObject({ errorName: 'bad_name' })
})

test.each(['a', 'a'.repeat(100), 'नमस्ते', '🤖'.repeat(100), "o'brien; drop table agents"])('the name %j is accepted', async name => {
  const { principal } = await newCaller(process)
  expect((await process.agents.createOrReuse(principal, name)).agent.name).toBe(name)
})

test('may_delegate is off by default, and only an explicit value changes it', async () => {
  const { principal } = await newCaller(process)
  expect((await process.agents.createOrReuse(principal, 'lead', { mayDelegate: true })).agent.may_delegate).toBe(true)
  expect((await process.agents.createOrReuse(principal, 'lead')).agent.may_delegate).toBe(true)
  expect((await process.agents.createOrReuse(principal, 'lead', { mayDelegate: false })).agent.may_delegate).toBe(false)
})

test('the list shows budgets and spending, and active agents come before revoked agents', async () => {
  const { principal, orgId } = await newCaller(process)
  const [a, b, c] = [
    await process.agents.createOrReuse(principal, 'a'),
    await process.agents.createOrReuse(principal, 'b'),
    await process.agents.createOrReuse(principal, 'c'),
  ]
  await process.agents.setBudget(orgId, a.agent.id, 12.5, 'operator')
  await process.db.exec(spend, orgId, String(a.agent.id), istMonth(process.clock.nowMs()), 1_250_001n)
  await process.agents.revoke(orgId, b.agent.id, 'operator')
  const { agents: list } = await process.agents.list(orgId)
  expect(list.map(agent => [agent.name, agent.status])).toEqual([
    ['c', 'active'],
    ['a', 'active'],
    ['b', 'revoked'],
  ])
  expect(list[1]).toMatchObject({ monthly_budget_inr: 12.5, spend_month_inr: 1.250001 })
  expect(c.isNew).toBe(true)
})

test('a budget is set in rupees, and 0 or null removes it', async () => {
  const { principal, orgId } = await newCaller(process)
  const { agent } = await process.agents.createOrReuse(principal, 'spender')
  expect(await process.agents.setBudget(orgId, agent.id, 99.5, 'operator')).toMatchObject({ id: agent.id, monthly_budget_inr: 99.5 })
  expect(await process.agents.setBudget(orgId, agent.id, 0, 'operator')).toMatchObject({ monthly_budget_inr: null })
  await process.agents.setBudget(orgId, agent.id, 1, 'operator')
  expect(await process.agents.setBudget(orgId, agent.id, null, 'operator')).toMatchObject({ monthly_budget_inr: null })
})

test.each([-1, Number.NaN, Number.POSITIVE_INFINITY, 1e-9, 1e12])('the budget %s is refused', async amount => {
  const { principal, orgId } = await newCaller(process)
  const { agent } = await process.agents.createOrReuse(principal, 'spender')
  await expect(process.agents.setBudget(orgId, agent.id, amount, 'operator')).rejects.toMatchObject({ errorName: 'bad_request' })
})

test('an agent of another organisation is not found', async () => {
  const [mine, theirs] = [await newCaller(process), await newCaller(process)]
  const { agent } = await process.agents.createOrReuse(theirs.principal, 'hidden')
  await expect(process.agents.revoke(mine.orgId, agent.id, 'operator')).rejects.toMatchObject({ errorName: 'not_found' })
  await expect(process.agents.setBudget(mine.orgId, agent.id, 1, 'operator')).rejects.toMatchObject({ errorName: 'not_found' })
  await expect(process.agents.tokens.mint(mine.principal, agent.id)).rejects.toMatchObject({ errorName: 'not_found' })
  expect(await process.agents.byLabel(mine.orgId, 'hidden')).toBeNull()
  expect(await process.agents.byLabel(mine.orgId, String(agent.id))).toBeNull()
  expect(await process.agents.names(mine.orgId, [agent.id])).toEqual(new Map())
  expect(await process.agents.names(theirs.orgId, [agent.id])).toEqual(new Map([[agent.id, 'hidden']]))
})

test('a revocation ends all agents below the revoked one, and no other agent', async () => {
  const caller = await newCaller(process)
  const [, b, c, d] = await family(caller, ['a', 'b', 'c', 'd'])
  const { agent: other } = await process.agents.createOrReuse(caller.principal, 'other')
  const running = [b, c, d, other.id].map(id => {
    const controller = new AbortController()
    process.inflight.register({ agentIds: [id ?? 0], keyId: null }, controller)
    return controller
  })
  await process.agents.revoke(caller.orgId, b ?? 0, 'operator')
  const status = new Map((await process.agents.list(caller.orgId)).agents.map(agent => [agent.name, agent.status]))
  expect(Object.fromEntries(status)).toEqual({ a: 'active', b: 'revoked', c: 'revoked', d: 'revoked', other: 'active' })
  expect(running.map(controller => controller.signal.aborted)).toEqual([true, true, true, false])
})

test('a second revocation returns the same reply as the first', async () => {
  const { principal, orgId } = await newCaller(process)
  const { agent } = await process.agents.createOrReuse(principal, 'gone')
  const first = await process.agents.revoke(orgId, agent.id, 'operator')
  expect(first).toMatchObject({ id: agent.id, status: 'revoked' })
  expect(await process.agents.revoke(orgId, agent.id, 'operator')).toEqual(first)
})

test('concurrent revocations of parent and child both succeed', async () => {
  const caller = await newCaller(process)
  for (let round = 0; round < 5; round++) {
    const [a, b, c] = await family(caller, [`a${round}`, `b${round}`, `c${round}`])
    await Promise.all([a, c, b, a].map(id => process.agents.revoke(caller.orgId, id ?? 0, 'operator')))
  }
  expect((await process.agents.list(caller.orgId)).agents.every(agent => agent.status === 'revoked')).toBe(true)
})

test('the name of a revoked agent creates a new identity', async () => {
  const { principal, orgId } = await newCaller(process)
  const { agent: old } = await process.agents.createOrReuse(principal, 'phoenix')
  await process.agents.revoke(orgId, old.id, 'operator')
  const { agent, isNew } = await process.agents.createOrReuse(principal, 'phoenix')
  expect(isNew).toBe(true)
  expect(agent.id).not.toBe(old.id)
})

test('a label is an id or an exact name, and a second look-up needs no query', async () => {
  const { principal, orgId } = await newCaller(process)
  const { agent } = await process.agents.createOrReuse(principal, 'Nightly')
  const expected = { id: agent.id, name: 'Nightly', status: 'active', ancestorIds: [] }
  expect(await process.agents.byLabel(orgId, String(agent.id))).toMatchObject(expected)
  expect(await process.agents.byLabel(orgId, 'Nightly')).toMatchObject(expected)
  expect(await process.agents.byLabel(orgId, 'nightly')).toBeNull()
  expect(await process.agents.byLabel(orgId, '99999999999999')).toBeNull()
  const before = process.db.roundTrips
  expect(process.agents.byLabel(orgId, 'Nightly')).toMatchObject(expected)
  expect(process.db.roundTrips).toBe(before)
})

test('the look-up of a label returns the ancestors of its agent, nearest first', async () => {
  const caller = await newCaller(process)
  const [a, b, c, d, e] = await family(caller, ['a', 'b', 'c', 'd', 'e'])
  expect(await process.agents.byLabel(caller.orgId, String(d))).toMatchObject({ id: d, ancestorIds: [c, b, a] })
  expect(await process.agents.byLabel(caller.orgId, String(e))).toMatchObject({ id: e, ancestorIds: [d, c, b] })
  // An agent chose the name of a child, so the name finds nothing.
  expect(await process.agents.byLabel(caller.orgId, 'd')).toBeNull()
})

test('the label of a revoked agent is reported as revoked until a new agent takes the name', async () => {
  const { principal, orgId } = await newCaller(process)
  expect(await process.agents.byLabel(orgId, 'worker')).toBeNull()
  const { agent } = await process.agents.createOrReuse(principal, 'worker')
  expect(await process.agents.byLabel(orgId, 'worker')).toMatchObject({ id: agent.id, status: 'active' })
  await process.agents.revoke(orgId, agent.id, 'operator')
  expect(await process.agents.byLabel(orgId, 'worker')).toMatchObject({ id: agent.id, status: 'revoked' })
  const next = await process.agents.createOrReuse(principal, 'worker')
  expect(await process.agents.byLabel(orgId, 'worker')).toMatchObject({ id: next.agent.id, status: 'active' })
  expect(await process.agents.byLabel(orgId, String(agent.id))).toMatchObject({ id: agent.id, status: 'revoked' })
})

test('another process sees the new owner of a label that it has in its cache', async () => {
  const there = await startProcess(database.db)
  try {
    const { principal, orgId, userId } = await newCaller(process)
    const colleague = await newMember(orgId)
    const { agent } = await process.agents.createOrReuse(principal, 'handed over')
    expect(await there.agents.byLabel(orgId, 'handed over')).toMatchObject({ ownerUser: userId })
    await process.agents.update(orgId, agent.id, { ownerUser: colleague }, 'operator')
    expect(await process.agents.byLabel(orgId, 'handed over')).toMatchObject({ ownerUser: colleague })
    await until(async () => (await there.agents.byLabel(orgId, 'handed over'))?.ownerUser === colleague, 'the news of the owner')
  } finally {
    await there.stop()
  }
})
