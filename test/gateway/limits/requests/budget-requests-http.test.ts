/** Requests for more budget, over HTTP, MCP and the command line, and their answers. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { sweepRequests } from '../../../../src/gateway/limits/requests/budget-requests.ts'
import { statement } from '../../../../src/platform/db/db.ts'
import { runHere } from '../../../cli/run-here.ts'
import { startApp, type TestApp, type TestReply, until } from '../../../harness/app.ts'
import { mcpClients } from '../../../mcp/mcp-clients.ts'

/** What a call costs on alpha: 12 tokens of prompt at ₹10 a million, and 5 of the answer at ₹40. */
const callUinr = 320
const inr = (calls: number): number => (calls * callUinr) / 1e6
const events = statement<[orgId: number], { type: string; data: Record<string, unknown>; body: string }>(
  'test.request_events',
  `select type as "type", data as "data", data::text as "body" from webhook_events
   where org_id = $1::int and type in ('budget.requested', 'budget.decided', 'run.held') order by created, id`,
)
const acts = statement<[orgId: number], { act: string; target: string | null; actor: string; outcome: string }>(
  'test.request_acts',
  `select act as "act", target as "target", actor_kind as "actor", outcome as "outcome" from audit_log
   where org_id = $1::int and act in ('askForBudget', 'grantBudgetRequest', 'refuseBudgetRequest') order by id`,
)
const expire = statement<[id: number]>('test.expire_request', `update budget_requests set expires_at = now() where id = $1::bigint`)
const olderRequests = statement<[orgId: number, agentIds: readonly number[]]>(
  'test.older_requests',
  `update budget_requests set asked_at = asked_at - interval '2 days' where org_id = $1::int and asked_by_agent = any($2::int[])`,
)
/** Makes copies of a request, open and two days old, by each of the agents in turn. */
const copiedRequests = statement<[orgId: number, agentIds: readonly number[], count: number]>(
  'test.copied_requests',
  `insert into budget_requests (org_id, subject, scope, target_id, period, amount_uinr, reason, asked_by_key, asked_by_agent, asked_at, expires_at)
   select r.org_id, 'copy/' || n, r.scope, r.target_id, r.period, r.amount_uinr, r.reason, r.asked_by_key, ($2::int[])[1 + n % cardinality($2::int[])],
     r.asked_at, now() + interval '9 days'
   from generate_series(1, $3::int) n, (select * from budget_requests where org_id = $1::int and asked_by_agent = any($2::int[]) order by id limit 1) r`,
)
const reasons = statement<[], { reason: string }>('test.reasons', 'select reason as "reason" from budget_requests')

interface Asked {
  readonly scope: 'run' | 'agent' | 'key'
  readonly run_id?: string
  readonly amount_inr?: number
  readonly calls?: number
  readonly reason: string
}

