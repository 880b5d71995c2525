import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkBatchInvariants } from '../../../src/gateway/batches/create-batches.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { type BatchUpstream, startBatchUpstream } from '../../harness/batch-upstream.ts'
import { batchFile, batchKeys, jsonl, linesOf, worthOf } from '../../harness/batch-world.ts'
import { onPostgres } from '../../harness/database.ts'
import { type Fleet, startFleet } from '../../harness/fleet.ts'
import { until } from '../../harness/until.ts'

const keepContent = statement<[orgId: number]>('test.batch_keep_content', 'update orgs set retention_days = 7 where id = $1::int')
const heldOf = statement<[owner: string], { amount: bigint }>('test.batch_held', 'select amount as "amount" from lasting_holds where owner = $1::text')
const charged = statement<[orgId: number], { value: bigint; completion: bigint }>(
  'test.batch_charged',
  `select value_uinr as "value", completion_tokens as "completion" from usage_events where org_id = $1::int and kind = 'batch'`,
)
const clients = 3
const polls = 200
const lines = 400

describe.runIf(onPostgres)('a batch over processes that die', () => {
  let fleet: Fleet
  let upstream: BatchUpstream
  beforeAll(async () => {
    upstream = await startBatchUpstream()
    const file = join(mkdtempSync(join(tmpdir(), 'brigade-config-')), 'brigade.config.json')
    writeFileSync(file, JSON.stringify(batchFile(upstream.url)))
    fleet = await startFleet({ CONFIG_FILE: file, BATCH_POLL_MS: '100', ...batchKeys })
    await fleet.db.exec(keepContent, fleet.orgId)
  })
  afterAll(async () => {
    upstream?.release()
    await fleet?.stop()
    await upstream?.close()
  })

  test('CLOUD-09 a batch that 3 clients poll 200 times, whose process is killed while it settles, has one usage row with the exact sum', async () => {
    const victim = await fleet.start()
    const { id: keyId, key } = await fleet.newKey({ budgetInr: 10 })
    const clientOf = ({ baseUrl }: { baseUrl: string }) => new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey: key, maxRetries: 0 })
    const first = clientOf(victim)
    const file = await first.files.create({ file: new File([jsonl(linesOf(lines))], 'batch.jsonl'), purpose: 'batch' })
    const batch = await first.batches.create({ input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' })
    const held = await fleet.db.many(heldOf, batch.id)
    expect(held).toHaveLength(1)
    upstream.holdResults()
    upstream.finish()
    const contents = () => upstream.requests.filter(({ path }) => path.endsWith('/content')).length
    await until(() => contents() === 1, 'the victim reads the results')
    const survivor = await fleet.start()
    const gets = upstream.requests.length
    const poll = async (client: OpenAI, times: number): Promise<void> => {
      for (let i = 0; i < times; i++) await client.batches.retrieve(batch.id)
    }
    await poll(first, 20)
    await victim.kill()
    // What the batch holds is still held, by nobody's lease.
    expect(await fleet.db.many(heldOf, batch.id)).toEqual(held)
    expect(await fleet.leasesOf('key', keyId)).toEqual([])
    expect(await fleet.violations()).toEqual([])
    upstream.release()
    const second = clientOf(survivor)
    await Promise.all(Array.from({ length: clients }, () => poll(second, (polls - 20) / clients)))
    await until(async () => (await second.batches.retrieve(batch.id)).status === 'completed', 'the survivor settles the batch')
    expect(await fleet.db.many(charged, fleet.orgId)).toEqual([{ value: worthOf('gpt-batch', upstream.totals), completion: BigInt(lines * 20) }])
    expect(upstream.totals.answers).toBe(lines)
    expect(await fleet.db.many(heldOf, batch.id)).toEqual([])
    // The survivor asked for the batch and its results once or a few times, and never for a client.
    expect(contents()).toBe(2)
    expect(upstream.requests.length - gets).toBeLessThan(polls / 4)
    expect([...(await fleet.violations()), ...(await checkBatchInvariants(fleet.db))]).toEqual([])
  })
})
