/** Runs that repeat themselves: what is reported and refused, in each format of conversations. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestReply } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { until } from '../../harness/until.ts'

const minuteMs = 60_000
interface LoopEvent {
  readonly run_id: string
  readonly kind: string
  readonly count: number
  readonly rule: string
}
const loopEvents = statement<[orgId: number, runId: string], { data: LoopEvent }>(
  'test.loop_events',
  `select data as "data" from webhook_events where org_id = $1::int and type = 'run.loop' and data->>'run_id' = $2::text order by seq`,
)

/** A turn: the arguments that a model writes, and what the tool answered. */
interface Turn {
  readonly args: string
  readonly result: string
}

/** Writes a conversation of several turns as each API does. */
const formats: Record<string, { readonly path: string; body(turns: readonly Turn[], mark: string): object }> = {
  chat: {
    path: '/v1/chat/completions',
    body: (turns, mark) => ({
      messages: [
        { role: 'user', content: `Go on ${mark}` },
        ...turns.flatMap(({ args, result }, n) => [
          { role: 'assistant', content: null, tool_calls: [{ id: `call_${n}`, type: 'function', function: { name: 'run', arguments: args } }] },
          { role: 'tool', tool_call_id: `call_${n}`, content: result },
        ]),
      ],
    }),
  },
  messages: {
    path: '/v1/messages',
    body: (turns, mark) => ({
      max_tokens: 50,
      messages: [
        { role: 'user', content: `Go on ${mark}` },
        ...turns.flatMap(({ args, result }, n) => [
          { role: 'assistant', content: [{ type: 'tool_use', id: `toolu_${n}`, name: 'run', input: JSON.parse(args) }] },
          {
            role: 'user',
            content: [
              { type: 'tool_result', tool_use_id: `toolu_${n}`, content: result },
              { type: 'text', text: `turn ${n}` },
            ],
          },
        ]),
      ],
    }),
  },
  responses: {
    path: '/v1/responses',
    body: (turns, mark) => ({
      input: [
        { type: 'message', role: 'user', content: `Go on ${mark}` },
        ...turns.flatMap(({ args, result }, n) => [
          { type: 'function_call', call_id: `call_${n}`, name: 'run', arguments: args },
          { type: 'function_call_output', call_id: `call_${n}`, output: result },
        ]),
      ],
    }),
  },
  gemini: {
    path: '/v1beta/models/alpha-only:generateContent',
    body: (turns, mark) => ({
      contents: [
        { role: 'user', parts: [{ text: `Go on ${mark}` }] },
        ...turns.flatMap(({ args, result }) => [
          { role: 'model', parts: [{ functionCall: { name: 'run', args: JSON.parse(args) } }] },
          { role: 'user', parts: [{ functionResponse: { name: 'run', response: { output: result } } }] },
        ]),
      ],
    }),
  },
}
const same = (n: number): Turn => ({ args: n % 2 === 0 ? '{"a":1,"b":[2]}' : '{ "b": [2], "a": 1 }', result: 'error: no such file' })
const polled = (n: number): Turn => ({ args: '{"job":7}', result: `waited ${n} s` })
const times = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

