import { afterAll, beforeAll, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../../harness/app.ts'

/** Adds usage of 251 models on each of 200 days of 2025. */
const addUsage = statement<[orgId: number]>(
  'test.add_usage_days',
  `insert into usage_days (org_id, day, model, provider, residency, byok, requests, errors, prompt_tokens, completion_tokens, cached_tokens, cache_write_tokens, value_uinr, cost_uinr)
   select $1::int, date '2025-01-01' + d, 'model ' || m, 'own', 'global', true, 1, 0, 1, 1, 0, 0, 0, 0 from generate_series(0, 199) as d, generate_series(1, 251) as m`,
)
let app: TestApp

beforeAll(async () => {
  app = await startApp()
}, 60_000)
afterAll(() => app?.stop())

test('HARD-10 a CSV of usage has at most 50,000 lines, and the refusal of a longer one says what to do', async () => {
  const { orgId, key } = await app.otherOrg('Many Models')
  await app.db.exec(addUsage, orgId)
  const csv = (to: string) => app.call('GET', `/v1/usage.csv?from=2025-01-01&to=${to}`, undefined, { token: key })
  const refused = await csv('2025-12-31')
  expect([refused.status, refused.json.error.code, refused.json.error.message]).toEqual([
    400,
    'bad_request',
    'This span has more than 50000 lines of CSV. Ask for fewer days.',
  ])
  const whole = await csv('2025-07-18')
  expect([whole.status, whole.text.trimEnd().split('\r\n').length]).toEqual([200, 199 * 251 + 1])
}, 60_000)
