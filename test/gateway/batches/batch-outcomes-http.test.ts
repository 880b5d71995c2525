import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/platform/clock.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { type BatchUpstream, startBatchUpstream } from '../../harness/batch-upstream.ts'
import { batchFile, batchKeys, jsonl, linesOf, worthOf } from '../../harness/batch-world.ts'
import { until } from '../../harness/until.ts'

interface Row {
  readonly settled: boolean
  readonly upstreamId: string | null
  readonly cancelSent: boolean
  readonly value: bigint | null
  readonly held: bigint
}
const rowOf = statement<[id: string], Row>(
  'test.outcome_row',
  `select settled_at is not null as "settled", upstream_id as "upstreamId", cancel_sent_at is not null as "cancelSent", value_uinr as "value",
     (select coalesce(sum(amount), 0)::bigint from lasting_holds h where h.owner = b.id) as "held"
   from batches b where id = $1::text`,
)
/** Moves all times of a batch into the past. */
const age = statement<[id: string, hours: number]>(
  'test.outcome_age',
  `update batches set admitted_at = admitted_at - make_interval(hours => $2::int), expires_at = expires_at - make_interval(hours => $2::int), next_poll_at = now(),
     cancel_sent_at = cancel_sent_at - make_interval(hours => $2::int)
   where id = $1::text`,
)
const holdOf = statement<[id: string], { amount: bigint }>('test.outcome_hold', 'select hold_uinr as "amount" from batches where id = $1::text')
const openBatches = statement<[], { id: string }>('test.outcome_open', 'select id as "id" from batches where settled_at is null')
/** Makes the database refuse ids of providers. */
const refuseIds = [
  statement<[]>('test.outcome_fault', `create function refuse_ids() returns trigger language plpgsql as $$ begin raise exception 'scripted'; end $$`),
  statement<[]>(
    'test.outcome_trigger',
    'create trigger refuse_ids before update on batches for each row when (old.upstream_id is null and new.upstream_id is not null) execute function refuse_ids()',
  ),
]
const takeIds = statement<[]>('test.outcome_heal', 'drop trigger refuse_ids on batches')