describe('runs that repeat themselves', () => {
  const clock = movableClock(Date.now())
  let app: TestApp
  let named = 0
  beforeAll(async () => {
    app = await startApp({ clock })
  })
  afterAll(() => app.stop())
  beforeEach(() => app.alpha.reset())

  const newAgent = async (loop?: string): Promise<string> => {
    const { json } = await app.call('POST', '/v1/me/agents', { name: `repeater ${named++}`, ...(loop === undefined ? {} : { run: { loop } }) })
    return (await app.call('POST', `/v1/me/agents/${json.id}/token`, {})).json.access_token
  }
  const send = (token: string, run: string, path: string, body: object, headers: Record<string, string> = {}): Promise<TestReply> =>
    app.call('POST', path, path.startsWith('/v1beta/') ? body : { model: 'alpha-only', ...body }, { token, headers: { 'x-br-run-id': run, ...headers } })
  /** Sends the conversation up to each turn, as an agent does, and returns the statuses. */
  const play = async (token: string, run: string, format: string, turns: readonly Turn[], headers?: Record<string, string>): Promise<number[]> => {
    const { path, body } = formats[format] as (typeof formats)[string]
    const statuses: number[] = []
    for (let n = 1; n <= turns.length; n++) statuses.push((await send(token, run, path, body(turns.slice(0, n), run), headers)).status)
    return statuses
  }
  const told = async (run: string, count: number): Promise<LoopEvent[]> => {
    const events = async () => (await app.db.many(loopEvents, app.orgId, run)).map(({ data }) => data)
    await until(async () => (await events()).length >= count, `${count} events of ${run}`)
    return events()
  }

  test.for(Object.keys(formats))(
    'RUN-05 %s: the same call with the same result is reported once at the fifth time and refused at the tenth when the rule says stop, and a changed result is no loop',
    async format => {
      const stop = await newAgent('stop')
      const run = `stops ${format}`
      expect(await play(stop, run, format, times(9).map(same))).toEqual(times(9).map(() => 200))
      const { path, body } = formats[format] as (typeof formats)[string]
      const requests = app.alpha.requests.length
      for (let again = 0; again < 2; again++) {
        const refused = await send(stop, run, path, body(times(10).map(same), run))
        expect([refused.status, refused.headers.get('x-should-retry'), refused.headers.get('x-br-run-id')], refused.text).toEqual([429, 'false', run])
        expect(refused.text).toContain(format === 'messages' ? 'repeats itself' : 'run_loop_detected')
        if (format === 'chat') expect(refused.json).toMatchObject({ scope: 'run', run_id: run, kind: 'same_call', cap: 10, spent: 9 })
      }
      expect(app.alpha.requests).toHaveLength(requests)
      // Another call of the tool goes on, and so does another run.
      expect((await send(stop, run, path, body([...times(9).map(same), polled(1)], run))).status).toBe(200)
      expect((await play(stop, `other ${format}`, format, times(9).map(same))).at(-1)).toBe(200)
      expect(await told(run, 1)).toMatchObject([{ run_id: run, kind: 'same_call', count: 5, rule: 'stop' }])
      // A tool that is asked again and says something new, twelve times.
      expect(await play(stop, `polls ${format}`, format, times(12).map(polled))).toEqual(times(12).map(() => 200))
      expect(await app.db.many(loopEvents, app.orgId, `polls ${format}`)).toEqual([])
      // Only the event by default, once, and nothing at all when the rule is off.
      expect(await play(await newAgent(), `warns ${format}`, format, times(12).map(same))).toEqual(times(12).map(() => 200))
      expect(await told(`warns ${format}`, 1)).toMatchObject([{ kind: 'same_call', count: 5, rule: 'warn' }])
      expect(await play(await newAgent('off'), `off ${format}`, format, times(12).map(same))).toEqual(times(12).map(() => 200))
      expect(await app.db.many(loopEvents, app.orgId, `off ${format}`)).toEqual([])
    },
  )

  test('RUN-05 the same body that is answered five times within 60 seconds is reported, the tenth is refused, and what failed or came too late does not count', async () => {
    const stop = await newAgent('stop')
    const body = { messages: [{ role: 'user', content: `Say it ${'again '.repeat(2000)}` }] }
    const ask = (run: string, more: object = {}) => send(stop, run, '/v1/chat/completions', { ...body, ...more })
    app.alpha.script(() => ({ status: 400, body: { error: { message: 'no' } } }))
    for (let n = 0; n < 12; n++) expect((await ask('same body')).status).toBe(400)
    app.alpha.reset()
    for (let n = 0; n < 9; n++) expect((await ask('same body')).status).toBe(200)
    const refused = await ask('same body')
    expect([refused.status, refused.json.error.code, refused.json.kind]).toEqual([429, 'run_loop_detected', 'same_body'])
    // The bodies have the same beginning, end and length.
    for (let n = 0; n < 12; n++) {
      const other = { messages: [{ role: 'user', content: `Say it ${'again '.repeat(1000)}${String(n).padStart(6, '0')}${'again '.repeat(999)}` }] }
      expect((await send(stop, 'templates', '/v1/chat/completions', other)).status).toBe(200)
    }
    expect(await app.db.many(loopEvents, app.orgId, 'templates')).toEqual([])
    expect(await told('same body', 1)).toMatchObject([{ kind: 'same_body', rule: 'stop' }])
    clock.advance(minuteMs)
    expect((await ask('same body')).status).toBe(200)
    // Streams count when they end well.
    for (let n = 0; n < 9; n++) expect((await ask('streams', { stream: true })).status).toBe(200)
    expect((await ask('streams', { stream: true })).status).toBe(429)
  })

  test('RUN-05 more than 30 calls a minute for five minutes are reported as pace and never refused, and sub-agents that take turns are no loop', async () => {
    const stop = await newAgent('stop')
    for (let minute = 0; minute < 5; minute++) {
      clock.moveTo((Math.floor(clock.nowMs() / minuteMs) + 1) * minuteMs)
      for (let n = 0; n <= 30; n++)
        expect((await send(stop, 'fast', '/v1/chat/completions', { messages: [{ role: 'user', content: `${minute} ${n}` }] })).status).toBe(200)
    }
    expect(await told('fast', 1)).toMatchObject([{ kind: 'pace', count: 31, rule: 'stop' }])
    // Each of two sub-agents makes the same call with the same result, each for the first time in its own turns.
    const { path, body } = formats['chat'] as (typeof formats)[string]
    for (let n = 1; n <= 6; n++)
      for (const name of ['a', 'b'])
        await send(stop, 'pair', path, body([...times(n).map(i => ({ args: `{"n":${i}}`, result: 'ok' }))], name), { 'x-claude-code-agent-id': name })
    expect(await app.db.many(loopEvents, app.orgId, 'pair')).toEqual([])
    // A final answer ends a repetition: the user asks for the same again.
    for (let n = 1; n <= 12; n++) {
      const turn = { args: '{}', result: 'all is well' }
      const messages = (body([turn], `ask ${n}`) as { messages: object[] }).messages
      expect((await send(stop, 'asked', path, { messages })).status).toBe(200)
      expect(
        (await send(stop, 'asked', path, { messages: [...messages, { role: 'assistant', content: 'Well.' }, { role: 'user', content: `And ${n}` }] })).status,
      ).toBe(200)
    }
    expect(await app.db.many(loopEvents, app.orgId, 'asked')).toEqual([])
  })

  test('the rule is set when an agent or a key is made or changed, is listed, is loosened by nobody below, and is not for children', async () => {
    const made = (await app.call('POST', '/v1/me/agents', { name: 'loop ruled', may_delegate: true, run: { loop: 'stop' } })).json
    expect(made.run).toEqual({
      max_cost_inr: null,
      max_calls: null,
      max_minutes: null,
      max_subagents: null,
      max_depth: null,
      required: false,
      strict: false,
      loop: 'stop',
    })
    expect((await app.call('PATCH', `/v1/me/agents/${made.id}`, { run: { max_calls: 500 } })).json.run).toMatchObject({ loop: 'stop', max_calls: 500 })
    expect((await app.call('PATCH', `/v1/me/agents/${made.id}`, { run: { loop: 'never' } })).status).toBe(400)
    const { json: list } = await app.call('GET', '/v1/me/agents?q=loop%20ruled')
    expect(list.agents[0].run.loop).toBe('stop')
    const { access_token: token } = (await app.call('POST', `/v1/me/agents/${made.id}/token`, {})).json
    expect((await app.call('POST', `/v1/me/agents/${made.id}/children`, { name: 'x', run: { loop: 'off' } }, { token })).status).toBe(400)
    const child = (await app.call('POST', `/v1/me/agents/${made.id}/children`, { name: 'loop child' }, { token })).json
    expect((await app.call('PATCH', `/v1/me/agents/${child.agent.id}`, { run: { loop: 'off' } })).status).toBe(400)
    expect((await play(child.access_token, 'of child', 'chat', times(10).map(same))).at(-1)).toBe(429)
    // The calls of another child of the family are turns of another agent.
    expect((await play(token, 'of child', 'chat', times(9).map(same))).at(-1)).toBe(200)
    expect((await app.call('PATCH', `/v1/me/agents/${made.id}`, { run: null })).json.run).toBeNull()
    const key = (await app.call('POST', '/me/keys', { name: 'loop key', run: { loop: 'stop' } }, { cookie: await app.signIn() })).json
    expect(key.run.loop).toBe('stop')
    expect((await play(key.key, 'of key', 'chat', times(10).map(same))).at(-1)).toBe(429)
    // A member does not loosen what an admin has set.
    const member = await app.newMember('member')
    const mine = (await app.call('POST', '/me/agents', { name: 'loop of a member', run: { loop: 'off' } }, { cookie: member.cookie })).json
    await app.call('PATCH', `/v1/me/agents/${mine.id}`, { run: { loop: 'stop' } })
    const loosen = (loop: string) => app.call('PATCH', `/me/agents/${mine.id}`, { run: { loop } }, { cookie: member.cookie })
    expect([(await loosen('warn')).status, (await loosen('off')).status, (await loosen('stop')).status]).toEqual([403, 403, 200])
  })
})
