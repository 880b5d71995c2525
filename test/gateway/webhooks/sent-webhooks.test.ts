/** What a receiver sees of the actions of owners and admins: tests, new secrets, redeliveries, and the list of deliveries. */
import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestReply, until } from '../../harness/app.ts'
import { type MovableClock, movableClock } from '../../harness/clock.ts'
import { type ReceivedDelivery, startWebhookReceiver, type WebhookReceiver } from '../../harness/webhook-receiver.ts'

const pauseUntil = statement<[id: number, until: Date]>(
  'test.webhooks_pause_until',
  'update webhook_endpoints set paused_until = $2::timestamptz where id = $1::int',
)

const isoTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/)
const minuteMs = 60_000

describe('webhooks and the requests that they cause', () => {
  let app: TestApp
  let receiver: WebhookReceiver
  let clock: MovableClock
  let owner: string
  beforeAll(async () => {
    clock = movableClock()
    receiver = await startWebhookReceiver()
    app = await startApp({ clock, env: { OUTBOUND_ALLOW: receiver.hostPort, WEBHOOK_POLL_MS: '20', WEBHOOK_RETRY_S: '600,600' } })
    owner = await app.signIn()
  })
  afterAll(async () => {
    await app.stop()
    await receiver.close()
  })
  beforeEach(() => {
    receiver.answer({})
    receiver.forget()
  })

  let paths = 0
  const ask = (method: string, path: string, body?: unknown): Promise<TestReply> => app.call(method, `/me/webhooks${path}`, body, { cookie: owner })
  const make = async (more: object = {}) => {
    const path = `/hook-${++paths}`
    const { id, secret } = (await ask('POST', '', { url: receiver.url + path, ...more })).json
    return { id: id as number, secret: secret as string, path }
  }
  const deliveries = async (id: number) => (await ask('GET', `/${id}/deliveries`)).json.deliveries
  /** Waits until the newest delivery is in that state, and returns it. */
  const newestIn = async (id: number, status: string) => {
    await until(async () => (await deliveries(id))[0]?.status === status)
    return (await deliveries(id))[0]
  }
  const isSigned = (secret: string, { signature, raw }: ReceivedDelivery): boolean => {
    const [, t = '', v1] = /^t=(\d+),v1=(.*)$/.exec(signature) ?? []
    return createHmac('sha256', secret).update(`${t}.${raw.toString()}`).digest('hex') === v1
  }
  const timeOf = ({ signature }: ReceivedDelivery): number => Number(/^t=(\d+)/.exec(signature)?.[1])

  test('HOOK-08 a test queues a ping, which arrives only at that endpoint and needs no subscription', async () => {
    const { id, path } = await make({ event_types: ['credit.low'] })
    const other = await make()
    const queued = await ask('POST', `/${id}/test`, {})
    expect([queued.status, queued.json]).toEqual([
      200,
      { ok: true, delivery: expect.objectContaining({ type: 'ping', status: 'pending', code: null, attempts: 0, error: null, next_attempt_at: isoTime }) },
    ])
    const [ping] = await receiver.untilReceived(1, path)
    expect([ping?.event, ping?.deliveryId, ping?.json]).toEqual([
      'ping',
      queued.json.delivery.id,
      { id: queued.json.delivery.event_id, type: 'ping', created: expect.any(Number), org_id: app.orgId, data: { message: expect.any(String) } },
    ])
    expect(await newestIn(id, 'acknowledged')).toMatchObject({ id: queued.json.delivery.id, code: 200, attempts: 1, next_attempt_at: null })
    expect(await deliveries(other.id)).toEqual([])
  })

  test('HOOK-07 rotate-secret shows a new secret once; later deliveries, also retries of older events, are signed only with it', async () => {
    const { id, secret, path } = await make({ event_types: ['credit.low'] })
    receiver.answer({ status: 500 })
    await ask('POST', `/${id}/test`, {})
    expect((await newestIn(id, 'failed')).attempts).toBe(1)
    const rotated = await ask('POST', `/${id}/rotate-secret`, {})
    expect([rotated.status, rotated.headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(rotated.json).toMatchObject({ id, secret: expect.stringMatching(/^whsec_[A-Za-z0-9_-]{43}$/), enabled: true })
    expect(rotated.json.secret).not.toBe(secret)
    expect((await ask('GET', '')).text).not.toContain(rotated.json.secret)
    receiver.answer({})
    clock.advance(15 * minuteMs)
    const [first, retry] = await receiver.untilReceived(2, path)
    if (first === undefined || retry === undefined) throw new Error('two attempts came')
    expect([isSigned(secret, first), isSigned(secret, retry), isSigned(rotated.json.secret, retry)]).toEqual([true, false, true])
  })

  test('HOOK-17 SHAPE-36 the list of deliveries shows status, code and attempts, newest first, in pages', async () => {
    const { id } = await make({ event_types: ['key.created'] })
    receiver.answer({ status: 503 })
    await app.call('POST', '/me/keys', {}, { cookie: owner })
    expect((await newestIn(id, 'failed')).error).toBe('http_status')
    receiver.answer({})
    for (let sent = 0; sent < 3; sent++) {
      await ask('POST', `/${id}/test`, {})
      await newestIn(id, 'acknowledged')
    }
    const all = await deliveries(id)
    expect(all.map(({ type, status, code, attempts }: Record<string, unknown>) => [type, status, code, attempts])).toEqual([
      ['ping', 'acknowledged', 200, 1],
      ['ping', 'acknowledged', 200, 1],
      ['ping', 'acknowledged', 200, 1],
      ['key.created', 'failed', 503, 1],
    ])
    expect(all[3]).toEqual({
      id: expect.stringMatching(/^dlv_[0-9a-f]{32}$/),
      event_id: expect.stringMatching(/^evt_[0-9a-f]{32}$/),
      type: 'key.created',
      status: 'failed',
      code: 503,
      attempts: 1,
      error: 'http_status',
      next_attempt_at: isoTime,
      created_at: isoTime,
    })
    const first = (await ask('GET', `/${id}/deliveries?limit=3`)).json
    const second = (await ask('GET', `/${id}/deliveries?limit=3&before=${first.next_before}`)).json
    expect([first.deliveries.length, [...first.deliveries, ...second.deliveries], second.next_before]).toEqual([3, all, null])
    for (const wrong of ['limit=0', 'limit=201', 'limit=x', 'before=x', 'before=-1'])
      expect((await ask('GET', `/${id}/deliveries?${wrong}`)).json.error.code, wrong).toBe('bad_request')
  })

  test('HOOK-18 redeliver queues a delivery again, whatever its state, with the same event id, delivery id and bytes, and a new t', async () => {
    const { id, path } = await make({ event_types: ['key.created'] })
    await app.call('POST', '/me/keys', {}, { cookie: owner })
    const { id: did, event_id } = await newestIn(id, 'acknowledged')
    clock.advance(minuteMs)
    const again = await ask('POST', `/${id}/deliveries/${did}/redeliver`, {})
    expect(again.json).toEqual({ ok: true, delivery: expect.objectContaining({ id: did, event_id, status: 'pending', attempts: 1, code: null, error: null }) })
    const [first, second] = await receiver.untilReceived(2, path)
    if (first === undefined || second === undefined) throw new Error('two attempts came')
    expect([second.deliveryId, second.json.id, second.raw.equals(first.raw)]).toEqual([did, first.json.id, true])
    expect(timeOf(second)).toBeGreaterThanOrEqual(timeOf(first) + 60)
    expect(await newestIn(id, 'acknowledged')).toMatchObject({ id: did, attempts: 2 })
  })

  test('a redelivery of a dead delivery is sent immediately, even to a paused endpoint, and starts the schedule of retries again', async () => {
    const { id, path } = await make({ event_types: ['key.created'] })
    receiver.answer({ status: 500 })
    await app.call('POST', '/me/keys', {}, { cookie: owner })
    for (let attempts = 1; attempts <= 3; attempts++) {
      await until(async () => (await deliveries(id))[0]?.attempts === attempts)
      await newestIn(id, attempts < 3 ? 'failed' : 'dead')
      if (attempts < 3) clock.advance(15 * minuteMs)
    }
    const [{ id: did }] = await deliveries(id)
    await app.db.exec(pauseUntil, id, new Date(clock.nowMs() + 4 * minuteMs))
    await ask('POST', `/${id}/deliveries/${did}/redeliver`, {})
    await receiver.untilReceived(4, path)
    expect(await newestIn(id, 'failed')).toMatchObject({ id: did, attempts: 4, code: 500 })
    receiver.answer({})
    clock.advance(15 * minuteMs)
    expect(await newestIn(id, 'acknowledged')).toMatchObject({ id: did, attempts: 5 })
  })
})
