/** Payments that do not match their order: what the operator sees and decides. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { adminHandler } from '../../../src/operations/admin/commands/admin-commands.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { billingEnv, type PaymentFacts, type PaymentProvider, providerId, startPaymentProvider } from '../../harness/payment-provider.ts'

let app: TestApp
let provider: PaymentProvider
let cookie: string
beforeAll(async () => {
  provider = await startPaymentProvider()
  app = await startApp({ env: billingEnv(provider) })
  cookie = await app.signIn()
  const address = { name: 'Asha Rao', line1: '1 Fort Road', city: 'Bengaluru', state: 'Karnataka', pincode: '560001' }
  expect((await app.call('POST', '/me/billing/address', address, { cookie })).status).toBe(200)
})
afterAll(async () => {
  await app.stop()
  await provider.close()
})
// biome-ignore lint/suspicious/noExplicitAny: commands answer arbitrary objects.
const run = (name: string, args: Record<string, unknown> = {}): Promise<any> => adminHandler(app.gateway.app)({ name, args })
const order = async (inr: number): Promise<string> => (await app.call('POST', '/me/billing/orders', { amount_inr: inr }, { cookie })).json.order_id
async function captured(facts: PaymentFacts): Promise<string> {
  const paymentId = facts.paymentId ?? providerId('pay')
  const { body, headers } = provider.webhook('payment.captured', { ...facts, paymentId })
  expect((await app.call('POST', '/webhooks/razorpay', body, { token: null, headers })).status).toBe(200)
  return paymentId
}
const billing = async () => (await app.call('GET', '/me/billing', undefined, { cookie })).json
const invoices = async (): Promise<unknown[]> => (await app.call('GET', '/me/invoices', undefined, { cookie })).json.invoices

test('a payment of another amount is listed with the possible decisions, and the decision to credit credits the paid amount once', async () => {
  const orderId = await order(500)
  const paymentId = await captured({ orderId, amount: 40_000 })
  expect((await billing()).balance_inr).toBe(0)
  expect((await run('payments-flagged')).payments).toEqual([
    expect.objectContaining({
      payment_id: paymentId,
      org_id: app.orgId,
      order_id: orderId,
      reason: 'amount_differs',
      amount_inr: 400,
      currency: 'INR',
      order_inr: 500,
      credited: false,
      why: 'its order is over ₹500',
      what_to_do: expect.stringContaining(`brigade admin payments credit --payment ${paymentId}`),
    }),
  ])
  expect((await run('credit-show', { org: app.orgId })).flagged_payments).toHaveLength(1)
  expect(await run('payments-credit', { payment: paymentId })).toEqual({
    org_id: app.orgId,
    payment_id: paymentId,
    credited: true,
    amount_inr: 400,
    balance_inr: 400,
  })
  expect(await run('payments-credit', { payment: paymentId })).toMatchObject({ credited: false, balance_inr: 400, note: expect.stringContaining('before') })
  expect(await invoices()).toEqual([expect.objectContaining({ payment_id: paymentId })])
  const [line] = (await run('audit', { org: app.orgId, limit: 1 })).entries
  expect(line).toMatchObject({ act: 'creditFlaggedPayment', target: `payment=${paymentId}`, outcome: 'ok' })
  // The provider repeats its report, and the checkout comes late. Nothing more happens, and the payment is not listed again.
  await captured({ orderId, paymentId, amount: 40_000 })
  await app.call('POST', '/me/billing/verify', provider.checkout(orderId, paymentId), { cookie })
  expect((await billing()).balance_inr).toBe(400)
  expect((await run('payments-flagged')).payments).toEqual([])
})

test('the operator credits a second payment of a paid order once, in addition to the first, also when two decisions are concurrent', async () => {
  const before = (await billing()).balance_inr
  const orderId = await order(100)
  await captured({ orderId })
  const second = await captured({ orderId })
  expect((await run('payments-flagged', { org: app.orgId })).payments).toMatchObject([{ payment_id: second, reason: 'order_paid_already' }])
  const given = await Promise.all(Array.from({ length: 8 }, () => run('payments-credit', { payment: second })))
  expect(given.filter(({ credited }) => credited)).toHaveLength(1)
  expect((await billing()).balance_inr).toBe(before + 200)
  expect(await invoices()).toHaveLength(3)
  // The third payment is flagged like the second.
  const third = await captured({ orderId })
  expect((await run('payments-flagged')).payments).toMatchObject([{ payment_id: third }])
  const shown = async () => (await billing()).payments.find(({ payment_id }: { payment_id: string }) => payment_id === third)
  expect(await shown()).toMatchObject({ status: 'flagged', reason: 'order_paid_already' })
  expect(await run('payments-settle', { payment: third })).toEqual({ org_id: app.orgId, payment_id: third, settled: true })
  expect(await run('payments-settle', { payment: third })).toMatchObject({ settled: false })
  expect(await shown()).toMatchObject({ status: 'settled', reason: 'order_paid_already', invoice_number: null, captured_at: null })
  await expect(run('payments-credit', { payment: third })).rejects.toThrow(/was settled on .* credit grant/)
  expect((await run('payments-flagged')).payments).toEqual([])
})

test('a payment in another currency cannot be credited as rupees', async () => {
  const paymentId = await captured({ orderId: await order(100), currency: 'USD', amount: 1234 })
  expect((await run('payments-flagged')).payments).toMatchObject([{ reason: 'currency_differs', amount_inr: null, currency: 'USD', amount: 1234 }])
  await expect(run('payments-credit', { payment: paymentId })).rejects.toThrow(`--ref ${paymentId}`)
  await run('credit-grant', { org: app.orgId, inr: 1000, ref: paymentId })
  await run('payments-settle', { payment: paymentId })
  expect((await run('payments-flagged')).payments).toEqual([])
})

test('the operator corrects by hand a credited payment that a later report contradicts', async () => {
  const orderId = await order(300)
  const proof = provider.checkout(orderId)
  expect((await app.call('POST', '/me/billing/verify', proof, { cookie })).json).toMatchObject({ ok: true, credited: true })
  await captured({ orderId, paymentId: proof.payment_id, amount: 20_000 })
  expect((await run('payments-flagged')).payments).toMatchObject([{ payment_id: proof.payment_id, credited: true, order_inr: 300 }])
  await expect(run('payments-credit', { payment: proof.payment_id })).rejects.toThrow('was credited with the amount of its order')
  await run('credit-correct', { org: app.orgId, inr: -100, ref: proof.payment_id })
  expect(await run('payments-settle', { payment: proof.payment_id })).toMatchObject({ settled: true })
  expect((await run('payments-flagged')).payments).toEqual([])
})

test('a payment that was never flagged, that failed or that does not exist gets an error that says so', async () => {
  const orderId = await order(100)
  const failed = providerId('pay')
  const { body, headers } = provider.webhook('payment.failed', { orderId, paymentId: failed })
  await app.call('POST', '/webhooks/razorpay', body, { token: null, headers })
  await expect(run('payments-credit', { payment: failed })).rejects.toThrow('nothing was paid')
  await expect(run('payments-settle', { payment: failed })).rejects.toThrow('is not flagged')
  const good = await captured({ orderId })
  await expect(run('payments-settle', { payment: good })).rejects.toThrow('is not flagged')
  await expect(run('payments-credit', { payment: 'pay_nobody' })).rejects.toThrow('There is no payment pay_nobody')
  await expect(run('payments-credit', { payment: 'two words' })).rejects.toThrow(/^payment: /)
})
