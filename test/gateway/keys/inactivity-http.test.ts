import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { istDay } from '../../../src/platform/values/ist-time.ts'
import { startApp, type TestApp, type TestReply } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'

const dayMs = 24 * 3600_000
const mails = statement<[orgId: number], { to: string; data: { keyName: string; keyPrefix: string; disabledOn: string } }>(
  'test.inactivity_mails',
  `select to_address as "to", data from emails where org_id = $1::int and template = 'key_inactivity' order by id`,
)
const audited = statement<[orgId: number], { target: string; actor: string }>(
  'test.inactivity_audit',
  `select target, actor_kind as "actor" from audit_log where org_id = $1::int and act = 'disableInactiveKey' order by id`,
)
const setWindow = statement<[orgId: number, days: number | null]>('test.set_key_inactivity', `update orgs set key_inactivity_days = $2::int where id = $1::int`)
const countKeys = statement<[orgId: number], { count: number }>('test.count_keys', `select count(*)::int as "count" from api_keys where org_id = $1::int`)
const setEmail = statement<[userId: number, email: string]>('test.set_email', `update users set email = $2::text where id = $1::int`)

describe('unused keys', () => {
  const clock = movableClock()
  let app: TestApp
  let cookie: string
  beforeAll(async () => {
    app = await startApp({ clock })
    cookie = await app.signIn()
  })
  afterAll(() => app.stop())

  /** Lets days pass, runs the sweep, and signs the people in again. */
  const pass = async (days: number): Promise<void> => {
    clock.advance(days * dayMs)
    cookie = await app.signIn()
    await app.gateway.app.jobs.runOnce('keys.inactivity')
  }
  const make = async (body: object = {}, as = cookie) => (await app.call('POST', '/me/keys', body, { cookie: as })).json
  const patch = (id: number, body: object) => app.call('PATCH', `/me/keys/${id}`, body, { cookie })
  const shown = async (id: number) => (await app.call('GET', '/me/keys', undefined, { cookie })).json.keys.find((key: { id: number }) => key.id === id)
  const use = async (token: string) => {
    const reply: TestReply = await app.call('GET', '/v1/usage', undefined, { token })
    return reply.status === 200 ? 200 : [reply.status, reply.json.error.code]
  }

  test('KEY-17 LIFE-07 a key that is idle for 90 days gets 14 days of notice by mail; it is then disabled, not deleted, and can be enabled again', async () => {
    const member = await app.newMember('member')
    const key = await make({ name: 'forgotten' }, member.cookie)
    expect(await use(key.key)).toBe(200)
    const keysBefore = (await app.db.one(countKeys, app.orgId)).count
    await pass(89)
    expect(await shown(key.id)).toMatchObject({ state: 'active', inactivity_notice_at: null })
    await pass(1)
    const noticed = await shown(key.id)
    expect(noticed).toMatchObject({ state: 'notice', enabled: true, inactivity_notice_at: expect.any(String) })
    const toMember = (await app.db.many(mails, app.orgId)).filter(mail => mail.to === member.email)
    const disabledOn = istDay(Date.parse(noticed.inactivity_notice_at) + 14 * dayMs)
    expect(toMember.map(mail => mail.data)).toEqual([expect.objectContaining({ keyName: 'forgotten', keyPrefix: key.prefix, disabledOn })])
    await pass(13)
    expect((await shown(key.id)).state).toBe('notice')
    await pass(1)
    expect(await shown(key.id)).toMatchObject({ state: 'disabled_inactive', enabled: false })
    expect(await use(key.key)).toEqual([401, 'key_disabled_inactive'])
    expect((await app.db.many(audited, app.orgId)).filter(line => line.target === `key=${key.id}`)).toEqual([{ target: `key=${key.id}`, actor: 'system' }])
    await pass(400)
    expect((await app.db.one(countKeys, app.orgId)).count).toBe(keysBefore)
    expect((await shown(key.id)).state).toBe('disabled_inactive')
    expect((await app.db.many(mails, app.orgId)).filter(mail => mail.to === member.email).length).toBe(1)

    expect((await patch(key.id, { enabled: true })).json.key).toMatchObject({ state: 'active', inactivity_notice_at: null })
    expect(await use(key.key)).toBe(200)
  })

  test('KEY-13 enabling a key restarts its idle time: the whole window must pass before it gets a new notice', async () => {
    const key = await make()
    await pass(90)
    await pass(14)
    expect((await shown(key.id)).state).toBe('disabled_inactive')
    expect((await patch(key.id, { enabled: true })).json.key.state).toBe('active')
    await pass(0)
    await pass(89)
    expect((await shown(key.id)).state).toBe('active')
    await pass(1)
    expect((await shown(key.id)).state).toBe('notice')
    await pass(14)
    expect((await shown(key.id)).state).toBe('disabled_inactive')
  })

  test('use after the notice withdraws the notice, even while this use is not in the database yet', async () => {
    const [early, late] = [await make(), await make()]
    await pass(90)
    expect([(await shown(early.id)).state, (await shown(late.id)).state]).toEqual(['notice', 'notice'])
    expect(await use(early.key)).toBe(200)
    await pass(7)
    expect(await shown(early.id)).toMatchObject({ state: 'active', inactivity_notice_at: null })
    clock.advance(7 * dayMs)
    expect(await use(late.key)).toBe(200)
    await pass(0)
    expect(await shown(late.id)).toMatchObject({ state: 'active', enabled: true, inactivity_notice_at: null })
    expect(await use(late.key)).toBe(200)
  })

  test('KEY-14 lifecycle_pin "keep" exempts a key from the rule; null applies the rule again with a whole new notice; other values are refused', async () => {
    const key = await make()
    expect((await patch(key.id, { lifecycle_pin: 'keep' })).json.key.lifecycle_pin).toBe('keep')
    await pass(90)
    await pass(14)
    await pass(300)
    expect(await shown(key.id)).toMatchObject({ state: 'active', enabled: true, lifecycle_pin: 'keep' })
    expect(await use(key.key)).toBe(200)
    for (const pin of ['forever', true, 'KEEP', '']) {
      const reply = await patch(key.id, { lifecycle_pin: pin })
      expect([reply.status, reply.json.error.code]).toEqual([400, 'bad_request'])
    }
    expect((await patch(key.id, { lifecycle_pin: null })).json.key.lifecycle_pin).toBeNull()
    await pass(90)
    expect((await shown(key.id)).state).toBe('notice')
    await pass(14)
    expect((await shown(key.id)).state).toBe('disabled_inactive')
  })

  test('setting the pin during a notice ends the notice', async () => {
    const key = await make()
    await pass(90)
    await patch(key.id, { lifecycle_pin: 'keep' })
    await pass(14)
    expect(await shown(key.id)).toMatchObject({ state: 'active', inactivity_notice_at: null })
  })

  test('each organisation has its own window or none; the owners get the notices of keys without a user', async () => {
    const org = await app.otherOrg('Short Window')
    const robot = await app.gateway.app.keys.create({ orgId: org.orgId, userId: null, workspaceId: null, name: 'robot', scope: 'full' })
    const lines = async () => {
      const as = await app.signIn(org.userId, org.orgId)
      return (await app.call('GET', '/me/keys', undefined, { cookie: as })).json.keys.map((key: { state: string }) => key.state)
    }
    await app.db.exec(setWindow, org.orgId, 7)
    await pass(7)
    expect(await lines()).toEqual(['notice', 'notice'])
    const sent = await app.db.many(mails, org.orgId)
    expect(sent.map(mail => [mail.to, mail.data.keyName])).toEqual(expect.arrayContaining([['owner@short-window.test', 'robot']]))
    await app.db.exec(setWindow, org.orgId, null)
    await pass(14)
    expect(await lines()).toEqual(['active', 'active'])
    await app.db.exec(setWindow, org.orgId, 7)
    await pass(0)
    expect(await lines()).toEqual(['notice', 'notice'])
    await app.gateway.app.keys.revoke(org.orgId, robot.id)
    await pass(14)
    expect(await lines()).toEqual(['disabled_inactive'])
  })

  test('an owner with an invalid mail address does not prevent the notice of their own keys or of other keys', async () => {
    const unreachable = await app.newMember('member')
    await app.db.exec(setEmail, unreachable.userId, '-nobody..here@people.test')
    const theirs = await make({ name: 'of nobody' }, await app.signIn(unreachable.userId))
    const later = await make({ name: 'made after it' })
    await pass(90)
    for (const { id } of [theirs, later]) expect((await shown(id)).state).toBe('notice')
  })
})
