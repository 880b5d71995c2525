import { afterAll, describe, expect, test } from 'vitest'
import { BillingDocuments } from '../../../src/gateway/billing/invoices/billing-documents.ts'
import type { Seller } from '../../../src/gateway/billing/invoices/invoice-parties.ts'
import { issueInvoice } from '../../../src/gateway/billing/invoices/invoices.ts'
import { invoicePage } from '../../../src/gateway/billing/invoices/pages/invoice-page.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { testDatabase } from '../../harness/database.ts'

const addOrg = statement<[name: string], { id: number }>(
  'test.invoice_add_org',
  `insert into orgs (name, kind, created_at) values ($1::text, 'team', now()) returning id`,
)
const addPayment = statement<[orgId: number, paymentId: string, at: Date]>(
  'test.invoice_add_payment',
  `with made as (
     insert into payment_orders (order_id, org_id, provider, amount_uinr, key_id, status, created_at, paid_at)
     values ('order_' || $2::text, $1::int, 'test', 100000000, 'key', 'paid', $3::timestamptz, $3::timestamptz) returning order_id)
   insert into payments (payment_id, org_id, order_id, status, amount_uinr, currency, created_at, captured_at)
   select $2::text, $1::int, order_id, 'captured', 100000000, 'INR', $3::timestamptz, $3::timestamptz from made`,
)
const addGstin = statement<[orgId: number, gstin: string]>(
  'test.invoice_add_gstin',
  `insert into billing_accounts (org_id, gstin, updated_at) values ($1::int, $2::text, now())`,
)
const numbersOf = statement<[orgId: number], { number: string; paymentId: string }>(
  'test.invoice_numbers_of',
  `select number as "number", payment_id as "paymentId" from invoices where org_id = $1::int order by series, seq`,
)

const seller: Seller = { name: 'Seller', addressLines: ['Here'], gstin: '29AAGCB7383J1Z4', prefix: 'BR', sac: '998315', namesBuyerGstin: true }
const amountUinr = 100_000_000n
const at = new Date('2026-11-22T08:35:00Z')

