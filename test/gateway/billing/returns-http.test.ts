/** Refunds and chargebacks that the payment provider reports, tested over HTTP. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkBillingInvariants } from '../../../src/gateway/billing/invariants.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import { billingEnv, type PaymentProvider, providerId, type ReturnFacts, startPaymentProvider } from '../../harness/payment-provider.ts'
import { addPromo, deliver, ledgerOf, newPayer, type Payer } from './top-ups.ts'

const mailsOf = statement<[orgId: number], { subject: string; data: Record<string, string> }>(
  'test.return_mails_of',
  `select template as "subject", data as "data" from emails where org_id = $1::int and template = 'payment_returned' order by id`,
)

describe('refunds and chargebacks of a top-up', () => {
  let provider: PaymentProvider
  let app: TestApp
  beforeAll(async () => {
    provider = await startPaymentProvider()
    app = await startApp({ env: { ...billingEnv(provider), CONSOLE_RPM: '100000' }, operatorFile: defaultOperatorFile })
  })
  afterAll(async () => {
    expect(await checkBillingInvariants(app.db)).toEqual([])
    await app.stop()
    await provider.close()
  })

  const paid = async (inr: number, promo?: string) => {
    const payer = await newPayer(app)
    const orderId = await payer.order(inr, promo)
    const proof = provider.checkout(orderId)
    expect((await payer.verify(proof)).json.credited).toBe(true)
    return { payer, orderId, paymentId: proof.payment_id }
  }
  const notify = async (event: string, facts: ReturnFacts) => {
    const { status, json } = await deliver(app, provider.returnWebhook(event, facts))
    expect(status).toBe(200)
    return json.outcome
  }
  const account = async ({ cookie }: Payer) => (await app.call('GET', '/me/billing', undefined, { cookie })).json
  const lines = async ({ orgId }: Payer) => (await app.db.many(ledgerOf, orgId)).map(({ reason, inr }) => `${reason} ${inr}`)

  test('HARD-18 each part of a refund is taken from the balance once, at most the paid amount in total, with its own ledger row, an audit line and a mail', async () => {
    const { payer, orderId, paymentId } = await paid(500)
    const first = { id: providerId('rfnd'), orderId, paymentId, amount: 20_000 }
    expect(await notify('refund.created', first)).toBe('taken_back')
    for (let round = 0; round < 2; round++) expect(await notify('refund.created', first)).toBe('noted')
    expect(await notify('refund.processed', { ...first, withPayment: false })).toBe('noted')
    expect((await account(payer)).balance_inr).toBe(300)
    expect(await notify('refund.processed', { ...first, id: providerId('rfnd'), amount: 40_000 })).toBe('taken_back')
    expect(await notify('refund.processed', { ...first, id: providerId('rfnd'), amount: 40_000 })).toBe('noted')
    const { balance_inr, payments, ledger } = await account(payer)
    expect([balance_inr, payments[0].amount_inr, payments[0].returned_inr]).toEqual([0, 500, 500])
    expect(await lines(payer)).toEqual(['topup 500', 'refund -200', 'refund -300'])
    expect(ledger[0]).toMatchObject({ kind: 'adjust', reason: 'refund', amount_inr: -300, balance_after_inr: 0 })
    expect(ledger[1].ref).toBe(`${paymentId} ${first.id}`)
    const trail = await app.call('GET', '/me/audit?act=takeBackPayment', undefined, { cookie: payer.cookie })
    expect(trail.json.entries.map(({ target }: { target: string }) => target)).toContain(`payment=${paymentId} refund=${first.id}`)
    const mails = await app.db.many(mailsOf, payer.orgId)
    expect(mails.map(({ data }) => [data['amount'], data['direction'], data['paymentId']])).toEqual([
      ['₹200.00', 'taken', paymentId],
      ['₹300.00', 'taken', paymentId],
    ])
  })

  test('HARD-18 a refund takes back the bonus of a promo code in proportion', async () => {
    await app.db.exec(addPromo, 'RETURNING', 100_000_000n, 0n, null, null)
    const { payer, orderId, paymentId } = await paid(400, 'RETURNING')
    expect((await account(payer)).balance_inr).toBe(500)
    await notify('refund.processed', { id: providerId('rfnd'), orderId, paymentId, amount: 10_000 })
    expect((await account(payer)).balance_inr).toBe(375)
    await notify('refund.processed', { id: providerId('rfnd'), orderId, paymentId, amount: 30_000 })
    expect((await account(payer)).balance_inr).toBe(0)
  })

  test('HARD-18 a disputed payment is taken when the dispute opens; it is given back when the dispute is won or closed, and stays taken when it is lost', async () => {
    for (const [end, left, said] of [
      ['won', 300, 'given_back'],
      ['closed', 300, 'given_back'],
      ['lost', 0, 'noted'],
    ] as const) {
      const { payer, orderId, paymentId } = await paid(300)
      const dispute = { id: providerId('disp'), orderId, paymentId, amount: 30_000 }
      expect(await notify('payment.dispute.created', dispute)).toBe('taken_back')
      expect((await account(payer)).balance_inr).toBe(0)
      expect(await notify(`payment.dispute.${end}`, { ...dispute, at: 1_767_300_000 })).toBe(said)
      // Earlier reports come late and repeatedly.
      expect(await notify('payment.dispute.created', dispute)).toBe('noted')
      expect((await account(payer)).balance_inr).toBe(left)
      expect(await lines(payer)).toEqual(['topup 300', 'chargeback -300', ...(left === 0 ? [] : ['chargeback 300'])])
    }
    const { payer, orderId, paymentId } = await paid(300)
    expect(await notify('payment.dispute.created', { id: providerId('disp'), orderId, paymentId, amount: 30_000, phase: 'retrieval' })).toBe('ignored')
    expect((await account(payer)).balance_inr).toBe(300)
  })

  test('HARD-18 a refund can take the balance below zero; calls that cost money are then refused with 402 until the debt is paid', async () => {
    const { payer, orderId, paymentId } = await paid(100)
    const made = await app.gateway.app.keys.create({
      orgId: payer.orgId,
      userId: payer.userId,
      workspaceId: null,
      name: 'spender',
      scope: 'full',
      rpmLimit: null,
      dailyLimit: null,
    })
    const chat = () => app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: 'x' }] }, { token: made.key })
    // 2 million tokens at ₹40 per million.
    app.alpha.script([{ usage: { prompt_tokens: 5, completion_tokens: 2000, total_tokens: 2005 } }])
    expect((await chat()).status).toBe(200)
    expect(await notify('refund.processed', { id: providerId('rfnd'), orderId, paymentId, amount: 10_000 })).toBe('taken_back')
    await app.gateway.app.limits.flushNow()
    expect((await account(payer)).balance_inr).toBeLessThan(0)
    const refused = await chat()
    expect([refused.status, refused.json.error.code]).toEqual([402, 'insufficient_credits'])
    const again = provider.checkout(await payer.order(100))
    await payer.verify(again)
    expect((await chat()).status).toBe(200)
  })

  test('HARD-18 a refund that is reported before its payment is taken when the payment is credited; a refund of an unknown payment changes nothing', async () => {
    const payer = await newPayer(app)
    const orderId = await payer.order(200)
    const proof = provider.checkout(orderId)
    expect(await notify('refund.processed', { id: providerId('rfnd'), orderId, paymentId: proof.payment_id, amount: 20_000 })).toBe('noted')
    const { json } = await payer.verify(proof)
    expect([json.credited, json.balance_inr, (await account(payer)).balance_inr]).toEqual([true, 0, 0])
    expect(await lines(payer)).toEqual(['topup 200', 'refund -200'])
    const stranger = { id: providerId('rfnd'), orderId: providerId('order'), paymentId: providerId('pay'), amount: 100 }
    expect(await notify('refund.processed', stranger)).toBe('ignored')
    expect(await notify('refund.processed', { ...stranger, withPayment: false })).toBe('ignored')
    expect(await notify('refund.processed', { ...stranger, orderId, paymentId: proof.payment_id, currency: 'USD' })).toBe('ignored')
    const forged = provider.returnWebhook('refund.processed', { ...stranger, orderId, paymentId: proof.payment_id })
    const reply = await deliver(app, { ...forged, body: forged.body.replace('100', '900') })
    expect([reply.status, reply.json.error.code]).toEqual([400, 'bad_signature'])
  })
})
