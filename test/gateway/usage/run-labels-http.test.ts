/** Tags and sub-agents of runs, in lists and reports, and the headers of replies. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { checkInvariants } from '../../../src/gateway/limits/invariants.ts'
import { insertUsageEvents } from '../../../src/gateway/usage/events/apply.ts'
import type { UsageEvent } from '../../../src/gateway/usage/events/record.ts'
import { keepsRuns } from '../../../src/gateway/usage/runs/run-sums.ts'
import { runHere } from '../../cli/run-here.ts'
import { startApp, type TestApp, type TestReply } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { eventOf, request } from '../limits/engine.ts'

const noonMs = Date.UTC(2026, 10, 3, 12, 0)
/** What a call costs on alpha: 12 tokens of prompt at ₹10 a million, and 5 of the answer at ₹40. */
const callInr = 0.00032
const hello = [{ role: 'user', content: 'Hello there' }]

describe('labels of runs', () => {
  const clock = movableClock(noonMs)
  let app: TestApp
  let named = 0
  beforeAll(async () => {
    app = await startApp({ clock })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    clock.moveTo(noonMs)
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })

  interface Sent {
    readonly token?: string
    readonly headers?: Record<string, string>
    readonly body?: object
  }
  const chat = (run: string | null, { token = app.key, headers = {}, body = {} }: Sent = {}): Promise<TestReply> =>
    app.call(
      'POST',
      '/v1/chat/completions',
      { model: 'alpha-only', messages: hello, max_tokens: 5, ...body },
      { token, headers: { ...(run === null ? {} : { 'x-br-run-id': run }), ...headers } },
    )
  const get = (path: string, token = app.key): Promise<TestReply> => app.call('GET', path, undefined, { token })
  const org = async (name: string) => {
    const made = await app.otherOrg(name)
    return { ...made, cookie: await app.signIn(made.userId, made.orgId) }
  }
  const tags = (text: string) => ({ headers: { 'x-br-tags': text } })
  const newAgent = async (run: object) => {
    const { json } = await app.call('POST', '/v1/me/agents', { name: `labelled ${named++}`, run })
    return (await app.call('POST', `/v1/me/agents/${json.id}/token`, {})).json.access_token as string
  }

  test('RUN-06 a list and a run show calls, errors, tokens, the cached share, the cost by model, agent and sub-agent, and the state; brigade runs shows the same', async () => {
    const { key, orgId } = await org('Whole Runs')
    const send = (headers: Record<string, string>, body: object = {}) =>
      chat(null, { token: key, headers: { 'x-claude-code-session-id': 'job', ...headers }, body })
    app.alpha.script(() => ({ usage: { prompt_tokens: 100, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 50 } } }))
    for (const headers of [{}, {}, { 'x-claude-code-agent-id': 'finder' }, { 'x-claude-code-agent-id': 'tester' }, { 'x-claude-code-agent-id': 'finder' }])
      expect((await send(headers)).status).toBe(200)
    app.alpha.script(() => ({ status: 400, body: { error: { message: 'no' } } }))
    expect((await send({ 'x-claude-code-agent-id': 'tester' })).status).toBe(400)
    const { json: run } = await get('/v1/me/runs/job', key)
    expect(run).toMatchObject({
      run_id: 'job',
      calls: 6,
      errors: 1,
      prompt_tokens: 500,
      completion_tokens: 25,
      cached_tokens: 250,
      cached_share: 0.5,
      state: 'active',
    })
    const parts = run.by_subagent.map(({ subagent, calls, errors, prompt_tokens }: Record<string, unknown>) => [subagent, calls, errors, prompt_tokens])
    expect(parts).toEqual([
      [null, 2, 0, 200],
      ['finder', 2, 0, 200],
      ['tester', 2, 1, 100],
    ])
    for (const list of [run.by_subagent, run.by_model, run.by_agent]) {
      expect(list.reduce((sum: number, part: { calls: number }) => sum + part.calls, 0)).toBe(6)
      expect(list.reduce((sum: number, part: { value_inr: number }) => sum + part.value_inr, 0)).toBeCloseTo(run.value_inr, 9)
    }
    // Without a sub-agent there is nothing to tell apart.
    app.alpha.reset()
    await chat('alone', { token: key })
    expect((await get('/v1/me/runs/alone', key)).json.by_subagent).toEqual([])
    const listed = (await get('/v1/me/runs', key)).json.runs
    expect(listed.map((each: { run_id: string; calls: number }) => [each.run_id, each.calls])).toEqual([
      ['alone', 1],
      ['job', 6],
    ])
    clock.advance(31 * 60_000)
    expect((await get('/v1/me/runs/job', key)).json.state).toBe('idle')
    const env = { XDG_CONFIG_HOME: app.dataDir, BRIGADE: app.baseUrl, BRIGADE_KEY: key }
    const shown = await runHere(['runs', 'show', 'job'], env)
    expect(shown.out).toMatch(/SUB-AGENT +CALLS/)
    for (const line of [/\(main agent\) +2/, /finder +2/, /tester +2 +1/]) expect(shown.out).toMatch(line)
    expect((await runHere(['runs'], env)).out).toMatch(/job .*idle +6 +1/)
    // A run has at most 200 sub-agents of its own in its report.
    const at = (n: number): UsageEvent => ({
      ...eventOf(request(0n, {}, noonMs), 0n, { userId: null, keyId: null }),
      orgId,
      keyId: 1,
      runId: 'swarm',
      runAgentId: null,
      runSubagent: `agent ${String(n).padStart(3, '0')}`,
    })
    for (const events of [Array.from({ length: 150 }, (_, n) => at(n)), Array.from({ length: 80 }, (_, n) => at(140 + n))])
      await app.db.tx(async tx => {
        await insertUsageEvents(tx, events)
        await keepsRuns(async () => {})(tx, events)
      })
    const swarm = (await get('/v1/me/runs/swarm?key_id=1', key)).json.by_subagent as { subagent: string | null; calls: number }[]
    expect([swarm.length, swarm.find(({ subagent }) => subagent === '(others)')?.calls]).toEqual([202, 20])
    expect(swarm.reduce((sum, { calls }) => sum + calls, 0)).toBe(230)
  })

  test('RUN-06 tags of calls are kept on their runs and calls, the first value wins, lists are filtered by them, and a report by one key adds up', async () => {
    const { key, cookie } = await org('Tagged Runs')
    const sends: readonly [run: string | null, tags: string][] = [
      ['a', 'pr=1234, repo=acme/app'],
      ['a', 'pr=9999,stage=two'],
      ['b', ' pr = 1234 '],
      ['c', 'pr=77'],
      ['d', ''],
      [null, 'pr=1234'],
    ]
    for (const [run, text] of sends) expect((await chat(run, { token: key, ...tags(text) })).status, text).toBe(200)
    expect(
      (await chat('e', { token: key, headers: { baggage: 'x=1,br.tag.pr=12%20ab;p=1,br.tag.repo=of-baggage', 'x-br-tags': 'repo=of-header' } })).status,
    ).toBe(200)
    const tagsOf = async (run: string) => (await get(`/v1/me/runs/${run}`, key)).json.tags
    expect(await tagsOf('a')).toEqual({ pr: '1234', repo: 'acme/app', stage: 'two' })
    expect([await tagsOf('d'), await tagsOf('e')]).toEqual([{}, { pr: '12 ab', repo: 'of-header' }])
    const list = async (query: string) => (await get(`/v1/me/runs?${query}`, key)).json.runs.map(({ run_id }: { run_id: string }) => run_id)
    expect(await list('tag=pr%3D1234')).toEqual(['b', 'a'])
    expect(await list('tag=pr%3D1234&limit=1')).toEqual(['b'])
    expect(await list('tag=pr%3D1')).toEqual([])
    expect((await get('/v1/me/runs?tag=pr%3D1234', app.key)).json.runs).toEqual([])
    const events = async (tag: string) => (await app.call('GET', `/me/activity/events?tag=${tag}`, undefined, { cookie })).json.events
    const found = await events('pr%3D1234')
    expect(found.map((event: { run_id: string | null; tags: object }) => [event.run_id, event.tags])).toEqual([
      [null, { pr: '1234' }],
      ['b', { pr: '1234' }],
      ['a', { pr: '1234', repo: 'acme/app' }],
    ])
    const report = (await get('/v1/me/run-tags/pr', key)).json
    expect(report).toMatchObject({ key: 'pr', from: '2026-10-04', to: '2026-11-03' })
    expect(report.values.map(({ value, runs, calls }: Record<string, unknown>) => [value, runs, calls])).toEqual([
      ['1234', 2, 3],
      ['(none)', 1, 1],
      ['12 ab', 1, 1],
      ['77', 1, 1],
    ])
    expect(report.values[0].value_inr).toBeCloseTo(3 * callInr, 9)
    expect((await get('/v1/me/run-tags/pr?from=2026-11-04&to=2026-11-05', key)).json.values).toEqual([])
    const env = { XDG_CONFIG_HOME: app.dataDir, BRIGADE: app.baseUrl, BRIGADE_KEY: key }
    expect((await runHere(['runs', 'tags', 'pr'], env)).out).toMatch(/1234 +3/)
    expect((await runHere(['runs', '--tag', 'pr=77'], env)).out).toMatch(/^c /m)
    expect((await runHere(['runs', 'show', 'a'], env)).out).toContain('pr=1234, repo=acme/app, stage=two')
    for (const path of ['/v1/me/runs?tag=pr', '/v1/me/runs?tag=P%3D1', '/v1/me/run-tags/P', '/v1/me/run-tags/pr?from=2026-10-01&to=2026-11-03'])
      expect((await get(path, key)).status, path).toBe(400)
  })

  test('RUN-06 tags beyond their bounds are refused before a provider is asked, and a run keeps at most eight', async () => {
    const many = (count: number, from = 0) => Array.from({ length: count }, (_, n) => `k${from + n}=v`).join(',')
    const dialed = app.alpha.requests.length
    for (const text of [many(9), 'Pr=1', 'pr', 'pr=', `pr=${'x'.repeat(65)}`, 'pr=1,pr=2', `${'k'.repeat(33)}=1`, 'pr=(none)', '=1', 'a b=1', 'pr=caf\u00e9']) {
      const refused = await chat('bounded', tags(text))
      expect([refused.status, refused.json.error.code], text).toEqual([400, 'bad_request'])
      expect(refused.json.error.message).toContain('x-br-tags')
    }
    expect((await chat('bounded', { headers: { baggage: 'br.tag.PR=1' } })).status).toBe(400)
    expect(app.alpha.requests).toHaveLength(dialed)
    const { key } = await org('Bounded Tags')
    for (const text of [many(6), many(3, 6), many(2, 6)]) expect((await chat('bounded', { token: key, ...tags(text) })).status).toBe(200)
    expect(Object.keys((await get('/v1/me/runs/bounded', key)).json.tags)).toHaveLength(8)
    expect((await chat('bounded', { token: key, ...tags(many(8, 20)) })).status).toBe(200)
    expect(Object.keys((await get('/v1/me/runs/bounded', key)).json.tags)).toHaveLength(8)
  })

  test('RUN-06 every reply of a call of a run has its id, also streams and every refusal, and what it cost and its caps leave where there are caps', async () => {
    const capped = await newAgent({ max_cost_inr: 1, max_calls: 3 })
    const plain = await newAgent({ loop: 'stop' })
    const headers = ({ headers: of }: TestReply) => [
      of.get('x-br-run-id'),
      of.get('x-br-run-cost-inr'),
      of.get('x-br-run-remaining-inr'),
      of.get('x-br-run-calls-remaining'),
    ]
    expect(headers(await chat('r', { token: capped }))).toEqual(['r', '0', String(1 - callInr), '2'])
    const stream = await chat('r', { token: capped, body: { stream: true } })
    expect([headers(stream)[0], headers(stream)[1], headers(stream)[3]]).toEqual(['r', String(callInr), '1'])
    app.alpha.script(() => ({ status: 400, body: { error: { message: 'no' } } }))
    const refused = await chat('r', { token: capped })
    expect([refused.status, headers(refused)[0], headers(refused)[1], headers(refused)[3]]).toEqual([400, 'r', String(2 * callInr), '0'])
    app.alpha.reset()
    const spent = await chat('r', { token: capped })
    expect([spent.status, ...headers(spent)]).toEqual([429, 'r', String(2 * callInr), String(1 - 2 * callInr), '0'])
    expect(headers(await chat('free', { token: plain }))).toEqual(['free', null, null, null])
    const all: readonly [status: number, sent: Sent][] = [
      [404, { body: { model: 'no-such-model' } }],
      [400, { body: { messages: 'no' } }],
      [400, { headers: { 'x-br-tags': 'P' } }],
      [400, { headers: { 'x-br-run-max-calls': '0' } }],
    ]
    for (const [status, sent] of all) {
      const reply = await chat('free', { token: plain, ...sent })
      expect([reply.status, headers(reply)[0]], JSON.stringify(sent)).toEqual([status, 'free'])
    }
    const { key, keyId } = await app.newKey()
    await app.gateway.app.limits.budgets.set(app.orgId, 'key', String(keyId), 1n, { strict: true })
    const broke = await chat('broke', { token: key })
    expect([broke.status, headers(broke)[0]]).toEqual([429, 'broke'])
    expect(headers(await chat(null, { token: plain }))).toEqual([null, null, null, null])
    await app.gateway.app.limits.flushNow()
    expect(await checkInvariants(app.db)).toEqual([])
  })
})
