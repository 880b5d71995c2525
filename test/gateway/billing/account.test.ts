/** The account page: balance, ledger, payments and usage. Money comes from real top-ups and from the operator, and real calls spend it. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findOverview } from '../../../src/gateway/billing/account-queries.ts'
import { creditIn } from '../../../src/gateway/limits/budgets/prepaid.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { istDay } from '../../../src/platform/values/ist-time.ts'
import { inrFromUinr, uinrFromInr } from '../../../src/platform/values/money.ts'
import { startApp, type TestApp, type TestReply } from '../../harness/app.ts'
import { billingEnv, type PaymentProvider, startPaymentProvider } from '../../harness/payment-provider.ts'
import { propertyRuns } from '../../harness/property-runs.ts'
import { newPayer, notify } from './top-ups.ts'

let app: TestApp
let provider: PaymentProvider

beforeAll(async () => {
  provider = await startPaymentProvider()
  app = await startApp({ env: billingEnv(provider) })
})
afterAll(async () => {
  await app.stop()
  await provider.close()
})

const billing = (cookie: string, query = ''): Promise<TestReply> => app.call('GET', `/me/billing${query}`, undefined, { cookie })
const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

interface Entry {
  readonly id: number
  readonly amount_inr: number
  readonly balance_after_inr: number
}

/**
 * Checks the ledger from the newest row down. The newest balance is the account's balance, each balance is the one before it plus the amount, and the
 * oldest row starts from zero.
 */
function expectChain(entries: readonly Entry[], balanceInr: number): void {
  let balance = uinrFromInr(balanceInr)
  for (const [i, entry] of entries.entries()) {
    expect(uinrFromInr(entry.balance_after_inr)).toBe(balance)
    if (i > 0) expect(entry.id).toBeLessThan(entries[i - 1]?.id ?? 0)
    balance -= uinrFromInr(entry.amount_inr)
  }
  expect(balance).toBe(0n)
}

describe('the account', () => {
  test('BILL-01 SHAPE-10 a member reads the balance together with every ledger row, payment and day of usage', async () => {
    const payer = await newPayer(app)
    const member = await app.newMember('member', { orgId: payer.orgId })
    const today = istDay(Date.now())
    const empty = await billing(member.cookie)
    expect(empty.status).toBe(200)
    expect(empty.json).toMatchObject({ balance_inr: 0, low_balance_threshold_inr: null, ledger: [], next_before: null, payments: [] })
    expect(empty.json.usage_30d).toHaveLength(30)
    expect(empty.json.usage_30d[29]).toEqual({ day: today, requests: 0, tokens: 0, cost_inr: 0 })

    const failed = await payer.order(100)
    await notify(app, provider, 'payment.failed', { orderId: failed, paymentId: 'pay_failed', method: 'card', errorReason: 'payment_cancelled' })
    const orderId = await payer.order(250)
    const { payment_id } = provider.checkout(orderId, 'pay_account')
    await notify(app, provider, 'payment.captured', { orderId, paymentId: payment_id, method: 'upi' })
    await app.gateway.app.operator.credits.give({ orgId: payer.orgId, reason: 'grant', amountUinr: 1_500_000n, ref: 'welcome' })
    await app.gateway.app.operator.credits.give({ orgId: payer.orgId, reason: 'correction', amountUinr: -500_000n, ref: 'slip' })
    const { key } = await app.gateway.app.keys.create({
      ...{ orgId: payer.orgId, userId: payer.userId, workspaceId: null, name: 'caller', scope: 'full', rpmLimit: null, dailyLimit: null },
    })
    // Prompt and reply are about as long as the reported usage says.
    const content = 'hello '.repeat(25_000)
    app.alpha.script(() => ({ chunks: ['x'.repeat(50_000)], usage: { prompt_tokens: 100_000, completion_tokens: 50_000, total_tokens: 150_000 } }))
    const called = await app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content }] }, { token: key })
    expect(called.status).toBe(200)

    const { json } = await billing(member.cookie)
    // 100,000 × ₹10 and 50,000 × ₹40 per million tokens.
    expect(json.balance_inr).toBe(250 + 1.5 - 0.5 - 3)
    const entry = { id: expect.any(Number), created_at: iso }
    expect(json.ledger).toEqual([
      { ...entry, kind: 'debit', reason: 'usage', amount_inr: -3, balance_after_inr: 248, ref: called.headers.get('x-request-id') },
      { ...entry, kind: 'adjust', reason: 'correction', amount_inr: -0.5, balance_after_inr: 251, ref: 'slip' },
      { ...entry, kind: 'credit', reason: 'grant', amount_inr: 1.5, balance_after_inr: 251.5, ref: 'welcome' },
      { ...entry, kind: 'credit', reason: 'topup', amount_inr: 250, balance_after_inr: 250, ref: payment_id },
    ])
    expectChain(json.ledger, json.balance_inr)
    const payment = { currency: 'INR', bonus_inr: 0, returned_inr: 0, promo_code: null, created_at: iso }
    expect(json.payments).toEqual([
      {
        ...payment,
        ...{ payment_id, order_id: orderId, status: 'captured', amount_inr: 250, method: 'upi', reason: null },
        ...{ invoice_number: expect.stringMatching(/^BR\//), captured_at: iso },
      },
      {
        ...payment,
        ...{ payment_id: 'pay_failed', order_id: failed, status: 'failed', amount_inr: 100, method: 'card', reason: 'payment_cancelled' },
        ...{ invoice_number: null, captured_at: null },
      },
    ])
    expect(json.usage_30d[29]).toEqual({ day: today, requests: 1, tokens: 150_000, cost_inr: 3 })
    expect(json.usage_30d.map(({ day }: { day: string }) => day)).toEqual([...new Set(json.usage_30d.map(({ day }: { day: string }) => day))].sort())
    expect(json.address).toMatchObject({ name: 'Asha Rao', pincode: '560001', state: 'Karnataka', state_code: '29' })
    // Another organisation sees none of this.
    expect((await billing(await app.signIn())).json).toMatchObject({ balance_inr: 0, ledger: [], payments: [] })
  })

  test('pages of the ledger have no gap and no repetition, and the balance after each row is right across pages', async () => {
    const amount = fc.oneof(fc.bigInt(1n, 9_000_000_000n), fc.bigInt(-9_000_000_000n, -1n))
    await fc.assert(
      fc.asyncProperty(fc.array(amount, { maxLength: 24 }), fc.integer({ min: 1, max: 9 }), fc.integer({ min: 0, max: 3 }), async (amounts, limit, later) => {
        const { orgId, userId } = await app.gateway.app.orgs.createOrg({ name: 'Ledger', ownerEmail: 'ledger@owners.test' })
        const cookie = await app.signIn(userId, orgId)
        const write = (amountUinr: bigint, ref: string) =>
          app.db.tx(tx => creditIn(tx, { orgId, amountUinr, reason: amountUinr > 0n ? 'grant' : 'correction', ref, at: new Date() }))
        for (const [i, amountUinr] of amounts.entries()) await write(amountUinr, `row ${i}`)
        const sum = amounts.reduce((total, part) => total + part, 0n)
        const entries: Entry[] = []
        let before: string | null = null
        let pages = 0
        do {
          const page: TestReply = await billing(cookie, `?limit=${limit}${before === null ? '' : `&before=${before}`}`)
          expect(page.json.ledger.length).toBeLessThanOrEqual(limit)
          entries.push(...page.json.ledger)
          before = page.json.next_before
          // A row that is written while somebody reads the pages changes no later page.
          if (pages < later) await write(7n, `later ${pages}`)
          pages++
        } while (before !== null)
        expect(pages).toBe(Math.max(1, Math.ceil(amounts.length / limit)))
        expect(entries.map(({ amount_inr }) => uinrFromInr(amount_inr))).toEqual([...amounts].reverse())
        expectChain(entries, inrFromUinr(sum))
      }),
      { numRuns: propertyRuns(15) },
    )
  })

  test('an invalid page size or cursor is refused', async () => {
    const cookie = await app.signIn()
    for (const query of [
      'limit=0',
      'limit=201',
      'limit=x',
      'limit=1.5',
      'before=',
      'before=7',
      'before=x.1',
      'before=1.x',
      'before=1.2.3',
      `before=${'9'.repeat(19)}.1`,
    ]) {
      const refused = await billing(cookie, `?${query}`)
      expect([query, refused.status, refused.json.error.code]).toEqual([query, 400, 'bad_request'])
    }
    expect((await billing(cookie, '?limit=200&before=1.0')).json.ledger).toEqual([])
  })
})

