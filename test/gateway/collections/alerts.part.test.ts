import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { until } from '../../harness/until.ts'
import { heard, listen, settled } from '../webhooks/heard.ts'
import { cooldownS, type Watched } from './watched.ts'

const waiting = statement<[], { count: bigint }>('test.mails_waiting', `select count(*) as "count" from emails where sent_at is null and failed_at is null`)

/** Tests whom alerts notify, and when. */
export function alertsOfCollections(world: () => Watched): void {
  let watched: Watched
  beforeAll(() => {
    watched = world()
  })
  beforeEach(() => watched.reset())
  afterAll(() => watched.clear())

  const fails = { status: 500, body: { error: { message: 'down' } } }
  const errorRate = (more: object = {}) => ({ metric: 'error_rate', threshold: 0.05, channel: 'email', ...more })
  const alpha = { model: 'test-model', provider: 'alpha' }
  const beta = { model: 'test-model', provider: 'beta' }

  /** Runs `count` rounds in which the canaries at alpha and beta fail or succeed as given. */
  async function rounds(slug: string, count: number, { alphaFails = false, betaFails = false } = {}): Promise<void> {
    watched.app.alpha.script(() => (alphaFails ? fails : {}))
    watched.app.beta.script(() => (betaFails ? fails : {}))
    for (let round = 0; round < count; round++) await watched.check(slug)
  }
  async function mailed(): Promise<{ to: string; subject: string; text: string }[]> {
    await until(async () => (await watched.app.db.one(waiting)).count === 0n, 'every mail is sent', 20_000)
    return watched.mail.received.map(({ to, headers, parts }) => ({
      to: to.join(),
      subject: headers.find(([name]) => name === 'subject')?.[1] ?? '',
      text: parts['text/plain'] ?? '',
    }))
  }
  const told = async (path: string) => {
    await settled(watched.app)
    return heard(watched.receiver, path, 'collection.alert').map(({ data }) => data)
  }

  describe('alerts', () => {
    test('MON-05 SHAPE-22 an alert has a metric, a threshold, a channel and optionally a target; any other body is 400 bad_request', async () => {
      const { slug } = await watched.make([alpha])
      const made = await watched.addAlert(slug, errorRate())
      expect([made.status, made.json]).toEqual([
        201,
        {
          ok: true,
          id: made.json.id,
          metric: 'error_rate',
          threshold: 0.05,
          channel: 'email',
          firing: false,
          firing_since: null,
          last_told_at: null,
          created_at: made.json.created_at,
        },
      ])
      const named = await watched.addAlert(slug, { metric: 'latency_p95', threshold: 1500, channel: 'email', target: ` ${watched.member.email.toUpperCase()}` })
      expect([named.status, named.json.target]).toEqual([201, watched.member.email])
      const hook = await watched.addAlert(slug, errorRate({ channel: 'webhook' }))
      expect([hook.status, hook.json.target, hook.json.note.includes('collection.alert')]).toEqual([201, undefined, true])
      const listed = (await watched.app.call('GET', `/me/collections/${slug}/alerts`, undefined, { cookie: watched.owner })).json
      expect(
        listed.alerts.map((alert: Record<string, unknown>) => [alert['id'], alert['metric'], alert['threshold'], alert['channel'], alert['target']]),
      ).toEqual([
        [made.json.id, 'error_rate', 0.05, 'email', undefined],
        [named.json.id, 'latency_p95', 1500, 'email', watched.member.email],
        [hook.json.id, 'error_rate', 0.05, 'webhook', undefined],
      ])
      const capped = await watched.addAlert(slug, errorRate())
      expect([capped.status, capped.json.error.code]).toEqual([400, 'cap'])
      const other = await watched.make([alpha])
      for (const [wrong, says] of [
        [{ metric: 'uptime' }, 'metric'],
        [{ metric: undefined }, 'metric'],
        [{ channel: 'sms' }, 'channel'],
        [{ channel: undefined }, 'channel'],
        [{ threshold: 5 }, '0.05'],
        [{ threshold: -0.1 }, '0.05'],
        [{ threshold: '0.05' }, 'threshold'],
        [{ threshold: undefined }, 'threshold'],
        [{ metric: 'latency_p95', threshold: 0 }, 'milliseconds'],
        [{ metric: 'latency_p95', threshold: 2001 }, '2000'],
        [{ target: 'stranger@elsewhere.test' }, 'member'],
        [{ target: 'no address' }, 'member'],
        [{ target: 7 }, 'target'],
        [{ channel: 'webhook', target: 'not a url' }, 'URL'],
        [{ channel: 'webhook', target: 'https://169.254.169.254/latest' }, 'OUTBOUND_ALLOW'],
        [{ channel: 'webhook', target: 'http://10.0.0.1/x' }, ''],
        [{ channel: 'webhook', target: watched.member.email }, 'URL'],
      ] as const) {
        const reply = await watched.addAlert(other.slug, errorRate(wrong))
        expect([reply.status, reply.json.error?.code], JSON.stringify(wrong)).toEqual([400, 'bad_request'])
        expect(reply.json.error.message).toContain(says)
      }
      for (const threshold of [0, 1]) expect((await watched.addAlert(other.slug, errorRate({ threshold }))).status).toBe(201)
    })

    test('MON-06 MON-07 every role reads alerts, owners and admins create and delete them, and an unknown alert is 404 not_found', async () => {
      const { app, member, admin } = watched
      const { slug } = await watched.make([alpha])
      const path = `/me/collections/${slug}/alerts`
      const made = await watched.addAlert(slug, errorRate(), admin.cookie)
      expect(made.status).toBe(201)
      const remove = (id: unknown, cookie: string) => app.call('DELETE', `${path}/${id}`, undefined, { cookie })
      for (const reply of [await watched.addAlert(slug, errorRate(), member.cookie), await remove(made.json.id, member.cookie)])
        expect([reply.status, reply.json.error.code]).toEqual([403, 'forbidden'])
      const { id: _, ok: __, ...facts } = made.json
      for (const { cookie } of [member, admin])
        expect((await app.call('GET', path, undefined, { cookie })).json).toEqual({ alerts: [{ id: made.json.id, ...facts, heard: true }] })
      const elsewhere = await watched.make([alpha])
      const foreign = await watched.addAlert(elsewhere.slug, errorRate())
      for (const id of [foreign.json.id, 2_147_483_647, 99_999_999_999, 0, 'x', '1e3', '%20'])
        expect([(await remove(id, admin.cookie)).status, id]).toEqual([404, id])
      expect((await remove(made.json.id, admin.cookie)).json).toEqual({ ok: true })
      expect((await remove(made.json.id, admin.cookie)).status).toBe(404)
      expect((await app.call('GET', path, undefined, { cookie: member.cookie })).json).toEqual({ alerts: [] })
    })
  })

  describe('notifications of an alert', () => {
    const firing = async (slug: string): Promise<boolean[]> =>
      (await watched.app.call('GET', `/me/collections/${slug}/alerts`, undefined, { cookie: watched.owner })).json.alerts.map(
        (alert: { firing: boolean }) => alert.firing,
      )

    test('an alert is mailed once when the worst step crosses the threshold, again after each cool-down, and once when the step recovers', async () => {
      const { slug } = await watched.make([alpha, beta], 'test-model', { name: 'Night shift' })
      await watched.addAlert(slug, errorRate({ threshold: 0.5 }))
      await rounds(slug, 2, { betaFails: true })
      expect([await firing(slug), await mailed()]).toEqual([[false], []])
      await rounds(slug, 3, { betaFails: true })
      const first = await mailed()
      expect([await firing(slug), first.length]).toEqual([[true], 1])
      expect(first[0]?.to).toBe('owner@test-org.test')
      expect(first[0]?.subject).toBe('Collection Night shift of Test Org: error rate is 100 %')
      expect(first[0]?.text).toContain('The step test-model on beta does worst')
      expect(first[0]?.text).toContain(encodeURIComponent(`/me/collections/${slug}/health`))
      // The cool-down passes while the step keeps failing.
      watched.clock.advance((cooldownS - 90) * 1000)
      await rounds(slug, 2, { betaFails: true })
      expect((await mailed()).length).toBe(1)
      await rounds(slug, 3, { betaFails: true })
      expect((await mailed()).length).toBe(2)
      await rounds(slug, 6)
      const all = await mailed()
      expect([await firing(slug), all.length, all[2]?.subject]).toEqual([[false], 3, 'Collection Night shift of Test Org: error rate is well again'])
      // The step fails again within the cool-down. Nobody is notified of this, and therefore nobody is notified of its end.
      await rounds(slug, 4, { betaFails: true })
      expect(await firing(slug)).toEqual([true])
      await rounds(slug, 6)
      expect([await firing(slug), (await mailed()).length]).toEqual([[false], 3])
    })

    test('monitoring rounds evaluate alerts too; after monitoring is switched off, no alert is firing', async () => {
      const { slug } = await watched.make([alpha])
      await watched.addAlert(slug, errorRate({ target: watched.member.email }))
      watched.app.alpha.script(() => fails)
      await watched.on(slug)
      const checks = async () => (await watched.health(slug)).json.health[0].checks
      for (let round = 1; round <= 3; round++) {
        await until(async () => (await checks()) >= round, `round ${round} is written`)
        watched.clock.advance(11_000)
      }
      expect(await firing(slug)).toEqual([true])
      expect((await mailed()).map(({ to }) => to)).toEqual([watched.member.email])
      await watched.on(slug, false)
      expect(await firing(slug)).toEqual([false])
    })

    test('a webhook target gets a webhook with its own secret; later alerts reuse it, and no other webhook is notified', async () => {
      const { app, receiver, owner } = watched
      await listen(app, receiver, '/all', {}, owner)
      const { slug } = await watched.make([alpha, beta])
      const target = `${receiver.url}/alerts`
      const made = await watched.addAlert(slug, errorRate({ channel: 'webhook', target, threshold: 1 }))
      expect([made.status, made.json.target, made.json.secret.startsWith('whsec_'), made.headers.get('cache-control')]).toEqual([201, target, true, 'no-store'])
      const again = await watched.addAlert(slug, { metric: 'latency_p95', threshold: 2000, channel: 'webhook', target })
      expect([again.status, again.json.webhook_id, again.json.secret]).toEqual([201, made.json.webhook_id, undefined])
      const hooks = (await app.call('GET', '/me/webhooks', undefined, { cookie: owner })).json.webhooks
      expect(hooks.filter(({ url }: { url: string }) => url === target)).toMatchObject([
        { id: made.json.webhook_id, subscribe_all: false, event_types: ['collection.alert'], enabled: true },
      ])
      await rounds(slug, 4, { alphaFails: true })
      const data = await told('/alerts')
      expect(data).toEqual([
        {
          alert_id: made.json.id,
          collection_id: expect.any(Number),
          state: 'firing',
          metric: 'error_rate',
          threshold: 1,
          value: 1,
          model: 'test-model',
          provider: 'alpha',
          checks: 3,
          window_s: 120,
        },
      ])
      await rounds(slug, 6)
      expect((await told('/alerts')).map(({ state }) => state)).toEqual(['firing', 'recovered'])
      expect(await told('/all')).toEqual([])
      // An existing webhook for the URL is subscribed to alerts. A disabled webhook is not enabled by this.
      const listening = await listen(app, receiver, '/budgets', { event_types: ['budget.warn'] }, owner)
      const other = await watched.make([alpha])
      const reused = await watched.addAlert(other.slug, errorRate({ channel: 'webhook', target: `${receiver.url}/budgets` }))
      expect([reused.json.webhook_id, reused.json.secret]).toEqual([listening, undefined])
      const after = (await app.call('GET', '/me/webhooks', undefined, { cookie: owner })).json.webhooks
      expect(after.find(({ id }: { id: number }) => id === listening).event_types).toEqual(['budget.warn', 'collection.alert'])
      await app.call('PATCH', `/me/webhooks/${listening}`, { enabled: false }, { cookie: owner })
      const refused = await watched.addAlert(other.slug, errorRate({ channel: 'webhook', target: `${receiver.url}/budgets` }))
      expect([refused.status, refused.json.error.message.includes('disabled')]).toEqual([400, true])
      // An alert whose webhook is disabled or removed shows that it reaches nobody.
      const isHeard = async (of: string) => (await app.call('GET', `/me/collections/${of}/alerts`, undefined, { cookie: owner })).json.alerts[0].heard
      expect([await isHeard(slug), await isHeard(other.slug)]).toEqual([true, false])
      await app.call('DELETE', `/me/webhooks/${made.json.webhook_id}`, undefined, { cookie: owner })
      expect(await isHeard(slug)).toBe(false)
    })

    test('an alert without a target goes to every subscribed webhook; slow replies cross a latency threshold', async () => {
      const { app, receiver, owner } = watched
      await listen(app, receiver, '/every', { event_types: ['collection.alert'] }, owner)
      await listen(app, receiver, '/others', { event_types: ['key.created'] }, owner)
      const { slug } = await watched.make([alpha])
      await watched.addAlert(slug, { metric: 'latency_p95', threshold: 1, channel: 'webhook' })
      await rounds(slug, 3)
      const [first] = await told('/every')
      expect(first).toMatchObject({ state: 'firing', metric: 'latency_p95', threshold: 1, provider: 'alpha' })
      expect(first.value).toBeGreaterThanOrEqual(1)
      expect(await told('/others')).toEqual([])
      // The event has only the fields of the catalog, and nothing of the answer.
      expect(JSON.stringify(receiver.at('/every').map(({ json }) => json))).not.toMatch(/Hello|ping|Watched/)
    })
  })
}
