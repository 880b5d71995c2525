import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../../harness/app.ts'

// A member makes a key, makes one call with it, and an admin revokes it, many times. The rows are inserted because that takes an hour over HTTP.
const addUsedKeys = statement<[orgId: number, userId: number, count: number, day: string]>(
  'test.many_keys_add_used_keys',
  `with made as (
     insert into api_keys (org_id, user_id, name, hash, prefix, created_at, revoked_at)
     select $1::int, $2::int, rpad('n' || i, 100, '漢'), sha256(convert_to('many ' || $1::int || ' ' || i, 'UTF8')), 'br-' || i, now(), now()
     from generate_series(1, $3::int) i returning id)
   insert into usage_days_by_key
     (org_id, day, key_id, requests, errors, prompt_tokens, completion_tokens, cached_tokens, cache_write_tokens, value_uinr, cost_uinr)
   select $1::int, $4::date, id, 2, 1, 3, 4, 0, 0, 1000000 + row_number() over (order by id), 1000000 from made`,
)
const newestKeys = statement<[orgId: number, count: number], { id: number }>(
  'test.many_keys_newest_keys',
  'select id from api_keys where org_id = $1::int order by id desc limit $2::int',
)

describe('the overview of an organisation with thousands of used keys', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp()
  })
  afterAll(() => app.stop())

  test('the overview lists the 1,000 keys with most value, and the rest is one sum, so the totals are those of all keys', async () => {
    const org = await app.otherOrg('Many Used Keys')
    const cookie = await app.signIn(org.userId, org.orgId)
    const read = async () => app.call('GET', '/me/usage', undefined, { cookie })
    const before = (await read()).json
    expect([before.keys.length, before.other_keys]).toEqual([1, null])
    await app.db.exec(addUsedKeys, org.orgId, org.userId, 4_000, before.to)
    const { text, json } = await read()
    expect(Buffer.byteLength(text)).toBeLessThan(1024 * 1024)
    const newest = (await app.db.many(newestKeys, org.orgId, 1_000)).map(({ id }) => id)
    expect(json.keys.map((row: { key_id: number }) => row.key_id)).toEqual(newest)
    const figures = { requests: 6_000, errors: 3_000, prompt_tokens: 9_000, completion_tokens: 12_000, tokens: 21_000, cost_inr: 3_000 }
    expect(json.other_keys).toMatchObject({ count: 3_000, today: figures, last_30_days: figures })
    expect(json.totals.last_30_days).toMatchObject({ requests: 8_000, errors: 4_000, tokens: 28_000, cost_inr: 4_000, value_inr: 4_008.002 })
    expect(json.totals.today).toEqual(json.totals.last_30_days)
  })
})
