import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { until } from '../../harness/until.ts'
import type { Watched } from './watched.ts'

const leftOf = statement<[collectionId: number], { count: number }>(
  'test.left_of_collection',
  `select ((select count(*) from collection_monitors where collection_id = $1::int) + (select count(*) from collection_checks where collection_id = $1::int)
     + (select count(*) from collection_canaries where collection_id = $1::int) + (select count(*) from collection_health where collection_id = $1::int)
     + (select count(*) from collection_alerts where collection_id = $1::int))::int as "count"`,
)
const roundsOf = statement<[collectionId: number], { at: Date }>(
  'test.rounds_of_collection',
  'select distinct at from collection_checks where collection_id = $1::int order by at',
)

/** Tests switching monitoring on and off, and the health that it shows. */
export function monitoringOfCollections(world: () => Watched): void {
  let watched: Watched
  beforeAll(() => {
    watched = world()
  })
  beforeEach(() => watched.reset())

  const fails = { status: 500, body: { error: { message: 'down' } } }
  const stepsOf = async (slug: string, query = '') => (await watched.health(slug, query)).json.health
  const rounds = async (id: number): Promise<number> => (await watched.app.db.many(roundsOf, id)).length

  describe('monitoring', () => {
    test('MON-01 LIFE-15 owners and admins switch monitoring: when on, canaries run immediately and then regularly; when off, the history stays', async () => {
      const { app, clock, member, admin, owner, on } = watched
      const { slug, id } = await watched.make(['alpha-only', { model: 'test-model', provider: 'indus' }])
      const path = `/me/collections/${slug}/monitor`
      const monitored = async () =>
        (await app.call('GET', '/me/collections', undefined, { cookie: member.cookie })).json.collections.find((found: { id: number }) => found.id === id)
          .monitored
      expect([(await app.call('POST', path, { monitored: true }, { cookie: member.cookie })).status, await monitored()]).toEqual([403, false])
      const first = await app.call('POST', path, { monitored: true }, { cookie: admin.cookie })
      expect([first.status, first.json.ok, first.json.monitored, await monitored()]).toEqual([200, true, true, true])
      expect(first.json.note).toContain('not billed')
      await until(async () => (await rounds(id)) === 1, 'the first round is written')
      // Switching monitoring on a second time does not start another first round.
      expect((await on(slug)).json.monitored).toBe(true)
      clock.advance(301_000 * 1.1)
      await until(async () => (await rounds(id)) === 2, 'the second round is written')
      expect([app.alpha.requests.length, app.indus.requests.length]).toEqual([2, 2])
      // A missing body, an empty object, null and false all switch monitoring off.
      for (const body of [undefined, {}, { monitored: null }, { monitored: false }]) {
        expect((await on(slug)).json.monitored).toBe(true)
        const off = await app.call('POST', path, body, { cookie: owner })
        expect([off.status, off.json.ok, off.json.monitored, await monitored()]).toEqual([200, true, false, false])
      }
      const written = await rounds(id)
      clock.advance(700_000)
      await app.gateway.app.jobs.runOnce('collections.health')
      expect([await rounds(id), (await stepsOf(slug)).map((step: { checks: number }) => step.checks)]).toEqual([written, [written, written]])
      for (const [body, other] of [
        [{ monitored: 'yes' }, slug],
        [{ monitored: 1 }, slug],
      ] as const)
        expect((await app.call('POST', `/me/collections/${other}/monitor`, body, { cookie: owner })).json.error.code).toBe('bad_request')
    })

    test('at most MONITORED_MAX collections of an organisation are monitored', async () => {
      const made = [
        await watched.make(['alpha-only']),
        await watched.make(['alpha-only']),
        await watched.make(['alpha-only']),
        await watched.make(['alpha-only']),
      ]
      for (const { slug } of made.slice(0, 3)) expect((await watched.on(slug)).status).toBe(200)
      const refused = await watched.on(made[3]?.slug ?? '')
      expect([refused.status, refused.json.error.code]).toEqual([400, 'cap'])
      await watched.on(made[0]?.slug ?? '', false)
      expect((await watched.on(made[3]?.slug ?? '')).status).toBe(200)
      for (const { slug } of made) await watched.on(slug, false)
    })

    test('a collection of another organisation, public or private, and an unknown collection are 404 not_found', async () => {
      const { app } = watched
      const stranger = await app.otherOrg('Strangers')
      const cookie = await app.signIn(stranger.userId, stranger.orgId)
      const { slug } = await watched.make(['alpha-only'], 'test-model', { public: true })
      for (const [method, path, body] of [
        ['POST', 'monitor', { monitored: true }],
        ['POST', 'check', undefined],
        ['GET', 'health', undefined],
        ['GET', 'alerts', undefined],
        ['POST', 'alerts', { metric: 'error_rate', threshold: 0.5, channel: 'email' }],
        ['DELETE', 'alerts/1', undefined],
      ] as const)
        for (const [name, who] of [
          [slug, cookie],
          ['there-is-none', watched.owner],
        ] as const) {
          const reply = await app.call(method, `/me/collections/${name}/${path}`, body, { cookie: who })
          expect([reply.status, reply.json.error.code], `${method} ${name}/${path}`).toEqual([404, 'not_found'])
        }
    })

    test('deleting a collection removes all its results, and a round that is running then stores nothing', async () => {
      const { app, owner } = watched
      const { slug, id } = await watched.make([{ model: 'test-model', provider: 'beta' }])
      expect((await watched.addAlert(slug, { metric: 'error_rate', threshold: 0.5, channel: 'email' })).status).toBe(201)
      await watched.check(slug)
      app.beta.hold()
      watched.clock.advance(21_000)
      const running = app.call('POST', `/me/collections/${slug}/check`, undefined, { cookie: owner })
      await app.beta.arrived(2)
      expect((await app.call('DELETE', `/me/collections/${id}`, undefined, { cookie: owner })).status).toBe(200)
      app.beta.release()
      expect([(await running).status, (await app.db.one(leftOf, id)).count]).toEqual([404, 0])
    })

    test('a monitoring round stores nothing when monitoring is switched off during the round', async () => {
      const { app } = watched
      const { slug, id } = await watched.make([{ model: 'test-model', provider: 'beta' }])
      app.beta.hold()
      await watched.on(slug)
      await app.beta.arrived(1)
      await watched.on(slug, false)
      app.beta.release()
      await until(async () => {
        watched.clock.advance(21_000)
        return (await app.call('POST', `/me/collections/${slug}/check`, undefined, { cookie: watched.owner })).json.checked
      }, 'the next round')
      expect(await rounds(id)).toBe(1)
    })
  })

  describe('health', () => {
    test('MON-03 SHAPE-21 health has uptime, p95 and the last canary of each step over 7 days, and keeps them when steps are moved or edited', async () => {
      const { app, check, owner } = watched
      const { slug, id } = await watched.make([
        { model: 'test-model', provider: 'alpha' },
        { model: 'test-model', provider: 'beta' },
      ])
      const empty = await watched.health(slug)
      const nothing = { uptime: null, p95_ms: null, checks: 0, last_check: null, state: 'unknown', last_code: null }
      expect(empty.json).toEqual({
        monitored: false,
        days: 7,
        health: [
          { model: 'test-model', provider: 'alpha', ...nothing },
          { model: 'test-model', provider: 'beta', ...nothing },
        ],
      })
      for (let count = 0; count < 4; count++) {
        app.beta.script(count === 0 ? fails : {})
        await check(slug)
      }
      const before = await stepsOf(slug)
      expect(before.map((step: Record<string, unknown>) => [step['uptime'], step['checks'], step['state']])).toEqual([
        [1, 4, 'ok'],
        [0.75, 4, 'ok'],
      ])
      for (const { p95_ms, last_check } of before) {
        expect(p95_ms).toBeGreaterThan(0)
        expect(new Date(last_check).toISOString()).toBe(last_check)
      }
      const steps = [{ model: 'alpha-only' }, { model: 'test-model', provider: 'beta' }, { model: 'test-model', provider: 'alpha' }]
      expect((await app.call('PATCH', `/me/collections/${id}`, { steps }, { cookie: owner })).status).toBe(200)
      expect(await stepsOf(slug)).toEqual([{ model: 'alpha-only', provider: null, ...nothing }, before[1], before[0]])
    })

    test('MON-04 days may be 1 to 90; any other value is 400 bad_request', async () => {
      const { app, owner } = watched
      const { slug } = await watched.make(['alpha-only'])
      for (const days of [1, 2, 7, 9, 10, 89, 90]) {
        const reply = await watched.health(slug, `?days=${days}`)
        expect([reply.status, reply.json.days]).toEqual([200, days])
      }
      for (const days of ['0', '91', 'x', '', '-1', '1.5', '7d', '007', '1e1', '%207', '900', '7&days=8']) {
        const reply = await app.call('GET', `/me/collections/${slug}/health?days=${days}`, undefined, { cookie: owner })
        expect([reply.status, reply.json.error?.code], days).toEqual([400, 'bad_request'])
      }
    })

    test('old canaries become sums of days, stay visible while the window contains them, and are deleted after 90 days', async () => {
      const { app, clock, check } = watched
      const { slug, id } = await watched.make(['alpha-only'])
      const checks = async (days: number): Promise<number> => (await stepsOf(slug, `?days=${days}`))[0].checks
      const day = 24 * 3600_000
      const sweep = () => app.gateway.app.jobs.runOnce('collections.health')
      app.alpha.script([fails, {}, {}])
      for (let count = 0; count < 3; count++) await check(slug)
      clock.advance(5 * 3600_000)
      await check(slug)
      expect([await checks(1), await checks(7)]).toEqual([4, 4])
      clock.advance(2 * day)
      await sweep()
      expect([await checks(1), await checks(3), await checks(90)]).toEqual([0, 4, 4])
      clock.advance(10 * day)
      await sweep()
      await sweep()
      await check(slug)
      const twoWeeks = (await stepsOf(slug, '?days=14'))[0]
      expect([await checks(1), await checks(7), twoWeeks.checks, twoWeeks.uptime]).toEqual([1, 1, 5, 0.8])
      expect((await rounds(id)) === 1, 'single canaries go after a few days').toBe(true)
      clock.advance(85 * day)
      await sweep()
      expect([await checks(90), (await stepsOf(slug))[0].last_check !== null]).toEqual([1, true])
      clock.advance(20 * day)
      await sweep()
      expect([await checks(90), (await stepsOf(slug))[0].last_check]).toEqual([0, null])
      expect((await app.db.one(leftOf, id)).count).toBe(1)
    })
  })
}
