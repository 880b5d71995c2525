/** The caps of runs over HTTP. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { RunCounters } from '../../../src/gateway/limits/runs/run-counters.ts'
import { deleteRestingCounters } from '../../../src/gateway/usage/runs/caps/run-cap-changes.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { systemIds } from '../../../src/platform/values/ids.ts'
import { startApp, type TestApp, type TestReply, until } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'

const hello = [{ role: 'user', content: 'Hello there' }]
const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs
/** What a call costs on alpha: 12 tokens of prompt at ₹10 a million, and 5 of the answer at ₹40. */
const callUinr = 320
const inr = (uinr: number): number => uinr / 1e6

const runEvents = statement<[orgId: number], { type: string; data: { run_id: string; cap: string; limit: number } }>(
  'test.run_events',
  `select type as "type", data as "data" from webhook_events where org_id = $1::int and type in ('run.warn', 'run.held') order by created, id`,
)
const countersOfRuns = statement<[], { count: number }>(
  'test.counters_of_runs',
  `select count(*)::int as "count" from counters where metric in ('run_spend', 'run_calls')`,
)

interface Caller {
  readonly token: string
  readonly headers: Readonly<Record<string, string>>
  /** The run's owner in a query. */
  readonly owner: string
  cap(run: object | null): Promise<TestReply>
}

