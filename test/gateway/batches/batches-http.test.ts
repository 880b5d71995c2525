import Anthropic from '@anthropic-ai/sdk'
import { LLMock } from '@copilotkit/aimock'
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { uinrFromInr } from '../../../src/platform/values/money.ts'
import { startApp, type TestApp, until } from '../../harness/app.ts'
import { type BatchUpstream, startBatchUpstream } from '../../harness/batch-upstream.ts'
import { batchFile, batchKeys, chatLine, jsonl, linesOf, worthOf } from '../../harness/batch-world.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../harness/webhook-receiver.ts'

const events = statement<
  [requestId: string],
  {
    kind: string
    outcome: string
    value: bigint
    cost: bigint
    prompt: bigint
    completion: bigint
    runId: string | null
    agentId: number | null
    estimated: boolean
  }
>(
  'test.batch_events',
  `select kind as "kind", outcome as "outcome", value_uinr as "value", cost_uinr as "cost", prompt_tokens as "prompt", completion_tokens as "completion",
     run_id as "runId", agent_id as "agentId", estimated as "estimated"
   from usage_events where kind = 'batch' and request_id = (select request_id from batches where id = $1::text)`,
)
const holds = statement<[owner: string], { amount: bigint; scope: string }>(
  'test.batch_holds',
  `select h.amount as "amount", c.scope as "scope" from lasting_holds h join counters c on c.id = h.counter_id where h.owner = $1::text order by c.scope`,
)
const age = statement<[id: string]>(
  'test.batch_age',
  `update batches set admitted_at = admitted_at - interval '9 days', expires_at = expires_at - interval '9 days', next_poll_at = now() where id = $1::text`,
)

/** Keys of a payment provider that is never called here. They switch billing on. */
const billingOn = { RAZORPAY_KEY_ID: 'rzp_test_key', RAZORPAY_KEY_SECRET: 'rzp-test-secret' }