describe('requests for more budget', () => {
  let app: TestApp
  let cookie: string
  let made = 0
  beforeAll(async () => {
    app = await startApp()
    cookie = await app.signIn()
  })
  afterAll(() => app.stop())
  beforeEach(() => app.alpha.reset())
  const clients = mcpClients(() => app)
  afterEach(() => clients.closeAll())

  const chat = (token: string, run?: string): Promise<TestReply> =>
    app.call(
      'POST',
      '/v1/chat/completions',
      { model: 'alpha-only', messages: [{ role: 'user', content: 'Hello there' }], max_tokens: 5 },
      { token, headers: run === undefined ? {} : { 'x-br-run-id': run } },
    )
  const codeOf = ({ json }: TestReply): string => json?.error?.code ?? 'ok'
  const ask = (token: string, body: object): Promise<TestReply> => app.call('POST', '/v1/me/budget-requests', body, { token })
  const decide = (id: number, body: object, as = cookie): Promise<TestReply> => app.call('POST', `/me/budget-requests/${id}`, body, { cookie: as })
  /** Makes an agent whose runs have caps, and a run of it that is held. */
  const held = async (caps: object, key = app.key): Promise<{ id: number; token: string; run: string }> => {
    const { id } = (await app.call('POST', '/v1/me/agents', { name: `asks ${++made}` }, { token: key })).json
    const token = (await app.call('POST', `/v1/me/agents/${id}/token`, {}, { token: key })).json.access_token
    expect((await app.call('PATCH', `/v1/me/agents/${id}`, { run: caps }, { token: key })).status).toBe(200)
    const run = `job-${made}`
    await until(async () => codeOf(await chat(token, run)) !== 'ok')
    return { id, token, run }
  }
  const showRun = async (run: string, id: number) => (await app.call('GET', `/v1/me/runs/${run}?agent_id=${id}`)).json
  /** Makes calls until one is refused. Returns how many passed. */
  const passing = async (token: string, run?: string): Promise<number> => {
    let count = 0
    while (count < 20 && codeOf(await chat(token, run)) === 'ok') count++
    return count
  }

  const ways: Record<string, (token: string, body: Asked) => Promise<number>> = {
    async HTTP(token, body) {
      const reply = await ask(token, body)
      expect(reply.json).toMatchObject({ ok: true, request: { state: 'open', scope: 'run', may_decide: false, asked_by: { kind: 'agent' } } })
      return reply.json.request.id
    },
    async 'the MCP tool budget_request'(token, body) {
      const client = await clients.initializeClient(token)
      const reply = await client.call('budget_request', { ...body })
      expect(reply.text).toMatch(/^request \d+: 2 calls more for the run job-\d+ · open until .* · a person decides$/)
      return reply.data.request.id
    },
    async 'the command line'(token, { run_id = '', calls, reason }) {
      const ran = await runHere(['budget', 'ask', '--run', run_id, '--calls', String(calls), '--reason', reason, '--json'], {
        BRIGADE: app.baseUrl,
        BRIGADE_KEY: token,
      })
      expect([ran.code, ran.err]).toEqual([0, ''])
      const list = await runHere(['budget', 'requests'], { BRIGADE: app.baseUrl, BRIGADE_KEY: token })
      expect(list.out).toMatch(new RegExp(`run ${run_id} +2 calls +open`))
      return JSON.parse(ran.out).id
    },
  }

  test('RUN-07 a held run gets more after a request over HTTP, MCP and CLI, its totals stay, and its refusal names the way to ask', async () => {
    for (const [name, way] of Object.entries(ways)) {
      const { id, token, run } = await held({ max_calls: 2 })
      const refused = await chat(token, run)
      expect([refused.status, codeOf(refused)], name).toEqual([429, 'run_calls_exceeded'])
      expect(refused.json.error.message).toContain('POST /v1/me/budget-requests')
      expect(refused.json.error.message).toContain('budget_request')
      const request = await way(token, { scope: 'run', run_id: run, calls: 2, reason: 'Two files are left' })
      const granted = await decide(request, { approve: true })
      expect(granted.json.request, name).toMatchObject({ state: 'granted', granted_calls: 2, decided_by: { kind: 'person', id: app.userId } })
      expect(await showRun(run, id)).toMatchObject({ state: 'active', calls: 2, max_calls: 2, increase_calls: 2, increase_until: granted.json.request.until })
      const next = await chat(token, run)
      expect([codeOf(next), next.headers.get('x-br-run-calls-remaining')]).toEqual(['ok', '1'])
      expect(await passing(token, run)).toBe(1)
      expect(await showRun(run, id)).toMatchObject({ state: 'held', calls: 4, max_calls: 2 })
    }
    await app.gateway.app.limits.flushNow()
    const told = await app.db.many(events, app.orgId)
    // A run that was held, got more and is held again reports it twice.
    expect(told.map(({ type }) => type).sort()).toEqual([
      ...Array(3).fill('budget.decided'),
      ...Array(3).fill('budget.requested'),
      ...Array(6).fill('run.held'),
    ])
    expect(told.find(({ type }) => type === 'budget.requested')?.data).toMatchObject({ scope: 'run', scope_id: null, calls: 2, amount_inr: null })
    expect(told.find(({ type }) => type === 'budget.decided')?.data).toMatchObject({ decision: 'granted', calls: 2, until: expect.any(String) })
    expect(told.some(({ body }) => body.includes('Two files'))).toBe(false)
    expect(app.logLines.join('')).not.toContain('Two files')
    const lines = await app.db.many(acts, app.orgId)
    expect(lines.map(({ act, outcome }) => [act, outcome])).toEqual(
      Array(3)
        .fill([
          ['askForBudget', 'ok'],
          ['grantBudgetRequest', 'ok'],
        ])
        .flat(),
    )
  })

  test('RUN-07 an increase of a budget is exact, ends at its time and leaves no negative room, and a second one has the same end', async () => {
    const agent = await app.newAgent(`spender ${++made}`)
    await app.setBudget('agent', agent.id, inr(2))
    expect(await passing(agent.token)).toBe(2)
    const refused = await chat(agent.token)
    expect(refused.json).toMatchObject({ error: { code: 'agent_budget_exceeded' }, scope: 'agent', period: 'month' })
    expect(refused.json.error.message).toContain('ask for more with POST /v1/me/budget-requests')
    const { request } = (await ask(agent.token, { scope: 'agent', amount_inr: 5, reason: 'More tests' })).json
    const budget = async () => (await app.call('GET', '/v1/me/budgets', undefined, { token: agent.token })).json.budgets[0]
    expect(request).toMatchObject({ scope: 'agent', target_id: String(agent.id), period: 'month', amount_inr: 5, expires_at: (await budget()).resets_at })
    // The person grants less than what is asked, for a short time.
    const until1 = new Date(Date.now() + 2_500).toISOString()
    const granted = (await decide(request.id, { approve: true, amount_inr: inr(3), until: until1 })).json.request
    expect(granted).toMatchObject({ state: 'granted', amount_inr: 5, granted_inr: inr(3), until: until1 })
    expect(await budget()).toMatchObject({ cap_inr: inr(2), increase_inr: inr(3), increase_until: until1, remaining_inr: inr(3), state: 'under' })
    expect(codeOf(await chat(agent.token))).toBe('ok')
    const second = (await ask(agent.token, { scope: 'agent', amount_inr: inr(1), reason: 'One more' })).json.request
    expect((await decide(second.id, { approve: true, until: new Date(Date.now() + 60_000).toISOString() })).json.error.message).toContain(until1)
    expect((await decide(second.id, { approve: true })).json.request.until).toBe(until1)
    expect(await budget()).toMatchObject({ increase_inr: inr(4), remaining_inr: inr(3) })
    // One of the four calls is left for the time after the end, when nothing may pass.
    expect(codeOf(await chat(agent.token))).toBe('ok')
    expect(codeOf(await chat(agent.token))).toBe('ok')
    await until(async () => (await budget()).increase_inr === undefined)
    expect(codeOf(await chat(agent.token))).toBe('agent_budget_exceeded')
    expect(await budget()).toMatchObject({ cap_inr: inr(2), spent_inr: inr(5), remaining_inr: 0, state: 'blocked' })
    // The budget can be raised as before.
    await app.setBudget('agent', agent.id, inr(6))
    expect(await passing(agent.token)).toBe(1)
  })

  test('a request is open once for each subject, is bounded for each caller, expires, and is deleted with its reason', async () => {
    const { token, run } = await held({ max_cost_inr: inr(1) })
    const body = { scope: 'run', run_id: run, amount_inr: 1, reason: 'words of an agent' }
    const first = (await ask(token, body)).json.request
    expect((await ask(token, body)).json.error).toMatchObject({ code: 'budget_request_open' })
    for (const bad of [
      { reason: '' },
      { reason: 'x'.repeat(501) },
      { reason: 'two\nlines' },
      { amount_inr: 0 },
      { calls: 1 },
      { run_id: undefined },
      { period: 'month' },
    ])
      expect((await ask(token, { ...body, ...bad })).status, JSON.stringify(bad)).toBe(400)
    expect((await ask(token, { ...body, amount_inr: undefined, calls: 5 })).json.error.message).toContain('no cap on calls')
    expect((await ask(token, { ...body, run_id: 'unknown' })).status).toBe(404)
    expect((await ask(token, { scope: 'agent', amount_inr: 1, reason: 'no budget' })).status).toBe(404)
    expect((await decide(first.id, { approve: false, amount_inr: 1 })).status).toBe(400)
    expect((await decide(first.id, { approve: true, until: '2020-01-01T00:00:00Z' })).status).toBe(400)
    expect((await decide(first.id, { approve: false })).json.request).toMatchObject({ state: 'refused', granted_inr: null, until: null })
    expect((await decide(first.id, { approve: true })).json.error.code).toBe('budget_request_decided')
    expect(codeOf(await chat(token, run))).toBe('run_budget_exceeded')
    const late = (await ask(token, body)).json.request
    await app.db.exec(expire, late.id)
    const list = async (query = '') => (await app.call('GET', `/v1/me/budget-requests${query}`, undefined, { token })).json.requests
    expect((await list()).map(({ state }: { state: string }) => state)).toEqual(['expired', 'refused'])
    expect(await list('?state=open')).toEqual([])
    expect((await decide(late.id, { approve: true })).json.error.code).toBe('budget_request_decided')
    for (let n = 2; n < 10; n++) await decide((await ask(token, body)).json.request.id, { approve: false })
    expect((await ask(token, body)).json.error).toMatchObject({ code: 'cap', message: expect.stringContaining('10 requests') })
    const { limits } = app.gateway.app
    await sweepRequests({ db: app.db, nowMs: () => limits.nowMs() + 29 * 24 * 3600_000 }, new AbortController().signal)
    expect((await app.db.many(reasons)).length).toBeGreaterThan(9)
    await sweepRequests({ db: app.db, nowMs: () => limits.nowMs() + 62 * 24 * 3600_000 }, new AbortController().signal)
    expect(await app.db.many(reasons)).toEqual([])
  })

  test('a family of agents has one count of requests, so it cannot fill those of its organisation', async () => {
    const { id } = (await app.call('POST', '/v1/me/agents', { name: `family ${++made}`, may_delegate: true })).json
    const root = (await app.call('POST', `/v1/me/agents/${id}/token`, {})).json.access_token
    const bear = async (parent: { id: number; token: string }): Promise<{ id: number; token: string }> => {
      const body = { name: `child ${++made}`, may_delegate: true }
      const { agent, access_token } = (await app.call('POST', `/v1/me/agents/${parent.id}/children`, body, { token: parent.token })).json
      return { id: agent.id, token: access_token }
    }
    const child = await bear({ id, token: root })
    const family = [{ id, token: root }, child, await bear(child)] as const
    for (const agent of family) await app.setBudget('agent', agent.id, 1)
    const request = (agent: { id: number; token: string }) => ask(agent.token, { scope: 'agent', target_id: agent.id, amount_inr: 1, reason: 'More' })
    for (let count = 0; count < 10; count++) {
      const reply = await request(family[count % 3] ?? family[0])
      expect(reply.status, reply.text).toBe(200)
      expect((await decide(reply.json.request.id, { approve: false })).status).toBe(200)
    }
    for (const agent of family) expect((await request(agent)).json.error).toMatchObject({ code: 'cap', message: expect.stringContaining('count together') })
    const stranger = await app.newAgent(`no relative ${++made}`)
    await app.setBudget('agent', stranger.id, 1)
    expect((await request(stranger)).status).toBe(200)

    // On later days twenty stay open, and no more.
    const ids = family.map(agent => agent.id)
    await app.db.exec(olderRequests, app.orgId, ids)
    await app.db.exec(copiedRequests, app.orgId, ids, 19)
    expect((await request(family[0])).status).toBe(200)
    expect((await request(family[2])).json.error).toMatchObject({ code: 'cap', message: expect.stringContaining('20 of your requests') })
    expect((await ask(app.key, { scope: 'agent', target_id: family[2].id, amount_inr: 1, reason: 'By the key' })).status).toBe(200)
  })

  test('an id that no row can have, and a run with such an id, are refused before the database', async () => {
    const { token } = await app.newAgent(`odd ids ${++made}`)
    for (const target_id of ['2147483648', '999999999999999999', 2 ** 31])
      for (const as of [token, app.key])
        expect((await ask(as, { scope: 'agent', target_id, amount_inr: 1, reason: 'x' })).json.error.code, String(target_id)).toBe('bad_request')
    for (const run of ['%00', 'a%00b', '%01', '%20', 'x'.repeat(257)])
      expect((await app.call('GET', `/v1/me/budget-requests?run_id=${run}`, undefined, { token })).json.error?.code, run).toBe('bad_request')
    expect((await app.call('GET', '/v1/me/budget-requests?run_id=job-1%2F2', undefined, { token })).json.requests).toEqual([])
  })

  test('those who may raise a budget or cap decide, others see what is theirs, and another organisation sees nothing', async () => {
    const [owner, other, stranger] = [await app.newMember('member'), await app.newMember('member'), await app.otherOrg('Elsewhere')]
    const key1 = (await app.call('POST', '/me/keys', { name: 'own' }, { cookie: owner.cookie })).json.key
    const { id, token, run } = await held({ max_calls: 1 }, key1)
    const body = { scope: 'run', run_id: run, calls: 1, reason: 'Please' }
    const { request } = (await ask(token, body)).json
    const seen = async (as: string) => (await app.call('GET', '/me/budget-requests?state=open', undefined, { cookie: as })).json.requests
    expect(await seen(owner.cookie)).toMatchObject([{ id: request.id, may_decide: true, reason: 'Please', target_name: `asks ${made}` }])
    expect((await seen(cookie)).find(({ id: each }: { id: number }) => each === request.id)).toMatchObject({ may_decide: true })
    expect(await seen(other.cookie)).toEqual([])
    expect((await decide(request.id, { approve: true }, other.cookie)).status).toBe(403)
    const elsewhere = await app.signIn(stranger.userId, stranger.orgId)
    expect(await seen(elsewhere)).toEqual([])
    expect((await decide(request.id, { approve: true }, elsewhere)).status).toBe(404)
    expect((await ask(stranger.key, { ...body, agent_id: id })).status).toBe(404)
    // The person's key and the person ask too, each for what binds them.
    expect((await decide(request.id, { approve: true }, owner.cookie)).json.request.state).toBe('granted')
    await app.setBudget('member', owner.userId, 5)
    const mine = await app.call('POST', '/me/budget-requests', { scope: 'member', amount_inr: 2, reason: 'For the demo' }, { cookie: owner.cookie })
    expect(mine.json.request).toMatchObject({ scope: 'member', asked_by: { kind: 'person', id: owner.userId }, may_decide: false })
    expect((await decide(mine.json.request.id, { approve: true }, owner.cookie)).status).toBe(403)
    expect(
      (await app.call('POST', '/me/budget-requests', { scope: 'member', target_id: app.userId, amount_inr: 2, reason: 'x' }, { cookie: owner.cookie })).status,
    ).toBe(404)
    expect((await decide(mine.json.request.id, { approve: true })).json.request).toMatchObject({ granted_inr: 2 })
    const { key, keyId } = await app.newKey({ budgetInr: inr(1) })
    await until(async () => codeOf(await chat(key)) === 'budget_exceeded')
    const ofKey = (await ask(key, { scope: 'key', amount_inr: inr(1), reason: 'Build' })).json.request
    expect(ofKey).toMatchObject({ target_id: String(keyId), asked_by: { kind: 'key', id: keyId } })
    await decide(ofKey.id, { approve: true })
    expect(await passing(key)).toBe(1)
  })
})