describe('numbers of an invoice series', async () => {
  const database = await testDatabase()
  const { db } = database
  const papers = new BillingDocuments({ db })
  afterAll(() => database.dispose())

  const issue = (orgId: number, paymentId: string, by = seller, when = at) => db.tx(tx => issueInvoice(tx, by, { orgId, paymentId, amountUinr, at: when }))
  const newOrg = async (name: string): Promise<number> => (await db.one(addOrg, name)).id
  const numbered = (series: string, count: number): string[] => Array.from({ length: count }, (_, k) => `${series}/${String(k + 1).padStart(6, '0')}`)

  test('20 concurrent transactions, of which every third rolls back, leave the numbers 1 to n without a gap; repeating a rolled-back one takes the next number', async () => {
    const orgId = await newOrg('Many')
    const ids = Array.from({ length: 20 }, (_, k) => `pay_${k}`)
    for (const id of ids) await db.exec(addPayment, orgId, id, at)
    const failing = new Set(ids.filter((_, k) => k % 3 === 0))
    const outcomes = await Promise.allSettled(
      ids.map(paymentId =>
        db.tx(async tx => {
          const issued = await issueInvoice(tx, seller, { orgId, paymentId, amountUinr, at })
          if (failing.has(paymentId)) throw new Error('what comes after the invoice failed')
          return issued
        }),
      ),
    )
    expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(failing.size)
    expect((await db.many(numbersOf, orgId)).map(({ number }) => number)).toEqual(numbered('BR/26-27', 20 - failing.size))
    await Promise.all([...failing].map(id => issue(orgId, id)))
    expect((await db.many(numbersOf, orgId)).map(({ number }) => number)).toEqual(numbered('BR/26-27', 20))
  })

  test('a payment has one invoice, also when two transactions issue the invoice concurrently', async () => {
    const orgId = await newOrg('Twice')
    await db.exec(addPayment, orgId, 'pay_twice', at)
    const twice = { ...seller, prefix: 'TW' }
    const outcomes = await Promise.allSettled([issue(orgId, 'pay_twice', twice), issue(orgId, 'pay_twice', twice)])
    expect(outcomes.some(({ status }) => status === 'fulfilled')).toBe(true)
    expect(await issue(orgId, 'pay_twice', twice)).toEqual({ number: 'TW/26-27/000001' })
    await db.exec(addPayment, orgId, 'pay_next', at)
    expect(await issue(orgId, 'pay_next', twice)).toEqual({ number: 'TW/26-27/000002' })
  })

  test('every financial year and every prefix has its own numbers', async () => {
    const orgId = await newOrg('Years')
    const issueAt = async (id: string, when: string, prefix: string): Promise<string> => {
      await db.exec(addPayment, orgId, id, new Date(when))
      return (await issue(orgId, id, { ...seller, prefix }, new Date(when))).number
    }
    expect(await issueAt('pay_y1', '2027-03-31T18:29:59.999Z', 'YR')).toBe('YR/26-27/000001')
    expect(await issueAt('pay_y2', '2027-03-31T18:30:00.000Z', 'YR')).toBe('YR/27-28/000001')
    expect(await issueAt('pay_y3', '2027-03-31T18:29:59.999Z', 'YR')).toBe('YR/26-27/000002')
    expect(await issueAt('pay_y4', '2027-03-31T18:29:59.999Z', 'Z')).toBe('Z/26-27/000001')
  })

  test('a seller without a GSTIN charges no tax, and the document is not called a tax invoice', async () => {
    const orgId = await newOrg('No GST')
    await db.exec(addPayment, orgId, 'pay_none', at)
    await issue(orgId, 'pay_none', { ...seller, gstin: null, prefix: 'NO' })
    const { invoices } = await papers.list(orgId, null, 10)
    expect(invoices).toMatchObject([
      { number: 'NO/26-27/000001', total_inr: 100, taxable_inr: 100, cgst_inr: 0, sgst_inr: 0, igst_inr: 0, place_of_supply: null },
    ])
    const text = textOf(invoicePage(await papers.invoice(orgId, 'pay_none')))
    expect(text).toContain('not registered under GST')
    expect(text).not.toMatch(/Tax invoice|GSTIN|CGST|SGST|IGST|Reverse charge|Place of supply/)
  })

  test('the place of supply is the state where the buyer is registered, or the seller’s state without an address; a union territory has UTGST', async () => {
    const orgId = await newOrg('Registered')
    await db.exec(addGstin, orgId, '07AAPFU0939F1ZX')
    await db.exec(addPayment, orgId, 'pay_delhi', at)
    await issue(orgId, 'pay_delhi', { ...seller, prefix: 'PS' })
    await db.exec(addPayment, orgId, 'pay_home', at)
    await issue(orgId, 'pay_home', { ...seller, gstin: '04AAPFU0939F1Z3', prefix: 'PS', namesBuyerGstin: false })
    expect((await papers.list(orgId, null, 10)).invoices).toMatchObject([
      { payment_id: 'pay_home', place_of_supply: '04', cgst_inr: 7.63, sgst_inr: 7.63, igst_inr: 0 },
      { payment_id: 'pay_delhi', place_of_supply: '07', igst_inr: 15.25, cgst_inr: 0 },
    ])
    expect(textOf(invoicePage(await papers.invoice(orgId, 'pay_delhi')))).toMatch(/GSTIN: 07AAPFU0939F1ZX.*Delhi \(07\).*IGST 18 %/s)
    const home = textOf(invoicePage(await papers.invoice(orgId, 'pay_home')))
    expect(home).toMatch(/CGST 9 %.*UTGST 9 %/s)
    expect(home).not.toContain('07AAPFU0939F1ZX')
  })
})

function textOf({ body }: ReturnType<typeof invoicePage>): string {
  return body.kind === 'bytes' ? Buffer.from(body.bytes).toString() : ''
}