describe('caps of runs', () => {
  const startMs = Date.now()
  const clock = movableClock(startMs)
  let app: TestApp
  let cookie: string
  let made = 0
  beforeAll(async () => {
    app = await startApp({ clock })
    cookie = await app.signIn()
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    clock.moveTo(startMs)
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })

  const callers: Record<string, () => Promise<Caller>> = {
    async 'a key'() {
      const { key, keyId } = await app.newKey()
      return { token: key, headers: {}, owner: `?key_id=${keyId}`, cap: run => app.call('PATCH', `/me/keys/${keyId}`, { run }, { cookie }) }
    },
    async 'an agent token'() {
      const { id, token } = await app.newAgent(`run capped ${made++}`)
      return { token, headers: {}, owner: `?agent_id=${id}`, cap: run => app.call('PATCH', `/v1/me/agents/${id}`, { run }) }
    },
    async 'an agent that a plain key names'() {
      const { key } = await app.newKey()
      const name = `run named ${made++}`
      const { id } = await app.newAgent(name)
      return {
        token: key,
        headers: { 'x-br-agent-id': name },
        owner: `?agent_id=${id}`,
        cap: run => app.call('PATCH', `/me/agents/${id}`, { run }, { cookie }),
      }
    },
  }
  const callerOf = (name: keyof typeof callers = 'an agent token'): Promise<Caller> => (callers[name] as () => Promise<Caller>)()
  const capped = async (run: object, name?: keyof typeof callers): Promise<Caller> => {
    const caller = await callerOf(name)
    expect((await caller.cap(run)).status).toBe(200)
    return caller
  }
  const chat = ({ token, headers }: Pick<Caller, 'token' | 'headers'>, run: string | null, more: { headers?: Record<string, string>; body?: object } = {}) =>
    app.call(
      'POST',
      '/v1/chat/completions',
      { model: 'alpha-only', messages: hello, max_tokens: 5, ...more.body },
      { token, headers: { ...headers, ...(run === null ? {} : { 'x-br-run-id': run }), ...more.headers } },
    )
  const said = ({ status, json }: TestReply) => [status, json?.error?.code ?? null]
  const left = ({ headers }: TestReply) => [headers.get('x-br-run-calls-remaining'), headers.get('x-br-run-remaining-inr')]
  const show = async (run: string, { owner }: Caller) => (await app.call('GET', `/v1/me/runs/${run}${owner}`)).json
  const raise = (run: string, { owner }: Pick<Caller, 'owner'>, caps: object, token = app.key) =>
    app.call('PATCH', `/v1/me/runs/${run}${owner}`, caps, { token })

  test.for(Object.keys(callers))(
    'RUN-02 %s: a run has as many calls and rupees as its caps allow, a call may lower them and never raise them, and refusals are not retried',
    async name => {
      const caller = await capped({ max_calls: 3 }, name)
      for (const rest of ['2', '1', '0']) {
        const reply = await chat(caller, 'calls')
        expect([reply.status, left(reply)], reply.text).toEqual([200, [rest, null]])
      }
      const dialed = app.alpha.requests.length
      const refused = await chat(caller, 'calls', { headers: { 'x-br-run-max-calls': '100' } })
      expect([...said(refused), refused.headers.get('x-should-retry')]).toEqual([429, 'run_calls_exceeded', 'false'])
      expect(refused.json).toMatchObject({ scope: 'run', run_id: 'calls', cap: 3, spent: 3, held: 0 })
      expect([refused.headers.get('x-br-run-id'), ...left(refused)]).toEqual(['calls', '0', null])
      expect(app.alpha.requests).toHaveLength(dialed)
      expect(await show('calls', caller)).toMatchObject({ state: 'held', calls: 3, max_calls: 3, max_cost_inr: null })
      // Another run of the same caller has its own calls.
      expect(said(await chat(caller, 'more calls', { headers: { 'x-br-run-max-calls': '1' } }))).toEqual([200, null])
      // The cap that the first call asked for binds later calls, which need not repeat it.
      expect(said(await chat(caller, 'more calls'))).toEqual([429, 'run_calls_exceeded'])

      await caller.cap({ max_calls: null, max_cost_inr: inr(3 * callUinr + 1) })
      for (let n = 1; n <= 3; n++) expect(left(await chat(caller, 'rupees'))).toEqual([null, String(inr((3 - n) * callUinr + 1))])
      // What is left begins one last call.
      expect(said(await chat(caller, 'rupees'))).toEqual([200, null])
      const spent = await chat(caller, 'rupees')
      expect([...said(spent), spent.headers.get('x-should-retry')]).toEqual([429, 'run_budget_exceeded', 'false'])
      expect(spent.json).toMatchObject({ scope: 'run', run_id: 'rupees', cap_inr: inr(3 * callUinr + 1), spent_inr: inr(4 * callUinr), held_inr: 0 })
      // A strict cap has no last call.
      await caller.cap({ strict: true })
      for (let n = 1; n <= 3; n++) expect(said(await chat(caller, 'strict'))).toEqual([200, null])
      expect(said(await chat(caller, 'strict'))).toEqual([429, 'run_budget_exceeded'])
      // A call lowers the cap, and a later one lowers it further.
      const lowered = { 'x-br-run-max-cost-inr': String(inr(2 * callUinr)) }
      expect(left(await chat(caller, 'lowered', { headers: lowered }))).toEqual([null, String(inr(callUinr))])
      expect(said(await chat(caller, 'lowered', { headers: { 'x-br-run-max-cost-inr': String(inr(callUinr)) } }))).toEqual([429, 'run_budget_exceeded'])
      await caller.cap(null)
      expect(said(await chat(caller, 'calls'))).toEqual([200, null])
      expect(left(await chat(caller, 'free'))).toEqual([null, null])
      for (const header of ['x-br-run-max-cost-inr', 'x-br-run-max-calls'])
        for (const value of ['0', '-1', 'many', '1e3', '99999999999'])
          expect(said(await chat(caller, 'free', { headers: { [header]: value } }))).toEqual([400, 'bad_request'])
    },
  )

  test('parallel calls of a run do not pass its caps, and only what was dialed counts: no refusal, no replay, and one call for a failover', async () => {
    const caller = await capped({ max_calls: 10 })
    const replies = await Promise.all(Array.from({ length: 40 }, () => chat(caller, 'parallel')))
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(10)
    for (const reply of replies) if (reply.status !== 200) expect(said(reply)).toEqual([429, 'run_calls_exceeded'])
    const rich = await capped({ max_cost_inr: inr(10 * callUinr) })
    const paid = await Promise.all(Array.from({ length: 40 }, () => chat(rich, 'parallel')))
    const served = paid.filter(({ status }) => status === 200).length
    expect([10, 11, 12]).toContain(served)
    for (const reply of paid) if (reply.status !== 200) expect(said(reply)).toEqual([429, 'run_budget_exceeded'])

    const two = await capped({ max_calls: 2 })
    expect((await chat(two, 'exact', { body: { model: 'no such model' } })).status).toBe(404)
    expect((await chat(two, 'exact', { body: { max_tokens: -1 } })).status).toBe(400)
    expect((await chat(two, 'exact', { headers: { 'idempotency-key': 'once-in-a-run' } })).status).toBe(200)
    expect(said(await chat(two, 'exact', { headers: { 'idempotency-key': 'once-in-a-run' } }))).toEqual([409, 'idempotency_replayed'])
    expect(
      (await app.call('POST', '/v1/messages/count_tokens', { model: 'alpha-only', messages: hello }, { token: two.token, headers: { 'x-br-run-id': 'exact' } }))
        .status,
    ).toBe(200)
    // The first route fails, and the call goes on to the next.
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.script([{ status: 503, body: { error: { message: 'away' } } }])
    await chat(two, 'exact', { body: { model: 'test-model' } })
    expect(said(await chat(two, 'exact'))).toEqual([429, 'run_calls_exceeded'])
    expect(await show('exact', two)).toMatchObject({ calls: 2 })
  })

  test('a stream is cut when its run has no more to spend', async () => {
    const caller = await capped({ max_cost_inr: inr(3000), strict: false })
    app.alpha.script([{ chunks: Array.from({ length: 400 }, () => 'word '), usage: { prompt_tokens: 12, completion_tokens: 400, total_tokens: 412 } }])
    const reply = await chat(caller, 'streamed', { body: { stream: true, max_tokens: undefined } })
    expect(reply.text).toContain('run_budget_exceeded')
    expect(said(await chat(caller, 'streamed'))).toEqual([429, 'run_budget_exceeded'])
  })

  test('RUN-03 a higher cap lets a held run go on, its totals stay, and the events of both marks fire once a cap', async () => {
    const caller = await capped({ max_calls: 5 }, 'a key')
    const id = Number(caller.owner.split('=')[1])
    const header = { headers: { 'x-br-run-max-calls': '5' } }
    for (let n = 0; n < 5; n++) expect((await chat(caller, 'held', header)).status).toBe(200)
    expect(said(await chat(caller, 'held', header))).toEqual([429, 'run_calls_exceeded'])
    expect((await raise('held', caller, { max_calls: 6 })).json).toMatchObject({ ok: true, run_id: 'held', state: 'active', calls: 5, max_calls: 6 })
    // A call that still asks for the former cap does not lower the new one.
    expect(left(await chat(caller, 'held', header))).toEqual(['0', null])
    const again = await chat(caller, 'held', header)
    expect([said(again), again.json.spent]).toEqual([[429, 'run_calls_exceeded'], 6])
    // The totals of an idle run stay, also when its counters were deleted.
    clock.advance(40 * dayMs)
    await app.gateway.app.limits.flushNow()
    await app.gateway.app.limits.beat()
    const before = (await app.db.one(countersOfRuns)).count
    await deleteRestingCounters({ db: app.db, clock, counters: new RunCounters(systemIds), keepDays: 400 }, new AbortController().signal)
    const rest = (await app.db.one(countersOfRuns)).count
    expect(rest).toBeLessThan(before)
    // The process still knows the former counters.
    await until(async () => {
      expect((await chat(caller, 'held')).status).not.toBe(200)
      return (await app.db.one(countersOfRuns)).count > rest
    })
    const late = await chat(caller, 'held')
    expect([said(late), late.json.spent]).toEqual([[429, 'run_calls_exceeded'], 6])
    await raise('held', caller, { max_calls: 100 })
    expect(left(await chat(caller, 'held'))).toEqual(['93', null])
    await app.gateway.app.limits.flushNow()
    const events = (await app.db.many(runEvents, app.orgId)).filter(({ data }) => data.run_id === 'held')
    // Marks that one flush reaches have no order, and have the amount of that flush.
    const told = events.map(({ type, data }) => ({ type, ...data })).sort((a, b) => (a.type === b.type ? a.limit - b.limit : a.type < b.type ? -1 : 1))
    const ofKey = { run_id: 'held', agent_id: null, key_id: id, cap: 'max_calls' }
    expect(told).toEqual([
      { ...ofKey, type: 'run.held', spent: 5, limit: 5 },
      { ...ofKey, type: 'run.held', spent: 6, limit: 6 },
      { ...ofKey, type: 'run.warn', spent: expect.any(Number), limit: 5 },
    ])
  })

  test('a run ends its time, its sub-agents and their depth, and a caller must name a run where a rule says so', async () => {
    const caller = await capped({ max_minutes: 30 }, 'a key')
    expect((await chat(caller, 'timed')).status).toBe(200)
    clock.advance(29 * minuteMs)
    expect((await chat(caller, 'timed')).status).toBe(200)
    clock.advance(minuteMs)
    const late = await chat(caller, 'timed')
    expect([...said(late), late.headers.get('x-should-retry')]).toEqual([429, 'run_time_exceeded', 'false'])
    expect(late.json).toMatchObject({ scope: 'run', run_id: 'timed', cap: 30, spent: 30 })
    expect(await show('timed', caller)).toMatchObject({ state: 'held', max_minutes: 30 })
    expect((await raise('timed', caller, { max_minutes: 60 })).status).toBe(200)
    expect((await chat(caller, 'timed')).status).toBe(200)
    expect((await chat(caller, 'another')).status).toBe(200)

    const family = await capped({ max_subagents: 2, max_depth: 2 })
    const sub = (name: string, above?: string) => ({
      headers: { 'x-claude-code-agent-id': name, ...(above === undefined ? {} : { 'x-claude-code-parent-agent-id': above }) },
    })
    expect((await chat(family, 'family')).status).toBe(200)
    expect((await chat(family, 'family', sub('one'))).status).toBe(200)
    expect((await chat(family, 'family', sub('two', 'one'))).status).toBe(200)
    const third = await chat(family, 'family', sub('three'))
    expect([...said(third), third.json.cap, third.json.spent, third.headers.get('x-should-retry')]).toEqual([429, 'run_subagents_exceeded', 2, 2, 'false'])
    // The known ones go on.
    for (const name of ['one', 'two']) expect((await chat(family, 'family', sub(name))).status).toBe(200)
    expect((await raise('family', family, { max_subagents: 3 })).status).toBe(200)
    const deep = await chat(family, 'family', sub('three', 'two'))
    expect([said(deep), deep.json.cap, deep.json.spent]).toEqual([[429, 'run_subagents_exceeded'], 2, 3])
    expect((await chat(family, 'family', sub('three', 'one'))).status).toBe(200)
    // Codex names the thread of a sub-agent beside its session.
    const codex = (thread: string) => ({ headers: { 'session-id': 'codex job', 'thread-id': thread } })
    for (const thread of ['codex job', 'a', 'b', 'a']) expect((await chat(family, null, codex(thread))).status).toBe(200)
    expect(said(await chat(family, null, codex('c')))).toEqual([429, 'run_subagents_exceeded'])

    const strictly = await capped({ required: true })
    expect(said(await chat(strictly, null))).toEqual([400, 'run_required'])
    expect((await chat(strictly, 'named')).status).toBe(200)
  })

  test('child agents are sub-agents of the run of their family, and their calls count in it', async () => {
    const { json: lead } = await app.call('POST', '/v1/me/agents', { name: 'run parent', may_delegate: true, run: { max_calls: 4, max_subagents: 1 } })
    expect(lead.run).toEqual({
      max_cost_inr: null,
      max_calls: 4,
      max_minutes: null,
      max_subagents: 1,
      max_depth: null,
      required: false,
      strict: false,
      loop: 'warn',
    })
    const token = (await app.call('POST', `/v1/me/agents/${lead.id}/token`, {})).json.access_token
    const child = async (name: string) => (await app.call('POST', `/v1/me/agents/${lead.id}/children`, { name }, { token })).json
    const [first, second] = [await child('run child a'), await child('run child b')]
    for (const each of [token, first.access_token, first.access_token]) expect((await chat({ token: each, headers: {} }, 'kin')).status).toBe(200)
    expect(said(await chat({ token: second.access_token, headers: {} }, 'kin'))).toEqual([429, 'run_subagents_exceeded'])
    expect((await chat({ token, headers: {} }, 'kin')).status).toBe(200)
    expect(said(await chat({ token: first.access_token, headers: {} }, 'kin'))).toEqual([429, 'run_calls_exceeded'])
    // The family has one run, so its caps are those of the agent at the top.
    expect((await app.call('PATCH', `/v1/me/agents/${first.agent.id}`, { run: { max_calls: 1 } })).status).toBe(400)
    expect((await app.call('POST', `/v1/me/agents/${lead.id}/children`, { name: 'x', run: { max_calls: 1 } }, { token })).status).toBe(400)
  })

  test('the caps of a key lower those of the runs of an agent that it calls for', async () => {
    const made = (await app.call('POST', '/me/keys', { name: 'capped key', run: { max_calls: 2 } }, { cookie })).json
    expect(made.run).toMatchObject({ max_calls: 2, max_cost_inr: null, required: false })
    const { id } = await app.newAgent('called by a capped key')
    await app.call('PATCH', `/v1/me/agents/${id}`, { run: { max_calls: 10 } })
    const caller = { token: made.key, headers: { 'x-br-agent-id': String(id) } }
    expect(left(await chat(caller, 'both'))).toEqual(['1', null])
    expect(left(await chat(caller, 'both'))).toEqual(['0', null])
    expect(said(await chat(caller, 'both'))).toEqual([429, 'run_calls_exceeded'])
  })

  test('every full key lowers caps, only those who answer for the agent or key raise them, and nobody changes a run of another organisation', async () => {
    const member = await app.newMember('member')
    const { json: mine } = await app.call(
      'POST',
      '/me/agents',
      { name: 'of a member', run: { max_calls: 5, max_cost_inr: 2.5, strict: true } },
      { cookie: member.cookie },
    )
    expect(mine.run).toMatchObject({ max_calls: 5, max_cost_inr: 2.5, strict: true, required: false })
    const asMember = (run: string, query: string, caps: object, who = member.cookie) => app.call('PATCH', `/me/runs/${run}${query}`, caps, { cookie: who })
    // A run need not have been called yet.
    const query = `?agent_id=${mine.id}`
    expect((await asMember('planned', query, { max_calls: 7 })).json).toMatchObject({ ok: true, run_id: 'planned', calls: 0, max_calls: 7, max_cost_inr: 2.5 })
    const other = await app.newMember('member')
    expect((await asMember('planned', query, { max_calls: 1 }, other.cookie)).status).toBe(403)
    // The organisation's admin sets a cap, and from then on only admins raise it.
    await app.call('PATCH', `/v1/me/agents/${mine.id}`, { run: { max_calls: 4 } })
    expect((await asMember('planned', query, { max_calls: 8 })).status).toBe(403)
    expect((await asMember('planned', query, { max_calls: 6 })).json).toMatchObject({ max_calls: 6 })
    expect((await app.call('PATCH', `/me/agents/${mine.id}`, { run: { max_calls: 5 } }, { cookie: member.cookie })).status).toBe(403)
    expect((await raise('planned', { owner: query }, { max_calls: 9 })).json).toMatchObject({ max_calls: 9 })
    expect((await raise('planned', { owner: query }, { max_calls: null })).json).toMatchObject({ max_calls: 4 })
    // A member lowers caps of a key's runs, and does not raise them.
    expect((await asMember('of-key', `?key_id=${app.keyId}`, { max_calls: 1 })).status).toBe(403)
    const { token } = await app.newAgent('no key')
    expect((await raise('planned', { owner: query }, { max_calls: 2 }, token)).status).toBe(403)
    expect((await raise('planned', { owner: query }, { max_calls: 2 }, (await app.newKey({ scope: 'inference' })).key)).status).toBe(403)
    const foreign = await app.otherOrg('Cap Raisers')
    for (const owner of [query, `?key_id=${app.keyId}`, '']) expect((await raise('planned', { owner }, { max_calls: 50 }, foreign.key)).status).toBe(404)
    for (const caps of [
      { max_calls: 0 },
      { max_cost_inr: 0 },
      { max_cost_inr: 1e10 },
      { max_minutes: 525_601 },
      { max_subagents: 10_001 },
      { max_depth: 1 },
      { strict: true },
    ])
      expect((await raise('planned', { owner: query }, caps)).status, JSON.stringify(caps)).toBe(400)
    const { json } = await app.call('GET', '/me/audit?limit=30', undefined, { cookie })
    expect(json.entries.map((entry: { act: string }) => entry.act)).toContain('changeRun')
  })

  test('a run that began without caps keeps its sums when it gets some, and a run without caps makes no counter', async () => {
    const { id, token } = await app.newAgent('late caps')
    const caller = { token, headers: {}, owner: `?agent_id=${id}` }
    const before = (await app.db.one(countersOfRuns)).count
    for (let n = 0; n < 3; n++) expect(left(await chat(caller, 'grown'))).toEqual([null, null])
    expect((await app.db.one(countersOfRuns)).count).toBe(before)
    await app.call('PATCH', `/v1/me/agents/${id}`, { run: { max_calls: 5 } })
    await app.gateway.app.limits.flushNow()
    expect(left(await chat(caller, 'grown'))).toEqual(['1', null])
    expect((await chat(caller, 'grown')).status).toBe(200)
    expect(said(await chat(caller, 'grown'))).toEqual([429, 'run_calls_exceeded'])
  })
})
