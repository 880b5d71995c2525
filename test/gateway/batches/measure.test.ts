import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import OpenAI from 'openai'
import Anthropic from '@anthropic-ai/sdk'
import { expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startBatchUpstream } from '../../harness/batch-upstream.ts'
import { batchFile, batchKeys, chatLine, worthOf } from '../../harness/batch-world.ts'
import { startFleet } from '../../harness/fleet.ts'
import { until } from '../../harness/until.ts'

const keep = statement<[orgId: number]>('m.keep', 'update orgs set retention_days = 7 where id = $1::int')
const charged = statement<[], { value: bigint; completion: bigint }>('m.charged', `select value_uinr as "value", completion_tokens as "completion" from usage_events where kind = 'batch' order by id`)
test('measure', async () => {
  const upstream = await startBatchUpstream()
  const file = join(mkdtempSync(join(tmpdir(), 'brigade-config-')), 'brigade.config.json')
  writeFileSync(file, JSON.stringify(batchFile(upstream.url)))
  const fleet = await startFleet({ CONFIG_FILE: file, BATCH_POLL_MS: '500', ...batchKeys })
  await fleet.db.exec(keep, fleet.orgId)
  const gateway = await fleet.start()
  const rss = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${gateway.child.pid}/status`, 'utf8'))?.[1]) / 1024
  const cpu = () => { const f = readFileSync(`/proc/${gateway.child.pid}/stat`, 'utf8').split(' '); return (Number(f[13]) + Number(f[14])) / 100 }
  let most = 0
  const timer = setInterval(() => { most = Math.max(most, rss()) }, 50)
  const client = new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: fleet.key, maxRetries: 0, timeout: 300_000 })
  const before = rss()
  const pad = 'x'.repeat(Number(process.env['PAD'] ?? 3300))
  const parts: string[] = []
  for (let i = 0; i < 50_000; i++) parts.push(`${JSON.stringify(chatLine(`line-${i}`, { messages: [{ role: 'user', content: pad }] }))}\n`)
  const blob = new File(parts, 'a.jsonl')
  const c0 = cpu()
  const up = await client.files.create({ file: blob, purpose: 'batch' })
  const c1 = cpu()
  console.log('uploaded', up.bytes, 'before', before, 'most', most, 'growth', most - before, 'cpu s', c1 - c0)
  const b = await client.batches.create({ input_file_id: up.id, endpoint: '/v1/chat/completions', completion_window: '24h' })
  upstream.finish()
  await until(async () => (await client.batches.retrieve(b.id)).status === 'completed', 'ends')
  console.log('settled; most', most, 'growth', most - before, 'cpu s', cpu() - c1)
  expect(await fleet.db.many(charged)).toEqual([{ value: worthOf('gpt-batch', upstream.totals), completion: 1_000_000n }])
  clearInterval(timer)
  await fleet.stop(); await upstream.close()
}, 400_000)