describe('batches', () => {
  let app: TestApp
  let upstream: BatchUpstream
  let openai: OpenAI
  let anthropic: Anthropic
  let mock: LLMock
  let receiver: WebhookReceiver
  beforeAll(async () => {
    mock = new LLMock({ port: 0 })
    ;[upstream, receiver] = await Promise.all([startBatchUpstream(), startWebhookReceiver(), mock.start()])
    app = await startApp({
      env: { BATCH_POLL_MS: '50', WEBHOOK_POLL_MS: '50', OUTBOUND_ALLOW: receiver.hostPort, ...billingOn, ...batchKeys },
      operatorFile: () => batchFile(upstream.url, `${mock.url}/v1`),
    })
    await credit(app.orgId, 1000)
    await app.call('PUT', '/me/org/data-retention', { days: 7 }, { cookie: await app.signIn() })
    openai = new OpenAI({ baseURL: `${app.baseUrl}/v1`, apiKey: app.key, maxRetries: 0 })
    anthropic = new Anthropic({ baseURL: app.baseUrl, apiKey: app.key, maxRetries: 0 })
  })
  beforeEach(() => {
    upstream.totals.input = upstream.totals.output = upstream.totals.answers = 0
  })
  afterAll(async () => {
    await app?.stop()
    await Promise.all([upstream?.close(), receiver?.close(), mock?.stop()])
  })
  let grants = 0
  const credit = (orgId: number, inr: number) =>
    app.gateway.app.operator.credits.give({ orgId, reason: 'grant', amountUinr: uinrFromInr(inr), ref: `grant ${++grants}` })
  const balance = async (orgId = app.orgId) => (await app.gateway.app.operator.credits.show(orgId, 1)).balanceUinr

  /** Makes an organisation that may have batches, with ₹1000. */
  const newOrg = async (name: string) => {
    const org = await app.otherOrg(name)
    await credit(org.orgId, 1000)
    await app.call('PUT', '/me/org/data-retention', { days: 7 }, { cookie: await app.signIn(org.userId, org.orgId) })
    return { ...org, client: new OpenAI({ baseURL: `${app.baseUrl}/v1`, apiKey: org.key, maxRetries: 0 }) }
  }

  const upload = (lines: readonly object[] | string, client = openai) =>
    client.files.create({ file: new File([typeof lines === 'string' ? lines : jsonl(lines)], 'secret name.jsonl'), purpose: 'batch' })
  const begin = async (lines: readonly object[], client = openai) =>
    client.batches.create({ input_file_id: (await upload(lines, client)).id, endpoint: '/v1/chat/completions', completion_window: '24h' })
  const ended = async (id: string, client = openai): Promise<OpenAI.Batch> => {
    let batch = await client.batches.retrieve(id)
    await until(async () => {
      batch = await client.batches.retrieve(id)
      return ['completed', 'failed', 'cancelled', 'expired'].includes(batch.status)
    })
    return batch
  }
  const heldOf = async (id: string): Promise<Record<string, bigint>> =>
    Object.fromEntries((await app.db.many(holds, id)).map(({ scope, amount }) => [scope, amount]))

  test('CLOUD-09 a batch of the OpenAI SDK is held, goes through, and costs what its answers cost at batch prices, once', async () => {
    await app.setBudget('org', app.orgId, 100)
    const batch = await begin(linesOf(3))
    expect(batch).toMatchObject({ object: 'batch', status: 'in_progress', output_file_id: null, request_counts: { total: 3, completed: 0, failed: 0 } })
    expect(batch.id).toMatch(/^batch_/)
    expect(batch.input_file_id).toMatch(/^file-/)
    const held = (await heldOf(batch.id))['org'] ?? 0n
    // Each line holds 20 output tokens at ₹20 and its prompt at ₹5 for a million.
    expect(held).toBeGreaterThan(3n * 20n * 20n)
    expect(held).toBeLessThan(3n * 20n * 20n + 3n * 100n * 5n)
    const [remote] = [...upstream.batches.values()].slice(-1)
    expect(remote?.lines.map(({ custom_id, body }) => [custom_id, body['model']])).toEqual(['line-0', 'line-1', 'line-2'].map(id => [id, 'gpt-batch-upstream']))
    expect(upstream.requests.every(({ credential }) => credential === 'Bearer oai-platform-secret')).toBe(true)
    upstream.finish()
    const done = await ended(batch.id)
    expect(done).toMatchObject({ status: 'completed', request_counts: { total: 3, completed: 3, failed: 0 } })
    const results = await (await openai.files.content(done.output_file_id ?? '')).text()
    expect(
      results
        .trim()
        .split('\n')
        .map(line => JSON.parse(line).custom_id),
    ).toEqual(['line-0', 'line-1', 'line-2'])
    const value = worthOf('gpt-batch', upstream.totals)
    expect(await app.db.many(events, batch.id)).toMatchObject([
      { kind: 'batch', outcome: 'ok', value, cost: value, prompt: BigInt(upstream.totals.input), completion: 60n, estimated: false },
    ])
    expect(await heldOf(batch.id)).toEqual({})
    const looks = upstream.requests.length
    for (let i = 0; i < 5; i++) await openai.batches.retrieve(batch.id)
    expect(upstream.requests.length).toBe(looks)
    await app.setBudget('org', app.orgId, null)
  })

  test('CLOUD-09 a batch of the Anthropic SDK goes through while it arrives, has the prices of the catalog, and can be deleted', async () => {
    const requests = ['a', 'b'].map(custom_id => ({
      custom_id,
      params: { model: 'claude-batch', max_tokens: 30, messages: [{ role: 'user' as const, content: 'Hello' }] },
    }))
    const batch = await anthropic.messages.batches.create({ requests })
    expect(batch).toMatchObject({ type: 'message_batch', processing_status: 'in_progress', results_url: null })
    const [remote] = [...upstream.batches.values()].slice(-1)
    expect(remote?.lines.map(({ body }) => body['model'])).toEqual(['claude-batch-upstream', 'claude-batch-upstream'])
    expect(upstream.requests.at(-1)?.credential).toBe('ant-platform-secret')
    upstream.finish(1)
    await until(async () => (await anthropic.messages.batches.retrieve(batch.id)).processing_status === 'ended')
    const results: string[] = []
    for await (const line of await anthropic.messages.batches.results(batch.id)) results.push(`${line.custom_id} ${line.result.type}`)
    expect(results).toEqual(['a succeeded', 'b canceled'])
    expect(await app.db.many(events, batch.id)).toMatchObject([{ value: worthOf('claude-batch', upstream.totals), completion: 30n }])
    expect((await anthropic.messages.batches.list()).data.map(({ id }) => id)).toContain(batch.id)
    await anthropic.messages.batches.delete(batch.id)
    await expect(anthropic.messages.batches.retrieve(batch.id)).rejects.toMatchObject({ status: 404 })
  })

  test.for<[string, readonly object[] | string, RegExp]>([
    ['a second model', [chatLine('a'), chatLine('b', { model: 'no-such-model' })], /Line 2: .*one model/],
    ['a model that is not known', [chatLine('a', { model: 'no-such-model' })], /Line 1: /],
    ['a provider without batches', [chatLine('a', { model: 'plain-model' })], /Line 1: .*batches/],
    ['a custom id that occurs twice', [chatLine('a'), chatLine('a')], /Line 2: .*custom_id/],
    ['a router field', [chatLine('a', { provider: 'oai' })], /Line 1: "provider"/],
    ['a stream', [chatLine('a', { stream: true })], /Line 1: .*stream/],
    ['a line that is no JSON', `${JSON.stringify(chatLine('a'))}\n{"custom_id"`, /Line 2: /],
    ['a line that is too long', [chatLine('a', { messages: [{ role: 'user', content: 'x'.repeat(1_100_000) }] })], /Line 1 is longer/],
    ['no line', '\n\n', /no line/],
  ])('a file with %s is refused with the number of its line, and no provider has it', async ([, lines, message]) => {
    const files = upstream.files.size
    await expect(upload(lines)).rejects.toMatchObject({ message: expect.stringMatching(message) })
    expect(upstream.files.size).toBe(files)
  })

  test('a batch beyond a budget is refused as a whole, and the provider never begins it', async () => {
    const { key, keyId } = await app.newKey()
    await app.setBudget('key', keyId, 0.001)
    const client = new OpenAI({ baseURL: `${app.baseUrl}/v1`, apiKey: key, maxRetries: 0 })
    const begun = upstream.batches.size
    await expect(begin(linesOf(5), client)).rejects.toMatchObject({ status: 429, code: 'budget_exceeded' })
    const own = new Anthropic({ baseURL: app.baseUrl, apiKey: key, maxRetries: 0 })
    const requests = [{ custom_id: 'a', params: { model: 'claude-batch', max_tokens: 900, messages: [{ role: 'user' as const, content: 'Hello' }] } }]
    await expect(own.messages.batches.create({ requests })).rejects.toMatchObject({ status: 429 })
    expect(upstream.batches.size).toBe(begun)
    await app.setBudget('key', keyId, 10)
    const small = await begin(linesOf(5), client)
    upstream.finish()
    await ended(small.id, client)
  })

  test('CLOUD-09 another organisation and another agent get 404, and a revoke cancels at the provider and charges what was done', async () => {
    const other = await app.otherOrg('Elsewhere')
    const agent = await app.newAgent('batcher')
    const sibling = await app.newAgent('sibling')
    const as = (apiKey: string) => new OpenAI({ baseURL: `${app.baseUrl}/v1`, apiKey, maxRetries: 0 })
    const batch = await begin(linesOf(2), as(agent.token))
    for (const client of [as(other.key), as(sibling.token)]) {
      await expect(client.batches.retrieve(batch.id)).rejects.toMatchObject({ status: 404 })
      await expect(client.batches.cancel(batch.id)).rejects.toMatchObject({ status: 404 })
      await expect(client.files.content(batch.input_file_id)).rejects.toMatchObject({ status: 404 })
      await expect(client.files.delete(batch.input_file_id)).rejects.toMatchObject({ status: 404 })
      await expect(
        client.batches.create({ input_file_id: batch.input_file_id, endpoint: '/v1/chat/completions', completion_window: '24h' }),
      ).rejects.toMatchObject({ status: 404 })
      expect((await client.batches.list()).data).toEqual([])
    }
    expect((await as(agent.token).batches.list()).data.map(({ id }) => id)).toEqual([batch.id])
    expect((await openai.batches.list()).data.map(({ id }) => id)).toContain(batch.id)
    expect((await app.call('POST', `/v1/me/agents/${agent.id}/revoke`)).status).toBe(200)
    const done = await ended(batch.id)
    // The provider had finished one request.
    expect(done).toMatchObject({ status: 'cancelled', request_counts: { completed: 1, failed: 1 } })
    expect(upstream.requests.filter(({ path }) => path.endsWith('/cancel'))).toHaveLength(1)
    expect(await app.db.many(events, batch.id)).toMatchObject([{ value: worthOf('gpt-batch', upstream.totals), agentId: agent.id }])
  })

  test('a batch that its caller cancels is charged for what was done, and belongs to its run', async () => {
    const file = await upload(linesOf(4))
    const batch = await openai.batches.create(
      { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' },
      { headers: { 'x-br-run-id': 'nightly' } },
    )
    await expect(openai.files.delete(file.id)).rejects.toMatchObject({ status: 400 })
    expect((await openai.batches.cancel(batch.id)).status).toBe('cancelling')
    expect(await ended(batch.id)).toMatchObject({ status: 'cancelled' })
    expect(await app.db.many(events, batch.id)).toMatchObject([{ value: worthOf('gpt-batch', upstream.totals), runId: 'nightly', completion: 20n }])
    expect(await openai.files.delete(file.id)).toMatchObject({ deleted: true })
    await expect(openai.files.retrieve(file.id)).rejects.toMatchObject({ status: 404 })
  })

  test('a batch whose results cannot be read delays no other, and costs what is known of it when its time is over', async () => {
    await app.setBudget('org', app.orgId, 100)
    const broken = await begin(linesOf(2))
    upstream.breakResults(true)
    upstream.finish()
    upstream.breakResults(false)
    await until(() => app.logLines.some(line => line.includes('batch_poll_failed')))
    const held = (await heldOf(broken.id))['org'] ?? 0n
    const second = await begin(linesOf(1))
    upstream.finish()
    expect(await ended(second.id)).toMatchObject({ status: 'completed' })
    expect(held).toBeGreaterThan(0n)
    expect(await app.db.many(events, broken.id)).toEqual([])
    await app.db.exec(age, broken.id)
    await ended(broken.id)
    expect(await app.db.many(events, broken.id)).toMatchObject([{ value: held, estimated: true }])
    // The caller may still read what Brigade could not.
    expect((await openai.batches.retrieve(broken.id)).output_file_id).toMatch(/^file-/)
    await app.setBudget('org', app.orgId, null)
  })

  test('a provider that refuses a batch takes nothing, and one that answers nothing is asked again for the same batch', async () => {
    await app.setBudget('org', app.orgId, 100)
    upstream.failNext('POST /batches', 400)
    await expect(begin(linesOf(1))).rejects.toMatchObject({ status: 400 })
    const begun = upstream.batches.size
    upstream.failNext('POST /batches', 503, true)
    const unknown = await begin(linesOf(1))
    expect(unknown.status).toBe('validating')
    expect(upstream.batches.size).toBe(begun + 1)
    await until(async () => (await openai.batches.retrieve(unknown.id)).status === 'in_progress')
    upstream.finish()
    await ended(unknown.id)
    expect(await app.db.many(events, unknown.id)).toHaveLength(1)
    await app.setBudget('org', app.orgId, null)
  })

  test('a batch that its provider loses ends after its time, and its hold goes back', async () => {
    await app.setBudget('org', app.orgId, 100)
    const lost = await begin(linesOf(1))
    upstream.batches.clear()
    await app.db.exec(age, lost.id)
    expect(await ended(lost.id)).toMatchObject({ status: 'failed' })
    expect(await app.db.many(events, lost.id)).toMatchObject([{ outcome: 'failed', value: 0n }])
    expect(await heldOf(lost.id)).toEqual({})
    await app.setBudget('org', app.orgId, null)
  })

  test('nothing that a request of a batch says is in the database or in the log', async () => {
    const batch = await begin([chatLine('a', { messages: [{ role: 'user', content: 'the-secret-words' }], user: 'somebody-secret' })])
    upstream.finish()
    await ended(batch.id)
    const kept = (await app.dump()) + app.logLines.join('\n')
    for (const said of ['the-secret-words', 'somebody-secret', 'secret name', 'line-0']) expect(kept).not.toContain(said)
  })

  test('the prepaid balance holds a batch and pays what it came to, and an empty balance refuses it', async () => {
    const before = await balance()
    const batch = await begin(linesOf(3))
    expect((await heldOf(batch.id))['org']).toBeGreaterThan(0n)
    expect(await balance()).toBe(before)
    upstream.finish()
    await ended(batch.id)
    expect(await balance()).toBe(before - worthOf('gpt-batch', upstream.totals))
    const poor = await app.otherOrg('Poor')
    await credit(poor.orgId, 0.0001)
    await app.call('PUT', '/me/org/data-retention', { days: 7 }, { cookie: await app.signIn(poor.userId, poor.orgId) })
    const client = new OpenAI({ baseURL: `${app.baseUrl}/v1`, apiKey: poor.key, maxRetries: 0 })
    await expect(begin(linesOf(3), client)).rejects.toMatchObject({ status: 402 })
  })

  test('a batch on an own key runs on that key, counts in budgets and costs nothing, and its end is an event', async () => {
    const cookie = await app.signIn()
    expect((await app.call('PUT', '/me/byok/oai', { key: 'own-key-0123456789', always_use: true }, { cookie })).status).toBe(200)
    expect(
      (await app.call('POST', '/me/webhooks', { url: `${receiver.url}/batches`, event_types: ['batch.completed', 'batch.failed'] }, { cookie })).status,
    ).toBe(201)
    const before = await balance()
    const from = upstream.requests.length
    const batch = await begin(linesOf(2))
    upstream.finish()
    await ended(batch.id)
    expect(new Set(upstream.requests.slice(from).map(({ credential }) => credential))).toEqual(new Set(['Bearer own-key-0123456789']))
    expect(await app.db.many(events, batch.id)).toMatchObject([{ value: worthOf('gpt-batch', upstream.totals), cost: 0n }])
    expect(await balance()).toBe(before)
    await app.call('DELETE', '/me/byok/oai', undefined, { cookie })
    const failed = await begin(linesOf(1))
    upstream.finish(0)
    await ended(failed.id)
    await until(() => receiver.received.length >= 2)
    expect(receiver.received.map(({ event, json: { data } }) => [event, data.batch_id, data.completed, data.failed])).toEqual([
      ['batch.completed', batch.id, 2, 0],
      ['batch.failed', failed.id, 0, 1],
    ])
  })

  test('an independent simulation of the batch API of OpenAI understands what Brigade sends', async () => {
    const file = await upload(['x', 'y'].map(id => chatLine(id, { model: 'second-batch' })))
    const batch = await openai.batches.create({ input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' })
    const done = await ended(batch.id)
    expect(done.request_counts).toEqual({ total: 2, completed: 2, failed: 0 })
    const results = (await (await openai.files.content(done.output_file_id ?? '')).text()).trim().split('\n')
    expect(results.map(line => JSON.parse(line)).map(({ custom_id, response }) => [custom_id, response.body.choices[0].message.content])).toEqual([
      ['x', 'Mock batch completion'],
      ['y', 'Mock batch completion'],
    ])
    expect(await app.db.many(events, batch.id)).toHaveLength(1)
  })

  test('a batch with pictures holds the most that its provider may count for them', async () => {
    await app.setBudget('org', app.orgId, 100)
    const content = [{ type: 'image_url', image_url: { url: 'https://pictures.example/large.png' } }]
    const batch = await begin([chatLine('a', { messages: [{ role: 'user', content }] })])
    // An open model may count 16,384 tokens for a picture, at ₹5 for a million.
    expect((await heldOf(batch.id))['org']).toBeGreaterThan(16_384n * 5n)
    upstream.finish()
    await ended(batch.id)
    await app.setBudget('org', app.orgId, null)
  })

  test('a batch leaves the cap of concurrent calls of its organisation as it is, and obeys a daily limit that was lowered', async () => {
    const { orgId, key, client } = await newOrg('Capped')
    await app.gateway.app.orgLimits.set(orgId, { running: 1 }, false)
    const batch = await begin(linesOf(1), client)
    upstream.holdCalls()
    const call = () => app.call('POST', '/v1/chat/completions', { model: 'plain-model', messages: [{ role: 'user', content: 'hello' }] }, { token: key })
    const from = upstream.requests.length
    const first = call()
    await until(() => upstream.requests.length > from)
    const second = await call()
    expect([second.status, second.json.error.code]).toEqual([429, 'concurrency_limit_reached'])
    upstream.release()
    await first
    const cookie = await app.signIn()
    const daily = (await app.call('POST', '/me/keys', { name: 'daily', daily_limit: 100 }, { cookie })).json
    const limited = new OpenAI({ baseURL: `${app.baseUrl}/v1`, apiKey: daily.key, maxRetries: 0 })
    await begin(linesOf(1), limited)
    expect((await app.call('PATCH', `/me/keys/${daily.id}`, { daily_limit: 3 }, { cookie })).status).toBe(200)
    await expect(begin(linesOf(3), limited)).rejects.toMatchObject({ status: 429, code: 'daily_limit_reached' })
    upstream.finish()
    await ended(batch.id, client)
  })

  test('an organisation without a data-retention window has no batches', async () => {
    const other = await app.otherOrg('Zero')
    const client = new OpenAI({ baseURL: `${app.baseUrl}/v1`, apiKey: other.key, maxRetries: 0 })
    await expect(upload(linesOf(1), client)).rejects.toMatchObject({ status: 403, code: 'model_gated' })
    // A window that is closed ends the files.
    const { client: closed, userId, orgId } = await newOrg('Closed')
    const file = await upload(linesOf(1), closed)
    await app.call('PUT', '/me/org/data-retention', { days: 0 }, { cookie: await app.signIn(userId, orgId) })
    const begun = closed.batches.create({ input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' })
    await expect(begun).rejects.toMatchObject({ status: 404, code: 'not_found' })
  })
})
