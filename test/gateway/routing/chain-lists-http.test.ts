/** Lists of chains: searched, filtered, sorted and paged by the server, with a maximum of bytes. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestMember } from '../../harness/app.ts'
import { pagesOf } from '../../harness/pages.ts'

const kib = 1024
const setUpdate = statement<[model: string, at: Date]>('test.set_update_of_chain', 'update chains set updated_at = $2::timestamptz where model_id = $1::text')
const addMany = statement<[orgId: number, count: number, steps: string]>(
  'test.add_many_chains',
  `insert into chains (org_id, model_id, steps, updated_at) select $1::int, 'vendor/model-' || n, $3::jsonb, date_trunc('milliseconds', now()) from generate_series(1, $2::int) n`,
)

describe('a list of chains', () => {
  let app: TestApp
  let cookie: string
  let admin: TestMember
  let pages: ReturnType<typeof pagesOf>
  beforeAll(async () => {
    app = await startApp({ env: { CONSOLE_RPM: '100000' } })
    cookie = await app.signIn()
    admin = await app.newMember('admin')
    pages = pagesOf(app, '/me/routing', 'chains')
    for (const [model, as, day] of [
      ['test-model', cookie, 2],
      ['alpha-only', admin.cookie, 3],
      ['global-only', cookie, 1],
    ] as const) {
      expect((await app.call('PUT', `/me/routing/${model}`, { steps: ['test-model'] }, { cookie: as })).status).toBe(200)
      await app.db.exec(setUpdate, model, new Date(Date.UTC(2026, 0, day)))
    }
  })
  afterAll(() => app.stop())

  const models = async (query: string, as = cookie): Promise<string[]> =>
    (await pages.read(query, as)).json.chains.map((chain: { model: string }) => chain.model)

  test('a list of chains is searched by model, filtered by who saved it last, and sorted', async () => {
    expect(await models('')).toEqual(['alpha-only', 'global-only', 'test-model'])
    expect(await models('?sort=updated')).toEqual(['alpha-only', 'test-model', 'global-only'])
    expect(await models('?q=ONLY')).toEqual(['alpha-only', 'global-only'])
    expect(await models('?q=%25')).toEqual([])
    expect(await models('?owner=me')).toEqual(['global-only', 'test-model'])
    expect(await models(`?owner=${admin.userId}`)).toEqual(['alpha-only'])
    expect(await models('?owner=me&q=only&sort=updated')).toEqual(['global-only'])
  })

  test('the pages of each order and filter together hold each chain once', async () => {
    for (const query of ['sort=model', 'sort=updated', 'q=only&sort=updated', 'owner=me']) {
      const whole = await models(`?${query}`)
      for (const limit of [1, 2]) {
        const { rows } = await pages.all(`?${query}&limit=${limit}`, cookie)
        expect(
          rows.map(row => row.model),
          `${query} by ${limit}`,
        ).toEqual(whole)
      }
    }
  })

  test('an invalid filter and a cursor of another order get 400, which names the field', async () => {
    const byUpdate = (await pages.read('?limit=1&sort=updated', cookie)).json.next_cursor
    for (const query of ['?q=', '?owner=x', '?sort=x', '?limit=1001', `?cursor=${byUpdate}`, '?cursor=1', '?cursor=model.0.AA']) {
      const { status, json } = await pages.read(query, cookie)
      expect([status, json.error?.code], query).toEqual([400, 'bad_request'])
      expect(json.error.message, query).toContain(query.includes('cursor') ? 'cursor' : (/(\w+)=[^=]*$/.exec(query)?.[1] ?? ''))
    }
  })

  test('long chains fill several pages, each with at most 512 KiB of texts, and no page shows another organisation', async () => {
    const there = await app.otherOrg('Long Chains')
    const theirs = await app.signIn(there.userId, there.orgId)
    expect(await models('?q=only', theirs)).toEqual([])
    const step = (n: number) => ({ model: `vendor/${n}${'x'.repeat(200)}`, provider: 'alpha' })
    await app.db.exec(addMany, there.orgId, 600, JSON.stringify(Array.from({ length: 10 }, (_, n) => step(n))))
    for (const query of ['', '?sort=updated', '?q=vendor']) {
      const { rows, pages: read } = await pages.all(query, theirs)
      expect(new Set(rows.map(row => row.model)).size).toBe(600)
      expect(read.length).toBeGreaterThan(1)
      for (const { text } of read) expect(Buffer.byteLength(text)).toBeLessThan(600 * kib)
    }
  })
})
