import OpenAI from 'openai'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
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
const openBatches = statement<[], { id: string }>('test.outcome_open', 'select id as "id" from batches where settled_at is null')

describe('the outcome of a batch', () => {
  let app: TestApp
  let upstream: BatchUpstream
  let openai: OpenAI
  beforeAll(async () => {
    upstream = await startBatchUpstream()
    app = await startApp({ env: { BATCH_POLL_MS: '50', ...batchKeys }, operatorFile: () => batchFile(upstream.url) })
    await app.call('PUT', '/me/org/data-retention', { days: 7 }, { cookie: await app.signIn() })
    await app.setBudget('org', app.orgId, 1000)
    openai = new OpenAI({ baseURL: `${app.baseUrl}/v1`, apiKey: app.key, maxRetries: 0 })
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
})
