/** Runs over HTTP: which id names the run of a call, and what is reported of a run. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { insertUsageEvents } from '../../../src/gateway/usage/events/apply.ts'
import type { UsageEvent } from '../../../src/gateway/usage/events/record.ts'
import { keepsRuns } from '../../../src/gateway/usage/runs/run-sums.ts'
import { deleteOldRunRows } from '../../../src/gateway/usage/runs/runs.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { exchange } from '../../agents/oauth-calls.ts'
import { runHere } from '../../cli/run-here.ts'
import { startApp, type TestApp, type TestReply } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { eventOf, request } from '../limits/engine.ts'

const hello = [{ role: 'user', content: 'Hello there' }]
const noonMs = Date.UTC(2026, 10, 3, 12, 0)
const minuteMs = 60_000

const runsOfEvents = statement<[orgId: number], { runId: string | null; agentId: number | null; calls: bigint; valueUinr: bigint }>(
  'test.runs_of_events',
  `select run_id as "runId", run_agent_id as "agentId", count(*) as "calls", sum(value_uinr)::bigint as "valueUinr" from usage_events
   where org_id = $1::int and run_id is not null group by 1, 2 order by 1, 2`,
)
const rowsOfRuns = statement<[], { runs: bigint; parts: bigint; days: bigint }>(
  'test.rows_of_runs',
  `select (select count(*) from runs) as "runs", (select count(*) from run_parts) as "parts", (select count(*) from run_days) as "days"`,
)

describe('runs', () => {
  const clock = movableClock(noonMs)
  let app: TestApp
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
  const chat = ({ token = app.key, headers = {}, body = {} }: Sent = {}): Promise<TestReply> =>
    app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: hello, ...body }, { token, headers })
  const messages = ({ token = app.key, headers = {}, body = {} }: Sent = {}): Promise<TestReply> =>
    app.call('POST', '/v1/messages', { model: 'test-model', max_tokens: 50, messages: hello, ...body }, { token, headers })
  const runOf = (reply: TestReply): string | null => {
    expect(reply.status, reply.text).toBe(200)
    return reply.headers.get('x-br-run-id')
  }
  const get = (path: string, token = app.key): Promise<TestReply> => app.call('GET', path, undefined, { token })
  const newAgent = async (name: string, run?: string) => {
    const { json: agent } = await app.call('POST', '/v1/me/agents', { name, may_delegate: true })
    const { json: minted } = await app.call('POST', `/v1/me/agents/${agent.id}/token`, run === undefined ? {} : { run })
    return { id: agent.id as number, token: minted.access_token as string }
  }
  const newChild = async (parent: { id: number; token: string }, name: string) => {
    const { json } = await app.call('POST', `/v1/me/agents/${parent.id}/children`, { name }, { token: parent.token })
    return { id: json.agent.id as number, token: json.access_token as string }
  }
  /** Inserts events as a flush does. */
  const put = (events: readonly UsageEvent[], runsOfDayMax?: number): Promise<void> =>
    app.db.tx(async tx => {
      await insertUsageEvents(tx, events)
      await keepsRuns(async () => {}, runsOfDayMax)(tx, events)
    })
  const eventsOf = (orgId: number, runId: string, atMs: number, more: Partial<UsageEvent> = {}): UsageEvent => ({
    ...eventOf(request(0n, {}, atMs), 0n, { userId: null, keyId: null }),
    orgId,
    runId,
    runAgentId: null,
    ...more,
  })

  const session = '0199d1f0-0000-7000-8000-00000000abcd'
  const metadata = (id: string) => ({ user_id: JSON.stringify({ device_id: 'd', account_uuid: 'a', session_id: id }) })

  test('RUN-01 a call belongs to the run that its token, a header, baggage or the metadata of its client names, in this order, and to none without an id', async () => {
    const ladder: readonly [id: string, sent: Sent][] = [
      ['own', { headers: { 'x-br-run-id': 'own' } }],
      ['of baggage', { headers: { baggage: 'other=1, br.run=of%20baggage;p=1,more=2' } }],
      [session, { headers: { 'x-claude-code-session-id': session } }],
      ['codex', { headers: { 'session-id': 'codex' } }],
      ['older-codex', { headers: { session_id: 'older-codex' } }],
      ['ses_opencode', { headers: { 'x-session-id': 'ses_opencode' } }],
      ['of-metadata', { body: { metadata: metadata('of-metadata') } }],
    ]
    for (const [at, [id, sent]] of ladder.entries()) {
      expect(runOf(await messages(sent)), id).toBe(id)
      // With every id that comes after it in the order.
      const later = ladder.slice(at).map(([, each]) => each)
      const headers = Object.assign({}, ...later.map(each => each.headers ?? {}))
      const body = Object.assign({}, ...later.map(each => each.body ?? {}))
      expect(runOf(await messages({ headers, body })), `${id} with all later ones`).toBe(id)
    }
    // What says something else names no run.
    const others = { 'x-client-request-id': 'thread', traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', 'x-session-affinity': 'ses_a' }
    expect(runOf(await messages({ headers: others, body: { metadata: { user_id: 'user_1_session_2' } } }))).toBeNull()
    expect(runOf(await chat({ body: { prompt_cache_key: 'cache' } }))).toBeNull()
    expect(runOf(await chat({ headers: { 'x-br-run-id': '' } }))).toBeNull()

    // The claim of a token comes before everything, and its children and narrower tokens inherit it.
    const lead = await newAgent('run lead', 'claimed')
    expect(runOf(await chat({ token: lead.token }))).toBe('claimed')
    const child = await newChild(lead, 'run child')
    expect(runOf(await chat({ token: child.token, headers: { 'x-br-run-id': 'claimed' } }))).toBe('claimed')
    const narrow = (await exchange(app, lead.token, { scope: 'inference' })).json.access_token
    expect(runOf(await chat({ token: narrow }))).toBe('claimed')
    const dialed = app.alpha.requests.length
    for (const [, sent] of ladder) {
      const refused = await messages({ ...sent, token: child.token })
      expect([refused.status, refused.json.error.code ?? refused.json.error.type], JSON.stringify(sent)).toEqual([
        400,
        expect.stringMatching(/bad_request|invalid/),
      ])
    }
    expect(app.alpha.requests).toHaveLength(dialed)

    // No provider gets the id of a header or of a token. Metadata is a field of the body like any other.
    const outward = app.alpha.requests.map(({ headers, raw }) => JSON.stringify(headers) + raw.toString()).join()
    for (const [id, { headers }] of ladder) if (headers !== undefined) expect(outward).not.toContain(id)
    expect(outward).not.toContain('claimed')

    // Each id is one run, with the calls that name it.
    const { runs } = (await get('/v1/me/runs')).json
    expect(Object.fromEntries(runs.map((run: { run_id: string; calls: number }) => [run.run_id, run.calls]))).toEqual({
      ...Object.fromEntries(ladder.map(([id]) => [id, 2])),
      claimed: 3,
    })
    expect(runs.find((run: { run_id: string }) => run.run_id === 'claimed')).toMatchObject({ agent_id: lead.id, agent_name: 'run lead', key_id: null })
  })

  test('baggage of an MCP message names the run of the calls of its tool', async () => {
    const call = (_meta: object, headers: Record<string, string> = {}) =>
      app.call(
        'POST',
        '/mcp',
        { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'chat', arguments: { model: 'test-model', prompt: 'Hello' }, _meta } },
        { headers: { accept: 'application/json, text/event-stream', ...headers } },
      )
    expect((await call({ baggage: 'br.run=mcp-run' })).status).toBe(200)
    expect((await call({ baggage: 'br.run=lost' }, { 'x-br-run-id': 'mcp-run' })).status).toBe(200)
    expect((await get('/v1/me/runs/mcp-run')).json).toMatchObject({ run_id: 'mcp-run', calls: 2 })
    expect((await get('/v1/me/runs/lost')).status).toBe(404)
  })

  test('an id that asks for a run must be 1 to 256 printable ASCII characters, and a header of a client with another form names no run', async () => {
    const long = 'r'.repeat(256)
    expect(runOf(await chat({ headers: { 'x-br-run-id': long } }))).toBe(long)
    const agent = await newAgent('run forms')
    for (const id of [`${long}r`, 'é'])
      for (const headers of [{ 'x-br-run-id': Buffer.from(id).toString('latin1') }, { baggage: `br.run=${encodeURIComponent(id)}` }])
        expect((await chat({ headers })).json.error, JSON.stringify(headers)).toMatchObject({ code: 'bad_request' })
    for (const run of [`${long}r`, 'é', '', ' a', 'a\nb', 7])
      expect((await app.call('POST', `/v1/me/agents/${agent.id}/token`, { run })).status, JSON.stringify(run)).toBe(400)
    expect(runOf(await chat({ headers: { 'session-id': `${long}r`, 'x-session-id': 'next' } }))).toBe('next')
    expect(runOf(await messages({ body: { metadata: metadata(`${long}r`) } }))).toBeNull()
  })

  test('streams, refusals of providers and failures carry the id of the run, and count as calls and errors', async () => {
    const headers = { 'x-br-run-id': 'ends' }
    expect(runOf(await chat({ headers, body: { stream: true } }))).toBe('ends')
    app.alpha.script([{ status: 400, body: { error: { message: 'no', type: 'invalid_request_error' } } }])
    const refused = await chat({ headers, body: { model: 'alpha-only' } })
    expect([refused.status, refused.headers.get('x-br-run-id')]).toEqual([400, 'ends'])
    app.alpha.script([{ status: 500 }])
    const failed = await chat({ headers, body: { model: 'alpha-only' } })
    expect([failed.status, failed.headers.get('x-br-run-id')]).toEqual([502, 'ends'])
    expect((await get('/v1/me/runs/ends')).json).toMatchObject({ calls: 3, errors: 2, key_id: app.keyId, agent_id: null })
  })

  test('a run adds up its calls by model and by agent of the family, and its figures are those of the events', async () => {
    const lead = await newAgent('family lead')
    const child = await newChild(lead, 'family child')
    const headers = { 'x-br-run-id': 'family' }
    app.alpha.script([{ usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110, prompt_tokens_details: { cached_tokens: 40 } } }])
    await chat({ token: lead.token, headers })
    clock.moveTo(noonMs + 5 * minuteMs)
    await chat({ token: child.token, headers, body: { model: 'alpha-only' } })
    await chat({ headers: { ...headers, 'x-br-agent-id': String(child.id) } })
    // The same id of a key is another run.
    await chat({ headers })
    const run = (await get(`/v1/me/runs/family?agent_id=${child.id}`)).json
    expect(run).toMatchObject({
      run_id: 'family',
      agent_id: lead.id,
      agent_name: 'family lead',
      state: 'active',
      calls: 3,
      errors: 0,
      first_at: expect.stringContaining('2026-11-03T12:00'),
      last_at: expect.stringContaining('2026-11-03T12:05'),
      cached_tokens: 40,
      cached_share: Math.round((40 / run.prompt_tokens) * 10_000) / 10_000,
    })
    for (const parts of [run.by_model, run.by_agent])
      for (const name of ['calls', 'errors', 'prompt_tokens', 'completion_tokens', 'cached_tokens'])
        expect(
          parts.reduce((sum: number, part: Record<string, number>) => sum + (part[name] ?? 0), 0),
          name,
        ).toBe(run[name])
    expect(run.by_model.map((part: { model: string; calls: number }) => [part.model, part.calls]).sort()).toEqual([
      ['alpha-only', 1],
      ['test-model', 2],
    ])
    expect(run.by_agent.map((part: { agent_id: number; calls: number }) => [part.agent_id, part.calls]).sort()).toEqual([
      [lead.id, 1],
      [child.id, 2],
    ])
    // Without an owner, a caller gets its own run, and somebody without one must say which.
    expect((await get('/v1/me/runs/family')).json).toMatchObject({ key_id: app.keyId, calls: 1 })
    expect((await get('/v1/me/runs/family', child.token)).json).toMatchObject({ agent_id: lead.id, calls: 3 })
    const cookie = await app.signIn()
    const asPerson = (path: string) => app.call('GET', path, undefined, { cookie })
    expect((await asPerson('/me/runs/family')).json.error.message).toContain('agent_id or key_id')
    expect((await asPerson(`/me/runs/family?key_id=${app.keyId}`)).json).toMatchObject({ calls: 1 })
    expect((await get(`/v1/me/runs/family?key_id=${app.keyId}&agent_id=${lead.id}`)).status).toBe(400)
    const events = await app.db.many(runsOfEvents, app.orgId)
    const valueInr = Number(events.find(each => each.runId === 'family' && each.agentId === lead.id)?.valueUinr) / 1e6
    expect(run.value_inr).toBe(valueInr)
    // Half an hour after its last call it is idle, and a call makes it active with the same totals.
    clock.moveTo(noonMs + 37 * minuteMs)
    expect((await get('/v1/me/runs/family')).json).toMatchObject({ state: 'idle', calls: 1 })
    clock.moveTo(noonMs + 8 * 24 * 60 * minuteMs)
    await chat({ headers })
    expect((await get('/v1/me/runs/family')).json).toMatchObject({ state: 'active', calls: 2, first_at: expect.stringContaining('2026-11-03T12:05') })
  })

  test('the list has the runs with the latest calls first, in pages, of one agent or since a day, and never those of another organisation', async () => {
    const other = await app.otherOrg('Runs Of Others')
    const dayMs = 24 * 60 * minuteMs
    const agent = await newAgent('list lead')
    const child = await newChild(agent, 'list child')
    const { orgId, key } = await app.otherOrg('Listed Runs')
    await put([
      ...Array.from({ length: 5 }, (_, n) => eventsOf(orgId, `run ${n}`, noonMs - (4 - n) * dayMs, { keyId: 77 })),
      eventsOf(app.orgId, 'of the lead', noonMs, { agentId: child.id, runAgentId: agent.id }),
    ])
    const list = async (query = '', token = key): Promise<string[]> =>
      (await get(`/v1/me/runs${query}`, token)).json.runs.map((run: { run_id: string }) => run.run_id)
    expect(await list()).toEqual(['run 4', 'run 3', 'run 2', 'run 1', 'run 0'])
    const seen: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { json } = await get(`/v1/me/runs?limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`, key)
      seen.push(...json.runs.map((run: { run_id: string }) => run.run_id))
      cursor = json.next_cursor
    }
    expect(seen).toEqual(await list())
    expect(await list('?from=2026-11-02')).toEqual(['run 4', 'run 3'])
    expect(await list('?key_id=77&from=2026-11-03')).toEqual(['run 4'])
    expect(await list('?key_id=78')).toEqual([])
    for (const id of [agent.id, child.id]) expect(await list(`?agent_id=${id}`, app.key)).toEqual(['of the lead'])
    expect(await list(`?agent_id=${agent.id}`)).toEqual([])
    expect(await list('', other.key)).toEqual([])
    expect((await get('/v1/me/runs/run%204', other.key)).status).toBe(404)
    expect((await get('/v1/me/runs/run%204', key)).json).toMatchObject({ run_id: 'run 4', key_id: 77, key_name: null, calls: 1 })
    for (const query of ['?limit=0', '?limit=201', '?cursor=x', '?cursor=2026-13-40.1', '?from=2026-02-30', '?agent_id=x'])
      expect((await get(`/v1/me/runs${query}`)).status, query).toBe(400)
    for (const id of ['a%0ab', '%20', 'r'.repeat(257), 'none']) expect((await get(`/v1/me/runs/${id}`)).status, id).toBe(404)
  })

  test('brigade runs lists runs, shows one and ends one', async () => {
    const { orgId, keyId, key } = await app.otherOrg('Typed Runs')
    await put([1, 2, 3].map(n => eventsOf(orgId, `typed ${n}`, noonMs + n, { keyId })))
    const env = { XDG_CONFIG_HOME: app.dataDir, BRIGADE: app.baseUrl, BRIGADE_KEY: key }
    const typed = async (...words: string[]): Promise<string> => {
      const { code, out, err } = await runHere(words, env)
      expect([code, err], words.join(' ')).toEqual([0, ''])
      return out
    }
    expect(
      (await typed('runs'))
        .split('\n')
        .slice(1, 4)
        .map(line => line.slice(0, 7)),
    ).toEqual(['typed 3', 'typed 2', 'typed 1'])
    expect(JSON.parse(await typed('runs', '--json', '--limit', '2', '--key-id', String(keyId))).runs).toMatchObject([
      { run_id: 'typed 3' },
      { run_id: 'typed 2' },
    ])
    expect(await typed('runs', '--from', '2026-11-04')).toContain('No runs.')
    expect(await typed('runs', 'show', 'typed 1')).toContain('calls   1, 0 failed')
    expect(await typed('runs', 'show', 'typed 1')).toContain('caps    none')
    await app.call('PATCH', '/v1/me/runs/typed%201', { max_calls: 1, max_cost_inr: 2.5 }, { token: key })
    expect(await typed('runs', 'show', 'typed 1')).toMatch(/caps {4}cost ₹2\.50?, calls 1/)
    expect(await typed('runs')).toContain('held')
    expect(JSON.parse(await typed('runs', 'show', 'typed 1', '--json'))).toMatchObject({ run_id: 'typed 1', by_agent: [{ agent_id: null, calls: 1 }] })
    expect(JSON.parse(await typed('runs', 'end', 'typed 1', '--json'))).toMatchObject({ ok: true, state: 'ended' })
    expect((await runHere(['runs', 'show', 'none'], env)).code).toBe(4)
  })

  test('a day has a bounded number of new runs, and the calls of further ones are added up in one row', async () => {
    const { orgId, key } = await app.otherOrg('Many Runs')
    const at = (runId: string, atMs = noonMs): UsageEvent => eventsOf(orgId, runId, atMs, { keyId: 5 })
    await put([at('a'), at('b')], 3)
    await put([at('c'), at('d'), at('a'), at('e')], 3)
    await put([at('d'), at('b')], 3)
    await put([at('f', noonMs + 24 * 60 * minuteMs)], 3)
    const { runs } = (await get('/v1/me/runs', key)).json
    expect(Object.fromEntries(runs.map((run: { run_id: string; calls: number }) => [run.run_id, run.calls]))).toEqual({
      a: 2,
      b: 2,
      c: 1,
      f: 1,
      '(others)': 3,
    })
    // The events keep their ids.
    expect((await app.db.many(runsOfEvents, orgId)).map(({ runId, calls }) => [runId, Number(calls)])).toEqual([
      ['a', 2],
      ['b', 2],
      ['c', 1],
      ['d', 2],
      ['e', 1],
      ['f', 1],
    ])
  })

  test('a run has a bounded number of models, and further ones are added up', async () => {
    const { orgId, key } = await app.otherOrg('Many Models')
    const models = (from: number, to: number): UsageEvent[] =>
      Array.from({ length: to - from }, (_, n) => eventsOf(orgId, 'wide', noonMs, { keyId: 5, model: `model ${from + n}` }))
    await put(models(0, 150))
    await put(models(140, 260))
    await put(models(0, 10))
    const { by_model: parts, calls } = (await get('/v1/me/runs/wide', key)).json
    expect([calls, parts.length]).toEqual([280, 201])
    expect(parts.find((part: { model: string }) => part.model === '(others)')).toMatchObject({ calls: 60 })
    expect(parts.find((part: { model: string }) => part.model === 'model 5')).toMatchObject({ calls: 2 })
  })

  test('runs are deleted with the events of their last day', async () => {
    const { orgId, key } = await app.otherOrg('Old Runs')
    const dayMs = 24 * 60 * minuteMs
    await put([eventsOf(orgId, 'old', noonMs - 11 * dayMs, { keyId: 5 }), eventsOf(orgId, 'kept', noonMs - 10 * dayMs, { keyId: 5 })])
    const before = await app.db.one(rowsOfRuns)
    await deleteOldRunRows({ db: app.db, clock, keepDays: 10 }, new AbortController().signal)
    expect((await get('/v1/me/runs', key)).json.runs).toMatchObject([{ run_id: 'kept' }])
    const after = await app.db.one(rowsOfRuns)
    expect([before.runs - after.runs, before.parts - after.parts, before.days - after.days]).toEqual([1n, 1n, 1n])
  })
})
