import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createKeys } from '../../../src/gateway/keys/keys.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { ControlLog } from '../../../src/platform/db/db-control-log.ts'
import { silentLog } from '../../../src/platform/observe/log.ts'
import { systemIds } from '../../../src/platform/values/ids.ts'
import { startApp, type TestApp, type TestReply, until } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'

const morning = Date.UTC(2026, 10, 21, 3, 45, 1)
const minuteMs = 60_000
const billing = { RAZORPAY_KEY_ID: 'rzp_test_id', RAZORPAY_KEY_SECRET: 'rzp-test-secret' }
const creditedAt = statement<[orgId: number], { at: Date | null }>('test.credited_at', `select credited_at as "at" from orgs where id = $1::int`)

describe('trial keys when billing is configured', () => {
  const clock = movableClock(morning)
  let app: TestApp
  let cookie: string
  beforeAll(async () => {
    app = await startApp({ clock, env: billing })
    cookie = await app.signIn()
  })
  afterAll(() => app.stop())

  const make = (body: object = {}, as = cookie) => app.call('POST', '/me/keys', body, { cookie: as })
  const patch = (id: number, body: object, as = cookie) => app.call('PATCH', `/me/keys/${id}`, body, { cookie: as })
  const said = ({ status, json }: TestReply) => [status, json?.error?.code]
  const chat = (token: string) =>
    app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 5 }, { token })
  /** Promotes the keys as billing does when the first credit arrives. */
  const credit = (orgId: number) => app.db.tx(async tx => ({ news: await app.gateway.app.keys.promote(tx, orgId, new Date(clock.nowMs())) }))

  test('LIM-04 a new key is a trial key with 300 requests a minute and 2000 a day, and both limits apply', async () => {
    const { key, tier, rpm_limit, daily_limit } = (await make()).json
    expect([tier, rpm_limit, daily_limit]).toEqual(['trial', 300, 2000])
    const counts = new Map<string, number>()
    const count = (name: string) => counts.set(name, (counts.get(name) ?? 0) + 1)
    for (let sent = 0, at = 0; sent < 2000; at++) {
      clock.moveTo(morning + at * 2 * minuteMs)
      const batch = at === 0 ? 310 : Math.min(290, 2000 - sent)
      for (let i = 0; i < batch; i += 10) {
        const replies = await Promise.all(Array.from({ length: Math.min(10, batch - i) }, () => chat(key)))
        for (const reply of replies) {
          count(reply.status === 200 ? '200' : reply.json.error.code)
          if (reply.status === 200) sent++
        }
      }
    }
    expect(Object.fromEntries(counts)).toEqual({ '200': 2000, rate_limit_exceeded: 10 })
    clock.advance(2 * minuteMs)
    expect(said(await chat(key))).toEqual([429, 'daily_limit_reached'])
  }, 120_000)

  test('KEY-11 nobody can give a trial key more than 300 requests a minute or 2000 a day, neither when it is made nor later', async () => {
    const { id } = (await make()).json
    const admin = await app.newMember('admin')
    for (const body of [{ rpm_limit: 301 }, { daily_limit: 2001 }, { rpm_limit: null }, { daily_limit: null }, { rpm_limit: 300, daily_limit: 5000 }]) {
      for (const as of [cookie, admin.cookie]) expect(said(await patch(id, body, as))).toEqual([400, 'trial_ceiling'])
      expect(said(await make(body))).toEqual([400, 'trial_ceiling'])
    }
    const { keys } = (await app.call('GET', '/me/keys', undefined, { cookie })).json
    expect(keys.find((key: { id: number }) => key.id === id)).toMatchObject({ tier: 'trial', rpm_limit: 300, daily_limit: 2000 })
  })

  test('KEY-12 a trial key may have exactly 300 requests a minute and 2000 a day, or less', async () => {
    const { id } = (await make({ rpm_limit: 300, daily_limit: 2000 })).json
    expect((await patch(id, { rpm_limit: 10, daily_limit: 0 })).json.key).toMatchObject({ rpm_limit: 10, daily_limit: 0 })
    expect((await patch(id, { rpm_limit: 300, daily_limit: 2000 })).json.key).toMatchObject({ rpm_limit: 300, daily_limit: 2000 })
    expect((await patch(id, { budget_inr: 5, max_concurrency: 3 })).status).toBe(200)
  })

  test('the first credit turns all keys of the organisation into standard keys, raises trial limits and keeps lower limits; later keys are standard', async () => {
    const org = await app.otherOrg('Paying')
    const as = await app.signIn(org.userId, org.orgId)
    const usual = (await make({}, as)).json
    const low = (await make({ rpm_limit: 20 }, as)).json
    const stranger = (await make()).json
    expect((await credit(org.orgId)).news).toEqual(expect.arrayContaining([org.keyId, usual.id, low.id].map(id => ({ kind: 'key_changed', ref: String(id) }))))
    const at = (await app.db.one(creditedAt, org.orgId)).at
    expect(at).not.toBeNull()
    const { keys } = (await app.call('GET', '/me/keys', undefined, { cookie: as })).json
    const shown = (id: number) => keys.find((key: { id: number }) => key.id === id)
    expect(shown(usual.id)).toMatchObject({ tier: 'standard', rpm_limit: 600, daily_limit: null })
    expect(shown(low.id)).toMatchObject({ tier: 'standard', rpm_limit: 20, daily_limit: null })
    expect((await patch(usual.id, { rpm_limit: 9000 }, as)).status).toBe(200)
    expect((await make({}, as)).json).toMatchObject({ tier: 'standard', rpm_limit: 600, daily_limit: null })
    clock.advance(minuteMs)
    expect((await credit(org.orgId)).news).toEqual([])
    expect((await app.db.one(creditedAt, org.orgId)).at).toEqual(at)
    const mine = (await app.call('GET', '/me/keys', undefined, { cookie })).json.keys
    expect(mine.find((key: { id: number }) => key.id === stranger.id).tier).toBe('trial')
  })
})

