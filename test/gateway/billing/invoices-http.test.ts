import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { renderMail } from '../../../src/gateway/mail/templates.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestReply } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { billingEnv, type PaymentProvider, providerId, startPaymentProvider } from '../../harness/payment-provider.ts'
import { eventsOf, invoicesOf, newPayer, notify, type Payer, receiptsOf } from './top-ups.ts'

const putAccount = statement<[orgId: number, legalName: string | null, billingEmail: string | null, gstin: string | null]>(
  'test.invoices_put_account',
  `insert into billing_accounts (org_id, legal_name, billing_email, gstin, updated_at) values ($1::int, $2::text, $3::text, $4::text, now())
   on conflict (org_id) do update set legal_name = $2::text, billing_email = $3::text, gstin = $4::text`,
)
const putAddressName = statement<[orgId: number, name: string, line1: string]>(
  'test.invoices_put_address_name',
  `update billing_addresses set name = $2::text, line1 = $3::text where org_id = $1::int`,
)
const series = statement<[], { series: string; last: number }>(
  'test.invoices_series',
  `select series as "series", last as "last" from invoice_series order by series`,
)

/** Fails the transactions of some captures at their last step, after the invoice number was taken, as a crash would. */
const crash = `
create function crash() returns trigger language plpgsql as $$ begin
  if new.template = 'receipt' and new.data ->> 'paymentId' like 'pay_crash%' then raise exception 'crash'; end if;
  return new;
end $$;
create trigger crash before insert on emails for each row execute function crash();`
const noCrash = 'drop trigger crash on emails; drop function crash();'

