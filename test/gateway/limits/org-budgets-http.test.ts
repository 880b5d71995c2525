import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestMember, type TestReply } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'

const insertWorkspace = statement<[orgId: number, name: string], { id: number }>(
  'test.insert_workspace_of_budgets',
  'insert into workspaces (org_id, name, created_at) values ($1::int, $2::text, now()) returning id',
)
const archive = statement<[id: number]>('test.archive_workspace', 'update workspaces set archived_at = now() where id = $1::int')
const removeMember = statement<[userId: number]>('test.org_budgets_http_remove_member', `update org_members set status = 'removed' where user_id = $1::int`)
const makePersonal = statement<[orgId: number]>('test.make_personal', `update orgs set kind = 'personal' where id = $1::int`)
const events = statement<[orgId: number], { type: string; data: { scope: string; scope_id: string; threshold: number; spent_inr: number; cap_inr: number } }>(
  'test.budget_outbox',
  `select type, data from webhook_events where org_id = $1::int and type in ('budget.warn', 'budget.block') order by created, id`,
)
const holds = statement<[orgId: number], { scope: string; leased: bigint }>(
  'test.leased_spend',
  `select scope, leased from counters where org_id = $1::int and metric = 'spend' and leased <> 0`,
)

/** 09:15 on 21 November 2026 in India. */
const morning = Date.UTC(2026, 10, 21, 3, 45, 1)
const hourMs = 3600_000
const hello = [{ role: 'user', content: 'Hello there' }]
/** The cost of one call of `alpha-only` with this usage: 100 tokens at ₹40 a million. */
const costInr = 0.004
const fixed = { usage: { prompt_tokens: 0, completion_tokens: 100, total_tokens: 100 } }

