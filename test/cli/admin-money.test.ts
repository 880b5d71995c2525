/** The operator's commands about money on the command line, run by the process that owns the database. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { onPostgres } from '../harness/database.ts'
import { billingEnv, type PaymentProvider, startPaymentProvider } from '../harness/payment-provider.ts'
import { runHere } from './run-here.ts'

let app: TestApp
let provider: PaymentProvider
let cookie: string
beforeAll(async () => {
  provider = await startPaymentProvider()
  app = await startApp({ env: billingEnv(provider) })
  cookie = await app.signIn()
})
afterAll(async () => {
  await app.stop()
  await provider.close()
})

// On PostgreSQL, commands connect to the database, and this test has no database URL for them.
test.runIf(!onPostgres)('commands print tables for people and JSON for programs, and one line for wrong arguments', async () => {
  const address = { name: 'Asha Rao', line1: '1 Fort Road', city: 'Bengaluru', state: 'Karnataka', pincode: '560001' }
  expect((await app.call('POST', '/me/billing/address', address, { cookie })).status).toBe(200)
  const { order_id: orderId } = (await app.call('POST', '/me/billing/orders', { amount_inr: 200 }, { cookie })).json
  const paymentId = 'pay_typed'
  const { body, headers } = provider.webhook('payment.captured', { orderId, paymentId, amount: 100 })
  expect((await app.call('POST', '/webhooks/razorpay', body, { token: null, headers })).status).toBe(200)
  const env = { DATA_DIR: app.dataDir, DATABASE_URL: undefined, BASE_URL: undefined }
  const typed = (...words: string[]) => runHere(['admin', ...words], env)
  const flagged = await typed('payments', 'flagged')
  expect(flagged.err).toBe('')
  expect(flagged.out).toMatch(new RegExp(`^${paymentId}  organisation ${app.orgId}  INR 1\\.00  .*\n {2}why: its order is over ₹200\n {2}do: {2}credit it`))
  expect(JSON.parse((await typed('credit', 'grant', '--org', String(app.orgId), '--inr', '5', '--ref', 'typed', '--json')).out)).toMatchObject({
    credited: true,
  })
  expect((await typed('credit', 'show', '--org', String(app.orgId), '--limit', '1')).out).toMatch(
    /^organisation \d+: ₹[\d.]+\npayments to look at: 1, see .*\nAT +WHY +₹ +BALANCE ₹ +REF\n/,
  )
  expect((await typed('credit', 'correct', '--org', String(app.orgId), '--inr=-5', '--ref', 'typed')).out).toMatch(
    /^org_id +\d+\ncredited +true\namount_inr +-5\n/,
  )
  expect((await typed('promo', 'list')).out).toBe('there is no promo code\n')
  expect((await typed('promo', 'create', '--code', 'typed', '--bonus-inr', '10', '--max-redemptions', '3')).code).toBe(0)
  expect((await typed('promo', 'list')).out).toMatch(/^CODE +STATE +BONUS ₹ +FROM ₹ +USED +EXPIRES\nTYPED +active +10\.00 +0\.00 +0 of 3 +never\n$/)
  expect((await typed('webhooks', 'list')).out).toBe('there is no webhook\n')
  expect((await typed('payments', 'settle', '--payment', paymentId, '--json')).code).toBe(0)
  expect((await typed('payments', 'flagged')).out).toBe('no payment is flagged\n')
  const wrong = await typed('promo', 'end', '--code', 'NOBODY')
  expect([wrong.code, wrong.out, wrong.err]).toEqual([1, '', 'brigade: There is no promo code NOBODY. brigade admin promo list shows them.\n'])
  expect((await typed('credit', 'grant', '--org', 'x', '--inr', '1', '--ref', 'y')).code).toBe(2)
})
