/** One delivery in full: what was sent, and every attempt. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestReply } from '../../harness/app.ts'
import { type MovableClock, movableClock } from '../../harness/clock.ts'
import { until } from '../../harness/until.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../harness/webhook-receiver.ts'

const hourMs = 3_600_000
/** The tests wait on this query, because the console has a rate limit. */
const newestState = statement<[endpointId: number], { status: string; attempts: number }>(
  'test.newest_delivery_state',
  `select status, attempts from webhook_deliveries where endpoint_id = $1::int and claimed_until is null order by event_seq desc limit 1`,
)
const dropEvents = statement('test.drop_webhook_bodies', 'update webhook_events set body = null')
const isoTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/)

describe('one delivery of a webhook', () => {
  let app: TestApp
  let receiver: WebhookReceiver
  let clock: MovableClock
  let owner: string
  beforeAll(async () => {
    clock = movableClock()
    receiver = await startWebhookReceiver()
    app = await startApp({
      clock,
      env: {
        OUTBOUND_ALLOW: receiver.hostPort,
        WEBHOOK_POLL_MS: '20',
        WEBHOOK_TIMEOUT_MS: '2000',
        WEBHOOK_RETRY_S: '60,60,60,60,60,60',
        WEBHOOK_DISABLE_FAILURES: '1000',
        CONSOLE_RPM: '100000',
      },
    })
    owner = await app.signIn()
  })
  afterAll(async () => {
    await app.stop()
    await receiver.close()
  })
  beforeEach(() => receiver.answer({}))

  let made = 0
  const ask = (method: string, path: string, body?: unknown, cookie = owner): Promise<TestReply> => app.call(method, `/me/webhooks${path}`, body, { cookie })
  const make = async (): Promise<number> => (await ask('POST', '', { url: `${receiver.url}/one-${++made}`, event_types: ['key.created'] })).json.id
  const happen = async (): Promise<void> => {
    expect((await app.call('POST', '/me/keys', { name: `a secret name ${++made}` }, { cookie: owner })).status).toBe(201)
  }
  const settled = (id: number, status: string, attempts: number) =>
    until(async () => {
      const state = await app.db.maybe(newestState, id)
      return state?.status === status && state.attempts === attempts
    }, `${status} after ${attempts} attempts`)
  const newest = async (id: number): Promise<string> => (await ask('GET', `/${id}/deliveries?limit=1`)).json.deliveries[0].id

  test('CAPI-08 a delivery shows the payload as it was sent, and every attempt with time, status, duration and error', async () => {
    const id = await make()
    receiver.answer({ status: 500, body: 'what a receiver says is kept nowhere' })
    await happen()
    await settled(id, 'failed', 1)
    receiver.answer('reset')
    clock.advance(2 * hourMs)
    await settled(id, 'failed', 2)
    receiver.answer({ status: 204 })
    clock.advance(2 * hourMs)
    await settled(id, 'acknowledged', 3)
    const did = await newest(id)
    const { status, json, text } = await ask('GET', `/${id}/deliveries/${did}`)
    expect(status).toBe(200)
    const listed = (await ask('GET', `/${id}/deliveries`)).json.deliveries[0]
    const times = { at: isoTime, duration_ms: expect.any(Number) }
    expect(json).toEqual({
      ...listed,
      payload: receiver.received.at(-1)?.raw.toString(),
      attempt_log: [
        { number: 1, ...times, status: 500, error: 'http_status' },
        { number: 2, ...times, status: null, error: 'connection_reset' },
        { number: 3, ...times, status: 204, error: null },
      ],
    })
    expect(JSON.parse(json.payload)).toMatchObject({ type: 'key.created', org_id: app.orgId })
    expect(text).not.toContain('a secret name')
    expect(text).not.toContain('what a receiver says')
    const begun = json.attempt_log.map(({ at }: { at: string }) => Date.parse(at))
    expect(begun[1] - begun[0]).toBeGreaterThanOrEqual(2 * hourMs)
    expect(Math.abs(begun[2] - clock.nowMs())).toBeLessThan(60_000)
    for (const { duration_ms } of json.attempt_log) expect(duration_ms).toBeGreaterThanOrEqual(0)
  })

  test('a delivery remembers its last 20 attempts, also over repeated deliveries by hand', { timeout: 60_000 }, async () => {
    const id = await make()
    receiver.answer({ status: 503 })
    await happen()
    await settled(id, 'failed', 1)
    const did = await newest(id)
    let attempts = 1
    for (let round = 0; round < 4; round++) {
      for (; attempts < 7 * (round + 1); ) {
        clock.advance(12 * hourMs)
        attempts++
        await settled(id, attempts === 7 * (round + 1) ? 'dead' : 'failed', attempts)
      }
      if (round < 3) {
        expect((await ask('POST', `/${id}/deliveries/${did}/redeliver`)).status).toBe(200)
        attempts++
        await settled(id, 'failed', attempts)
      }
    }
    const { json } = await ask('GET', `/${id}/deliveries/${did}`)
    expect(json.attempts).toBe(28)
    expect(json.attempt_log.map(({ number }: { number: number }) => number)).toEqual(Array.from({ length: 20 }, (_, n) => n + 9))
  })

  test('an unknown delivery, one of another webhook and one of another organisation are 404, and a member gets 403', async () => {
    const [id, second] = [await make(), await make()]
    await happen()
    await settled(id, 'acknowledged', 1)
    const did = await newest(id)
    const there = await app.otherOrg('Other Hooks')
    const theirs = await app.signIn(there.userId, there.orgId)
    const member = await app.newMember('member')
    const said = async (path: string, cookie = owner) => {
      const { status, json } = await ask('GET', path, undefined, cookie)
      return [status, json.error?.code]
    }
    for (const path of [`/${id}/deliveries/x`, `/${id}/deliveries/dlv_${'0'.repeat(32)}`, `/${second}/deliveries/${did}`, `/99999/deliveries/${did}`])
      expect(await said(path), path).toEqual([404, 'not_found'])
    expect(await said(`/${id}/deliveries/${did}`, theirs)).toEqual([404, 'not_found'])
    expect(await said(`/${id}/deliveries/${did}`, member.cookie)).toEqual([403, 'forbidden'])
    await app.db.exec(dropEvents)
    expect((await ask('GET', `/${id}/deliveries/${did}`)).json).toMatchObject({ payload: null, attempt_log: [{ number: 1, status: 200 }] })
  })
})