describe('the outcome of a batch', () => {
  let app: TestApp
  let upstream: BatchUpstream
  let openai: OpenAI
  let anthropic: Anthropic
  beforeAll(async () => {
    upstream = await startBatchUpstream()
    app = await startApp({ env: { BATCH_POLL_MS: '50', ...batchKeys }, operatorFile: () => batchFile(upstream.url) })
    await app.call('PUT', '/me/org/data-retention', { days: 7 }, { cookie: await app.signIn() })
    await app.setBudget('org', app.orgId, 1000)
    openai = new OpenAI({ baseURL: `${app.baseUrl}/v1`, apiKey: app.key, maxRetries: 0 })
    anthropic = new Anthropic({ baseURL: app.baseUrl, apiKey: app.key, maxRetries: 0 })
  })
  beforeEach(() => {
    upstream.totals.input = upstream.totals.output = upstream.totals.answers = 0
  })
  afterEach(async () => {
    upstream.failAlways('', 0)
    upstream.release()
    upstream.finish()
    await until(async () => (await app.db.many(openBatches)).length === 0, 'every batch is settled')
  })
  afterAll(async () => {
    await app?.stop()
    await upstream?.close()
  })

  const begin = async (count: number, client = openai, headers: Record<string, string> = {}) => {
    const file = await client.files.create({ file: new File([jsonl(linesOf(count))], 'batch.jsonl'), purpose: 'batch' })
    return client.batches.create({ input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' }, { headers })
  }
  const beginMessages = (count: number) =>
    anthropic.messages.batches.create({
      requests: Array.from({ length: count }, (_, n) => ({
        custom_id: `m-${n}`,
        params: { model: 'claude-batch', max_tokens: 30, messages: [{ role: 'user' as const, content: 'Hello' }] },
      })),
    })
  const settled = (id: string) => until(async () => (await app.db.one(rowOf, id)).settled, `${id} is settled`)
  const asked = (path: string) => upstream.requests.filter(request => `${request.method} ${request.path}`.includes(path)).length

  test('a cancel that the provider refuses at its rate limit is sent again until the provider takes it', async () => {
    const batch = await begin(2)
    upstream.failNext('POST /batches', 429)
    upstream.failNext('POST /batches', 403)
    await openai.batches.cancel(batch.id)
    await settled(batch.id)
    expect(asked('/cancel')).toBe(3)
    expect((await app.db.one(rowOf, batch.id)).value).toBe(worthOf('gpt-batch', upstream.totals))
  })

  test('a failure after the time of a batch settles nothing: it costs what its results say as soon as they can be read', async () => {
    const batch = await begin(3)
    await until(async () => (await openai.batches.retrieve(batch.id)).status === 'in_progress', 'the batch runs')
    upstream.failAlways('GET /batches/', 503)
    await app.db.exec(age, batch.id, 60)
    const looks = asked('GET /batches/')
    await until(() => asked('GET /batches/') >= looks + 2, 'the provider is asked again')
    upstream.finish()
    upstream.failAlways('/content', 503)
    await until(() => asked('/content') >= 2, 'the results are asked for again')
    expect((await app.db.one(rowOf, batch.id)).settled).toBe(false)
    upstream.failAlways('', 0)
    await settled(batch.id)
    const done = await openai.batches.retrieve(batch.id)
    expect((await app.db.one(rowOf, batch.id)).value).toBe(worthOf('gpt-batch', upstream.totals))
    expect(done.output_file_id).toMatch(/^file-/)
  })

  test('a batch that its provider works on beyond its time is cancelled there before it is charged', async () => {
    const batch = await begin(3)
    await app.db.exec(age, batch.id, 30)
    await settled(batch.id)
    const [remote] = [...upstream.batches.values()].slice(-1)
    expect(remote?.status).toBe('cancelled')
    expect(upstream.totals.answers).toBe(1)
    expect((await app.db.one(rowOf, batch.id)).value).toBe(worthOf('gpt-batch', upstream.totals))
  })

  test('a batch of messages that an overloaded provider refuses holds nothing, and its caller gets the refusal', async () => {
    upstream.failNext('POST /messages/batches', 529)
    await expect(beginMessages(2)).rejects.toMatchObject({ status: 502 })
    expect(await app.db.many(openBatches)).toEqual([])
  })

  test('a batch of messages whose reply is lost is found by its time and size, and one that its provider never got ends soon', async () => {
    upstream.failNext('POST /messages/batches', 500, true)
    const made = await beginMessages(3)
    await until(async () => (await app.db.one(rowOf, made.id)).upstreamId !== null, 'the batch is found')
    upstream.finish()
    await settled(made.id)
    expect((await app.db.one(rowOf, made.id)).value).toBe(worthOf('claude-batch', upstream.totals))
    upstream.failNext('POST /messages/batches', 500)
    const lost = await beginMessages(3)
    expect((await app.db.one(rowOf, lost.id)).settled).toBe(false)
    await app.db.exec(age, lost.id, 1)
    await settled(lost.id)
    expect(await app.db.one(rowOf, lost.id)).toMatchObject({ value: 0n, held: 0n, upstreamId: null })
  })

  test('two lost batches of messages that may be each other are given to nobody', async () => {
    for (let n = 0; n < 2; n++) upstream.failNext('POST /messages/batches', 500, true)
    const [first, second] = await Promise.all([beginMessages(5), beginMessages(5)])
    const lists = asked('GET /messages/batches')
    await until(() => asked('GET /messages/batches') >= lists + 4, 'the provider is asked for both')
    for (const { id } of [first, second]) expect(await app.db.one(rowOf, id)).toMatchObject({ upstreamId: null, settled: false })
    for (const { id } of [first, second]) await app.db.exec(age, id, 30)
    for (const { id } of [first, second]) await settled(id)
  })

  test('a batch whose reply is lost is found behind later ones of the account', async () => {
    upstream.pageSize = 1
    upstream.failNext('POST /batches', 503, true)
    upstream.failAlways('GET /batches', 500)
    const unknown = await begin(1)
    const later = [await begin(1), await begin(1)]
    upstream.failAlways('', 0)
    await until(async () => (await app.db.one(rowOf, unknown.id)).upstreamId !== null, 'the batch is found')
    upstream.pageSize = 100
    upstream.finish()
    for (const { id } of [unknown, ...later]) await settled(id)
  })

  test('a process writes the id of a batch that its provider has taken as soon as the database takes it', async () => {
    for (const fault of refuseIds) await app.db.exec(fault)
    // The list of the provider must not be the one that finds it.
    upstream.failAlways('GET /messages/batches', 500)
    const batch = await beginMessages(4)
    expect((await app.db.one(rowOf, batch.id)).upstreamId).toBeNull()
    await app.db.exec(takeIds)
    await until(async () => (await app.db.one(rowOf, batch.id)).upstreamId !== null, 'the id is written')
    upstream.failAlways('', 0)
    upstream.finish()
    await settled(batch.id)
    expect((await app.db.one(rowOf, batch.id)).value).toBe(worthOf('claude-batch', upstream.totals))
  })

  test('a batch that its provider refuses while it is being held leaves no hold', async () => {
    const { lasting } = app.gateway.app.limits
    const hold = lasting.hold.bind(lasting)
    lasting.hold = async (...args) => {
      const charge = await hold(...args)
      await until(() => upstream.early.refused === 1, 'the provider has refused')
      await systemClock.sleep(100)
      return charge
    }
    upstream.refuseEarly(413)
    await expect(beginMessages(2)).rejects.toMatchObject({ status: 400 })
    lasting.hold = hold
    expect(await app.db.many(openBatches)).toEqual([])
    expect(upstream.early.refused).toBe(1)
  })

  test('a batch that its provider refuses gives its requests of the day back', async () => {
    const { key } = await app.newKey({ daily: 5 })
    const client = new OpenAI({ baseURL: `${app.baseUrl}/v1`, apiKey: key, maxRetries: 0 })
    upstream.failNext('POST /batches', 429)
    await expect(begin(4, client)).rejects.toMatchObject({ status: 502 })
    await begin(4, client)
    await expect(begin(2, client)).rejects.toMatchObject({ status: 429, code: 'daily_limit_reached' })
  })

  test('the end of a run cancels its batches at their provider', async () => {
    const { key, keyId } = await app.newKey()
    const client = new OpenAI({ baseURL: `${app.baseUrl}/v1`, apiKey: key, maxRetries: 0 })
    const inRun = await begin(3, client, { 'x-br-run-id': 'over' })
    const beside = await begin(1, client, { 'x-br-run-id': 'goes-on' })
    expect((await app.call('POST', `/v1/me/runs/over/end?key_id=${keyId}`)).status).toBe(200)
    await settled(inRun.id)
    expect((await app.db.one(rowOf, inRun.id)).value).toBe(worthOf('gpt-batch', upstream.totals))
    expect((await openai.batches.retrieve(inRun.id)).status).toBe('cancelled')
    expect((await app.db.one(rowOf, beside.id)).settled).toBe(false)
  })

  test('long results of one organisation delay neither the charge of another one nor a cancel', async () => {
    const other = await app.otherOrg('Patient')
    await app.call('PUT', '/me/org/data-retention', { days: 7 }, { cookie: await app.signIn(other.userId, other.orgId) })
    const theirs = new OpenAI({ baseURL: `${app.baseUrl}/v1`, apiKey: other.key, maxRetries: 0 })
    const long = [await begin(2), await begin(2), await begin(2), await begin(2), await begin(2)]
    upstream.holdResults('line-1')
    upstream.finish()
    const reads = asked('/content')
    await until(() => asked('/content') >= reads + 2, 'two long results are read')
    const short = await begin(1, theirs)
    upstream.finish()
    await settled(short.id)
    const cancelled = await begin(3)
    await openai.batches.cancel(cancelled.id)
    await until(async () => (await app.db.one(rowOf, cancelled.id)).cancelSent, 'the cancel is sent')
    expect(asked('/content')).toBe(reads + 3)
    upstream.release()
    for (const { id } of [...long, cancelled]) await settled(id)
  })

  test('a batch whose own key was deleted counts in budgets with everything that is not known to have failed', async () => {
    const cookie = await app.signIn()
    expect((await app.call('PUT', '/me/byok/oai', { key: 'own-key-0123456789', always_use: true }, { cookie })).status).toBe(200)
    const batch = await begin(3)
    await until(async () => (await app.db.one(rowOf, batch.id)).upstreamId !== null, 'the batch runs')
    const ofBudgets = await app.db.one(holdOf, batch.id)
    await app.call('DELETE', '/me/byok/oai', undefined, { cookie })
    await app.db.exec(age, batch.id, 30)
    await settled(batch.id)
    expect(ofBudgets.amount).toBeGreaterThan(0n)
    expect((await app.db.one(rowOf, batch.id)).value).toBe(ofBudgets.amount)
  })
})
