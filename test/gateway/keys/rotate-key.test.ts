import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, type TestMember, type TestReply } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'

const dayMs = 24 * 3600_000
const morning = Date.UTC(2026, 10, 21, 3, 45, 1)

describe('rotating keys', () => {
  const clock = movableClock(morning)
  let app: TestApp
  let cookie: string
  let member: TestMember
  beforeAll(async () => {
    app = await startApp({ clock })
    cookie = await app.signIn()
    member = await app.newMember('member')
  })
  afterAll(() => app.stop())

  const make = async (body: object = {}, as = cookie) => (await app.call('POST', '/me/keys', body, { cookie: as })).json
  const rotate = (id: number, body: object = {}, as = cookie) => app.call('POST', `/me/keys/${id}/rotate`, body, { cookie: as })
  const shown = async (id: number) => (await app.call('GET', '/me/keys', undefined, { cookie })).json.keys.find((key: { id: number }) => key.id === id)
  const chat = async (token: string) => {
    const reply = await app.call(
      'POST',
      '/v1/chat/completions',
      { model: 'test-model', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 10 },
      { token },
    )
    return reply.status === 200 ? 200 : said(reply)
  }
  const said = ({ status, json }: TestReply) => [status, json?.error?.code]

  test('ROTA-01 a rotated key keeps its id; the old secret works exactly as long as the caller requested, from 0 to 7 days', async () => {
    for (const days of [7, 1, 0.5]) {
      const { key: old, id } = await make({ rpm_limit: 77, budget_inr: 9 })
      expect(await chat(old)).toBe(200)
      const before = await shown(id)
      const reply = await rotate(id, { overlap_days: days })
      expect([reply.status, reply.headers.get('cache-control')]).toEqual([200, 'no-store'])
      const { key, prefix, rotated_at, previous_until } = reply.json
      expect(reply.json).toEqual({ ok: true, id, key, prefix: key.slice(0, 12), name: before.name, rotated_at, previous_until })
      expect(Date.parse(previous_until) - Date.parse(rotated_at)).toBe(days * dayMs)
      expect(await shown(id)).toEqual({ ...before, prefix, rotated_at, previous_until })
      expect([await chat(old), await chat(key)]).toEqual([200, 200])
      clock.advance(days * dayMs - 60_000)
      expect([await chat(old), await chat(key)]).toEqual([200, 200])
      clock.advance(60_000)
      expect([await chat(old), await chat(key)]).toEqual([[401, 'invalid_api_key'], 200])
      expect((await shown(id)).previous_until).toBeNull()
    }
  })

  test('ROTA-01 without an overlap the old secret is refused immediately, and the reply says so', async () => {
    const { key: old, id } = await make()
    expect(await chat(old)).toBe(200)
    const { key } = (await rotate(id, { overlap_days: 0 })).json
    expect([await chat(old), await chat(key)]).toEqual([[401, 'invalid_api_key'], 200])
    const refused = await app.call('GET', '/v1/usage', undefined, { token: old })
    expect(refused.json.error.message).toContain('rotated')
  })

  test('ROTA-01 the default overlap is one day; overlaps outside 0 to 7 days are refused', async () => {
    const { id } = await make()
    const { rotated_at, previous_until } = (await rotate(id)).json
    expect(Date.parse(previous_until) - Date.parse(rotated_at)).toBe(dayMs)
    for (const days of [-1, 7.1, '1', null]) expect(said(await rotate(id, { overlap_days: days }))).toEqual([400, 'bad_request'])
  })

  test('a second rotation during an overlap ends the oldest secret, and the middle secret gets the overlap', async () => {
    const { key: first, id } = await make()
    expect(await chat(first)).toBe(200)
    const second = (await rotate(id, { overlap_days: 7 })).json.key
    expect([await chat(first), await chat(second)]).toEqual([200, 200])
    const third = (await rotate(id, { overlap_days: 1 })).json.key
    expect([await chat(first), await chat(second), await chat(third)]).toEqual([[401, 'invalid_api_key'], 200, 200])
  })

  test('a rotation does not change limits, budget and spend', async () => {
    const { key: old, id } = await make({ daily_limit: 2, budget_inr: 3 })
    expect(await chat(old)).toBe(200)
    const spent = (await shown(id)).spend_month_inr
    expect(spent).toBeGreaterThan(0)
    const { key } = (await rotate(id, { overlap_days: 1 })).json
    expect((await shown(id)).spend_month_inr).toBe(spent)
    expect(await chat(key)).toBe(200)
    expect([await chat(key), await chat(old)]).toEqual([
      [429, 'daily_limit_reached'],
      [429, 'daily_limit_reached'],
    ])
  })

  test('an agent token of the key stays valid after a rotation; revoking the key ends both secrets and the token', async () => {
    const { key: old, id } = await make()
    const agent = (await app.call('POST', '/v1/me/agents', { name: 'of a rotated key' }, { token: old })).json
    const token = (await app.call('POST', `/v1/me/agents/${agent.id}/token`, {}, { token: old })).json.access_token
    const { key } = (await rotate(id, { overlap_days: 7 })).json
    expect(await chat(token)).toBe(200)
    await app.call('DELETE', `/me/keys/${id}`, undefined, { cookie })
    for (const secret of [old, key, token]) expect(await chat(secret)).toEqual([401, 'invalid_api_key'])
  })

  test('people rotate their own keys and never get the secret of another person; owners and admins rotate keys without a user', async () => {
    const own = await make({}, member.cookie)
    const { key } = (await rotate(own.id, { overlap_days: 0 }, member.cookie)).json
    expect([await chat(own.key), await chat(key)]).toEqual([[401, 'invalid_api_key'], 200])
    const foreign = await make()
    expect(said(await rotate(foreign.id, {}, member.cookie))).toEqual([403, 'forbidden'])
    expect(await chat(foreign.key)).toBe(200)
    const admin = await app.newMember('admin')
    for (const cookie of [admin.cookie, await app.signIn()]) expect(said(await rotate(own.id, {}, cookie))).toEqual([403, 'forbidden'])
    expect(await chat(key)).toBe(200)
    const nobodys = await app.gateway.app.keys.create({ orgId: app.orgId, userId: null, workspaceId: null, name: 'robot', scope: 'full' })
    expect(said(await rotate(nobodys.id, {}, member.cookie))).toEqual([403, 'forbidden'])
    expect((await rotate(nobodys.id, {}, admin.cookie)).status).toBe(200)
  })

  test('a disabled key can be rotated and stays disabled; an expired key cannot be rotated', async () => {
    const { id } = await make()
    await app.call('PATCH', `/me/keys/${id}`, { enabled: false }, { cookie })
    const { key } = (await rotate(id, { overlap_days: 0 })).json
    expect(await chat(key)).toEqual([401, 'invalid_api_key'])
    await app.call('PATCH', `/me/keys/${id}`, { enabled: true }, { cookie })
    expect(await chat(key)).toBe(200)
    const short = await make({ expires_days: 1 })
    clock.advance(dayMs)
    expect(said(await rotate(short.id))).toEqual([400, 'bad_request'])
  })

  test('during an overlap, both secrets are found without a database query after their first use', async () => {
    const { key: old, id } = await make()
    const { key } = (await rotate(id, { overlap_days: 1 })).json
    const { keys } = app.gateway.app
    await keys.findForAuth(old)
    const record = await keys.findForAuth(key)
    const before = app.db.roundTrips
    expect(keys.findForAuth(key)).toBe(record)
    expect(keys.findForAuth(old)).toBe(record)
    expect(app.db.roundTrips).toBe(before)
    const rows = await app.dump()
    for (const secret of [old, key]) expect(rows).not.toContain(secret.slice(0, 14))
  })
})
