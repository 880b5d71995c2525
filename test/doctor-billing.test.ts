import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkBilling } from '../src/operations/doctor/billing.ts'
import { loadConfig } from '../src/platform/config.ts'
import { statement } from '../src/platform/db/db.ts'
import { startApp, type TestApp } from './harness/app.ts'
import { movableClock } from './harness/clock.ts'

const flagOne = statement<[orgId: number]>(
  'test.doctor_flag',
  `with o as (insert into payment_orders (order_id, org_id, provider, amount_uinr, key_id, created_at) values ('order_d', $1::int, 'razorpay', 100000000, 'k', now()) returning order_id)
   insert into payments (payment_id, org_id, order_id, status, amount_uinr, currency, reason, created_at)
   select 'pay_d', $1::int, order_id, 'flagged', 90000000, 'INR', 'amount_differs', now() from o`,
)
const settleIt = statement<[]>('test.doctor_settle', `update payments set settled_at = now() where payment_id = 'pay_d'`)
const openSeries = statement<[]>('test.doctor_hole', `insert into invoice_series (series, last) values ('BR/26-27', 1)`)
const closeSeries = statement<[]>('test.doctor_no_hole', 'delete from invoice_series')
const endpoint = statement<[orgId: number, enabled: boolean, reason: string | null], { id: number }>(
  'test.doctor_endpoint',
  `insert into webhook_endpoints (org_id, url, subscribe_all, secret_sealed, enabled, disabled_reason, created_at)
   values ($1::int, 'https://receiver.example/', true, 'x', $2::bool, $3::text, now()) returning id`,
)
const delivery = statement<[orgId: number, endpointId: number, dueAt: Date]>(
  'test.doctor_delivery',
  `insert into webhook_deliveries (id, org_id, endpoint_id, event_id, event_seq, type, due_at, created_at)
   values (gen_random_uuid(), $1::int, $2::int, 'evt_d', 1, 'ping', $3::timestamptz, $3::timestamptz)`,
)
const noEndpoints = statement<[]>('test.doctor_no_endpoints', 'delete from webhook_endpoints')
const noDeliveries = statement<[]>('test.doctor_no_deliveries', 'delete from webhook_deliveries')

const on = { RAZORPAY_KEY_ID: 'rzp_live_key', RAZORPAY_KEY_SECRET: 'key-secret-in-clear', RAZORPAY_WEBHOOK_SECRET: 'hook-secret-in-clear' }
const sold = { INVOICE_SELLER_NAME: 'Fort Models LLP', INVOICE_SELLER_ADDRESS: '1 Fort Road, Bengaluru', INVOICE_SELLER_GSTIN: '29AAGCB7383J1Z4' }

describe("the doctor's checks of payments and webhooks", () => {
  let app: TestApp
  const clock = movableClock()
  beforeAll(async () => {
    // Nobody looks for deliveries here, so that what is due stays due.
    app = await startApp({ clock, env: { WEBHOOK_POLL_MS: '600000' } })
  })
  afterAll(() => app.stop())

  const look = (env: Record<string, string>, baseUrl = 'https://gateway.example') =>
    checkBilling({ db: app.db, config: loadConfig(env), operator: app.gateway.app.operator, baseUrl })
  const trouble = async (env: Record<string, string>, baseUrl?: string): Promise<string[]> => {
    const found = (await look(env, baseUrl)).filter(({ state }) => state !== 'ok').map(({ what, state, detail }) => `${state} ${what}: ${detail}`)
    expect(found.join()).not.toMatch(/secret-in-clear/)
    return found
  }

  test('a complete configuration has no finding, and neither has none at all', async () => {
    expect(await trouble({ ...on, ...sold })).toEqual([])
    expect(await trouble({})).toEqual([])
    expect((await look({ ...on, ...sold, RAZORPAY_KEY_ID: 'rzp_test_key' }))[0]).toEqual({
      what: 'payments',
      state: 'ok',
      detail: 'configured in test mode: no real money moves; the provider calls https://gateway.example/webhooks/razorpay',
    })
  })

  test.each([
    ['a key without its secret', { RAZORPAY_KEY_ID: 'k' }, /^warning payments: only one of .* payments are off/],
    ['a secret without its key', { RAZORPAY_KEY_SECRET: 'key-secret-in-clear' }, /^warning payments: only one of/],
    ['a webhook secret alone', { RAZORPAY_WEBHOOK_SECRET: 'hook-secret-in-clear' }, /^warning payments: RAZORPAY_WEBHOOK_SECRET is set without/],
    [
      'no webhook secret',
      { ...on, ...sold, RAZORPAY_WEBHOOK_SECRET: '' },
      /^warning payments: .*not credited\. Make a webhook to https:\/\/gateway\.example\/webhooks\/razorpay/,
    ],
    [
      'a seller without a name and address',
      { ...on, ...sold, INVOICE_SELLER_NAME: 'Brigade', INVOICE_SELLER_ADDRESS: '' },
      /^warning invoices: set INVOICE_SELLER_NAME.*INVOICE_SELLER_ADDRESS \(an invoice has to name it\)$/,
    ],
    ['a seller without a GSTIN', { ...on, ...sold, INVOICE_SELLER_GSTIN: '' }, /^warning invoices: set INVOICE_SELLER_GSTIN/],
  ])('%s is told, once', async (_, env, expected) => {
    expect(await trouble(env)).toEqual([expect.stringMatching(expected)])
  })

  test('an address that the payment provider cannot reach is reported', async () => {
    expect(await trouble({ ...on, ...sold }, 'http://127.0.0.1:8787')).toEqual([
      expect.stringMatching(/^warning payments: the provider cannot reach .*set BASE_URL/),
    ])
  })

  test('flagged payments are counted until somebody decides', async () => {
    await app.db.exec(flagOne, app.orgId)
    expect(await trouble({ ...on, ...sold })).toEqual([
      'warning payments: 1 payment needs a decision, because the money came and was not credited as ordered: brigade admin payments flagged',
    ])
    await app.db.exec(settleIt)
    expect(await trouble({ ...on, ...sold })).toEqual([])
  })

  test('a gap in the invoice numbers is wrong', async () => {
    await app.db.exec(openSeries)
    expect(await trouble({ ...on, ...sold })).toEqual([expect.stringMatching(/^wrong top-ups: Invoice series BR\/26-27 is at 1, with 0 invoices/)])
    await app.db.exec(closeSeries)
  })

  test('late deliveries are reported; disabled endpoints are mentioned', async () => {
    const { id } = await app.db.one(endpoint, app.orgId, true, null)
    await app.db.one(endpoint, app.orgId, false, 'too_many_failures')
    await app.db.one(endpoint, app.orgId, false, 'manual')
    expect((await look({})).at(-1)).toEqual({
      what: 'webhooks',
      state: 'ok',
      detail: '3 endpoints, 0 deliveries to send; 1 disabled after failures: brigade admin webhooks list',
    })
    await app.db.exec(delivery, app.orgId, id, new Date(clock.nowMs() - 300_000))
    expect(await trouble({})).toEqual([expect.stringMatching(/^warning webhooks: 1 delivery is due, the oldest for 30\d s/)])
    await app.db.exec(noDeliveries)
    await app.db.exec(noEndpoints)
  })
})
