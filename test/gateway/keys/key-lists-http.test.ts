/** Lists of keys: searched, filtered, sorted and paged by the server. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestMember } from '../../harness/app.ts'
import { pagesOf } from '../../harness/pages.ts'

const many = 20_000
const addMany = statement<[orgId: number, userId: number, count: number]>(
  'test.add_many_keys',
  `insert into api_keys (org_id, user_id, name, hash, prefix, created_at, revoked_at, last_used_at)
   select $1::int, $2::int, 'Batch ' || n, sha256(convert_to('list of keys ' || n, 'UTF8')), 'br-batch' || n, now(), case when n % 10 = 0 then now() end,
     case when n % 3 = 0 then now() - n * interval '1 minute' end
   from generate_series(1, $3::int) n`,
)
const setUse = statement<[keyId: number, at: Date]>('test.set_use_of_key', 'update api_keys set last_used_at = $2::timestamptz where id = $1::int')
const expire = statement<[keyId: number]>('test.expire_listed_key', `update api_keys set expires_at = created_at where id = $1::int`)
const setNotice = statement<[keyId: number]>('test.set_notice_of_key', `update api_keys set inactivity_notice_at = now() where id = $1::int`)
const sleep = statement<[keyId: number]>('test.disable_key', `update api_keys set enabled = false, disabled_reason = 'inactivity' where id = $1::int`)
const leave = statement<[userId: number]>('test.leave_with_keys', `update org_members set status = 'removed' where user_id = $1::int`)

describe('a list of keys', () => {
  let app: TestApp
  let cookie: string
  let ann: TestMember
  let ids: Record<string, number>
  let pages: ReturnType<typeof pagesOf>
  beforeAll(async () => {
    app = await startApp({ env: { CONSOLE_RPM: '100000' } })
    cookie = await app.signIn()
    ann = await app.newMember('member')
    pages = pagesOf(app, '/me/keys', 'keys')
    const make = async (name: string, as = cookie): Promise<number> => (await app.call('POST', '/me/keys', { name }, { cookie: as })).json.id
    const bob = await app.newMember('member')
    ids = {
      zeta: await make('zeta'),
      Alpha: await make('Alpha'),
      gone: await make('gone'),
      off: await make('off'),
      asleep: await make('asleep'),
      late: await make('late'),
      warned: await make('warned'),
      ofAnn: await make('of Ann', ann.cookie),
      ofBob: await make('of Bob', bob.cookie),
    }
    await app.call('DELETE', `/me/keys/${ids['gone']}`, undefined, { cookie })
    await app.call('PATCH', `/me/keys/${ids['off']}`, { enabled: false }, { cookie })
    await app.db.exec(sleep, ids['asleep'] ?? 0)
    await app.db.exec(expire, ids['late'] ?? 0)
    await app.db.exec(setNotice, ids['warned'] ?? 0)
    await app.db.exec(leave, bob.userId)
    await app.db.exec(setUse, ids['zeta'] ?? 0, new Date('2026-01-02T00:00:00Z'))
    await app.db.exec(setUse, ids['ofAnn'] ?? 0, new Date('2026-01-03T00:00:00Z'))
  })
  afterAll(() => app.stop())

  const names = async (query: string, as = cookie): Promise<string[]> =>
    (await pages.read(query, as)).json.keys.flatMap(({ id, name }: { id: number; name: string }) => (id === app.keyId ? [] : [name]))

  test('a list of keys is searched by name, id and start, filtered by state and owner, and sorted', async () => {
    const unrevoked = ['of Bob', 'of Ann', 'warned', 'late', 'asleep', 'off', 'Alpha', 'zeta']
    expect(await names('')).toEqual(unrevoked)
    expect(await names('?sort=created')).toEqual(unrevoked)
    expect(await names('?sort=name')).toEqual(['Alpha', 'asleep', 'late', 'of Ann', 'of Bob', 'off', 'warned', 'zeta'])
    expect((await names('?sort=last_used')).slice(0, 3)).toEqual(['of Ann', 'zeta', 'of Bob'])
    expect(await names('?q=OF%20A')).toEqual(['of Ann'])
    expect(await names('?q=OF')).toEqual(['of Bob', 'of Ann', 'off'])
    expect(await names(`?q=${ids['Alpha']}`)).toContain('Alpha')
    expect(await names('?q=%25')).toEqual([])
    const { prefix } = (await pages.read('?q=zeta', cookie)).json.keys[0]
    expect(await names(`?q=${prefix}`)).toEqual(['zeta'])
    expect(await names(`?q=${prefix.slice(0, 5)}`), 'five characters are too few').toEqual([])
    const byState = { active: ['of Ann', 'Alpha', 'zeta'], notice: ['warned'], disabled: ['off'], disabled_inactive: ['asleep'] }
    for (const [state, found] of Object.entries({ ...byState, expired: ['late'], owner_left: ['of Bob'], revoked: ['gone'] })) {
      expect(await names(`?state=${state}`), state).toEqual(found)
      expect((await pages.read(`?state=${state}&q=a`, cookie)).json.keys.every((key: { state: string }) => key.state === state)).toBe(true)
    }
    expect(await names(`?owner=${ann.userId}`)).toEqual(['of Ann'])
    expect(await names('?owner=me', ann.cookie)).toEqual(['of Ann'])
    expect(await names(`?owner=${ann.userId}&state=disabled`)).toEqual([])
  })

  test('the pages of each order and filter together hold each key once', async () => {
    for (const query of [
      'sort=created',
      'sort=name',
      'sort=last_used',
      'q=a&sort=name',
      'state=active',
      'state=revoked&sort=name',
      'owner=me&sort=last_used',
    ]) {
      const whole = (await pages.read(`?${query}`, cookie)).json.keys.map((key: { id: number }) => key.id)
      for (const limit of [1, 2, 3]) {
        const { rows } = await pages.all(`?${query}&limit=${limit}`, cookie)
        expect(
          rows.map(row => row.id),
          `${query} by ${limit}`,
        ).toEqual(whole)
      }
    }
  })

  test('an invalid filter and a cursor of another order get 400, which names the field', async () => {
    const byName = (await pages.read('?limit=1&sort=name', cookie)).json.next_cursor
    for (const query of [
      '?q=',
      `?q=${'x'.repeat(101)}`,
      '?state=x',
      '?owner=x',
      '?owner=0',
      '?sort=x',
      '?limit=201',
      `?cursor=${byName}`,
      `?sort=last_used&cursor=${byName}`,
      '?sort=name&cursor=1',
      '?sort=last_used&cursor=last_used.a1.eA',
      `?state=revoked&sort=name&cursor=${byName}`,
      `?cursor=${'1'.repeat(1001)}`,
    ]) {
      const { status, json } = await pages.read(query, cookie)
      expect([status, json.error?.code], query).toEqual([400, 'bad_request'])
      expect(json.error.message, query).toContain(query.includes('cursor') ? 'cursor' : (/(\w+)=[^=]*$/.exec(query)?.[1] ?? ''))
    }
  })

  test('a list shows no key of another organisation, whatever the filter', async () => {
    const there = await app.otherOrg('Other Keys')
    const theirs = await app.signIn(there.userId, there.orgId)
    for (const query of ['', '?q=zeta', `?q=${ids['zeta']}`, `?owner=${ann.userId}`, '?state=revoked', '?sort=name', '?sort=last_used'])
      for (const key of (await pages.read(query, theirs)).json.keys) expect(key.id, query).toBe(there.keyId)
  })

  test('20,000 keys are listed, searched and sorted quickly', { timeout: 120_000 }, async () => {
    const there = await app.otherOrg('Large Keys')
    const owner = await app.signIn(there.userId, there.orgId)
    await app.db.exec(addMany, there.orgId, there.userId, many)
    await app.db.exec({ name: 'test.analyze_keys', text: 'analyze api_keys' })
    const slowest: [number, string][] = []
    for (const query of [
      '',
      '?sort=name',
      '?sort=last_used',
      '?q=batch 19999',
      '?q=nothing',
      '?state=disabled',
      '?state=revoked&sort=last_used',
      '?owner=me',
    ]) {
      const begun = performance.now()
      const page = await pages.read(`${query}${query === '' ? '?' : '&'}limit=50`, owner)
      slowest.push([Math.round(performance.now() - begun), query])
      expect(page.status, page.text).toBe(200)
    }
    expect(Math.max(...slowest.map(([ms]) => ms)), JSON.stringify(slowest)).toBeLessThan(2_000)
    expect((await pages.read('?q=batch 19999', owner)).json.keys).toMatchObject([{ name: 'Batch 19999' }])
  })
})
