/** Runs the commands and the page of docs/guides/billing.md exactly as they are written there. */
import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../harness/app.ts'
import { onPostgres } from '../harness/database.ts'
import { billingEnv, type PaymentProvider, providerSignature, startPaymentProvider } from '../harness/payment-provider.ts'
import { runHere } from './run-here.ts'

const page = readFileSync(new URL('../../docs/guides/billing.md', import.meta.url), 'utf8')
const [operators = '', owners = ''] = page.split('## For owners')
const shell = (text: string): string[] => [...text.matchAll(/```sh\n([\s\S]*?)```/g)].map(match => match[1] ?? '')
const hasTools = process.platform !== 'win32' && ['bash', 'curl', 'node'].every(name => spawnSync(name, ['--version']).status === 0)

/** The brigade commands of the page that need no values filled in, as lists of words. */
const commands = shell(operators)
  .flatMap(block => block.split('\n'))
  .map(line => line.replace(/\s+# .*$/, ''))
  .filter(line => line.startsWith('npx brigade ') && !line.includes('…'))
  .map(line => [...line.slice('npx brigade '.length).matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? ''))

describe.runIf(hasTools)('the guide about billing', () => {
  let app: TestApp
  let provider: PaymentProvider
  let cookie: string
  const folder = mkdtempSync(join(tmpdir(), 'brigade-page-'))
  beforeAll(async () => {
    provider = await startPaymentProvider()
    app = await startApp({ env: { ...billingEnv(provider), INVOICE_SELLER_NAME: 'Seller', INVOICE_SELLER_GSTIN: '29AAGCB7383J1Z4' } })
    cookie = await app.signIn()
  })
  afterAll(async () => {
    await app.stop()
    await provider.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const operate = async (words: readonly string[]) => {
    const ran = await runHere(words, { DATA_DIR: app.dataDir, DATABASE_URL: undefined, BASE_URL: undefined })
    expect([words.join(' '), ran.code, ran.err]).toEqual([words.join(' '), 0, ''])
    return ran.out
  }

  // On PostgreSQL, commands need the URL of the database, and these commands do not have it.
  test.runIf(!onPostgres)("the operator's commands work", async () => {
    const printed = []
    for (const words of commands.filter(words => !words.includes('end'))) printed.push(await operate(words))
    expect(printed).toHaveLength(8)
    expect(printed.join('\n')).toMatch(/balance_inr +500[\s\S]*balance_inr +450[\s\S]*organisation 1: ₹450\.00[\s\S]*WELCOME +active/)
    expect(await operate(['admin', 'payments', 'flagged'])).toBe('no payment is flagged\n')
  })

  test.runIf(!onPostgres)('every command of the owner does what the guide says', async () => {
    const [address = '', order = '', proof = '', settings = ''] = shell(owners)
    const checkout = `PAYMENT=pay_page1; SIGNATURE=$(node -pe "require('crypto').createHmac('sha256', process.env.KEY_SECRET).update('$ORDER|$PAYMENT').digest('hex')")`
    const script = [
      `me() { curl -s -H "cookie: $COOKIE" -X "$1" "$BRIGADE/me$2" -H 'content-type: application/json' -d "\${3-}"; echo; }`,
      address,
      order,
      checkout,
      proof,
      settings,
    ].join('\n')
    const env = { PATH: process.env['PATH'] ?? '', BRIGADE: app.baseUrl, COOKIE: cookie, KEY_SECRET: provider.keySecret }
    const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { env, cwd: folder })
    const replies = stdout
      .split('\n')
      .filter(line => line !== '')
      .map(line => JSON.parse(line))
    expect(replies).toHaveLength(9)
    const [pincode, billed, promo, verified, billing, invoices, threshold, profile, gstin] = replies
    expect(pincode).toMatchObject({ pincode: '560001', state: 'Karnataka' })
    expect(billed).toMatchObject({ name: 'Asha Rao', state_code: '29' })
    expect(promo).toMatchObject({ valid: true, bonus_inr: 50 })
    expect(verified).toMatchObject({ ok: true, credited: true, balance_inr: 1000, promo: { bonus_inr: 50 } })
    expect(billing).toMatchObject({ balance_inr: 1000, payments: [{ payment_id: 'pay_page1', status: 'captured' }] })
    expect(invoices.invoices).toMatchObject([{ payment_id: 'pay_page1' }])
    expect(readFileSync(join(folder, 'invoice.html'), 'utf8')).toContain('Asha Rao')
    expect(readFileSync(join(folder, 'receipt.html'), 'utf8')).toContain('pay_page1')
    expect(threshold).toEqual({ ok: true, low_balance_threshold_inr: 200 })
    expect(profile).toMatchObject({ legal_name: 'Fort Models LLP' })
    expect(gstin).toMatchObject({ valid: true, state: 'Karnataka' })
    expect(await operate(['admin', 'promo', 'end', '--code', 'WELCOME'])).toMatch(/state +ended/)
  })

  test('the HTML page with the checkout makes a top-up', async () => {
    const code = /<script>\n([\s\S]*?)<\/script>/.exec(page)?.[1] ?? ''
    const said: string[] = []
    const button: { onclick?: () => Promise<unknown> } = {}
    // Replaces the provider's script. It pays immediately and returns what a browser would get.
    class Checkout {
      readonly options: { order_id: string; key: string; amount: number; currency: string; handler: (paid: object) => Promise<void> }
      constructor(options: Checkout['options']) {
        this.options = options
      }
      async open() {
        const { order_id, key, amount, currency, handler } = this.options
        expect([key, amount, currency]).toEqual([provider.keyId, 50_000, 'INR'])
        const razorpay_signature = providerSignature(`${order_id}|pay_page2`, provider.keySecret)
        await handler({ razorpay_order_id: order_id, razorpay_payment_id: 'pay_page2', razorpay_signature })
      }
    }
    const fetchHere = (path: string, init: RequestInit) => fetch(app.baseUrl + path, { ...init, headers: { ...init.headers, cookie, origin: app.baseUrl } })
    const run = new Function('document', 'Razorpay', 'fetch', 'alert', code)
    run({ querySelector: () => button }, Checkout, fetchHere, (text: string) => said.push(text))
    const address = { name: 'Asha Rao', line1: '1 Fort Road', city: 'Bengaluru', state: 'Karnataka', pincode: '560001' }
    await app.call('POST', '/me/billing/address', address, { cookie })
    const before = (await app.call('GET', '/me/billing', undefined, { cookie })).json.balance_inr
    await button.onclick?.()
    await expect.poll(() => said).toEqual([`Your balance is ₹${before + 500}.`])
    // The guide's list of invoices for the accounts contains the new invoice.
    const list = /--csv -c "([^"]+)"/.exec(operators)?.[1]?.replace("'BR/26-27'", '(select max(series) from invoice_series)') ?? ''
    const listed = await app.db.many(statement<[], { number: string; buyer: string; total: string; igst: string }>('test.list_of_invoices', list))
    expect(listed.at(-1)).toMatchObject({ number: expect.stringMatching(/^BR\//), buyer: expect.any(String), place_of_supply: '29' })
    expect(Number(listed.at(-1)?.total)).toBe(500)
  })
})