describe('budgets of an organisation', () => {
  const clock = movableClock(morning)
  let app: TestApp
  let owner: string
  beforeAll(async () => {
    app = await startApp({ clock })
    owner = await app.signIn()
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    clock.moveTo(morning)
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
    app.alpha.script(() => fixed)
  })

  const set = (body: unknown, cookie = owner) => app.call('POST', '/me/budgets', body, { cookie })
  const read = async (query = '', cookie = owner) => (await app.call('GET', `/me/budgets${query}`, undefined, { cookie })).json
  const chat = (token: string, body: object = {}, headers: Record<string, string> = {}) =>
    app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: hello, max_tokens: 100, ...body }, { token, headers })
  const said = ({ status, json }: TestReply) => [status, json?.error?.code]
  /** Calls until one is refused because the budget is spent, not because of holds. */
  const untilRefused = async (call: () => Promise<TestReply>): Promise<TestReply> => {
    let reply = await call()
    for (let i = 0; i < 60 && (reply.status === 200 || reply.headers.get('retry-after') === '5'); i++) reply = await call()
    return reply
  }
  const newMember = (): Promise<TestMember> => app.newMember('member')
  /** Makes a key of a new person, bound to a new workspace. */
  async function newBoundKey(name: string): Promise<{ key: string; keyId: number; workspaceId: number; userId: number }> {
    const { userId } = await newMember()
    const { id: workspaceId } = await app.db.one(insertWorkspace, app.orgId, name)
    const made = await app.gateway.app.keys.create({ orgId: app.orgId, userId, workspaceId, name, scope: 'full', rpmLimit: null, dailyLimit: null })
    return { key: made.key, keyId: made.id, workspaceId, userId }
  }

  test('SHAPE-29 an owner sets a budget by scope and target, reads its state, and removes it with null', async () => {
    const { keyId } = await app.newKey({ name: 'shaped key' })
    const made = await set({ scope: 'key', target_id: keyId, monthly_budget_inr: 250.5 })
    expect(made.status).toBe(200)
    expect(made.json).toEqual({
      ok: true,
      budget: {
        scope: 'key',
        id: String(keyId),
        name: 'shaped key',
        period: 'month',
        cap_inr: 250.5,
        strict: false,
        spent_inr: 0,
        held_inr: 0,
        in_doubt_inr: 0,
        remaining_inr: 250.5,
        state: 'under',
        warn_percent: [],
        resets_at: '2026-11-30T18:30:00.000Z',
      },
    })
    expect((await read()).budgets).toContainEqual(made.json.budget)
    const strict = await set({ scope: 'key', target_id: String(keyId), monthly_budget_inr: 3, strict: true })
    expect(strict.json.budget).toMatchObject({ cap_inr: 3, strict: true })
    // When `strict` is left out, it does not change.
    expect((await set({ scope: 'key', target_id: keyId, monthly_budget_inr: 4 })).json.budget).toMatchObject({ cap_inr: 4, strict: true })
    expect((await set({ scope: 'key', target_id: keyId, monthly_budget_inr: null })).json.budget).toMatchObject({ cap_inr: null, remaining_inr: null })
    expect((await read()).budgets.map((budget: { id: string }) => budget.id)).not.toContain(String(keyId))
    const admin = await app.newMember('admin')
    expect((await set({ scope: 'key', target_id: keyId, monthly_budget_inr: 5 }, admin.cookie)).status).toBe(200)
    expect((await read('', admin.cookie)).budgets).toContainEqual(expect.objectContaining({ scope: 'key', id: String(keyId), cap_inr: 5 }))
    // Only owners and admins see the spend of all. A member reads the budgets of an own key with GET /v1/me/budgets.
    const agent = await app.newAgent('reader of budgets')
    for (const credential of [{ cookie: (await newMember()).cookie }, { token: agent.token }])
      expect(said(await app.call('GET', '/me/budgets', undefined, credential))).toEqual([403, 'forbidden'])
    await set({ scope: 'key', target_id: keyId, monthly_budget_inr: null })
  })

  test('BUDG-12 an unknown scope is 400 bad_request, and a target that is unknown, deleted or of another organisation is 404 not_found', async () => {
    const other = await app.otherOrg('Other Budgets')
    for (const scope of ['everybody', '', 'ORG', 5, null, undefined])
      expect(said(await set({ scope, monthly_budget_inr: 1 })), String(scope)).toEqual([400, 'bad_request'])
    for (const scope of ['workspace', 'member', 'key', 'agent']) {
      expect(said(await set({ scope, monthly_budget_inr: 1 })), scope).toEqual([400, 'bad_request'])
      for (const target_id of [0, -1, 1.5, 999_999, 'x', '', '99999999999'])
        expect(said(await set({ scope, target_id, monthly_budget_inr: 1 })), `${scope} ${target_id}`).toEqual([404, 'not_found'])
    }
    for (const scope of ['org', 'team']) expect(said(await set({ scope, target_id: other.orgId, monthly_budget_inr: 1 }))).toEqual([404, 'not_found'])
    const foreign = await app.call('POST', '/v1/me/agents', { name: 'foreign' }, { token: other.key })
    const { id: foreignWorkspace } = await app.db.one(insertWorkspace, other.orgId, 'foreign')
    for (const [scope, target_id] of [
      ['key', other.keyId],
      ['member', other.userId],
      ['workspace', foreignWorkspace],
      ['agent', foreign.json.id],
    ])
      expect(said(await set({ scope, target_id, monthly_budget_inr: 1 })), String(scope)).toEqual([404, 'not_found'])
    const bound = await newBoundKey('gone')
    await app.gateway.app.keys.revoke(app.orgId, bound.keyId)
    await app.db.exec(removeMember, bound.userId)
    for (const [scope, target_id] of [
      ['key', bound.keyId],
      ['member', bound.userId],
    ])
      expect(said(await set({ scope, target_id, monthly_budget_inr: 1 })), String(scope)).toEqual([404, 'not_found'])
    for (const monthly_budget_inr of [-1, '5', 1e300, 0.0000001, true, undefined])
      expect(said(await set({ scope: 'org', monthly_budget_inr })), String(monthly_budget_inr)).toEqual([400, 'bad_request'])
    expect((await read()).budgets).toEqual([])
  })

  test('BUDG-13 a member who sets a budget gets 403 forbidden, even for a target that does not exist', async () => {
    const { cookie } = await newMember()
    for (const body of [
      { scope: 'org', monthly_budget_inr: 1 },
      { scope: 'key', target_id: app.keyId, monthly_budget_inr: 1 },
      { scope: 'key', target_id: 999_999, monthly_budget_inr: 1 },
    ])
      expect(said(await set(body, cookie))).toEqual([403, 'forbidden'])
    expect((await read()).budgets).toEqual([])
  })

  test('the scope team is the budget of the organisation itself, and a personal organisation refuses it', async () => {
    const made = await set({ scope: 'team', monthly_budget_inr: 7 })
    expect(made.json.budget).toMatchObject({ scope: 'org', id: String(app.orgId), name: 'Test Org', cap_inr: 7 })
    expect((await set({ scope: 'org', target_id: app.orgId, monthly_budget_inr: null })).json.budget).toMatchObject({ scope: 'org', cap_inr: null })
    expect((await read()).budgets).toEqual([])
    const alone = await app.otherOrg('Alone')
    await app.db.exec(makePersonal, alone.orgId)
    const cookie = await app.signIn(alone.userId, alone.orgId)
    expect(said(await set({ scope: 'team', monthly_budget_inr: 7 }, cookie))).toEqual([400, 'bad_request'])
    expect((await set({ scope: 'org', monthly_budget_inr: 7 }, cookie)).status).toBe(200)
  })

  test('BUDG-07 a budget with scope agent can be read at the agent endpoint, and the reverse', async () => {
    const { id } = await app.newAgent('two doors')
    const view = async () => (await app.call('GET', '/v1/me/agents')).json.agents.find((agent: { id: number }) => agent.id === id)
    expect((await set({ scope: 'agent', target_id: id, monthly_budget_inr: 12.5 })).json.budget).toMatchObject({
      scope: 'agent',
      id: String(id),
      name: 'two doors',
      cap_inr: 12.5,
    })
    expect((await view()).monthly_budget_inr).toBe(12.5)
    await app.call('POST', `/v1/me/agents/${id}/budget`, { monthly_budget_inr: 3 })
    expect((await read()).budgets).toContainEqual(expect.objectContaining({ scope: 'agent', id: String(id), cap_inr: 3 }))
    for (const wrong of [-1, 1e300, 0.0000001, 'x'])
      expect(said(await set({ scope: 'agent', target_id: id, monthly_budget_inr: wrong }))).toEqual(
        said(await app.call('POST', `/v1/me/agents/${id}/budget`, { monthly_budget_inr: wrong })),
      )
    await set({ scope: 'agent', target_id: id, monthly_budget_inr: null })
    expect((await view()).monthly_budget_inr).toBeNull()
    await set({ scope: 'agent', target_id: id, monthly_budget_inr: 5 })
    await app.call('POST', `/v1/me/agents/${id}/revoke`, {})
    expect(said(await set({ scope: 'agent', target_id: id, monthly_budget_inr: 6 }))).toEqual([409, 'agent_revoked'])
    expect((await read()).budgets.filter((budget: { scope: string }) => budget.scope === 'agent')).toEqual([])
  })

  test('budgets whose target was deleted are not listed, and a page continues after its cursor', async () => {
    const bound = await newBoundKey('paged')
    const keep = await newBoundKey('kept')
    await set({ scope: 'org', monthly_budget_inr: 1000 })
    for (const { keyId, workspaceId, userId } of [bound, keep])
      for (const [scope, target_id] of [
        ['workspace', workspaceId],
        ['member', userId],
        ['key', keyId],
      ])
        expect((await set({ scope, target_id, monthly_budget_inr: 100 })).status).toBe(200)
    const names = async (query: string) => {
      const page = await read(query)
      return [page.budgets.map((budget: { scope: string; id: string }) => `${budget.scope} ${budget.id}`), page.next_cursor]
    }
    const [all, end] = await names('')
    expect(all).toEqual([
      `org ${app.orgId}`,
      `workspace ${bound.workspaceId}`,
      `workspace ${keep.workspaceId}`,
      `member ${bound.userId}`,
      `member ${keep.userId}`,
      `key ${bound.keyId}`,
      `key ${keep.keyId}`,
    ])
    expect(end).toBeNull()
    await app.gateway.app.keys.revoke(app.orgId, bound.keyId)
    await app.db.exec(archive, bound.workspaceId)
    await app.db.exec(removeMember, bound.userId)
    // Keys of an archived workspace still work within its budget, so this budget is listed.
    const left = [all[0], all[1], all[2], all[4], all[6]]
    expect(await names('')).toEqual([left, null])
    const walked: string[] = []
    let cursor = ''
    for (let pages = 0; pages < 10; pages++) {
      const [page, next] = await names(`?limit=2${cursor}`)
      expect(page.length).toBeLessThanOrEqual(2)
      walked.push(...page)
      if (next === null) break
      cursor = `&cursor=${encodeURIComponent(next)}`
    }
    expect(walked).toEqual(left)
    for (const query of ['?limit=0', '?limit=201', '?cursor=nonsense', '?cursor=org'])
      expect(said(await app.call('GET', `/me/budgets${query}`, undefined, { cookie: owner })), query).toEqual([400, 'bad_request'])
    for (const [scope, target_id] of [['org'], ['workspace', bound.workspaceId], ['workspace', keep.workspaceId], ['member', keep.userId], ['key', keep.keyId]])
      await set({ scope, target_id, monthly_budget_inr: null })
  })

  test('BUDG-06 budgets of org, team, workspace, member, key and agent all apply, each refuses with its scope, and a refused call holds nothing', async () => {
    const bound = await newBoundKey('all scopes')
    const agent = await app.newAgent('of all scopes')
    const token = (await app.call('POST', `/v1/me/agents/${agent.id}/token`, {}, { token: app.key })).json.access_token
    expect(token).toBeDefined()
    const bySelf = (): Promise<TestReply> => chat(bound.key, {}, { 'x-br-agent-id': 'of all scopes' })
    const targets = { org: undefined, team: undefined, workspace: bound.workspaceId, member: bound.userId, key: bound.keyId, agent: agent.id }
    const put = (scope: string, inr: number | null) => set({ scope, target_id: targets[scope as keyof typeof targets], monthly_budget_inr: inr })
    const spentNow = async (): Promise<Record<string, number>> => {
      const { budgets } = await read()
      return Object.fromEntries(budgets.map((budget: { scope: string; spent_inr: number }) => [budget.scope, budget.spent_inr]))
    }
    for (const scope of ['org', 'workspace', 'member', 'key', 'agent']) expect((await put(scope, 1000)).status).toBe(200)
    expect((await bySelf()).status).toBe(200)
    for (const scope of ['org', 'team', 'workspace', 'member', 'key', 'agent']) {
      const own = scope === 'team' ? 'org' : scope
      const before = await spentNow()
      // Leaves room for one more call.
      await put(scope, (before[own] ?? 0) + costInr)
      expect((await bySelf()).status, scope).toBe(200)
      const served = app.alpha.requests.length
      const refused = await untilRefused(bySelf)
      expect([...said(refused), refused.json.scope], scope).toEqual([429, scope === 'agent' ? 'agent_budget_exceeded' : 'budget_exceeded', own])
      expect(app.alpha.requests.length).toBe(served)
      await app.gateway.app.limits.flushNow()
      const after = await spentNow()
      for (const other of ['org', 'workspace', 'member', 'key', 'agent'])
        expect((after[other] ?? 0) - (before[other] ?? 0), `${scope} ${other}`).toBeCloseTo(costInr, 9)
      for (const budget of (await read()).budgets) expect(budget.held_inr, `${scope} ${budget.scope}`).toBe(0)
      await put(scope, 1000)
    }
    // When several budgets are spent, the refusal names the narrowest.
    const order = ['agent', 'key', 'workspace', 'member', 'org']
    for (const scope of order) await put(scope, 0.000001)
    for (const scope of order) {
      const refused = await untilRefused(bySelf)
      expect(refused.json.scope).toBe(scope)
      await put(scope, null)
    }
    expect((await bySelf()).status).toBe(200)
    await app.gateway.app.limits.flushNow()
    expect(await app.db.many(holds, app.orgId)).toEqual([])
  })

  test('BUDG-01 BUDG-02 BUDG-03 LIFE-05 each budget sends one warning at 80 % and then one block at 100 % in a month', async () => {
    const other = await app.otherOrg('Marks')
    const cookie = await app.signIn(other.userId, other.orgId)
    const state = async () => (await read('', cookie)).budgets.map((budget: { scope: string; state: string }) => `${budget.scope} ${budget.state}`)
    const fired = async () => {
      await app.gateway.app.limits.flushNow()
      return (await app.db.many(events, other.orgId)).map(event => `${event.type} ${event.data.scope} ${event.data.threshold}`)
    }
    // The budget of the organisation pays for ten calls, and that of the key for one.
    await set({ scope: 'org', monthly_budget_inr: 10 * costInr }, cookie)
    for (let i = 0; i < 7; i++) expect((await chat(other.key)).status).toBe(200)
    expect([await fired(), await state()]).toEqual([[], ['org under']])
    await chat(other.key)
    expect([await fired(), await state()]).toEqual([['budget.warn org 80'], ['org warned']])
    await chat(other.key)
    expect(await fired()).toEqual(['budget.warn org 80'])
    await chat(other.key)
    expect([await fired(), await state()]).toEqual([['budget.warn org 80', 'budget.block org 100'], ['org blocked']])
    const refused = await untilRefused(() => chat(other.key))
    expect([...said(refused), refused.json.scope, refused.json.spent_inr, refused.json.cap_inr]).toEqual([429, 'budget_exceeded', 'org', 0.04, 0.04])
    // A raised budget that is crossed again sends no second event in a month. A second budget has its own marks, and one call crosses both.
    await set({ scope: 'org', monthly_budget_inr: 11 * costInr }, cookie)
    const { id } = (await app.call('POST', '/v1/me/agents', { name: 'jumper' }, { token: other.key })).json
    await set({ scope: 'agent', target_id: id, monthly_budget_inr: costInr }, cookie)
    expect((await chat(other.key, {}, { 'x-br-agent-id': 'jumper' })).status).toBe(200)
    expect(await fired()).toEqual(['budget.warn org 80', 'budget.block org 100', 'budget.warn agent 80', 'budget.block agent 100'])
    // A new month begins below every mark, so the marks fire again.
    clock.moveTo(Date.UTC(2026, 10, 30, 18, 30, 5))
    expect(await state()).toEqual(['org under', 'agent under'])
    await set({ scope: 'org', monthly_budget_inr: costInr }, cookie)
    expect((await chat(other.key)).status).toBe(200)
    expect((await fired()).slice(4)).toEqual(['budget.warn org 80', 'budget.block org 100'])
  })

  test("BUDG-08 a call on the caller's own provider key counts in every budget, and a spent budget refuses it", async () => {
    const bound = await newBoundKey('own key')
    const own = (): Promise<TestReply> => chat(bound.key, { provider: 'alpha', upstream_key: 'sk-own-credential-1' })
    for (const [scope, target_id] of [
      ['workspace', bound.workspaceId],
      ['member', bound.userId],
      ['key', bound.keyId],
    ])
      await set({ scope, target_id, monthly_budget_inr: 1 })
    expect((await own()).status).toBe(200)
    const spent = (await read()).budgets.map((budget: { scope: string; spent_inr: number }) => [budget.scope, budget.spent_inr])
    expect(spent).toEqual([
      ['workspace', costInr],
      ['member', costInr],
      ['key', costInr],
    ])
    await set({ scope: 'member', target_id: bound.userId, monthly_budget_inr: costInr })
    const refused = await untilRefused(own)
    expect([...said(refused), refused.json.scope]).toEqual([429, 'budget_exceeded', 'member'])
    for (const [scope, target_id] of [
      ['workspace', bound.workspaceId],
      ['member', bound.userId],
      ['key', bound.keyId],
    ])
      await set({ scope, target_id, monthly_budget_inr: null })
  })

  test('BUDG-14 retry-after is the end of the month in India when the budget is spent, and 5 s while running calls hold the rest', async () => {
    const { key, keyId } = await app.newKey()
    await set({ scope: 'key', target_id: keyId, monthly_budget_inr: costInr })
    app.alpha.script(() => ({ ...fixed, hold: true }))
    const running = chat(key)
    await app.alpha.arrived(1)
    const held = await chat(key)
    expect([...said(held), held.headers.get('retry-after'), held.headers.get('x-should-retry')]).toEqual([429, 'budget_exceeded', '5', 'true'])
    expect(held.json).toMatchObject({ scope: 'key', spent_inr: 0 })
    app.alpha.release()
    expect((await running).status).toBe(200)
    const spent = await untilRefused(() => chat(key))
    expect([...said(spent), spent.headers.get('x-should-retry')]).toEqual([429, 'budget_exceeded', 'false'])
    expect(Math.abs(Number(spent.headers.get('retry-after')) - (Date.UTC(2026, 10, 30, 18, 30) - clock.nowMs()) / 1000)).toBeLessThan(5)
    await set({ scope: 'key', target_id: keyId, monthly_budget_inr: null })
  })

  test('BUDG-09 LIM-05 a blocked budget admits calls again at the end of the month in India, 18:30 UTC, and a daily limit at the end of the day', async () => {
    const { key } = await app.newKey({ daily: 1 })
    const { key: rich, keyId: richId } = await app.newKey()
    clock.moveTo(Date.UTC(2026, 11, 30, 18, 29, 0))
    expect((await chat(key)).status).toBe(200)
    expect(said(await chat(key))).toEqual([429, 'daily_limit_reached'])
    clock.moveTo(Date.UTC(2026, 11, 30, 18, 29, 50))
    expect(said(await chat(key))).toEqual([429, 'daily_limit_reached'])
    // In India, 1 January 2027 begins a day later.
    clock.moveTo(Date.UTC(2026, 11, 30, 18, 30, 1))
    expect((await chat(key)).status).toBe(200)
    const cookie = await app.signIn()
    const budgets = async () => (await read('', cookie)).budgets
    await set({ scope: 'key', target_id: richId, monthly_budget_inr: costInr }, cookie)
    expect((await chat(rich)).status).toBe(200)
    clock.moveTo(Date.UTC(2026, 11, 31, 18, 29, 40))
    expect(said(await untilRefused(() => chat(rich)))).toEqual([429, 'budget_exceeded'])
    expect(await budgets()).toContainEqual(expect.objectContaining({ id: String(richId), state: 'blocked', resets_at: '2026-12-31T18:30:00.000Z' }))
    clock.moveTo(Date.UTC(2026, 11, 31, 18, 30, 1))
    expect(await budgets()).toContainEqual(expect.objectContaining({ id: String(richId), state: 'under', spent_inr: 0, resets_at: '2027-01-31T18:30:00.000Z' }))
    expect((await chat(rich)).status).toBe(200)
    await set({ scope: 'key', target_id: richId, monthly_budget_inr: null }, cookie)
  })

  test('LIFE-06 an agent is within its budget, uses it up, and is within it again in the next month', async () => {
    clock.moveTo(morning + 2 * hourMs)
    const { id, token } = await app.newAgent('monthly')
    await set({ scope: 'agent', target_id: id, monthly_budget_inr: costInr })
    expect((await chat(token)).status).toBe(200)
    const refused = await untilRefused(() => chat(token))
    expect([...said(refused), refused.json.scope]).toEqual([429, 'agent_budget_exceeded', 'agent'])
    clock.moveTo(Date.UTC(2026, 10, 30, 18, 30, 1))
    const next = (await app.call('POST', `/v1/me/agents/${id}/token`, {})).json.access_token
    expect((await chat(next)).status).toBe(200)
    expect(said(await untilRefused(() => chat(next)))).toEqual([429, 'agent_budget_exceeded'])
  })
})
