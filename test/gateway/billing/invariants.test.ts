import { afterAll, beforeAll, expect, it } from 'vitest'
import { checkBillingInvariants } from '../../../src/gateway/billing/invariants.ts'
import { issueInvoice } from '../../../src/gateway/billing/invoices/invoices.ts'
import { creditIn } from '../../../src/gateway/limits/budgets/prepaid.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { type TestDatabase, testDatabase } from '../../harness/database.ts'

const at = new Date('2026-06-01T10:00:00Z')
const rupee = 1_000_000n
const seller = { name: 'Seller', addressLines: ['1 Road'], gstin: null, prefix: 'BR', sac: '998315', namesBuyerGstin: false }
const made = `
  insert into orgs (id, name, kind, created_at) overriding system value values (1, 'Org', 'team', '${at.toISOString()}');
  insert into payment_orders (order_id, org_id, provider, amount_uinr, key_id, status, created_at, paid_at)
    values ('order_1', 1, 'razorpay', 500000000, 'k', 'paid', now(), now()), ('order_2', 1, 'razorpay', 500000000, 'k', 'created', now(), null);
  insert into payments (payment_id, org_id, order_id, status, amount_uinr, currency, promo_code, bonus_uinr, created_at, captured_at)
    values ('pay_1', 1, 'order_1', 'captured', 500000000, 'INR', 'HELLO', 50000000, now(), now()),
           ('pay_2', 1, 'order_2', 'flagged', 400000000, 'INR', null, 0, now(), null);
  insert into promo_codes (code, bonus_uinr, redemptions, created_at) values ('HELLO', 50000000, 1, now());
  insert into promo_redemptions (org_id, code, payment_id, at) values (1, 'HELLO', 'pay_1', now());`

let database: TestDatabase
beforeAll(async () => {
  database = await testDatabase()
  await database.db.script(made)
  await database.db.tx(async tx => {
    await creditIn(tx, { orgId: 1, amountUinr: 500n * rupee, reason: 'topup', ref: 'pay_1', paymentId: 'pay_1', at })
    await creditIn(tx, { orgId: 1, amountUinr: 50n * rupee, reason: 'promo', ref: 'HELLO', at })
    await issueInvoice(tx, seller, { orgId: 1, paymentId: 'pay_1', amountUinr: 500n * rupee, at })
  })
  expect(await checkBillingInvariants(database.db)).toEqual([])
})
afterAll(() => database.dispose())

const broken: readonly (readonly [string, string, RegExp])[] = [
  [
    'a capture that was not credited',
    "delete from ledger where reason = 'topup'",
    /pay_1 was captured with ₹500: ₹0 credited, 1 invoices over ₹500, its order paid/,
  ],
  ['a capture that was credited with another amount', "update ledger set amount_uinr = 1 where reason = 'topup'", /₹0\.000001 credited/],
  ['a capture without its invoice', 'delete from invoices', /0 invoices over ₹0/],
  ['an invoice over another amount', 'update invoices set total_paise = 1, taxable_paise = 1, cgst_paise = 0, sgst_paise = 0, igst_paise = 0', /over ₹0\.01/],
  ['a capture of an order that is not paid', "update payment_orders set status = 'created', paid_at = null where order_id = 'order_1'", /its order not paid/],
  ['a paid order without a captured payment', "update payment_orders set status = 'paid', paid_at = now()", /The paid order order_2 has no captured payment/],
  [
    'a credit of a flagged payment',
    "insert into ledger (org_id, kind, amount_uinr, reason, payment_id, at) values (1, 'credit', 5, 'topup', 'pay_2', now())",
    /The credit pay_2 has/,
  ],
  ['an invoice of a flagged payment', "update invoices set payment_id = 'pay_2'", /The invoice BR\/26-27\/000001 has no captured payment/],
  ['a gap at the end of a series', 'update invoice_series set last = 2', /BR\/26-27 is at 2, with 1 invoices up to 1: a hole/],
  ['a gap within a series', 'update invoices set seq = 2; update invoice_series set last = 2', /is at 2, with 1 invoices up to 2: a hole/],
  ['a promo code whose counter is too high', 'update promo_codes set redemptions = 2', /HELLO counts 2 redemptions, there are 1/],
  ['a bonus without its redemption', 'delete from promo_redemptions', /HELLO gave organisation 1 ₹50, its redemption says ₹0/],
  ['a redemption without its bonus', "delete from ledger where reason = 'promo'", /HELLO gave organisation 1 ₹0, its redemption says ₹50/],
]

it.each(broken)('the check finds %s', async (what, sql, sentence) => {
  let found: string[] = []
  const undone = new Error('undone')
  const work = database.db.tx(async tx => {
    for (const [at, one] of sql.split('; ').entries()) await tx.exec(statement<[]>(`test.break_billing ${what} ${at}`, one))
    found = await checkBillingInvariants(tx)
    throw undone
  })
  await expect(work).rejects.toBe(undone)
  expect(found).toContainEqual(expect.stringMatching(sentence))
})
