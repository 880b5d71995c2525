import { expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { startApp } from '../harness/app.ts'

const fill = statement<[orgId: number, count: number]>(
  'test.fill_index',
  `insert into memory_objects (org_id, key, etag, size_bytes, written_at)
   select $1::int, 'agents/' || md5(n::text) || n, '"e"', 0, now() from generate_series(1, $2::int) as n`,
)

test('a look at the memory store takes the same time, however many objects the index has', async () => {
  const app = await startApp({})
  const org = await app.otherOrg('Large')
  expect((await app.call('PUT', '/v1/me/memory-store', { store: 'folder', quota_mb: 1 }, { token: org.key })).status).toBe(200)
  const views = async (): Promise<number> => {
    const began = performance.now()
    for (let at = 0; at < 30; at++) expect((await app.call('GET', '/v1/me/memory-store', undefined, { token: org.key })).json.bytes_used).toBe(0)
    return performance.now() - began
  }
  await views()
  const few = await views()
  await app.db.exec(fill, org.orgId, 100_000)
  // A count of 100,000 rows takes 100 ms for each view. The allowance is for a busy machine.
  expect(await views()).toBeLessThan(4 * few + 1_000)
  await app.stop()
})