describe('invoices and receipts', () => {
  // Shortly before the end of a financial year in India.
  const clock = movableClock(Date.parse('2027-03-31T18:00:00Z'))
  let provider: PaymentProvider
  let app: TestApp
  beforeAll(async () => {
    provider = await startPaymentProvider()
    const env = {
      ...billingEnv(provider),
      CONSOLE_RPM: '100000',
      INVOICE_SELLER_NAME: 'Brigade Systems <Private> Limited',
      INVOICE_SELLER_ADDRESS: '27 Residency Road, Bengaluru 560025',
      INVOICE_SELLER_GSTIN: '29AAGCB7383J1Z4',
      GST_BUSINESS_INVOICES: 'on',
    }
    app = await startApp({ clock, env })
  })
  afterAll(async () => {
    await app?.stop()
    await provider?.close()
  })

  const get = (path: string, cookie: string): Promise<TestReply> => app.call('GET', path, undefined, { cookie })
  const topUp = async (payer: Payer, amountInr: number, paymentId = providerId('pay')): Promise<string> => {
    const reported = await notify(app, provider, 'payment.captured', { orderId: await payer.order(amountInr), paymentId })
    expect(reported.status).toBe(200)
    return paymentId
  }
  const setAddress = async ({ cookie }: Payer, address: object): Promise<void> => {
    const set = await app.call('POST', '/me/billing/address', address, { cookie })
    expect(set.status, set.text).toBe(200)
  }
  const pune = { name: 'Meera Kulkarni', line1: 'Plot 14, Hinjawadi', city: 'Pune', state: 'Maharashtra', pincode: '411057' }
  const codeOf = ({ status, json }: TestReply): [number, string] => [status, json.error.code]

  test('INV-02 INV-03 when some concurrent captures crash after their invoice, the numbers have no gap; a new series begins at midnight IST of the new year', async () => {
    const payer = await newPayer(app)
    const reported = await Promise.all(
      Array.from({ length: 6 }, async (_, k) => ({ orderId: await payer.order(100 + k), paymentId: k % 3 === 0 ? `pay_crash${k}` : providerId('pay') })),
    )
    await app.db.script(crash)
    const replies = await Promise.all(reported.map(facts => notify(app, provider, 'payment.captured', facts)))
    await app.db.script(noCrash)
    expect(replies.map(({ status }) => status)).toEqual([500, 200, 200, 500, 200, 200])
    const numbers = async (): Promise<string[]> => (await app.db.many(invoicesOf, payer.orgId)).map(({ number }) => number)
    const upTo = (n: number): string[] => Array.from({ length: n }, (_, k) => `BR/26-27/00000${k + 1}`)
    expect(await numbers()).toEqual(upTo(4))
    for (const facts of reported) await notify(app, provider, 'payment.captured', facts)
    expect(await numbers()).toEqual(upTo(6))
    expect((await numbers()).every(number => number.length <= 16)).toBe(true)

    clock.moveTo(Date.parse('2027-03-31T18:29:58Z'))
    await topUp(payer, 100)
    clock.moveTo(Date.parse('2027-03-31T18:30:00Z'))
    await topUp(payer, 100)
    const { invoices } = (await get('/me/invoices', payer.cookie)).json
    expect(invoices.slice(0, 2)).toMatchObject([
      { number: 'BR/27-28/000001', date: '2027-04-01' },
      { number: 'BR/26-27/000007', date: '2027-03-31' },
    ])
    expect(await app.db.many(series)).toEqual([
      { series: 'BR/26-27', last: 7 },
      { series: 'BR/27-28', last: 1 },
    ])
  })

  test('INV-01 a captured top-up has one invoice, one invoice.created event and one payment.captured event; owners and the billing address get a receipt', async () => {
    const payer = await newPayer(app)
    const second = await app.newMember('owner', { orgId: payer.orgId })
    await app.newMember('admin', { orgId: payer.orgId })
    await app.db.exec(putAccount, payer.orgId, null, 'bills@payer.test', null)
    const orderId = await payer.order(1234)
    const checkout = provider.checkout(orderId)
    const paymentId = checkout.payment_id
    const facts = { orderId, paymentId }
    const outcomes = await Promise.all([
      notify(app, provider, 'payment.captured', facts),
      payer.verify(checkout),
      notify(app, provider, 'payment.captured', facts),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual([200, 200, 200])
    const [invoice, ...others] = await app.db.many(invoicesOf, payer.orgId)
    expect([invoice, others]).toEqual([{ number: expect.stringMatching(/^BR\/27-28\/\d{6}$/), paymentId, paise: 123_400 }, []])
    expect(await app.db.many(eventsOf, payer.orgId)).toMatchObject([
      { type: 'payment.captured', data: { payment_id: paymentId } },
      { type: 'invoice.created', data: { payment_id: paymentId, invoice_number: invoice?.number, total_inr: 1234 } },
    ])
    const receipts = await app.db.many(receiptsOf, payer.orgId)
    expect(receipts).toHaveLength(3)
    expect(receipts.map(({ to }) => to)).toEqual(expect.arrayContaining([second.email, 'bills@payer.test']))
    const mail = renderMail('receipt', receipts[0]?.data)
    for (const word of ['₹1,234.00', paymentId, invoice?.number ?? '', `${app.baseUrl}/auth?return_to=%2Fme%2Finvoices%2F${paymentId}`])
      expect(mail?.text).toContain(word)
  })

  test('INV-04 PERM-06 every role reads invoices, newest first and in pages, and the other open billing data; each invoice is a printable page', async () => {
    const payer = await newPayer(app)
    const paid: string[] = []
    for (const amountInr of [100, 200, 300]) paid.unshift(await topUp(payer, amountInr))
    const cookies = [payer.cookie]
    for (const role of ['admin', 'member'] as const) cookies.push((await app.newMember(role, { orgId: payer.orgId })).cookie)
    for (const cookie of cookies) {
      const list = await get('/me/invoices', cookie)
      expect(list.status).toBe(200)
      expect(list.json.invoices.map((each: { payment_id: string }) => each.payment_id)).toEqual(paid)
      expect(list.json.next_before).toBeNull()
      const page = await get(`/me/invoices/${paid[0]}`, cookie)
      expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
      for (const word of [
        'Tax invoice',
        list.json.invoices[0].number,
        '₹300.00',
        'Rupees Three Hundred Only',
        'Asha Rao',
        'Karnataka (29)',
        '998315',
        'Reverse charge',
      ])
        expect(page.text).toContain(word)
      for (const path of ['/me/billing', '/me/billing/pincode/560001', '/me/billing/profile']) expect((await get(path, cookie)).status, path).toBe(200)
    }
    const first = (await get('/me/invoices?limit=2', payer.cookie)).json
    expect(first.invoices).toHaveLength(2)
    const rest = (await get(`/me/invoices?limit=2&before=${encodeURIComponent(first.next_before)}`, payer.cookie)).json
    expect(rest).toMatchObject({ invoices: [{ payment_id: paid[2] }], next_before: null })
    for (const query of ['limit=0', 'limit=201', 'limit=x', 'before=%00', 'before=a']) {
      expect(codeOf(await get(`/me/invoices?${query}`, payer.cookie)), query).toEqual([400, 'bad_request'])
    }
  })

  test('INV-05 a payment of another organisation, a failed payment and an unknown payment are 404 with the same message', async () => {
    const payer = await newPayer(app)
    const stranger = await newPayer(app)
    const theirs = await topUp(stranger, 100)
    const failed = providerId('pay')
    await notify(app, provider, 'payment.failed', { orderId: await payer.order(100), paymentId: failed })
    const seen = new Set<string>()
    for (const id of [theirs, failed, 'pay_nothing', '%00', 'x'.repeat(300), 'BR%2F26-27%2F000001', '..%2f..']) {
      for (const path of [`/me/invoices/${id}`, `/me/billing/receipts/${id}`]) {
        const reply = await get(path, payer.cookie)
        expect(codeOf(reply), path).toEqual([404, 'not_found'])
        seen.add(reply.json.error.message)
      }
    }
    expect(seen.size).toBe(1)
    const numberOfStranger = (await get('/me/invoices', stranger.cookie)).json.invoices[0].number
    expect((await get(`/me/invoices?before=${encodeURIComponent(numberOfStranger)}`, payer.cookie)).json).toEqual({ invoices: [], next_before: null })
    expect((await get(`/me/invoices/${theirs}`, stranger.cookie)).status).toBe(200)
  })

  test('INV-06 text that people typed stays text on the page: it adds no element, attribute, script or remote resource', async () => {
    const payer = await newPayer(app)
    const hostile = `<script>alert(1)</script>"><img src=//evil.test/x onerror='alert(1)'></style></title><a href="javascript:alert(1)">&lt;b&gt;\u202egnp.exe`
    await app.db.exec(putAddressName, payer.orgId, hostile, `</bdi></address>${hostile}`)
    await app.db.exec(putAccount, payer.orgId, `अमृता देशपांडे & ${hostile}`, null, null)
    const paymentId = await topUp(payer, 100)
    for (const path of [`/me/invoices/${paymentId}`, `/me/billing/receipts/${paymentId}`]) {
      const { text, headers } = await get(path, payer.cookie)
      expect(text).toContain('&lt;script&gt;alert(1)&lt;/script&gt;&quot;&gt;&lt;img src=//evil.test/x')
      expect(text).toContain('अमृता देशपांडे &amp; ')
      const markup = text.replace(/<style>.*<\/style>/s, '')
      const tags = [...markup.matchAll(/<\/?([a-z0-9!]+)([^>]*)>/gi)]
      const known =
        'doctype html head meta title body main header address strong bdi br div h1 h2 p dl dt dd section table thead tbody tr th td footer a'.split(' ')
      for (const [tag, name = '', attributes = ''] of tags) {
        expect(known, tag).toContain(name.toLowerCase().replace('!', ''))
        expect(attributes, tag).toMatch(/^( html| (lang|charset|name|content|class|scope)="[^"<>]*"| href="\/me\/invoices\/[\w]+")*$/)
      }
      // Outside the tags there is no angle bracket.
      expect(markup.replace(/<\/?[a-z0-9!]+[^<>]*>/gi, '')).not.toMatch(/[<>]/)
      expect(text).not.toContain('\u202e')
      expect(text).not.toMatch(/url\(|@import|https?:/)
      expect(headers.get('content-security-policy')).toMatch(
        /^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
      )
      expect(headers.get('cache-control')).toBe('private, no-store')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(text).toMatch(/@page \{ size: A4/)
    }
  })

  test("INV-07 a buyer in the seller's state pays CGST and SGST, and another buyer pays IGST, 18 % inside the total; the parts add up to the total to the paisa", async () => {
    const payer = await newPayer(app)
    const inside = await topUp(payer, 1234)
    await setAddress(payer, pune)
    const outside = await topUp(payer, 1234)
    const { invoices } = (await get('/me/invoices', payer.cookie)).json
    expect(invoices).toMatchObject([
      { payment_id: outside, total_inr: 1234, taxable_inr: 1045.76, cgst_inr: 0, sgst_inr: 0, igst_inr: 188.24, place_of_supply: '27' },
      { payment_id: inside, total_inr: 1234, taxable_inr: 1045.76, cgst_inr: 94.12, sgst_inr: 94.12, igst_inr: 0, place_of_supply: '29' },
    ])
    for (const { total_inr, taxable_inr, cgst_inr, sgst_inr, igst_inr } of invoices)
      expect(Math.round(taxable_inr * 100) + Math.round(cgst_inr * 100) + Math.round(sgst_inr * 100) + Math.round(igst_inr * 100)).toBe(total_inr * 100)
    const page = async (id: string): Promise<string> => (await get(`/me/invoices/${id}`, payer.cookie)).text.replace(/<style>.*<\/style>/s, '')
    expect(await page(inside)).toMatch(/CGST 9 %<\/dt><dd>₹94\.12.*SGST 9 %<\/dt><dd>₹94\.12.*₹1,234\.00/s)
    expect(await page(inside)).not.toContain('IGST')
    expect(await page(outside)).toMatch(/Maharashtra \(27\).*IGST 18 %<\/dt><dd>₹188\.24/s)
    expect(await page(outside)).not.toContain('CGST')
  })

  test('an issued invoice does not change when the buyer moves, is renamed or registers for GST; the next invoice has the new data', async () => {
    const payer = await newPayer(app)
    const first = await topUp(payer, 500)
    const before = (await get(`/me/invoices/${first}`, payer.cookie)).text
    await setAddress(payer, pune)
    await app.db.exec(putAccount, payer.orgId, 'Sahyadri Analytics LLP', null, '27AAPFU0939F1ZV')
    expect((await get(`/me/invoices/${first}`, payer.cookie)).text).toBe(before)
    const next = (await get(`/me/invoices/${await topUp(payer, 500)}`, payer.cookie)).text
    for (const word of ['Sahyadri Analytics LLP', 'Meera Kulkarni', 'GSTIN: 27AAPFU0939F1ZV', 'Pune 411057', 'IGST']) expect(next).toContain(word)
    expect(before).not.toContain('Sahyadri')
  })

  test('BILL-16 the receipt has payment, order, amount, payer, address, method and time in IST, and only owners can read it', async () => {
    const payer = await newPayer(app)
    await setAddress(payer, pune)
    const orderId = await payer.order(2500)
    const paymentId = providerId('pay')
    clock.moveTo(Date.parse('2027-04-02T08:35:00Z'))
    await notify(app, provider, 'payment.captured', { orderId, paymentId, method: 'netbanking' })
    const receipt = await get(`/me/billing/receipts/${paymentId}`, payer.cookie)
    expect([receipt.status, receipt.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    for (const word of [paymentId, orderId, '₹2,500.00', 'Meera Kulkarni', 'Plot 14, Hinjawadi', 'Pune 411057', 'Net banking', '2 April 2027, 14:05 IST'])
      expect(receipt.text).toContain(word)
    for (const role of ['admin', 'member'] as const) {
      const { cookie } = await app.newMember(role, { orgId: payer.orgId })
      expect(codeOf(await get(`/me/billing/receipts/${paymentId}`, cookie))).toEqual([403, 'forbidden'])
      // The role is checked first, so other roles cannot find out which ids exist.
      expect(codeOf(await get('/me/billing/receipts/pay_nothing', cookie))).toEqual([403, 'forbidden'])
    }
  })
})