describe('the free calls of a trial', () => {
  const freeCalls = 6
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ env: { ...billing, TRIAL_ORG_DAILY: String(freeCalls) } })
  })
  afterAll(() => app.stop())

  const chat = (token: string, body: object = {}) =>
    app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 5, ...body }, { token })
  const made = async (cookie: string) => (await app.call('POST', '/me/keys', {}, { cookie })).json as { id: number; key: string }

  test('all keys of an organisation share them, deleted keys count too, and so do other organisations of the same person', async () => {
    const org = await app.otherOrg('Freeloader')
    const cookie = await app.signIn(org.userId, org.orgId)
    let served = 0
    for (let i = 0; i < 2 * freeCalls; i++) {
      const { id, key } = await made(cookie)
      if ((await chat(key)).status === 200) served++
      expect((await app.call('DELETE', `/me/keys/${id}`, undefined, { cookie })).status).toBeLessThan(300)
    }
    expect(served).toBe(freeCalls)
    const refused = await chat(org.key)
    expect([refused.status, refused.json.error.code, refused.json.scope, refused.json.limit_name]).toEqual([
      429,
      'daily_limit_reached',
      'org',
      'TRIAL_ORG_DAILY',
    ])
    expect(refused.json.error.message).toContain(`${freeCalls} free calls a day`)
    expect([Number(refused.headers.get('retry-after')) > 0, refused.headers.get('x-should-retry')]).toEqual([true, 'false'])
    const team = (await app.call('POST', '/me/orgs', { name: 'Freeloader again' }, { cookie })).json
    const again = await made(await app.signIn(org.userId, team.id))
    expect((await chat(again.key)).json.error.code).toBe('daily_limit_reached')
    // Somebody else is not affected, and neither is the oldest organisation, which belongs to the operator.
    const other = await app.otherOrg('Newcomer')
    expect((await chat(other.key)).status).toBe(200)
    for (let i = 0; i < freeCalls + 1; i++) expect((await chat(app.key)).status).toBe(200)
  })

  test('own provider keys go on when they are used up, also as the second choice of a call, and credit ends the limit', async () => {
    const org = await app.otherOrg('Trying')
    for (let i = 0; i < freeCalls; i++) expect((await chat(org.key)).status).toBe(200)
    expect((await chat(org.key)).status).toBe(429)
    const before = app.alpha.requests.length
    expect((await chat(org.key, { upstream_key: 'sk-own-0001' })).status).toBe(200)
    expect(app.alpha.requests.length).toBe(before + 1)
    const cookie = await app.signIn(org.userId, org.orgId)
    expect((await app.call('PUT', '/me/byok/alpha', { key: 'sk-saved-alpha-key-0001', always_use: false }, { cookie })).status).toBe(200)
    const second = await chat(org.key)
    expect([second.status, second.headers.get('x-br-provider')]).toEqual([200, 'alpha'])
    expect((await app.call('DELETE', '/me/byok/alpha', undefined, { cookie })).status).toBeLessThan(300)
    await until(async () => (await chat(org.key)).status === 429)
    await app.gateway.app.operator.credits.give({ orgId: org.orgId, reason: 'grant', amountUinr: 10_000_000n, ref: 'first' })
    expect((await chat(org.key)).status).toBe(200)
  })
})

test('KEY-25 when billing is switched on, all keys of organisations without credit become trial keys, also keys from before', async () => {
  const app = await startApp()
  try {
    const { keys } = app.gateway.app
    const paying = await app.otherOrg('Paying before')
    await app.db.tx(tx => keys.promote(tx, paying.orgId, new Date()))
    expect(await keys.beginTrials()).toBe(0)
    // These are the steps of the next start with billing on.
    const controlLog = new ControlLog({ db: app.db, clock: systemClock, log: silentLog, pollMs: 1000 })
    const limits = { rpmLimit: 300, dailyLimit: 2000 }
    const billed = createKeys({ db: app.db, clock: systemClock, ids: systemIds, controlLog, cacheTtlMs: 1000, defaultRpm: 600, trialLimits: limits })
    expect(await billed.beginTrials()).toBe(1)
    expect((await billed.findForAuth(app.key))?.isTrial).toBe(true)
    expect((await billed.findForAuth(paying.key))?.isTrial).toBe(false)
    expect(await billed.beginTrials()).toBe(0)
  } finally {
    await app.stop()
  }
})

test('when billing is not configured, or only partly, every key is a standard key without a ceiling', async () => {
  const app = await startApp({ env: { RAZORPAY_KEY_ID: 'rzp_test_id' } })
  try {
    const cookie = await app.signIn()
    const made = (await app.call('POST', '/me/keys', {}, { cookie })).json
    expect(made).toMatchObject({ tier: 'standard', rpm_limit: 600, daily_limit: null })
    expect((await app.call('PATCH', `/me/keys/${made.id}`, { rpm_limit: 100_000, daily_limit: null }, { cookie })).status).toBe(200)
  } finally {
    await app.stop()
  }
})
