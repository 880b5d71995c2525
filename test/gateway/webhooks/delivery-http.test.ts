/** Deliveries through a whole gateway, from the event to the receiver, and what the organisation's people see of them. */
import Stripe from 'stripe'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestReply } from '../../harness/app.ts'
import { type MovableClock, movableClock } from '../../harness/clock.ts'
import { until } from '../../harness/until.ts'
import { type ReceivedDelivery, startWebhookReceiver, type WebhookReceiver } from '../../harness/webhook-receiver.ts'
import { type MailServer, startMailServer } from '../mail/mail-server.ts'

/** The tests wait on this query, because the console has a rate limit. */
const states = statement<[endpointId: number], { status: string; attempts: number; isNoted: boolean }>(
  'test.webhook_states',
  `select status, attempts, claimed_until is null as "isNoted" from webhook_deliveries where endpoint_id = $1::int order by event_seq desc`,
)
const minuteMs = 60_000
const isoTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/)

interface Webhook {
  readonly id: number
  readonly secret: string
  readonly path: string
}

describe('delivery of webhooks', () => {
  let app: TestApp
  let receiver: WebhookReceiver
  let mailServer: MailServer
  let clock: MovableClock
  let owner: string
  beforeAll(async () => {
    clock = movableClock()
    ;[receiver, mailServer] = await Promise.all([startWebhookReceiver(), startMailServer()])
    app = await startApp({
      clock,
      env: {
        OUTBOUND_ALLOW: receiver.hostPort,
        WEBHOOK_POLL_MS: '20',
        WEBHOOK_TIMEOUT_MS: '2000',
        WEBHOOK_RETRY_S: '60,120',
        WEBHOOK_DISABLE_FAILURES: '5',
        SMTP_URL: mailServer.url,
        MAIL_POLL_MS: '50',
      },
    })
    owner = await app.signIn()
  })
  afterAll(async () => {
    await app.stop()
    await Promise.all([receiver.close(), mailServer.close()])
  })
  beforeEach(() => {
    receiver.answer({})
    receiver.forget()
  })

  let paths = 0
  let named = 0
  const ask = (method: string, path: string, body?: unknown): Promise<TestReply> => app.call(method, `/me/webhooks${path}`, body, { cookie: owner })
  const make = async (): Promise<Webhook> => {
    const path = `/hook-${++paths}`
    const { id, secret } = (await ask('POST', '', { url: receiver.url + path, event_types: ['key.created'] })).json
    return { id, secret, path }
  }
  /** Makes an event that every webhook from `make` receives. */
  const happen = async (): Promise<number> => {
    const made = await app.call('POST', '/me/keys', { name: `stays at home ${++named}` }, { cookie: owner })
    expect(made.status, made.text).toBe(201)
    return made.json.id
  }
  const deliveries = async ({ id }: Webhook) => (await ask('GET', `/${id}/deliveries`)).json.deliveries
  const stateOf = async ({ id }: Webhook) => (await ask('GET', '')).json.webhooks.find((webhook: { id: number }) => webhook.id === id)
  const newest = async (webhook: Webhook, status: string, attempts = 1) => {
    const isThere = async () => {
      const [first] = await app.db.many(states, webhook.id)
      return first?.status === status && first.attempts === attempts && first.isNoted
    }
    await until(isThere, `${status} after ${attempts} attempts`)
    return (await deliveries(webhook))[0]
  }
  const received = async (webhook: Webhook, count: number): Promise<ReceivedDelivery> => {
    const request = (await receiver.untilReceived(count, webhook.path))[count - 1]
    if (request === undefined) throw new Error('nothing was delivered')
    return request
  }
  const remove = ({ id }: Webhook): Promise<TestReply> => ask('DELETE', `/${id}`)

  test('HOOK-09 HOOK-10 HOOK-11 HOOK-12 a delivery has its headers, a signature over the sent bytes, and the envelope; a 2xx reply acknowledges it', async () => {
    const webhook = await make()
    receiver.answer({ status: 202, body: 'what a receiver says is kept nowhere' })
    const keyId = await happen()
    const { method, headers, raw, json, signature } = await received(webhook, 1)
    const row = await newest(webhook, 'acknowledged')
    expect(method).toBe('POST')
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': String(raw.length),
      'user-agent': expect.stringMatching(/^Brigade-Webhooks\/\d/),
      'x-br-event': 'key.created',
      'x-br-signature': expect.stringMatching(/^t=\d{10},v1=[0-9a-f]{64}$/),
      'x-br-webhook-id': String(webhook.id),
      'x-br-delivery-id': row.id,
    })
    expect(json).toEqual({
      id: row.event_id,
      type: 'key.created',
      created: expect.any(Number),
      org_id: app.orgId,
      data: { key_id: keyId, prefix: expect.any(String), tier: expect.any(String), scope: expect.any(String) },
    })
    expect([row.event_id, Number.isInteger(json.created)]).toEqual([expect.stringMatching(/^evt_[0-9a-f]{32}$/), true])
    expect(Math.abs(json.created * 1000 - clock.nowMs())).toBeLessThan(minuteMs)
    expect(raw.toString()).not.toContain('stays at home')
    expect(row).toEqual({
      id: expect.stringMatching(/^dlv_[0-9a-f]{32}$/),
      event_id: json.id,
      type: 'key.created',
      status: 'acknowledged',
      code: 202,
      attempts: 1,
      error: null,
      next_attempt_at: null,
      created_at: isoTime,
    })
    expect(await app.dump()).not.toContain('what a receiver says')
    expect(app.logLines.join('\n')).not.toContain('what a receiver says')

    // Stripe's verifier, which shares no code with this gateway.
    const { webhooks } = new Stripe('sk_test_unused')
    const nowS = Math.floor(clock.nowMs() / 1000)
    expect(webhooks.constructEvent(raw, signature, webhook.secret, 300, undefined, nowS * 1000)).toMatchObject({ id: json.id })
    expect(() => webhooks.constructEvent(raw, signature, webhook.secret, 300, undefined, (nowS + 301) * 1000)).toThrow(/tolerance/i)
    expect(() => webhooks.constructEvent(`${raw} `, signature, webhook.secret, 300, undefined, nowS * 1000)).toThrow(/signature/i)
    expect(() => webhooks.constructEvent(raw, signature, `${webhook.secret}x`, 300, undefined, nowS * 1000)).toThrow(/signature/i)
    const newer = signature.replace(/t=\d+/, `t=${nowS + 1}`)
    expect(() => webhooks.constructEvent(raw, newer, webhook.secret, 300, undefined, nowS * 1000)).toThrow(/signature/i)
    await remove(webhook)
  })

  test('HOOK-13 HOOK-14 HOOK-23 LIFE-13 a failed delivery is retried by the schedule with the same id and bytes and a new t, until it is dead; a redelivery makes it pending again', async () => {
    const webhook = await make()
    receiver.answer(
      ({ earlier }) => (['hang', 'reset', { status: 302, headers: { location: `${receiver.url}/elsewhere` } }, { status: 500 }] as const)[earlier] ?? {},
    )
    await happen()
    const codes = []
    const { id } = await newest(webhook, 'failed')
    for (const attempts of [1, 2]) {
      const row = await newest(webhook, 'failed', attempts)
      codes.push([row.code, row.error])
      const waitsMs = Date.parse(row.next_attempt_at) - clock.nowMs()
      expect(waitsMs).toBeGreaterThan(attempts * minuteMs - 20_000)
      expect(waitsMs).toBeLessThan(attempts * minuteMs * 1.1 + 1000)
      clock.advance(waitsMs - 15_000)
      expect(receiver.at(webhook.path)).toHaveLength(attempts)
      clock.advance(20_000)
    }
    const dead = await newest(webhook, 'dead', 3)
    codes.push([dead.code, dead.error])
    expect(codes).toEqual([
      [null, 'timeout'],
      [null, 'connection_reset'],
      [302, 'redirect'],
    ])
    expect(dead).toMatchObject({ id, next_attempt_at: null })
    clock.advance(minuteMs)

    const queued = await ask('POST', `/${webhook.id}/deliveries/${id}/redeliver`, {})
    expect(queued.json.delivery).toMatchObject({ id, status: 'pending', next_attempt_at: isoTime })
    expect(await newest(webhook, 'failed', 4)).toMatchObject({ id, code: 500, error: 'http_status' })
    clock.advance(2 * minuteMs)
    expect(await newest(webhook, 'acknowledged', 5)).toMatchObject({ id, code: 200, error: null, next_attempt_at: null })

    const [first, ...others] = receiver.at(webhook.path)
    expect(others).toHaveLength(4)
    const { webhooks } = new Stripe('sk_test_unused')
    for (const other of others) {
      expect([other.deliveryId, other.raw.equals(first?.raw ?? Buffer.alloc(0)), other.signature === first?.signature]).toEqual([id, true, false])
      expect(webhooks.constructEvent(other.raw, other.signature, webhook.secret, 10 * 365 * 86_400)).toBeDefined()
    }
    expect(receiver.at('/elsewhere')).toEqual([])
    await remove(webhook)
  })

  test('HOOK-15 HOOK-16 HOOK-25 LIFE-12 consecutive failures disable the webhook and the owners get a mail; enabling it sets its failures to zero', async () => {
    const webhook = await make()
    const healthy = await make()
    receiver.answer(({ path }) => (path === webhook.path ? { status: 500 } : {}))
    for (let made = 0; made < 8; made++) await happen()
    await until(async () => {
      clock.advance(minuteMs)
      return (await app.db.many(states, webhook.id)).filter(({ status }) => status === 'dead').length === 8
    }, 'disabled')
    expect(await stateOf(webhook)).toMatchObject({ enabled: false, disabled_reason: 'too_many_failures' })
    expect(receiver.at(webhook.path).length).toBeGreaterThanOrEqual(5)
    const left = await deliveries(webhook)
    expect([left.length, new Set(left.map(({ status }: { status: string }) => status))]).toEqual([8, new Set(['dead'])])
    await until(async () => (await app.db.many(states, healthy.id)).every(({ status }) => status === 'acknowledged'), 'the other one goes on')

    await until(() => mailServer.received.length === 1, 'a mail')
    const [mail] = mailServer.received
    expect(mail?.to).toEqual(['owner@test-org.test'])
    const text = mail?.parts['text/plain'] ?? ''
    for (const part of [
      `webhook ${webhook.id} of Test Org`,
      receiver.hostPort,
      '5 deliveries in a row failed',
      'HTTP 500',
      `${app.baseUrl}/auth?return_to=%2Fme%2Fwebhooks`,
    ])
      expect(text.replace(/=\n/g, '').toLowerCase()).toContain(part.toLowerCase())
    const lines = (await app.call('GET', '/me/audit', undefined, { cookie: owner })).json
    expect(JSON.stringify(lines)).toContain(`"act":"disableWebhook","target":"webhook=${webhook.id}"`)

    // A disabled webhook receives no events that happen in the meantime.
    receiver.forget()
    await happen()
    await until(() => receiver.at(healthy.path).length === 1, 'the other one receives it')
    expect(await deliveries(webhook)).toHaveLength(8)

    const enabled = await ask('PATCH', `/${webhook.id}`, { enabled: true })
    expect(enabled.json).toMatchObject({ enabled: true, disabled_reason: null })
    // Four more failures do not disable the webhook, because the earlier failures no longer count.
    for (let made = 0; made < 4; made++) await happen()
    const failed = async (): Promise<number> => (await app.db.many(states, webhook.id)).filter(({ status }) => status === 'failed').length
    for (let failures = 1; failures <= 4; failures++) {
      await until(async () => (await failed()) >= failures, `${failures} failures`)
      clock.advance(1000 * 2 ** (failures - 1))
    }
    expect(await stateOf(webhook)).toMatchObject({ enabled: true, disabled_reason: null })
    expect(mailServer.received).toHaveLength(1)
    await remove(webhook)
    await remove(healthy)
  })
})
