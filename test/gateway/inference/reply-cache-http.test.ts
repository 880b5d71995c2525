import fc from 'fast-check'
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { orgRoomBytes } from '../../../src/gateway/inference/reply-cache/reply-cache.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { propertyRuns } from '../../harness/property-runs.ts'
import { usageRows } from '../../harness/usage-rows.ts'

const countReplies = statement<[], { count: number }>('test.count_replies', `select count(*)::int as count from reply_cache`)
const fillRoom = statement<[orgId: number, bytes: number, at: Date]>(
  'test.fill_reply_room',
  `insert into reply_cache select $1::int, decode(repeat(to_char(n, 'FM00'), 32), 'hex'), $3::timestamptz, $3::timestamptz + interval '1 day', $2::int, 0, 'global',
     'alpha', 'x' from generate_series(1, 4) as n`,
)
const use = { 'x-br-cache': 'use' }
const dayMs = 24 * 3600_000

interface Sent {
  readonly token?: string
  readonly headers?: Record<string, string>
}

describe('replies that a caller lets the gateway keep', () => {
  const clock = movableClock()
  let app: TestApp
  let cookie: string
  beforeAll(async () => {
    app = await startApp({ clock, dialects: true })
    cookie = await app.signIn()
  })
  afterAll(() => app.stop())
  beforeEach(async () => {
    app.alpha.reset()
    await window(7)
  })

  const window = async (days: number, of = cookie) => {
    expect((await app.call('PUT', '/me/org/data-retention', { days }, { cookie: of })).status).toBe(200)
  }
  const chat = (content: string, more: object = {}, { token, headers = use }: Sent = {}) =>
    app.call(
      'POST',
      '/v1/chat/completions',
      { model: 'alpha-only', messages: [{ role: 'user', content }], ...more },
      { headers, ...(token === undefined ? {} : { token }) },
    )
  const said = ({ headers }: { headers: Headers }) => headers.get('x-br-cache')
  const rows = async () => (await app.db.one(countReplies)).count
  const dials = () => app.alpha.requests.length

  test('CLOUD-10 the second of two equal calls is served without a dial, costs nothing and says so, and takes a request but no budget', async () => {
    const { key } = await app.newKey({ daily: 4 })
    const plain = await chat('hello', {}, { token: key, headers: {} })
    expect([said(plain), dials()]).toEqual([null, 1])
    const first = await chat('hello', {}, { token: key })
    clock.advance(42_000)
    const second = await chat('hello', {}, { token: key })
    expect([said(first), said(second), dials()]).toEqual(['stored', 'hit', 2])
    expect(second.json).toEqual(first.json)
    expect(second.headers.get('age')).toBe('42')
    expect(second.headers.get('x-br-cost-inr')).toBe('0')
    expect(second.headers.get('x-br-provider')).toBe('alpha')
    const [hit, miss] = await usageRows(app, 2)
    expect(Number(miss?.costUinr)).toBeGreaterThan(0)
    expect(miss).toMatchObject({ savedUinr: null, provider: 'alpha' })
    expect(hit).toMatchObject({ provider: 'br:cache', model: 'alpha-only', status: 200, outcome: 'ok', costUinr: 0n, valueUinr: 0n, promptTokens: 0n })
    expect(hit?.savedUinr).toBe(miss?.costUinr)
    expect(second.headers.get('x-br-cache-saved-inr')).toBe(first.headers.get('x-br-cost-inr'))
    const found = await app.call('GET', `/me/activity/events/${second.headers.get('x-request-id')}`, undefined, { cookie })
    expect(found.json.calls).toMatchObject([{ cached: true, saved_inr: Number(first.headers.get('x-br-cost-inr')), cost_inr: 0 }])
    expect((await chat('hello', {}, { token: key })).status).toBe(200)
    expect((await chat('hello', {}, { token: key })).json.error.code).toBe('daily_limit_reached')

    // An idempotency key keeps its meaning: the same call is not served again, not even by the cache.
    const once = { ...use, 'idempotency-key': 'hit-once' }
    expect(said(await chat('hello', {}, { headers: once }))).toBe('stored')
    expect((await chat('hello', {}, { headers: once })).json.error.code).toBe('idempotency_replayed')
    expect(said(await chat('hello', {}, { headers: { ...once, 'idempotency-key': 'hit-twice' } }))).toBe('hit')
    expect((await chat('hello', {}, { headers: { ...once, 'idempotency-key': 'hit-twice' } })).json.error.code).toBe('idempotency_replayed')

    const agent = await app.newAgent('with a rest')
    await app.setBudget('agent', agent.id, 5)
    const [made, repeated] = [await chat('rest', {}, { token: agent.token }), await chat('rest', {}, { token: agent.token })]
    expect([said(repeated), repeated.headers.get('x-br-budget-remaining-inr')]).toEqual(['hit', made.headers.get('x-br-budget-remaining-inr')])

    const poor = await app.newKey({ budgetInr: 0.000001 })
    expect(said(await chat('poor', {}, { token: poor.key }))).toBe('stored')
    expect((await chat('rich', {}, { token: poor.key })).json.error.code).toBe('budget_exceeded')
    expect(said(await chat('poor', {}, { token: poor.key }))).toBe('hit')
  })

  test('CLOUD-10 a stream is kept as its events and comes back as a stream, which the real client reads, with a bill of ₹0', async () => {
    const client = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0, defaultHeaders: use })
    const ask = async () => {
      const request = {
        model: 'alpha-only',
        messages: [{ role: 'user' as const, content: 'stream' }],
        stream: true as const,
        stream_options: { include_usage: true },
      }
      const { data, response } = await client.chat.completions.create(request).withResponse()
      const chunks = []
      for await (const chunk of data) chunks.push(chunk)
      return { chunks, response }
    }
    const first = await ask()
    const second = await ask()
    expect([said(first.response), said(second.response), dials()]).toEqual(['miss', 'hit', 1])
    const textOf = ({ chunks }: typeof first) => chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')
    expect(textOf(second)).toBe(textOf(first))
    expect(textOf(first)).not.toBe('')
    const billOf = ({ chunks }: typeof first) => (chunks.at(-1) as unknown as { x_br: { cost_inr: number; value_inr: number } }).x_br
    expect(billOf(first).cost_inr).toBeGreaterThan(0)
    expect(billOf(second)).toMatchObject({ cost_inr: 0, value_inr: 0 })
    expect(second.response.headers.get('content-type')).toContain('text/event-stream')
  })

  test('CLOUD-10 replies in the other formats and of the other kinds are kept too', async () => {
    const messages = (stream: boolean) =>
      app.call('POST', '/v1/messages', { model: 'alpha-only', max_tokens: 50, stream, messages: [{ role: 'user', content: 'hi' }] }, { headers: use })
    const responses = (stream: boolean) => app.call('POST', '/v1/responses', { model: 'alpha-only', stream, input: 'hi' }, { headers: use })
    const embed = () => app.call('POST', '/v1/embeddings', { model: 'test-embed', input: 'hi' }, { headers: use })
    for (const ask of [() => messages(false), () => messages(true), () => responses(false), () => responses(true), embed]) {
      const first = await ask()
      const second = await ask()
      expect([first.status, said(second)], second.text).toEqual([200, 'hit'])
      expect(second.text.replace(/"(cost|value)_inr":[\d.e-]+/g, '')).toBe(first.text.replace(/"(cost|value)_inr":[\d.e-]+/g, ''))
    }
  })

  test('CLOUD-10 refresh asks a provider and replaces the reply, off asks nothing of the cache, and a reply is found for the time that a call gives', async () => {
    app.alpha.script([{ chunks: ['one'] }, { chunks: ['two'] }])
    const textOf = ({ json }: { json: { choices: { message: { content: string } }[] } }) => json.choices[0]?.message.content
    expect(textOf(await chat('time', {}, { headers: { ...use, 'x-br-cache-ttl': '100' } }))).toBe('one')
    expect(textOf(await chat('time', {}, { headers: { 'x-br-cache': 'refresh', 'x-br-cache-ttl': '100' } }))).toBe('two')
    expect(textOf(await chat('time'))).toBe('two')
    clock.advance(60_000)
    const strict = await chat('time', {}, { headers: { ...use, 'x-br-cache-ttl': '30' } })
    expect(said(strict)).toBe('stored')
    clock.advance(100_000)
    expect(said(await chat('time', {}, { headers: { ...use, 'x-br-cache-ttl': '86400' } }))).toBe('stored')
    expect(said(await chat('time', {}, { headers: { 'x-br-cache': 'off' } }))).toBeNull()
    for (const headers of [
      { 'x-br-cache': 'maybe' },
      { ...use, 'x-br-cache-ttl': '0' },
      { ...use, 'x-br-cache-ttl': '86401' },
      { ...use, 'x-br-cache-include': 'all' },
    ])
      expect((await chat('time', {}, { headers: headers as Record<string, string> })).json.error.code).toBe('bad_request')
  })

  test('CLOUD-10 without a retention window nothing is kept and the reply says so; closing the window deletes everything', async () => {
    await chat('kept')
    expect(await rows()).toBeGreaterThan(0)
    await window(0)
    expect(await rows()).toBe(0)
    for (let n = 0; n < 2; n++) {
      const reply = await chat('kept')
      expect([reply.status, said(reply), reply.headers.get('x-br-cache-reason')]).toEqual([200, 'off', 'no_retention_window'])
    }
    expect([await rows(), dials()]).toEqual([0, 3])
    await window(1)
    await chat('umbrella vermilion', {}, { headers: { ...use, 'x-br-cache-ttl': '86400' } })
    expect(await app.dump()).not.toContain('vermilion')
    clock.advance(dayMs)
    expect(said(await chat('umbrella vermilion'))).toBe('stored')
    clock.advance(dayMs)
    await app.gateway.app.jobs.runOnce('replies.expire')
    expect(await rows()).toBe(0)
  })

  test('CLOUD-10 a reply that is under way when the window closes is not kept, also when a new window opens before its end', async () => {
    app.alpha.script({ holdAfterChunks: 1 })
    const pending = chat('under way', { stream: true })
    await app.alpha.arrived(1)
    await window(0)
    await window(7)
    app.alpha.release()
    expect(said(await pending)).toBe('miss')
    expect(await rows()).toBe(0)
  })

  test.each<[string, object, object, string | null]>([
    ['a reply that ended at its limit', {}, { status: 200, body: whole({ finish_reason: 'length' }) }, null],
    [
      'a reply that calls a tool',
      {},
      { status: 200, body: whole({ finish_reason: 'tool_calls', message: { role: 'assistant', content: null, tool_calls: [call()] } }) },
      null,
    ],
    ['an error', {}, { status: 400, body: { error: { message: 'no' } } }, null],
    ['a stream that breaks off', { stream: true }, { breakAfterChunks: 2 }, null],
    ['a stream that ends with an error', { stream: true }, { errorFrameAfterChunks: 2 }, null],
    ['a stream of more than a MiB', { stream: true }, { chunks: Array.from({ length: 30 }, () => 'x'.repeat(40_000)) }, null],
    ['a temperature above 0', { temperature: 0.5 }, {}, 'temperature'],
    ['several answers', { n: 2 }, {}, 'several_answers'],
    ['a key of its own', { upstream_key: 'sk-of-mine' }, {}, 'own_credential'],
  ])('CLOUD-10 %s is not kept', async (what, more, script, reason) => {
    for (let n = 0; n < 2; n++) {
      app.alpha.script(script)
      const reply = await chat(what, more).catch(() => null)
      if (reply === null) continue
      expect([said(reply), reply.headers.get('x-br-cache-reason')]).toEqual([reason === null ? 'miss' : 'off', reason])
    }
    expect(dials()).toBe(2)
  })

  test('CLOUD-10 calls of tools and a temperature are kept when the caller lets them in, and only for callers who do', async () => {
    const lets = { ...use, 'x-br-cache-include': 'tools, sampled' }
    const body = whole({ finish_reason: 'tool_calls', message: { role: 'assistant', content: null, tool_calls: [call()] } })
    app.alpha.script(() => ({ status: 200, body }))
    const ask = (headers: Record<string, string>) => chat('with tools', { temperature: 0.7 }, { headers })
    expect(said(await ask(lets))).toBe('stored')
    expect(said(await ask(lets))).toBe('hit')
    expect(said(await ask({ ...use, 'x-br-cache-include': 'sampled' }))).toBe('miss')
  })

  test('CLOUD-10 the oldest replies of an organisation make room for new ones', async () => {
    await window(0)
    await window(7)
    await app.db.exec(fillRoom, app.orgId, orgRoomBytes / 4, new Date(clock.nowMs() - 1000))
    expect(said(await chat('one more'))).toBe('stored')
    expect(await rows()).toBe(4)
  })

  test('CLOUD-10 the same prompt of two agents is two dials, and so is that of one agent under another rule', async () => {
    const [one, two] = [await app.newAgent('one'), await app.newAgent('two')]
    const ask = async (token: string) => said(await chat('same', { max_tokens: 20 }, { token }))
    expect([await ask(one.token), await ask(two.token), await ask(one.token), await ask(two.token)]).toEqual(['stored', 'stored', 'hit', 'hit'])
    expect((await app.call('PATCH', `/v1/me/agents/${one.id}`, { max_output_tokens: 500 })).status).toBe(200)
    expect([await ask(one.token), await ask(two.token), dials()]).toEqual(['stored', 'hit', 3])
    expect((await app.call('PATCH', `/v1/me/agents/${one.id}`, { allowed_models: ['test-model'] })).status).toBe(200)
    expect((await chat('same', { max_tokens: 20 }, { token: one.token })).json.error.code).toBe('model_not_allowed')
  })

  test('CLOUD-10 no call ever gets the reply of another organisation, key, agent, policy, model or request', async () => {
    const other = await app.otherOrg('Elsewhere')
    await window(7, await app.signIn(other.userId, other.orgId))
    const agents = [await app.newAgent('first'), await app.newAgent('second')]
    const ruled = await app.newAgent('ruled')
    const callers = [app.key, (await app.newKey()).key, other.key, ...agents.map(({ token }) => token), ruled.token]
    let answers = 0
    app.alpha.script(() => ({ chunks: [`answer ${++answers}`] }))
    const drawn = fc.record({
      caller: fc.nat(callers.length - 1),
      label: fc.constantFrom('', 'first', 'a mere label'),
      model: fc.constantFrom('alpha-only', 'same-id'),
      content: fc.constantFrom('a', 'b'),
      field: fc.constantFrom({}, { seed: 1 }, { seed: 2 }, { stop: ['x'] }),
      stream: fc.boolean(),
      /** Changes a rule of the third agent before the call. */
      rule: fc.option(fc.constantFrom(100, 200), { nil: null, freq: 4 }),
    })
    /** Which scope and request got each answer first. */
    const owners = new Map<string, string>()
    let [hits, rule] = [0, 0]
    await fc.assert(
      fc.asyncProperty(fc.array(drawn, { minLength: 8, maxLength: 12 }), async calls => {
        for (const { caller, label, model, content, field, stream, rule: next } of calls) {
          if (next !== null) {
            rule = next
            await app.call('PATCH', `/v1/me/agents/${ruled.id}`, { max_output_tokens: rule })
          }
          const token = callers[caller] ?? ''
          const isKey = caller < 3
          const headers = { ...use, ...(isKey && label !== '' ? { 'x-br-agent-id': label } : {}) }
          const reply = await chat(content, { model, stream, max_tokens: 50, ...field }, { token, headers })
          expect(reply.status).toBe(200)
          // The label names the first agent only for keys of its organisation.
          const agent = isKey ? (label === 'first' && caller !== 2 ? 'agent 0' : `key ${caller} ${label}`) : `agent ${caller - 3}`
          const policy = caller === 5 ? rule : 0
          const scope = JSON.stringify([caller === 2 ? 'other' : 'home', agent, policy, model, content, field, stream])
          const answer = /answer \d+/.exec(reply.text)?.[0] ?? 'none'
          if (said(reply) === 'hit') hits++
          else expect(owners.has(answer)).toBe(false)
          expect(owners.get(answer) ?? scope).toBe(scope)
          owners.set(answer, scope)
        }
      }),
      { numRuns: propertyRuns(24), endOnFailure: true },
    )
    expect(hits).toBeGreaterThan(0)
    expect(owners.has('none')).toBe(false)
  })
})

function call() {
  return { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } }
}

function whole(choice: object) {
  const message = { role: 'assistant', content: 'hello' }
  return {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'alpha-upstream',
    choices: [{ index: 0, message, finish_reason: 'stop', ...choice }],
    usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
  }
}
