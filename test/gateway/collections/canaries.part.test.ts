import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { CanarySlots } from '../../../src/gateway/collections/canaries/canary-slots.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { until } from '../../harness/until.ts'
import type { Watched } from './watched.ts'

const money = statement<[], { line: string }>(
  'test.money_of_canaries',
  `select 'event ' || e::text as "line" from usage_events e union all select 'day ' || d::text from usage_days d
   union all select 'key ' || k::text from usage_days_by_key k union all select 'model ' || m::text from model_days m
   union all select 'latency ' || l::text from model_latencies l union all select 'ledger ' || l::text from ledger l
   union all select 'counter ' || c.scope || c.scope_id || c.metric || c.spent from counters c
   union all select 'hook ' || w.id from webhook_events w union all select 'once ' || o::text from idempotency_keys o order by 1`,
)
/** Tests what a canary sends, to whom, how often, and what its result changes. */
export function canariesOfCollections(world: () => Watched): void {
  let watched: Watched
  beforeAll(() => {
    watched = world()
    // A new day, because canaries are counted by day and earlier tests have used some.
    watched.clock.advance(86_400_000)
  })
  beforeEach(() => watched.reset())
  afterAll(() => watched.clear())

  const fails = { status: 500, body: { error: { message: 'down' } } }
  describe('canaries', () => {
    test('MON-02 PERM-08 any role can request a canary of every step and gets fresh health; a second request within seconds sends no canary', async () => {
      const { app, member, owner } = watched
      const { slug } = await watched.make([{ model: 'test-model', provider: 'indus' }, 'test-model', { model: 'global-only', provider: 'alpha' }, 'test-model'])
      const path = `/me/collections/${slug}/check`
      const reply = await app.call('POST', path, undefined, { cookie: member.cookie })
      expect([reply.status, reply.json.ok, reply.json.checked, reply.json.monitored, reply.json.days]).toEqual([200, true, true, false, 7])
      expect(
        reply.json.health.map((step: Record<string, unknown>) => [step['model'], step['provider'], step['uptime'], step['checks'], step['state']]),
      ).toEqual([
        ['test-model', 'indus', 1, 1, 'ok'],
        // A step without a pinned provider is served by the cheapest route.
        ['test-model', 'alpha', 1, 1, 'ok'],
        ['global-only', 'alpha', 1, 1, 'ok'],
        ['test-model', 'alpha', 1, 1, 'ok'],
      ])
      // A step that occurs twice is called once, with one token, under the model name that the provider uses.
      expect([app.alpha.requests.length, app.indus.requests.length, app.beta.requests.length]).toEqual([2, 1, 0])
      for (const { json } of watched.canaries()) expect([json?.['max_tokens'], json?.['stream'] ?? false, json?.['fallbacks']]).toEqual([1, false, undefined])
      expect(app.indus.requests[0]?.json?.['model']).toBe('indus-upstream')
      const again = await app.call('POST', path, undefined, { cookie: owner })
      expect([again.status, again.json.checked, again.json.health, watched.canaries().length]).toEqual([200, false, reply.json.health, 3])
      expect(again.json.note).toContain('15 s')
      // Several concurrent requests share one round.
      watched.clock.advance(21_000)
      const many = await Promise.all(Array.from({ length: 5 }, () => app.call('POST', path, undefined, { cookie: member.cookie })))
      expect([many.map(({ json }) => json.health[0].checks), watched.canaries().length]).toEqual([[2, 2, 2, 2, 2], 6])
      // A process whose clock is slightly late finds the same round.
      watched.clock.advance(-5000)
      const behind = await app.call('POST', path, undefined, { cookie: member.cookie })
      expect([behind.json.checked, watched.canaries().length]).toEqual([false, 6])
      watched.clock.advance(5000)
      // Every member may also star, fork, list, and read health.
      const other = await app.otherOrg('Givers')
      const giver = await app.signIn(other.userId, other.orgId)
      const shared = await app.call('POST', '/me/collections', { name: 'Given', model: 'test-model', steps: ['test-model'], public: true }, { cookie: giver })
      for (const { cookie } of [member, watched.admin, { cookie: owner }]) {
        expect((await app.call('POST', `/me/collections/star/${shared.json.slug}`, undefined, { cookie })).status).toBe(200)
        expect((await app.call('GET', '/me/collections', undefined, { cookie })).status).toBe(200)
        expect((await app.call('GET', `/me/collections/${slug}/health`, undefined, { cookie })).status).toBe(200)
        expect((await app.call('GET', `/me/collections/${slug}/alerts`, undefined, { cookie })).status).toBe(200)
        expect((await app.call('POST', path, undefined, { cookie })).status).toBe(200)
      }
      const fork = await app.call('POST', `/me/collections/fork/${shared.json.slug}`, undefined, { cookie: member.cookie })
      expect(fork.status, fork.text).toBeLessThan(300)
    })

    test('when the servers of one organisation hang, canaries of other organisations still run', async () => {
      const slots = new CanarySlots(3, 2)
      const begun: string[] = []
      const ends: (() => void)[] = []
      const run = (orgId: number, name: string) =>
        slots.run(orgId, () => {
          begun.push(name)
          return new Promise<void>(end => ends.push(end))
        })
      const all = [run(1, 'a'), run(1, 'b'), run(1, 'c'), run(2, 'd'), run(2, 'e')]
      expect(begun).toEqual(['a', 'b', 'd'])
      for (const next of [['c'], ['e'], [], [], []]) {
        const before = begun.length
        ends.shift()?.()
        await new Promise(resolve => setImmediate(resolve))
        expect(begun.slice(before)).toEqual(next)
      }
      await Promise.all(all)
    })

    test('an organisation can request at most 20 rounds a minute', async () => {
      const { app, owner } = watched
      // The limit counts minutes of the clock, so the test moves to the start of a minute.
      watched.clock.moveTo(Math.ceil(watched.clock.nowMs() / 60_000 + 1) * 60_000)
      const made = []
      for (let count = 0; count < 21; count++) made.push(await watched.make(['alpha-only']))
      const ask = async (slug: string) => (await app.call('POST', `/me/collections/${slug}/check`, undefined, { cookie: owner })).json
      const checked = []
      for (const { slug } of made) checked.push((await ask(slug)).checked)
      expect([checked.filter(Boolean).length, checked.at(-1), app.alpha.requests.length]).toEqual([20, false, 20])
      // The count continues when a collection is checked twice within the minute, and when a collection replaces a deleted one.
      watched.clock.advance(20_000)
      for (const { id } of made.slice(1, -1)) await app.call('DELETE', `/me/collections/${id}`, undefined, { cookie: owner })
      const [again, anew] = [await ask(made[0]?.slug ?? ''), await ask((await watched.make(['alpha-only'])).slug)]
      expect([again.checked, anew.checked, anew.note.includes('20 rounds'), app.alpha.requests.length]).toEqual([false, false, true, 20])
      watched.clock.advance(60_000)
      expect((await ask(made.at(-1)?.slug ?? '')).checked).toBe(true)
    })

    test('canaries per day are limited for each organisation and for the installation; an organisation at its limit does not reduce the canaries of others', async () => {
      const { app, owner, clock } = watched
      const stranger = await app.otherOrg('Spenders')
      const cookie = await app.signIn(stranger.userId, stranger.orgId)
      clock.moveTo(Math.ceil(clock.nowMs() / 86_400_000 + 1) * 86_400_000)
      const steps = ['alpha-only', { model: 'test-model', provider: 'beta' }, 'test-model']
      const mine = (await app.call('POST', '/me/collections', { name: 'Spent', model: 'test-model', steps }, { cookie })).json
      const theirs = await watched.make(['alpha-only'])
      const ask = async (slug: string, who: string) => {
        clock.advance(16_000)
        return (await app.call('POST', `/me/collections/${slug}/check`, undefined, { cookie: who })).json
      }
      for (let count = 0; count < 33; count++) expect((await ask(mine.slug, cookie)).checked).toBe(true)
      const sent = watched.canaries().length
      for (let count = 0; count < 3; count++) {
        const refused = await ask(mine.slug, cookie)
        expect([refused.checked, refused.note]).toEqual([false, expect.stringContaining('CANARIES_ORG_MAX')])
      }
      // Monitoring sends no canaries either, and reports nothing about steps that it has not called.
      await app.call('POST', `/me/collections/${mine.slug}/monitor`, { monitored: true }, { cookie })
      clock.advance(400_000)
      await until(() => app.logLines.some(line => line.includes('canaries_used_up')), 'the round is left out')
      expect(watched.canaries().length).toBe(sent)
      await app.call('POST', `/me/collections/${mine.slug}/monitor`, { monitored: false }, { cookie })
      expect((await ask(theirs.slug, owner)).checked).toBe(true)
      // One canary is left of the limit of the installation.
      expect((await ask(theirs.slug, owner)).note).toContain('called just now')
      expect((await ask(theirs.slug, owner)).note).toContain('CANARIES_MAX')
      clock.advance(86_400_000)
      expect([(await ask(mine.slug, cookie)).checked, (await ask(theirs.slug, owner)).checked]).toEqual([true, true])
    })

    test("HARD-11 organisations of one person share one founder's daily canaries, and other founders keep their own", async () => {
      const { app, owner, clock } = watched
      const person = await app.otherOrg('Founders')
      const first = await app.signIn(person.userId, person.orgId)
      const second = await app.signIn(person.userId, person.orgId)
      const made = await app.call('POST', '/me/orgs', { name: 'One more' }, { cookie: second })
      expect((await app.call('POST', '/me/orgs/switch', { org_id: made.json.id }, { cookie: second })).status).toBe(200)
      clock.moveTo(Math.ceil(clock.nowMs() / 86_400_000 + 1) * 86_400_000)
      const steps = ['alpha-only', { model: 'test-model', provider: 'beta' }, 'test-model']
      const collections = []
      for (const cookie of [first, second])
        collections.push({ cookie, slug: (await app.call('POST', '/me/collections', { name: 'Spent', model: 'test-model', steps }, { cookie })).json.slug })
      const theirs = await watched.make(['alpha-only'])
      const ask = async (slug: string, who: string) => {
        clock.advance(16_000)
        return (await app.call('POST', `/me/collections/${slug}/check`, undefined, { cookie: who })).json
      }
      for (let count = 0; count < 33; count++) {
        const { slug, cookie } = collections[count % 2] ?? expect.fail('there are two')
        expect((await ask(slug, cookie)).checked).toBe(true)
      }
      for (const { slug, cookie } of collections) expect((await ask(slug, cookie)).note).toContain('CANARIES_ORG_MAX')
      expect((await ask(theirs.slug, owner)).checked).toBe(true)
      clock.advance(86_400_000)
    })

    test('MON-08 canaries are not billed, are not in usage, budgets, rate limits, statistics or webhooks, and open no circuit', async () => {
      const { app, check } = watched
      const { slug } = await watched.make([{ model: 'test-model', provider: 'alpha' }, 'test-embed'])
      const chat = () => app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: 'Hi' }] })
      const nothing = await app.db.many(money)
      expect((await chat()).status).toBe(200)
      await app.gateway.app.limits.flushNow()
      const before = await app.db.many(money)
      expect(before.length).toBeGreaterThan(nothing.length)
      app.alpha.reset()
      const usage = async () => (await app.call('GET', '/v1/usage')).json
      const whole = await usage()
      let sent = 0
      for (const script of [{}, fails, fails, fails, fails, fails, fails, {}]) {
        app.alpha.script(() => script)
        const reply = await check(slug)
        expect(reply.json.health[0].state).toBe(script === fails ? 'failing' : 'ok')
        sent = app.alpha.requests.length
      }
      expect(sent).toBe(8)
      await app.gateway.app.limits.flushNow()
      expect(await app.db.many(money)).toEqual(before)
      expect((await usage()).totals).toEqual(whole.totals)
      const models = (await app.call('GET', '/v1/models/test-model')).json
      expect(models.routes.map((route: { available: boolean }) => route.available)).toEqual([true, true, true])
      expect(app.logLines.join('\n')).not.toContain('ping')
    })

    test('failures have codes; a step without a pinned provider fails over like a call; a provider that hangs is given up after the time limit', async () => {
      const { app, check } = watched
      const { slug } = await watched.make([{ model: 'test-model', provider: 'beta' }, 'test-model'])
      const code = async (script: object): Promise<unknown> => {
        app.beta.script(() => script)
        watched.impatient('hang' in script)
        return (await check(slug)).json.health[0].last_code
      }
      for (const [script, expected] of [
        [fails, 'upstream_error'],
        [{ status: 429, body: {} }, 'rate_limited'],
        [{ status: 401, body: { error: { message: 'no' } } }, 'credential_refused'],
        [{ status: 404, body: { error: { message: 'no such model' } } }, 'refused'],
        [{ reset: true }, 'unreachable'],
        [{ hang: true }, 'timeout'],
        [{ status: 400, body: { error: { message: "Unsupported value: 'max_tokens' must be at least 16" } } }, null],
        [{}, null],
      ] as const)
        expect(await code(script), JSON.stringify(script)).toBe(expected)
      app.alpha.script(() => fails)
      const failedOver = (await check(slug)).json.health[1]
      expect([failedOver.provider, failedOver.state]).toEqual(['beta', 'ok'])
      const all = [app.alpha, app.beta, app.indus]
      for (const upstream of all) upstream.script(() => fails)
      const down = (await check(slug)).json.health[1]
      // The health still shows the provider that answered last.
      expect([down.provider, down.state, down.last_code, down.uptime < 1]).toEqual(['beta', 'failing', 'upstream_error', true])
    })

    test("canaries use the organisation's saved keys and own servers; a step that nothing can serve has the code no_route", async () => {
      const { app, check, owner, own } = watched
      const server = await app.call(
        'POST',
        '/me/endpoints',
        { name: 'Own', model: 'test-model', base_url: own.url, upstream_model: 'own-model' },
        { cookie: owner },
      )
      expect(server.status, server.text).toBe(201)
      own.behave()
      const { slug } = await watched.make([{ model: 'test-model', provider: 'byoe:own' }, 'byok-model'])
      const without = (await check(slug)).json.health
      expect(without.map((step: Record<string, unknown>) => [step['provider'], step['state'], step['last_code'], step['uptime']])).toEqual([
        ['byoe:own', 'ok', null, 1],
        [null, 'failing', 'no_route', 0],
      ])
      expect([own.requests.length, own.requests[0]?.json?.['model']]).toEqual([1, 'own-model'])
      const saved = await app.call('PUT', '/me/byok/alpha', { key: 'sk-own-alpha-key-0123456789' }, { cookie: owner })
      expect(saved.status, saved.text).toBe(200)
      app.alpha.reset()
      const served = (await check(slug)).json.health[1]
      expect([served.provider, served.state, served.uptime]).toEqual(['alpha', 'ok', 0.5])
      expect(app.alpha.requests.at(-1)?.headers.authorization).toBe('Bearer sk-own-alpha-key-0123456789')
      await app.call('DELETE', '/me/byok/alpha', undefined, { cookie: owner })
    })

    test('a canary of an embeddings model sends one word; image and audio models get no canary and are never reported as down', async () => {
      const { app, check, owner } = watched
      const embeds = await watched.make(['test-embed'], 'test-embed')
      expect((await check(embeds.slug)).json.health[0]).toMatchObject({ state: 'ok', uptime: 1, provider: 'alpha' })
      expect([app.alpha.requests[0]?.path, app.alpha.requests[0]?.json?.['input']]).toEqual(['/v1/embeddings', 'ping'])
      watched.reset()
      for (const model of ['draw', 'say', 'hear']) {
        const { slug } = await watched.make([model], model)
        const reply = await app.call('POST', `/me/collections/${slug}/check`, undefined, { cookie: owner })
        expect([reply.status, reply.json.checked, reply.json.health]).toEqual([
          200,
          false,
          [{ model, provider: null, uptime: null, p95_ms: null, checks: 0, last_check: null, state: 'unsupported', last_code: null }],
        ])
        expect(reply.json.note).toContain('images or audio')
        expect((await watched.on(slug)).json.note).toContain('images or audio')
        await watched.on(slug, false)
      }
      expect(watched.canaries()).toEqual([])
    })
  })
}