const fillLedger = statement<[orgId: number, rows: number]>(
  'test.fill_ledger',
  `insert into ledger (org_id, kind, amount_uinr, reason, event_id, at)
   select case when n % 2 = 0 then $1::int else $1::int + 1000000 end, 'debit', -1, 'usage', gen_random_uuid(), now() from generate_series(1, $2::int) n`,
)

const planOfOverview = statement<
  [orgId: number, before: bigint | null, ledgerMax: number, paymentsMax: number, from: string, to: string],
  { 'QUERY PLAN': string }
>('test.plan_of_overview', `explain (costs off) ${findOverview.text}`)

test('a page of a long ledger reads only the rows that it shows', async () => {
  const { orgId, userId } = await app.otherOrg('Long')
  const cookie = await app.signIn(userId, orgId)
  await app.db.tx(tx => creditIn(tx, { orgId, amountUinr: 10_000n, reason: 'grant', ref: 'start', at: new Date() }))
  try {
    await app.db.exec(fillLedger, orgId, 8000)
    await app.db.script('analyze ledger')
    await app.db.script(`update counters set spent = 10000 where org_id = ${orgId} and metric = 'prepaid'`)
    for (const before of [null, 12_345n]) {
      const plan = (await app.db.many(planOfOverview, orgId, before, 51, 200, '2026-01-01', '2026-01-30')).map(row => row['QUERY PLAN']).join('\n')
      expect(plan).toMatch(/Limit\n *-> +Index Scan Backward using ledger_by_org on ledger\n *Index Cond: \(\(org_id = ANY .* AND \(id < /)
      expect(plan).toMatch(/Index Cond: \(\(day = ANY .*\(id = ledger.event_id\)\)/)
      expect(plan).not.toContain('Seq Scan')
    }
    const { json } = await billing(cookie)
    expect(json.balance_inr).toBe(0)
    expect(json.ledger).toHaveLength(50)
    expect(json.ledger[49].balance_after_inr).toBe(0.000049)
  } finally {
    await app.db.script(`delete from ledger where reason = 'usage' and event_id is not null and org_id in (${orgId}, ${orgId + 1_000_000})`)
    await app.db.script(`update counters set spent = 0 where org_id = ${orgId} and metric = 'prepaid'`)
  }
})
