import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestMember, type TestReply } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'

/** One second after the start of a minute, so that a test of requests per minute stays within one minute. */
const morning = Date.UTC(2026, 10, 21, 3, 45, 1)
const minuteMs = 60_000
const disableForInactivity = statement<[orgId: number, keyId: number]>(
  'test.soft_disable_key',
  `update api_keys set enabled = false, disabled_reason = 'inactivity' where org_id = $1::int and id = $2::int`,
)
const outbox = statement<[orgId: number, type: string], { data: object }>(
  'test.revoked_events',
  `select data from webhook_events where org_id = $1::int and type = $2::text order by id`,
)

describe('changing and revoking keys', () => {
  const clock = movableClock(morning)
  let app: TestApp
  let cookie: string
  let admin: TestMember
  let member: TestMember
  let minute = 0
  beforeAll(async () => {
    app = await startApp({ clock })
    cookie = await app.signIn()
    admin = await app.newMember('admin')
    member = await app.newMember('member')
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    app.alpha.reset()
    minute += 5
    clock.moveTo(morning + minute * minuteMs)
  })

  const make = async (body: object = {}) => (await app.call('POST', '/me/keys', body, { cookie })).json
  const patch = (id: number | string, body: object, as = admin.cookie) => app.call('PATCH', `/me/keys/${id}`, body, { cookie: as })
  const end = (id: number | string, as = admin.cookie) => app.call('DELETE', `/me/keys/${id}`, undefined, { cookie: as })
  const list = async () => (await app.call('GET', '/me/keys', undefined, { cookie })).json.keys
  const chat = (token: string, body: object = {}) =>
    app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 10, ...body }, { token })
  const said = ({ status, json }: TestReply) => [status, json?.error?.code]
  const outcome = async (token: string) => {
    const reply = await chat(token)
    return reply.status === 200 ? 200 : said(reply)
  }

  test('KEY-08 LIM-06 rpm_limit, daily_limit, budget_inr, enabled and lifecycle_pin can each be set alone, and apply from the next call on', async () => {
    const { key, id } = await make()
    expect(await outcome(key)).toBe(200)
    const before = (await list()).find((shown: { id: number }) => shown.id === id)

    const rpm = await patch(id, { rpm_limit: 1 })
    expect([rpm.status, rpm.json]).toEqual([
      200,
      { ok: true, key: expect.objectContaining({ ...before, rpm_limit: 1, last_used_at: expect.any(String), spend_month_inr: expect.any(Number) }) },
    ])
    expect(await outcome(key)).toEqual([429, 'rate_limit_exceeded'])
    await patch(id, { rpm_limit: 1000 })
    expect(await outcome(key)).toBe(200)

    // The gateway counts the calls of a day only from the moment at which the key has a daily limit.
    expect((await patch(id, { daily_limit: 1 })).json.key).toMatchObject({ rpm_limit: 1000, daily_limit: 1, budget_inr: null })
    expect(await outcome(key)).toBe(200)
    expect(await outcome(key)).toEqual([429, 'daily_limit_reached'])
    await patch(id, { daily_limit: null })
    expect(await outcome(key)).toBe(200)

    expect((await patch(id, { budget_inr: 0.000001 })).json.key).toMatchObject({ budget_inr: 0.000001, daily_limit: null })
    expect(await outcome(key)).toEqual([429, 'budget_exceeded'])
    await patch(id, { budget_inr: null })
    expect(await outcome(key)).toBe(200)

    expect((await patch(id, { enabled: false })).json.key).toMatchObject({ enabled: false, state: 'disabled', rpm_limit: 1000 })
    expect(await outcome(key)).toEqual([401, 'invalid_api_key'])
    expect((await patch(id, { enabled: true })).json.key).toMatchObject({ enabled: true, state: 'active' })
    expect(await outcome(key)).toBe(200)

    expect((await patch(id, { lifecycle_pin: 'keep' })).json.key.lifecycle_pin).toBe('keep')
    expect((await patch(id, { rpm_limit: 7 })).json.key).toMatchObject({ lifecycle_pin: 'keep', rpm_limit: 7 })
    expect((await patch(id, { lifecycle_pin: null })).json.key).toMatchObject({ lifecycle_pin: null, rpm_limit: 7 })
  })

  test('the name and the rules for calls can be changed, and an empty change changes nothing', async () => {
    const { id } = await make({ name: 'plain' })
    const policies = {
      allowed_models: ['test-model', 'auto'],
      allowed_providers: ['alpha'],
      max_cost_inr_per_call: 1.5,
      max_output_tokens: 100,
      max_concurrency: 2,
      tpm_limit: 20_000,
      allowed_tools: ['crm__*'],
    }
    expect((await patch(id, { name: ' renamed ', ...policies })).json.key).toMatchObject({ name: 'renamed', ...policies })
    const shown = (await list()).find((key: { id: number }) => key.id === id)
    expect((await patch(id, {})).json.key).toEqual(shown)
    expect((await patch(id, { max_concurrency: null, allowed_models: null })).json.key).toEqual({ ...shown, max_concurrency: null, allowed_models: null })
    expect(said(await patch(id, { name: '' }))).toEqual([400, 'bad_name'])
  })

  test('a refused change changes nothing, not even the budget', async () => {
    const { id } = await make({ name: 'whole or not at all', budget_inr: 5 })
    await make({ name: 'in the way' })
    expect(said(await patch(id, { budget_inr: 99, rpm_limit: 9, name: 'in the way' }))).toEqual([400, 'duplicate_key_name'])
    expect((await list()).find((key: { id: number }) => key.id === id)).toMatchObject({ budget_inr: 5, rpm_limit: 600, name: 'whole or not at all' })
  })

  test('KEY-09 KEY-16 PERM-03 owners and admins may change and revoke keys; a member may not, not even their own', async () => {
    const own = (await app.call('POST', '/me/keys', {}, { cookie: member.cookie })).json
    expect(said(await patch(own.id, { rpm_limit: 1 }, member.cookie))).toEqual([403, 'forbidden'])
    expect(said(await end(own.id, member.cookie))).toEqual([403, 'forbidden'])
    expect(await outcome(own.key)).toBe(200)
    for (const as of [admin.cookie, cookie]) {
      expect((await patch(own.id, { rpm_limit: 100 }, as)).status).toBe(200)
      const { id } = await make()
      expect((await end(id, as)).status).toBe(200)
    }
  })

  test('KEY-10 a key of another organisation cannot be changed, revoked or rotated: 404', async () => {
    const other = await app.otherOrg('Neighbours')
    for (const id of [other.keyId, 999_999, 'x', '0', '-1', '99999999999999999999']) {
      expect(said(await patch(id, { rpm_limit: 1 }))).toEqual([404, 'not_found'])
      expect(said(await end(id))).toEqual([404, 'not_found'])
      expect(said(await app.call('POST', `/me/keys/${id}/rotate`, {}, { cookie }))).toEqual([404, 'not_found'])
    }
    expect((await app.call('GET', '/v1/usage', undefined, { token: other.key })).status).toBe(200)
    expect((await list()).some((key: { id: number }) => key.id === other.keyId)).toBe(false)
    // The role is checked first, so a member cannot find out whether another organisation has the key.
    expect(said(await patch(other.keyId, {}, member.cookie))).toEqual([403, 'forbidden'])
  })

  test('KEY-13 enabled:true reactivates a key that was disabled for inactivity, and does not change its last use', async () => {
    const { key, id } = await make()
    await app.db.exec(disableForInactivity, app.orgId, id)
    await patch(id, { rpm_limit: 500 })
    expect(await outcome(key)).toEqual([401, 'key_disabled_inactive'])
    expect((await list()).find((shown: { id: number }) => shown.id === id)).toMatchObject({ enabled: false, state: 'disabled_inactive', last_used_at: null })
    const reply = await patch(id, { enabled: true })
    expect(reply.json.key).toMatchObject({ enabled: true, state: 'active', last_used_at: null })
    expect(await outcome(key)).toBe(200)
  })

  test('KEY-15 LIFE-08 a revoked key is refused immediately and its running call is cut; one event is in the outbox, and the revoke is permanent', async () => {
    const { key, id, prefix } = await make({ name: 'to be ended' })
    app.alpha.script([{ hold: true }])
    const running = chat(key, { model: 'alpha-only' })
    await app.alpha.arrived(1)
    const ended = await end(id)
    expect([ended.status, ended.json]).toEqual([200, { ok: true, key: expect.objectContaining({ id, state: 'revoked' }) }])
    expect(said(await running)).toEqual([401, 'invalid_api_key'])
    app.alpha.release()
    expect(await outcome(key)).toEqual([401, 'invalid_api_key'])
    expect((await list()).some((shown: { id: number }) => shown.id === id)).toBe(false)
    for (const body of [{ enabled: true }, { rpm_limit: 5 }, { name: 'back' }]) expect(said(await patch(id, body))).toEqual([404, 'not_found'])
    expect(said(await app.call('POST', `/me/keys/${id}/rotate`, {}, { cookie }))).toEqual([404, 'not_found'])
    expect((await end(id)).status).toBe(200)
    const events = (await app.db.many(outbox, app.orgId, 'key.revoked')).map(event => event.data)
    expect(events.filter(data => (data as { key_id: number }).key_id === id)).toEqual([{ key_id: id, prefix, tier: 'standard', scope: 'full' }])
  })

  test('changes over the command line and over the console apply to the same key', async () => {
    const { key, id } = await make()
    await app.gateway.app.keys.setLimits(app.orgId, id, { rpmLimit: 2, dailyLimit: 9 })
    expect((await list()).find((shown: { id: number }) => shown.id === id)).toMatchObject({ rpm_limit: 2, daily_limit: 9 })
    await app.setBudget('key', id, 12)
    expect((await patch(id, {})).json.key.budget_inr).toBe(12)
    expect(await outcome(key)).toBe(200)
  })
})
