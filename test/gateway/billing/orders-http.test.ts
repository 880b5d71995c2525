import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { billingEnv, type PaymentProvider, type ProviderFailure, startPaymentProvider } from '../../harness/payment-provider.ts'
import { addAddress, addPromo, deliver, ledgerOf, newPayer, type Payer, promoRedemptions } from './top-ups.ts'

const dayMs = 24 * 3600_000

describe('orders for top-ups', () => {
  const clock = movableClock()
  let provider: PaymentProvider
  let app: TestApp
  let payer: Payer
  beforeAll(async () => {
    provider = await startPaymentProvider()
    app = await startApp({
      clock,
      env: { ...billingEnv(provider), PAYMENT_PROVIDER: 'paisa', RAZORPAY_WEBHOOK_SECRET: '', RAZORPAY_TIMEOUT_MS: '300', CONSOLE_RPM: '100000' },
    })
    payer = await newPayer(app)
  })
  afterAll(async () => {
    await app?.stop()
    await provider?.close()
  })

  const order = (body: unknown, cookie = payer.cookie) => app.call('POST', '/me/billing/orders', body, { cookie })
  const check = (body: unknown, cookie = payer.cookie) => app.call('POST', '/me/billing/promo/check', body, { cookie })
  const codeOf = ({ status, json }: { status: number; json: { error: { code: string } } }) => [status, json.error.code]

  test('BILL-04 without a billing address, no order is made, neither in the gateway nor at the provider', async () => {
    const { orgId, userId } = await app.otherOrg('No Address')
    const cookie = await app.signIn(userId, orgId)
    const before = provider.requests.length
    const refused = await order({ amount_inr: 500 }, cookie)
    expect(codeOf(refused)).toEqual([400, 'address_required'])
    expect(refused.json.error.message).toContain('POST /me/billing/address')
    expect(provider.requests.length).toBe(before)
    await app.db.exec(addAddress, orgId)
    expect((await order({ amount_inr: 500 }, cookie)).status).toBe(201)
  })

  test('BILL-05 BILL-07 SHAPE-13 an order of 100 to 100000 whole rupees is made at the provider in paise, with a receipt id of the gateway', async () => {
    for (const amount_inr of [100, 250, 100_000]) {
      const made = await order({ amount_inr })
      const there = provider.orders.at(-1)
      expect([made.status, made.json]).toEqual([201, { order_id: there?.id, amount_inr, amount: amount_inr * 100, currency: 'INR', key_id: provider.keyId }])
      expect(there).toMatchObject({ amount: amount_inr * 100, currency: 'INR', notes: { org_id: String(payer.orgId) } })
      expect(there?.receipt).toMatch(/^rcpt_[0-9a-f]{32}$/)
    }
    expect(new Set(provider.orders.map(({ receipt }) => receipt)).size).toBe(provider.orders.length)
    const sent = provider.requests.at(-1)
    expect(sent?.authorization).toBe(`Basic ${Buffer.from(`${provider.keyId}:${provider.keySecret}`).toString('base64')}`)
    expect(JSON.parse(sent?.body ?? '')).toMatchObject({ payment_capture: true })
  })

  test('BILL-06 an amount that is not a whole number of rupees from 100 to 100000 is refused with the bounds, and the provider gets no request', async () => {
    const before = provider.requests.length
    for (const amount_inr of [99, 100_001, 250.5, '500', null, undefined, 0, -500, true, [500], 1e30]) {
      const refused = await order({ amount_inr })
      expect(codeOf(refused), String(amount_inr)).toEqual([400, 'bad_request'])
      expect(refused.json.error.message).toContain('from 100 to 100000')
    }
    expect(codeOf(await order({ amount_inr: 500, promo_code: 5 }))).toEqual([400, 'bad_request'])
    expect(provider.requests.length).toBe(before)
  })

  test('BILL-08 BILL-13 SHAPE-15 a promo code is checked without being redeemed; unknown and redeemed codes have errors of their own', async () => {
    await app.db.exec(addPromo, 'WELCOME', 50_000_000n, 0n, 2, null)
    await app.db.exec(addPromo, 'BIG-ONE', 500_000_000n, 5_000_000_000n, null, null)
    await app.db.exec(addPromo, 'SHORT', 10_000_000n, 0n, null, new Date(clock.nowMs() + dayMs))
    for (const promo_code of ['WELCOME', ' welcome ']) {
      const { status, json } = await check({ promo_code })
      expect([status, json]).toEqual([200, { valid: true, bonus_inr: 50 }])
    }
    const { json: withPromo } = await order({ amount_inr: 200, promo_code: 'welcome' })
    expect(withPromo.promo).toEqual({ promo_code: 'WELCOME', bonus_inr: 50 })
    expect((await app.db.one(promoRedemptions, 'WELCOME')).redemptions).toBe(0)
    expect((await check({ promo_code: 'BIG-ONE' })).json).toEqual({ valid: true, bonus_inr: 500, topup_min_inr: 5000 })
    const small = await order({ amount_inr: 4999, promo_code: 'BIG-ONE' })
    expect(codeOf(small)).toEqual([400, 'promo_invalid'])
    expect(small.json.error.message).toContain('₹5000')
    expect(codeOf(await check({ promo_code: 'BIG-ONE', amount_inr: 4999 }))).toEqual([400, 'promo_invalid'])
    expect((await order({ amount_inr: 5000, promo_code: 'BIG-ONE' })).json.promo.bonus_inr).toBe(500)
    for (const promo_code of ['NOSUCH', '', '  ', "'; drop", '\u0000', 'é', 'X'.repeat(200)]) {
      expect(codeOf(await check({ promo_code })), promo_code).toEqual([400, 'promo_invalid'])
      if (promo_code.trim() !== '') expect(codeOf(await order({ amount_inr: 500, promo_code })), promo_code).toEqual([400, 'promo_invalid'])
    }
    for (const promo_code of ['', null]) expect((await order({ amount_inr: 500, promo_code })).json).not.toHaveProperty('promo')
    expect(codeOf(await check({}))).toEqual([400, 'bad_request'])

    expect((await check({ promo_code: 'SHORT' })).json.bonus_inr).toBe(10)
    clock.advance(dayMs)
    expect(codeOf(await check({ promo_code: 'SHORT' }))).toEqual([400, 'promo_invalid'])

    expect((await payer.verify(provider.checkout(withPromo.order_id))).json.credited).toBe(true)
    expect(codeOf(await check({ promo_code: 'WELCOME' }))).toEqual([400, 'promo_redeemed'])
    expect(codeOf(await order({ amount_inr: 200, promo_code: 'WELCOME' }))).toEqual([400, 'promo_redeemed'])
    const other = await newPayer(app)
    expect((await check({ promo_code: 'WELCOME' }, other.cookie)).json.bonus_inr).toBe(50)
    const orderId = await other.order(200, 'WELCOME')
    await other.verify(provider.checkout(orderId))
    const third = await newPayer(app)
    expect(codeOf(await check({ promo_code: 'WELCOME' }, third.cookie))).toEqual([400, 'promo_invalid'])
  })

  test('PERM-05 members and admins are refused on orders, verify and promo codes', async () => {
    for (const role of ['member', 'admin'] as const) {
      const { cookie } = await app.newMember(role, { orgId: payer.orgId })
      const calls = [order({ amount_inr: 500 }, cookie), check({ promo_code: 'WELCOME' }, cookie), app.call('POST', '/me/billing/verify', {}, { cookie })]
      for (const refused of await Promise.all(calls)) expect(codeOf(refused)).toEqual([403, 'forbidden'])
    }
  })

  test('when the provider fails, the reply is 502 payment_provider_failed, and the gateway stores no order', async () => {
    const failures: ProviderFailure[] = [
      { status: 500 },
      { status: 503, body: '<html>' },
      { status: 429 },
      { status: 400 },
      { status: 401 },
      { status: 302, body: '' },
      { status: 200, body: 'not json' },
      { status: 200, body: { id: 7 } },
      { status: 200, body: { id: 'or|der' } },
      { hang: true },
      { reset: true },
      { change: { amount: 1 } },
      { change: { currency: 'USD' } },
    ]
    const again: unknown[] = []
    for (const failure of failures) {
      provider.failNext(failure)
      const { status, json, headers, text } = await order({ amount_inr: 500 })
      expect([status, json.error.code], JSON.stringify(failure)).toEqual([502, 'payment_provider_failed'])
      expect(json.error.message).toContain('Nothing was charged')
      expect(text).not.toContain(provider.keySecret)
      again.push(headers.get('x-should-retry'))
    }
    expect(again).toEqual(['true', 'true', 'true', 'false', 'false', 'false', 'true', 'true', 'true', 'true', 'true', 'true', 'true'])
    expect((await order({ amount_inr: 500 })).status).toBe(201)
    const log = app.logLines.join('')
    expect(log).toContain('refuses our credentials; look at RAZORPAY_KEY_ID and RAZORPAY_KEY_SECRET')
    for (const secret of [provider.keySecret, provider.webhookSecret, Buffer.from(`${provider.keyId}:${provider.keySecret}`).toString('base64')])
      expect(log).not.toContain(secret)
  })

  test('an order id that the provider has returned before is refused, so two orders are never confused', async () => {
    const orderId = await newPayer(app).then(each => each.order(300))
    provider.failNext({ change: { id: orderId } })
    expect(codeOf(await order({ amount_inr: 100 }))).toEqual([502, 'payment_provider_failed'])
    expect((await app.call('POST', '/me/billing/verify', provider.checkout(orderId), { cookie: payer.cookie })).status).toBe(404)
  })

  test('another PAYMENT_PROVIDER id changes the path and the header of webhooks; without a webhook secret, webhooks are refused and verify works', async () => {
    const other = await newPayer(app)
    const proof = provider.checkout(await other.order(500))
    const { body, headers } = provider.webhook('payment.captured', { orderId: proof.order_id, paymentId: proof.payment_id })
    const signed = { body, headers: { 'x-paisa-signature': headers['x-razorpay-signature'] ?? '' } }
    expect((await deliver(app, signed, 'razorpay')).status).toBe(404)
    const refused = await deliver(app, signed, 'paisa')
    expect([refused.status, refused.json.error.code]).toEqual([503, 'billing_disabled'])
    expect(app.logLines.join('')).toContain('RAZORPAY_WEBHOOK_SECRET is not set')
    expect((await other.verify(proof)).json.credited).toBe(true)
  })

  test('an order without a payment is not credited', async () => {
    const other = await newPayer(app)
    await other.order(500)
    expect(await app.db.many(ledgerOf, other.orgId)).toEqual([])
  })

  test('the gateway finds a payment that nobody reported by asking the provider, rarely, for a limited time, and with pauses after failures', async () => {
    const other = await newPayer(app)
    const orderId = await other.order(700)
    const stale = await newPayer(app)
    const staleId = await stale.order(700)
    const asks = (id = '') => provider.requests.filter(({ method, path }) => method === 'GET' && path.includes(id)).length
    const sweepAfter = async (minutes: number) => {
      clock.advance(minutes * 60_000)
      const before = asks()
      await app.gateway.app.jobs.runOnce('billing.unheard')
      return asks() - before
    }
    const credits = async () => (await app.db.many(ledgerOf, other.orgId)).map(({ inr }) => inr)
    await sweepAfter(9)
    expect(asks(orderId)).toBe(0)
    await sweepAfter(2)
    expect(asks(orderId)).toBe(1)
    await sweepAfter(10)
    expect(asks(orderId)).toBe(1)
    const facts = { orderId }
    const elsewhere = { order_id: 'order_of_nobody' }
    for (const fields of [{ status: 'authorized' }, { status: 'refunded' }, { amount_refunded: 100 }, elsewhere, { amount: '70000' }, { id: '' }])
      provider.pay(facts, fields)
    await sweepAfter(2)
    expect([asks(orderId), await credits()]).toEqual([2, []])

    const paymentId = provider.pay(facts)
    const failures: ProviderFailure[] = [{ status: 404 }, { status: 500 }, { status: 401 }, { status: 200, body: 'not json' }, { hang: true }, { reset: true }]
    for (const failure of failures) {
      provider.failNext(failure)
      expect(await sweepAfter(70), JSON.stringify(failure)).toBe(1)
      expect(await sweepAfter(50)).toBe(0)
    }
    provider.failNext({ status: 400 })
    expect(await sweepAfter(24 * 60)).toBeGreaterThan(1)
    expect(await credits()).toEqual([700])
    const reported = { ok: true, balance_inr: 700, credited: false }
    expect((await other.verify(provider.checkout(orderId, paymentId))).json).toEqual(reported)
    expect(app.logLines.filter(line => line.includes('neither the checkout nor the webhook had reported'))).toHaveLength(1)

    // The gateway does not ask about an order that is older than three days or paid.
    provider.pay({ orderId: staleId })
    expect(await sweepAfter(48 * 60)).toBe(0)
    expect(await app.db.many(ledgerOf, stale.orgId)).toEqual([])
  })
})

test('BILL-09 without a payment provider, orders, verify, promo codes and the webhook are 503 billing_disabled', async () => {
  const app = await startApp()
  const cookie = await app.signIn()
  const calls = [
    app.call('POST', '/me/billing/orders', { amount_inr: 500 }, { cookie }),
    app.call('POST', '/me/billing/verify', { order_id: 'order_1', payment_id: 'pay_1', signature: '0' }, { cookie }),
    app.call('POST', '/me/billing/promo/check', { promo_code: 'WELCOME' }, { cookie }),
    app.call('POST', '/webhooks/razorpay', '{}', { token: null }),
  ]
  for (const { status, json, headers } of await Promise.all(calls)) {
    expect([status, json.error.code]).toEqual([503, 'billing_disabled'])
    expect(headers.get('x-should-retry')).toBe('false')
  }
  await app.stop()
})
