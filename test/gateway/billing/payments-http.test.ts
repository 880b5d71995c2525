import { validatePaymentVerification, validateWebhookSignature } from 'razorpay/dist/utils/razorpay-utils.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkBillingInvariants } from '../../../src/gateway/billing/invariants.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { billingEnv, type PaymentProvider, providerId, providerSignature, startPaymentProvider } from '../../harness/payment-provider.ts'
import {
  addPromo,
  deliver,
  endPromo,
  eventsOf,
  invoicesOf,
  ledgerOf,
  newPayer,
  notify,
  type Payer,
  paymentsOf,
  promoRedemptions,
  receiptsOf,
} from './top-ups.ts'

describe('payments', () => {
  const clock = movableClock()
  let provider: PaymentProvider
  let app: TestApp
  beforeAll(async () => {
    provider = await startPaymentProvider()
    app = await startApp({ clock, env: { ...billingEnv(provider), CONSOLE_RPM: '100000' } })
  })
  afterAll(async () => {
    expect(await checkBillingInvariants(app.db)).toEqual([])
    await app.stop()
    await provider.close()
  })

  /** Everything that a capture writes for an organisation, with counts. */
  const written = async ({ orgId }: Payer) => ({
    ledger: (await app.db.many(ledgerOf, orgId)).map(({ reason, inr }) => `${reason} ${inr}`),
    payments: (await app.db.many(paymentsOf, orgId)).map(({ status }) => status),
    invoices: (await app.db.many(invoicesOf, orgId)).length,
    events: (await app.db.many(eventsOf, orgId)).map(({ type }) => type),
    receipts: (await app.db.many(receiptsOf, orgId)).length,
  })
  const nothing = { ledger: [], payments: [], invoices: 0, events: [], receipts: 0 }
  const once = (inr: number) => ({
    ledger: [`topup ${inr}`],
    payments: ['captured'],
    invoices: 1,
    events: ['payment.captured', 'invoice.created'],
    receipts: 1,
  })
  const flagged = () => app.logLines.filter(line => line.includes('a payment was not credited')).map(line => JSON.parse(line))
  const balanceOf = async ({ cookie }: Payer) => (await app.call('GET', '/me/billing', undefined, { cookie })).json.balance_inr

  test('BILL-10 SHAPE-14 a valid signature credits the whole amount once, and a repeated request changes nothing', async () => {
    const payer = await newPayer(app)
    const orderId = await payer.order(500)
    const proof = provider.checkout(orderId)
    expect((await payer.verify(proof)).json).toEqual({ ok: true, balance_inr: 500, credited: true })
    for (let round = 0; round < 2; round++) {
      const { status, json } = await payer.verify(proof)
      expect([status, json]).toEqual([200, { ok: true, balance_inr: 500, credited: false }])
    }
    expect(await written(payer)).toEqual(once(500))
    // The fields are also accepted under the names that the provider's checkout uses.
    const second = provider.checkout(await payer.order(100))
    const named = { razorpay_order_id: second.order_id, razorpay_payment_id: second.payment_id, razorpay_signature: second.signature }
    expect((await app.call('POST', '/me/billing/verify', named, { cookie: payer.cookie })).json).toEqual({ ok: true, balance_inr: 600, credited: true })
    expect(await balanceOf(payer)).toBe(600)
  })

  test('BILL-11 an invalid signature is 400 bad_signature and credits nothing', async () => {
    const payer = await newPayer(app)
    const orderId = await payer.order(500)
    const proof = provider.checkout(orderId)
    const other = provider.checkout(await payer.order(100))
    const wrong = [
      { ...proof, signature: '0'.repeat(64) },
      { ...proof, signature: '' },
      { ...proof, signature: proof.signature.slice(0, 63) },
      { ...proof, signature: `${proof.signature}0` },
      { ...proof, signature: proof.signature.toUpperCase() === proof.signature ? 'x' : proof.signature.toUpperCase() },
      { ...proof, signature: other.signature },
      { ...proof, payment_id: other.payment_id },
      { ...proof, order_id: other.order_id },
      { ...proof, signature: providerSignature(`${proof.order_id}|${proof.payment_id}`, provider.webhookSecret) },
      { order_id: proof.order_id, payment_id: proof.payment_id },
    ]
    for (const body of wrong) {
      const { status, json } = await app.call('POST', '/me/billing/verify', body, { cookie: payer.cookie })
      expect([status, json.error.code], JSON.stringify(body)).toEqual([400, 'bad_signature'])
    }
    for (const body of [{}, { order_id: proof.order_id }, { ...proof, payment_id: 5 }, { ...proof, order_id: 'a|b' }, { ...proof, order_id: '\u0000' }])
      expect((await app.call('POST', '/me/billing/verify', body, { cookie: payer.cookie })).json.error.code).toBe('bad_request')
    expect(await written(payer)).toEqual(nothing)
    expect((await payer.verify(proof)).json.credited).toBe(true)
  })

  test('BILL-12 an order of another organisation and an unknown order are 404 not_found, with a valid and an invalid signature', async () => {
    const payer = await newPayer(app)
    const stranger = await newPayer(app)
    const orderId = await payer.order(500)
    for (const proof of [provider.checkout(orderId), provider.checkout(providerId('order')), { ...provider.checkout(orderId), signature: 'x' }]) {
      const { status, json } = await stranger.verify(proof)
      expect([status, json.error.code]).toEqual([404, 'not_found'])
    }
    expect(await written(payer)).toEqual(nothing)
    expect(await written(stranger)).toEqual(nothing)
  })

  test('PAYHOOK-01 PAYHOOK-06 a signed payment.captured webhook credits the payment once; the signature covers the raw bytes', async () => {
    const payer = await newPayer(app)
    const facts = { orderId: await payer.order(700), paymentId: providerId('pay'), method: 'upi' }
    const { body, headers } = provider.webhook('payment.captured', facts)
    // The same JSON with other white space has other bytes, so the signature is wrong.
    const respaced = JSON.stringify(JSON.parse(body), null, 1)
    expect((await deliver(app, { body: respaced, headers })).json.error.code).toBe('bad_signature')
    expect(await written(payer)).toEqual(nothing)
    const odd = {
      body: respaced,
      headers: { ...headers, 'x-razorpay-signature': providerSignature(respaced, provider.webhookSecret), 'content-type': 'text/odd' },
    }
    const { status, json } = await deliver(app, odd)
    expect([status, json]).toEqual([200, { ok: true, outcome: 'credited', credited: true }])
    expect(await written(payer)).toEqual(once(700))
    expect(await app.db.many(paymentsOf, payer.orgId)).toMatchObject([{ id: facts.paymentId, method: 'upi', paise: 70_000, currency: 'INR', reason: null }])
    expect(await balanceOf(payer)).toBe(700)
  })

  test('PAYHOOK-02 a webhook without a valid signature is 400 and changes nothing; a webhook for another provider id is 404', async () => {
    const payer = await newPayer(app)
    const { body, headers } = provider.webhook('payment.captured', { orderId: await payer.order(500) })
    const before = await app.dump()
    for (const signature of ['', 'x', '0'.repeat(64), providerSignature(body, provider.keySecret), `${headers['x-razorpay-signature']}, x`]) {
      const refused = await deliver(app, { body, headers: { 'x-razorpay-signature': signature } })
      expect([refused.status, refused.json.error.code], signature).toEqual([400, 'bad_signature'])
    }
    expect((await deliver(app, { body, headers: {} })).status).toBe(400)
    expect((await deliver(app, { body: `${body} `, headers })).status).toBe(400)
    expect((await deliver(app, { body, headers }, 'stripe')).json.error.code).toBe('not_found')
    expect((await deliver(app, { body, headers }, 'Razorpay')).status).toBe(404)
    expect(await app.dump()).toBe(before)
    expect((await deliver(app, { body, headers })).json.outcome).toBe('credited')
  })

  test('PAYHOOK-03 INV-01 a webhook that is repeated, or comes before or after verify, gives one credit, one invoice and one event of each kind', async () => {
    const payer = await newPayer(app)
    const proof = provider.checkout(await payer.order(500))
    const facts = { orderId: proof.order_id, paymentId: proof.payment_id, method: 'card' }
    const webhook = provider.webhook('payment.captured', facts)
    expect((await payer.verify(proof)).json).toMatchObject({ credited: true })
    expect((await app.db.many(paymentsOf, payer.orgId))[0]?.method).toBe(null)
    for (let round = 0; round < 2; round++) {
      const { status, json } = await deliver(app, webhook)
      expect([status, json]).toEqual([200, { ok: true, outcome: 'already_credited', credited: false }])
    }
    expect(await written(payer)).toEqual(once(500))
    // The method comes from the webhook, because the checkout does not name it.
    expect((await app.db.many(paymentsOf, payer.orgId))[0]?.method).toBe('card')
    const [invoice] = await app.db.many(invoicesOf, payer.orgId)
    expect(invoice).toMatchObject({ paymentId: proof.payment_id, paise: 50_000 })
    expect(await app.db.many(eventsOf, payer.orgId)).toEqual([
      { type: 'payment.captured', data: { payment_id: proof.payment_id, order_id: proof.order_id, amount_inr: 500, bonus_inr: 0, balance_inr: 500 } },
      { type: 'invoice.created', data: { invoice_number: invoice?.number, payment_id: proof.payment_id, total_inr: 500 } },
    ])

    const other = await newPayer(app)
    const later = provider.checkout(await other.order(900))
    expect((await notify(app, provider, 'payment.captured', { orderId: later.order_id, paymentId: later.payment_id })).json.credited).toBe(true)
    expect((await other.verify(later)).json).toEqual({ ok: true, balance_inr: 900, credited: false })
    expect(await written(other)).toEqual(once(900))
  })

  test('PAYHOOK-04 payment.failed is recorded and credits nothing; it never undoes a capture, and a capture after it is credited', async () => {
    const payer = await newPayer(app)
    const proof = provider.checkout(await payer.order(500))
    const facts = { orderId: proof.order_id, paymentId: proof.payment_id, errorReason: 'incorrect_pin' }
    expect((await notify(app, provider, 'payment.failed', facts)).json).toEqual({ ok: true, outcome: 'failed', credited: false })
    expect((await notify(app, provider, 'payment.failed', facts)).json.outcome).toBe('ignored')
    expect(await app.db.many(paymentsOf, payer.orgId)).toMatchObject([{ status: 'failed', reason: 'incorrect_pin' }])
    expect({ ...(await written(payer)), payments: [] }).toEqual(nothing)
    expect((await notify(app, provider, 'payment.captured', facts)).json.outcome).toBe('credited')
    expect((await notify(app, provider, 'payment.failed', facts)).json.outcome).toBe('ignored')
    expect((await payer.verify(proof)).json).toEqual({ ok: true, balance_inr: 500, credited: false })
    expect(await written(payer)).toEqual(once(500))
    expect(await app.db.many(paymentsOf, payer.orgId)).toMatchObject([{ status: 'captured', reason: null }])
    // The provider's free text is stored nowhere.
    expect(await app.dump()).not.toContain('wrong PIN')
    expect(app.logLines.join('')).not.toContain('Asha typed')
  })

  test('PAYHOOK-05 webhooks about unknown events and unknown orders are 200 and change nothing', async () => {
    const payer = await newPayer(app)
    const orderId = await payer.order(500)
    const before = await app.dump()
    const signed = (body: string) => deliver(app, { body, headers: { 'x-razorpay-signature': providerSignature(body, provider.webhookSecret) } })
    const ignored = [
      () => notify(app, provider, 'payment.authorized', { orderId }),
      () => notify(app, provider, 'order.paid', { orderId }),
      () => notify(app, provider, 'refund.processed', { orderId }),
      () => notify(app, provider, 'constructor', { orderId }),
      () => notify(app, provider, 'payment.captured', { orderId: providerId('order') }),
      () => notify(app, provider, 'payment.failed', { orderId: providerId('order') }),
      () => notify(app, provider, 'payment.captured', { orderId: '' }),
      () => notify(app, provider, 'payment.captured', { orderId, amount: 1e16 }),
      () => signed('{}'),
      () => signed('[]'),
      () => signed('null'),
      () => signed('{"event":"payment.captured"}'),
      () => signed('{"event":"payment.captured","payload":{"payment":{"entity":{"id":"pay_1","order_id":null,"amount":100,"currency":"INR"}}}}'),
    ]
    for (const send of ignored) {
      const { status, json } = await send()
      expect([status, json]).toEqual([200, { ok: true, outcome: 'ignored', credited: false }])
    }
    // Two of these webhooks are about money that was paid or returned, but their data cannot be read.
    expect(app.logLines.filter(line => line.includes('a payment that cannot be read'))).toHaveLength(2)
    const broken = await signed('{"event":')
    expect([broken.status, broken.json.error.code]).toEqual([400, 'bad_request'])
    expect(await app.dump()).toBe(before)
  })

  test('PAYHOOK-07 a payment whose amount or currency differs from its order is flagged and logged; neither the webhook nor verify credits it', async () => {
    const payer = await newPayer(app)
    const cases = [
      { reported: { amount: 49_999 }, reason: 'amount_differs' },
      { reported: { amount: 5_000_000 }, reason: 'amount_differs' },
      { reported: { amount: 0 }, reason: 'amount_differs' },
      { reported: { currency: 'USD' }, reason: 'currency_differs' },
    ]
    for (const { reported, reason } of cases) {
      const proof = provider.checkout(await payer.order(500))
      const facts = { orderId: proof.order_id, paymentId: proof.payment_id, ...reported }
      for (let round = 0; round < 2; round++)
        expect((await notify(app, provider, 'payment.captured', facts)).json).toEqual({ ok: true, outcome: 'flagged', credited: false })
      expect((await payer.verify(proof)).json).toEqual({ ok: true, balance_inr: 0, credited: false, reason })
      expect((await notify(app, provider, 'payment.failed', facts)).json.outcome).toBe('ignored')
      expect(flagged().filter(line => line.paymentId === proof.payment_id)).toMatchObject([{ code: reason, orgId: payer.orgId, provider: 'razorpay' }])
    }
    expect(await written(payer)).toEqual({ ...nothing, payments: ['flagged', 'flagged', 'flagged', 'flagged'] })
    expect(await app.db.many(paymentsOf, payer.orgId)).toMatchObject([{ paise: 49_999 }, { paise: 5_000_000 }, { paise: 0 }, { currency: 'USD' }])
    // Another payment with the right amount can still pay the order.
    const orderId = (await app.db.many(paymentsOf, payer.orgId))[0]?.orderId ?? ''
    expect((await payer.verify(provider.checkout(orderId))).json).toEqual({ ok: true, balance_inr: 500, credited: true })
  })

  test('a webhook that contradicts a payment credited by verify is logged and recorded once; the payment stays credited', async () => {
    const payer = await newPayer(app)
    const proof = provider.checkout(await payer.order(500))
    await payer.verify(proof)
    const facts = { orderId: proof.order_id, paymentId: proof.payment_id, amount: 100 }
    for (let round = 0; round < 2; round++) expect((await notify(app, provider, 'payment.captured', facts)).json.outcome).toBe('already_credited')
    expect(app.logLines.filter(line => line.includes('contradicts a credited payment') && line.includes(proof.payment_id)).length).toBe(1)
    expect(await app.db.many(paymentsOf, payer.orgId)).toMatchObject([{ status: 'captured', reason: 'amount_differs', paise: 50_000 }])
    expect(await written(payer)).toEqual(once(500))
  })

  test('of two payments of one order, the first is credited and the second is flagged', async () => {
    const payer = await newPayer(app)
    const first = provider.checkout(await payer.order(500))
    const second = provider.checkout(first.order_id)
    expect((await payer.verify(first)).json).toMatchObject({ credited: true, balance_inr: 500 })
    expect((await payer.verify(second)).json).toEqual({ ok: true, credited: false, balance_inr: 500, reason: 'order_paid_already' })
    expect((await notify(app, provider, 'payment.captured', { orderId: second.order_id, paymentId: second.payment_id })).json.outcome).toBe('flagged')
    expect(flagged().filter(line => line.paymentId === second.payment_id)).toMatchObject([{ code: 'order_paid_already' }])
    expect({ ...(await written(payer)), payments: ['captured'] }).toEqual(once(500))
  })

  test('a payment of one order is refused for another order of the same organisation and of another organisation', async () => {
    const payer = await newPayer(app)
    const other = await newPayer(app)
    const proof = provider.checkout(await payer.order(500))
    await payer.verify(proof)
    expect((await payer.verify(provider.checkout(await payer.order(800), proof.payment_id))).status).toBe(404)
    const theirs = await other.order(800)
    for (const amount of [1, 80_000])
      expect((await notify(app, provider, 'payment.captured', { orderId: theirs, paymentId: proof.payment_id, amount })).json.outcome).toBe('ignored')
    expect((await other.verify(provider.checkout(theirs, proof.payment_id))).status).toBe(404)
    expect((await notify(app, provider, 'payment.failed', { orderId: theirs, paymentId: proof.payment_id })).json.outcome).toBe('ignored')
    expect(await written(payer)).toEqual(once(500))
    expect(await written(other)).toEqual(nothing)
  })

  test('the gateway and the provider’s own package accept each other’s signatures', async () => {
    const payer = await newPayer(app)
    const proof = provider.checkout(await payer.order(500))
    expect(validatePaymentVerification({ order_id: proof.order_id, payment_id: proof.payment_id }, proof.signature, provider.keySecret)).toBe(true)
    const { body, headers } = provider.webhook('payment.captured', { orderId: proof.order_id, paymentId: proof.payment_id })
    expect(validateWebhookSignature(body, headers['x-razorpay-signature'] ?? '', provider.webhookSecret)).toBe(true)
    expect((await payer.verify(proof)).json.credited).toBe(true)
    expect((await deliver(app, { body, headers })).json.outcome).toBe('already_credited')
    const forged = { ...proof, signature: proof.signature.replace(/^./, first => (first === '0' ? '1' : '0')) }
    expect(validatePaymentVerification({ order_id: forged.order_id, payment_id: forged.payment_id }, forged.signature, provider.keySecret)).toBe(false)
    expect((await payer.verify(forged)).json.error.code).toBe('bad_signature')
  })

  test('an organisation gets the bonus of a promo code once, with the capture; if the code has ended by then, the reply says why there is no bonus', async () => {
    await app.db.exec(addPromo, 'ONE', 25_000_000n, 0n, 1, null)
    await app.db.exec(addPromo, 'ENDS', 25_000_000n, 0n, null, null)
    await app.db.exec(addPromo, 'TIMED', 25_000_000n, 0n, null, new Date(clock.nowMs() + 3_600_000))
    const [first, second] = [await newPayer(app), await newPayer(app)]
    const orders = [
      await first.order(100, 'ONE'),
      await first.order(200, 'ONE'),
      await second.order(300, 'ONE'),
      await second.order(400, 'ENDS'),
      await second.order(500, 'TIMED'),
    ]
    const proofs = orders.map(orderId => provider.checkout(orderId))
    await app.db.exec(endPromo, 'ENDS')
    const verified = async (payer: Payer, i: number) => (await payer.verify(proofs[i] as (typeof proofs)[0])).json
    expect(await verified(first, 0)).toEqual({ ok: true, balance_inr: 125, credited: true, promo: { promo_code: 'ONE', bonus_inr: 25, reason: null } })
    expect(await verified(first, 1)).toEqual({
      ok: true,
      balance_inr: 325,
      credited: true,
      promo: { promo_code: 'ONE', bonus_inr: 0, reason: 'promo_redeemed' },
    })
    expect(await verified(second, 2)).toEqual({
      ok: true,
      balance_inr: 300,
      credited: true,
      promo: { promo_code: 'ONE', bonus_inr: 0, reason: 'promo_used_up' },
    })
    expect(await verified(second, 3)).toMatchObject({ credited: true, balance_inr: 700, promo: { bonus_inr: 0, reason: 'promo_ended' } })
    clock.advance(3_600_000)
    // The webhook comes before verify. The browser still receives the result of the promo code.
    expect((await notify(app, provider, 'payment.captured', { orderId: orders[4] ?? '', paymentId: proofs[4]?.payment_id ?? '' })).json.credited).toBe(true)
    expect(await verified(second, 4)).toEqual({
      ok: true,
      balance_inr: 1200,
      credited: false,
      promo: { promo_code: 'TIMED', bonus_inr: 0, reason: 'promo_expired' },
    })
    expect(await verified(first, 0)).toEqual({ ok: true, balance_inr: 325, credited: false, promo: { promo_code: 'ONE', bonus_inr: 25, reason: null } })
    expect((await app.db.many(ledgerOf, first.orgId)).map(({ reason, ref, inr }) => `${reason} ${ref} ${inr}`)).toEqual([
      `topup ${proofs[0]?.payment_id} 100`,
      'promo ONE 25',
      `topup ${proofs[1]?.payment_id} 200`,
    ])
    expect((await app.db.one(promoRedemptions, 'ONE')).redemptions).toBe(1)
    expect((await app.db.many(eventsOf, first.orgId))[0]?.data).toMatchObject({ amount_inr: 100, bonus_inr: 25, balance_inr: 125 })
    expect((await app.db.many(invoicesOf, first.orgId))[0]?.paise).toBe(10_000)
  })

  test('the first top-up turns trial keys into standard keys', async () => {
    const payer = await newPayer(app)
    const tier = async () => (await app.call('GET', '/me/keys', undefined, { cookie: payer.cookie })).json.keys[0].tier
    expect(await tier()).toBe('trial')
    await payer.verify(provider.checkout(await payer.order(100)))
    expect(await tier()).toBe('standard')
  })

  test('fifty concurrent captures, each reported in three ways, are each credited once, and their invoice numbers have no gap', async () => {
    const payers = [await newPayer(app), await newPayer(app), await newPayer(app)]
    await app.db.exec(addPromo, 'CROWD', 10_000_000n, 0n, 2, null)
    const tops = await Promise.all(
      Array.from({ length: 50 }, async (_, i) => {
        const payer = payers[i % 3] as Payer
        return { payer, proof: provider.checkout(await payer.order(100 + i, i % 5 === 0 ? 'CROWD' : undefined)) }
      }),
    )
    const before = await Promise.all(payers.map(payer => app.db.many(invoicesOf, payer.orgId)))
    expect(before.flat()).toEqual([])
    const replies = await Promise.all(
      tops.flatMap(({ payer, proof }) => {
        const facts = { orderId: proof.order_id, paymentId: proof.payment_id }
        return [payer.verify(proof), notify(app, provider, 'payment.captured', facts), payer.verify(proof), notify(app, provider, 'payment.failed', facts)]
      }),
    )
    expect(replies.filter(({ status }) => status !== 200)).toEqual([])
    expect(replies.filter(({ json }) => json.credited).length).toBe(50)
    for (const [at, payer] of payers.entries()) {
      const own = tops.filter(top => top.payer === payer).length
      const rows = await app.db.many(ledgerOf, payer.orgId)
      expect(rows.filter(({ reason }) => reason === 'topup').length).toBe(own)
      expect(await balanceOf(payer)).toBe(rows.reduce((sum, { inr }) => sum + inr, 0))
      expect((await app.db.many(invoicesOf, payer.orgId)).length, `payer ${at}`).toBe(own)
      expect((await app.db.many(eventsOf, payer.orgId)).length).toBe(2 * own)
    }
    expect((await app.db.one(promoRedemptions, 'CROWD')).redemptions).toBe(2)
    expect(await checkBillingInvariants(app.db)).toEqual([])
  })
})
