import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../../harness/app.ts'

const publicModels = statement<[], { model: string; requests: bigint }>(
  'test.public_models',
  'select model as "model", sum(requests)::bigint as "requests" from model_days group by model',
)
const fillDays = (table: string, column: string, value: string) =>
  statement<[orgId: number, count: number]>(
    `test.fill_${table}`,
    `insert into ${table} (org_id, day, model, provider, ${column}requests, errors, prompt_tokens, completion_tokens, cached_tokens, cache_write_tokens, value_uinr, cost_uinr)
     select $1::int, (now() at time zone 'Asia/Kolkata')::date, 'alpha/' || n, 'alpha', ${value}1, 1, 0, 0, 0, 0, 0, 0 from generate_series(1, $2::int) as n`,
  )
const fillUsage = fillDays('usage_days', 'residency, byok, ', "'global', true, ")
const fillCounts = statement<[orgId: number, count: number]>(
  'test.fill_counts',
  `insert into token_counts (org_id, day, model, provider, residency, requests)
   select $1::int, (now() at time zone 'Asia/Kolkata')::date, 'alpha/' || n, 'alpha', 'global', 1 from generate_series(1, $2::int) as n`,
)

describe('models that callers invent', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({})
  })
  afterAll(() => app.stop())

  test('calls of invented models share one model in the sums of all organisations', async () => {
    for (let at = 0; at < 3; at++) {
      const body = { model: `alpha/none-${at}`, upstream_key: 'sk-own', max_tokens: 1, messages: [{ role: 'user', content: 'x' }] }
      expect((await app.call('POST', '/v1/chat/completions', body)).status).toBe(200)
    }
    expect((await app.call('GET', '/v1/usage')).json.by_model).toHaveLength(3)
    expect(await app.db.many(publicModels)).toEqual([{ model: '(others)', requests: 3n }])
  })

  test('reports by model have a maximum of rows, and their rows still add up to the totals', async () => {
    const org = await app.otherOrg('Inventive')
    const cookie = await app.signIn(org.userId, org.orgId)
    await app.db.exec(fillUsage, org.orgId, 3_000)
    await app.db.exec(fillCounts, org.orgId, 3_000)
    const of = (rows: readonly { requests: number }[]) => [rows.length, rows.reduce((sum, { requests }) => sum + requests, 0)]
    const usage = (await app.call('GET', '/v1/usage', undefined, { token: org.key })).json
    expect([of(usage.by_model), usage.by_model.at(-1).model, usage.totals.requests]).toEqual([[1_001, 3_000], '(others)', 3_000])
    const activity = (await app.call('GET', '/me/activity', undefined, { cookie })).json
    expect([of(activity.days), activity.totals.requests, activity.model_providers.length, activity.models.length]).toEqual([[101, 3_000], 3_000, 101, 1_000])
    const dpia = (await app.call('GET', '/v1/org/dpia', undefined, { token: org.key })).json
    expect([dpia.total_requests, of(dpia.models), of(dpia.token_counts)]).toEqual([3_000, [1_001, 3_000], [1_001, 3_000]])
  })
})
