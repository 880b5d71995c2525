/** The pages of the organisation, each driven through its main job by a person. The gateway, the receiver of webhooks and the issuer of tokens are real. */
import { createHmac } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { type OidcIssuer, startOidcIssuer } from '../agents/oidc-issuer.ts'
import { type McpFixture, startMcpFixture } from '../gateway/tools/mcp-server.ts'
import { register } from '../gateway/tools/registered.ts'
import { startApp, type TestApp } from '../harness/app.ts'
import { billingEnv, type PaymentProvider, startPaymentProvider } from '../harness/payment-provider.ts'
import { until } from '../harness/until.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../harness/webhook-receiver.ts'
import { builtConsole, type ConsolePage, openPage, program, settled, sizes, startBrowser, suiteName } from './browser.ts'
import { tabTo } from './keyboard.ts'

/** With this variable the test writes pictures into a folder. */
const pictures = process.env['CONSOLE_PICTURES']

/** Moves the lines about tools back by two days, as if they had been written then. */
const ageActs = statement<[]>(
  'test.age_console_acts',
  `update audit_log set at = at - interval '2 days' where act in ('approveTool', 'blockTool', 'noteToolChanges') and at > now() - interval '1 hour'`,
)
const changeAct = statement<[from: string, to: string]>(
  'test.change_console_act',
  `update audit_log set act = $2::text where id = (select min(id) from audit_log where act = $1::text)`,
)

describe.skipIf(program === null)(suiteName('pages of the organisation'), { timeout: 180_000 }, () => {
  let app: TestApp
  let browser: Browser
  let cookie: string
  let receiver: WebhookReceiver
  let tools: McpFixture
  let issuer: OidcIssuer
  let provider: PaymentProvider
  let opened: ConsolePage
  let page: Page
  beforeAll(async () => {
    await builtConsole()
    receiver = await startWebhookReceiver()
    tools = await startMcpFixture('modern')
    issuer = await startOidcIssuer()
    provider = await startPaymentProvider()
    await issuer.addKey('one')
    app = await startApp({
      env: {
        ...billingEnv(provider),
        CONSOLE_RPM: '10000',
        OUTBOUND_ALLOW: `${receiver.hostPort},${tools.hostPort},${issuer.hostPort}`,
        WEBHOOK_POLL_MS: '100',
      },
    })
    cookie = await app.signIn()
    browser = await startBrowser()
    opened = await openPage(browser, app, '/console/webhooks', { cookie })
    page = opened.page
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    await app?.stop()
    await receiver?.close()
    await tools?.close()
    await issuer?.close()
    await provider?.close()
  })

  const api = async (method: string, path: string, body?: object) => (await app.call(method, path, body, { cookie })).json
  const button = (name: string | RegExp) => page.getByRole('button', { name, exact: typeof name === 'string' })
  const tab = (name: string) => page.getByRole('tab', { name, exact: true }).click()
  const menu = async (name: string): Promise<void> => {
    await button('More acts').click()
    await page.getByRole('menuitem', { name }).click()
  }
  /** Nothing is wrong with the page as it is now. */
  const isSound = async (name: string): Promise<void> => {
    await settled(page)
    expect(await opened.axe(), name).toEqual([])
    expect(opened.faults, name).toEqual([])
    await page.setViewportSize(sizes.narrow)
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), `${name}: no scrolling sideways`).toBe(true)
    await page.setViewportSize(sizes.wide)
    if (pictures !== undefined) await takePictures(pictures, name)
  }
  const takePictures = async (into: string, name: string): Promise<void> => {
    mkdirSync(into, { recursive: true })
    for (const [theme, size] of [
      ['light', 'wide'],
      ['dark', 'wide'],
      ['dark', 'narrow'],
    ] as const) {
      await page.emulateMedia({ colorScheme: theme })
      await page.setViewportSize(sizes[size])
      await page.screenshot({ path: join(into, `${name}-${theme}-${size}.png`), fullPage: true })
    }
    await page.emulateMedia({ colorScheme: 'light' })
    await page.setViewportSize(sizes.wide)
  }

  test('webhooks: a person adds an endpoint by keyboard, stores its secret, sends a test, reads a failed delivery with its attempts, sends it again, changes its events, rotates, disables and removes it', async () => {
    await page.getByText('No endpoint yet').waitFor()
    await page.keyboard.press('n')
    const dialog = page.getByRole('dialog', { name: 'Add an endpoint' })
    await dialog.waitFor()
    await page.keyboard.type('http://10.0.0.8/hook')
    await page.keyboard.press('Enter')
    await dialog.getByRole('alert').waitFor()
    expect(await dialog.getByLabel('Address').inputValue()).toBe('http://10.0.0.8/hook')
    opened.faults.splice(0)
    await dialog.getByLabel('Address').fill(`${receiver.url}/brigade`)
    await dialog.getByText('Only these events').click()
    await isSound('webhooks-new')
    expect(await dialog.getByRole('button', { name: 'Add endpoint' }).isDisabled()).toBe(true)
    await dialog.getByLabel('budget.block').check()
    await dialog.getByLabel('key.revoked').check()
    await tabTo(page, 'Add endpoint')
    await page.keyboard.press('Enter')
    const panel = page.getByRole('dialog', { name: 'The endpoint is added' })
    await panel.waitFor()
    const secret = (await panel.locator('.secret-text').textContent()) ?? ''
    expect(secret).toMatch(/^whsec_/)
    await page.keyboard.press('Escape')
    await isSound('webhooks-secret')
    await panel.getByRole('button', { name: 'I have stored it' }).click()
    await page.getByText('Nothing was sent yet').waitFor()
    const [webhook] = (await api('GET', '/me/webhooks')).webhooks
    expect(webhook).toMatchObject({ subscribe_all: false, event_types: ['budget.block', 'key.revoked'], enabled: true })
    expect(await page.locator('body').textContent()).not.toContain(secret)

    receiver.answer({ status: 503, headers: { 'retry-after': '3600' } })
    await button('Send a test').click()
    await page.getByRole('heading', { level: 2, name: 'ping' }).waitFor()
    const [first] = await receiver.untilReceived(1, '/brigade')
    const [, t, v1] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(first?.signature ?? '') ?? []
    expect(
      createHmac('sha256', secret)
        .update(`${t}.`)
        .update(first?.raw ?? '')
        .digest('hex'),
    ).toBe(v1)
    await page.getByText('The answer was no 2xx.').first().waitFor()
    await page.getByRole('row', { name: /ping.*Will be repeated.*503.*1/ }).waitFor()
    await page.locator('.peek').getByText('"type": "ping"').waitFor()
    await isSound('webhook-delivery')
    receiver.answer({})
    await button('Send again').click()
    await receiver.untilReceived(2, '/brigade')
    await page.getByRole('row', { name: /ping.*Delivered.*200.*2/ }).waitFor()
    await page.locator('.peek').getByText('Attempt 2').waitFor()
    expect(new Set(receiver.at('/brigade').map(({ deliveryId }) => deliveryId)).size).toBe(1)
    await isSound('webhook-again')
    await page.keyboard.press('Escape')

    await tab('Settings')
    const sent = page.waitForRequest(request => request.method() === 'PATCH')
    await page.getByLabel('budget.warn').check()
    await button('Save').click()
    expect((await sent).postDataJSON()).toEqual({ subscribe_all: false, event_types: ['budget.block', 'key.revoked', 'budget.warn'] })
    await page.getByText('Saved. It applies to the next event.').waitFor()
    await isSound('webhook-settings')
    await menu('New secret…')
    await page.getByRole('dialog').getByRole('button', { name: 'New secret' }).click()
    const next = page.getByRole('dialog', { name: 'The new secret' })
    expect(await next.locator('.secret-text').textContent()).not.toBe(secret)
    await next.getByRole('button', { name: 'I have stored it' }).click()
    await menu('Disable…')
    await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click()
    await page.getByText('A person disabled it. It receives nothing.').waitFor()
    expect(await button('Send a test').count()).toBe(0)
    await isSound('webhook-off')
    await button('Enable').click()
    await button('Send a test').waitFor()
    await menu('Remove…')
    await page.getByLabel(`Type ${receiver.hostPort} to confirm`).fill(receiver.hostPort)
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await page.getByText('No endpoint yet').waitFor()
    await until(async () => (await api('GET', '/me/webhooks')).webhooks.length === 0, 'the endpoint is removed')
    expect(opened.faults).toEqual([])
  })

  test('audit: a person reads lines as sentences, filters them by actor, act and day, loads older ones, takes CSV, and verifies the signed records of tools, where a changed row shows', async () => {
    const key = await api('POST', '/me/keys', { name: '=2+5 secret project' })
    for (let change = 0; change < 102; change++) await api('PATCH', `/me/keys/${key.id}`, { rpm_limit: change + 1 })
    const member = await app.newMember('member')
    expect((await app.call('POST', '/me/webhooks', { url: 'https://example.com/' }, { cookie: member.cookie })).status).toBe(403)
    await page.goto(`${app.baseUrl}/console/audit`)
    await settled(page)
    await page.getByRole('row', { name: new RegExp(`${member.email} tried to add a webhook.*forbidden`) }).waitFor()
    await page
      .getByRole('row', { name: `You changed key ${key.id}` })
      .first()
      .waitFor()
    await isSound('audit')
    expect(await page.locator('body').textContent()).not.toContain('secret project')
    await page.getByLabel('Act', { exact: true }).selectOption({ label: 'make a key' })
    await page.getByRole('row', { name: `You made key ${key.id}` }).waitFor()
    expect(page.url()).toContain('act=createKey')
    expect(await page.getByRole('row', { name: /changed key/ }).count()).toBe(0)
    await page.getByLabel('Act', { exact: true }).selectOption('')
    await page.getByLabel('Who').selectOption({ label: 'People' })
    await page.getByLabel('From', { exact: true }).fill('2020-01-01')
    await page
      .getByRole('row', { name: /You changed key/ })
      .first()
      .waitFor()
    await page.mouse.wheel(0, 20_000)
    await page.getByRole('row', { name: `You made key ${key.id}` }).waitFor()
    const [file] = await Promise.all([page.waitForEvent('download'), button('CSV').click()])
    const csv = await readFile(await file.path(), 'utf8')
    expect(csv.split('\r\n').length).toBeGreaterThan(102)
    expect(csv).toContain(`"You made key ${key.id}","user","${app.userId}"`)
    await page.mouse.wheel(0, -20_000)
    await page.getByLabel('To', { exact: true }).fill('2020-01-02')
    await page.getByText('No line fits').waitFor()
    await button('Clear filters').click()
    const refused = page.getByRole('row', { name: /tried to add a webhook/ })
    await refused.focus()
    await page.keyboard.press('Enter')
    await page.locator('.peek').getByText('createWebhook').first().waitFor()
    await isSound('audit-line')
    await button('Only this actor').click()
    await refused.waitFor()
    expect(page.url()).toContain(`actor=user%3A${member.userId}`)

    const { id: server } = await register(app, 'mod', tools.url)
    expect(server).not.toBe('')
    await app.db.exec(ageActs)
    await app.gateway.app.jobs.runOnce('compliance.heads')
    await tab('Verify')
    await button('Verify').click()
    await page.getByText(/All 1 days are as they were signed, with \d+ rows/).waitFor()
    await isSound('audit-verified')
    const [heads] = await Promise.all([page.waitForEvent('download'), button('Save the heads').click()])
    expect(JSON.parse(await readFile(await heads.path(), 'utf8')).heads).toHaveLength(1)
    await app.db.exec(changeAct, 'approveTool', 'blockTool')
    await button('Verify again').click()
    await page.getByText('1 day is not as it was signed.').waitFor()
    await page.getByText(/At least one of \d+ acts was changed/).waitFor()
    await isSound('audit-differs')
    await app.db.exec(changeAct, 'blockTool', 'approveTool')

    const seen = await openPage(browser, app, '/console/audit', { cookie: member.cookie, size: 'narrow' })
    await seen.page.getByText('Owners, admins and auditors see the trail').waitFor()
    await seen.page.getByText(/^Ask owner/).waitFor()
    for (const path of ['/console/webhooks', '/console/webhooks/1']) {
      await seen.page.goto(app.baseUrl + path)
      await seen.page.getByText('Owners and admins see webhooks').waitFor()
    }
    expect([await seen.axe(), seen.faults]).toEqual([[], []])
    await seen.context.close()
    expect(opened.faults).toEqual([])
  })

  test('workload identities: an owner makes a rule by platform, reads what to paste, tries tokens against it, exchanges one for real, and deletes it; an admin sees and makes none', async () => {
    const { id: agent } = await app.newAgent('triage')
    const subject = 'system:serviceaccount:agents:triage'
    const audience = `${app.baseUrl}/orgs/${app.orgId}`
    await page.goto(`${app.baseUrl}/console/workloads`)
    await page.getByText('No rule yet').waitFor()
    await page.keyboard.press('n')
    const dialog = page.getByRole('dialog', { name: 'New rule' })
    await dialog.getByLabel('Repository').fill('acme/app')
    await dialog.getByText('repo:acme/app:ref:refs/heads/main').waitFor()
    await dialog.getByLabel('Which jobs').selectOption('environment')
    await dialog.getByLabel('Environment').fill('production')
    await dialog.getByText('repo:acme/app:environment:production').waitFor()
    await dialog.getByLabel('Where does it run?').selectOption('kubernetes')
    await dialog.getByLabel('Issuer').fill('https://10.0.0.7/')
    await dialog.getByLabel('Namespace').fill('agents')
    await dialog.getByLabel('Service account').fill('triage')
    await dialog.getByText(subject).waitFor()
    await dialog.getByRole('combobox', { name: 'It acts as' }).fill('tri')
    await dialog.getByRole('option', { name: 'triage' }).click()
    await dialog.getByRole('combobox', { name: 'Bound to the key' }).click()
    await dialog.locator('[role=option]:visible').first().click()
    await dialog.getByLabel('Issuer').focus()
    await isSound('workloads-new')
    await dialog.getByRole('button', { name: 'Create rule' }).click()
    await dialog.getByRole('alert').waitFor()
    expect(await dialog.getByLabel('Service account').inputValue()).toBe('triage')
    opened.faults.splice(0)
    await dialog.getByLabel('Issuer').fill(issuer.url)
    await dialog.getByRole('button', { name: 'Create rule' }).click()
    const made = page.getByRole('dialog', { name: 'Kubernetes agents/triage is made' })
    await made.getByText(`audience: ${audience}`).waitFor()
    await made.getByText('serviceAccountName: triage').waitFor()
    await made.getByRole('button', { name: 'Done' }).click()
    const [rule] = (await api('GET', '/me/agent-trust')).rules
    expect(rule).toMatchObject({ issuer: issuer.url, subject, audience, agent_id: agent })
    await page.getByRole('row', { name: /Kubernetes agents\/triage.*triage/ }).click()
    await page.locator('.peek').getByText('To paste at the platform').waitFor()
    await isSound('workloads-rule')

    await tab('Test a token')
    const token = (claims: object) => issuer.token({ aud: audience, ...claims })
    await page.getByRole('textbox', { name: 'Token' }).fill('not a token')
    await page.getByText('This is no token of this kind.').waitFor()
    await page.getByRole('textbox', { name: 'Token' }).fill(await token({ sub: 'system:serviceaccount:other:triage' }))
    await page.getByText('It fits no rule.').waitFor()
    await page.getByText('Differs: subject').waitFor()
    const genuine = await token({ sub: subject })
    await page.getByRole('textbox', { name: 'Token' }).fill(genuine)
    await page.getByText(`It fits the rule Kubernetes agents/triage, for agent ${agent}.`).waitFor()
    await button('Exchange it now').click()
    await page.getByText(/The gateway takes it: triage, scope inference, for \d+ seconds\./).waitFor()
    await isSound('workloads-tested')
    expect((await api('GET', '/me/audit?act=exchangeToken')).entries).toHaveLength(1)
    const [head = '', body = '', signature = ''] = genuine.split('.')
    await page.getByRole('textbox', { name: 'Token' }).fill(`${head}.${body}.${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`)
    await button('Exchange it now').click()
    await page.getByRole('alert').waitFor()
    opened.faults.splice(0)

    const admin = await app.newMember('admin')
    const seen = await openPage(browser, app, `/console/workloads?rule=${rule.id}`, { cookie: admin.cookie, size: 'narrow' })
    await seen.page.locator('.peek').getByText('Owners make and delete rules.').waitFor()
    expect(await seen.page.getByRole('button', { name: /New rule|Delete rule/ }).count()).toBe(0)
    expect([await seen.axe(), seen.faults]).toEqual([[], []])
    await seen.context.close()
    await page.goto(`${app.baseUrl}/console/workloads?rule=${rule.id}`)
    await button('Delete rule').click()
    await page.getByLabel('Type Kubernetes agents/triage to confirm').fill('Kubernetes agents/triage')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete rule' }).click()
    await page.getByText('No rule yet').waitFor()
    expect(opened.faults).toEqual([])
  })

  test('billing: an owner sets the address by its PIN code, tops up on a page of its own where the program of the provider runs, and sees ledger, payment and invoice; a member reads', async () => {
    await page.goto(`${app.baseUrl}/console/billing`)
    await page.getByText('No movement yet').waitFor()
    await button('Top up').click()
    await page.getByText('Set the billing address first').waitFor()
    expect(await page.getByRole('link', { name: 'Pay in a new tab' }).count()).toBe(0)
    await page.getByRole('link', { name: 'Set the address' }).click()
    const address = page.getByRole('region', { name: 'Billing address' })
    await address.getByLabel('Person or company').fill('Asha Rao')
    await address.getByLabel('Street').fill('1 Fort Road')
    await address.getByLabel('PIN code').fill('560001')
    await until(async () => (await address.getByLabel('State').inputValue()) === 'Karnataka', 'the PIN code fills in the state')
    await address.getByRole('button', { name: 'Save the address' }).click()
    await page.getByText('The address is on invoices from now on.').waitFor()
    const low = page.getByRole('region', { name: 'Low balance' })
    await low.getByLabel('Notice below in rupees').fill('200')
    await low.getByRole('button', { name: 'Save' }).click()
    await until(async () => (await api('GET', '/me/billing')).low_balance_threshold_inr === 200, 'the threshold is set')
    await isSound('billing-details')
    await button('Top up').click()
    const dialog = page.getByRole('dialog', { name: 'Top up' })
    await dialog.getByLabel('Amount in rupees').fill('99')
    await dialog.getByText('Type whole rupees, from 100 to 100000.').waitFor()
    await dialog.getByLabel('Amount in rupees').fill('750')
    await isSound('billing-top-up')

    // The program of the provider is replaced by one that pays immediately. Its own origin and the policy of the page stay as they are.
    const orders: string[] = []
    await opened.context.exposeFunction('payNow', (order: string) => {
      orders.push(order)
      const { order_id, payment_id, signature } = provider.checkout(order)
      return { razorpay_order_id: order_id, razorpay_payment_id: payment_id, razorpay_signature: signature }
    })
    await opened.context.route('https://checkout.razorpay.com/v1/checkout.js', route =>
      route.fulfill({
        contentType: 'text/javascript',
        body: `globalThis.Razorpay = class { constructor(options) { this.options = options }
          async open() { globalThis.other = await fetch('/me/keys').then(() => 'read', () => 'refused'); this.options.handler(await payNow(this.options.order_id)) } }`,
      }),
    )
    const [paying] = await Promise.all([opened.context.waitForEvent('page'), dialog.getByRole('link', { name: 'Pay in a new tab' }).click()])
    await paying.getByRole('button', { name: 'Pay ₹750' }).click()
    await paying.getByText('Paid. Your balance is ₹750.').waitFor()
    // The policy of the page lets the program of the provider reach nothing else of the gateway.
    expect(await paying.evaluate('globalThis.other')).toBe('refused')
    if (pictures !== undefined) await paying.screenshot({ path: join(pictures, 'billing-paid.png') })
    await paying.close()
    await page.bringToFront()
    await page.goto(`${app.baseUrl}/console/billing`)
    await page.getByRole('row', { name: /Top-up.*₹750/ }).waitFor()
    await page.getByRole('row', { name: /pay_.*Credited.*₹750/ }).waitFor()
    await isSound('billing')
    await tab('Invoices')
    const [invoice] = await Promise.all([opened.context.waitForEvent('page'), page.getByRole('link', { name: /^Invoice/ }).click()])
    await invoice.getByText('Asha Rao').first().waitFor()
    await invoice.close()
    await isSound('billing-invoices')
    expect(orders).toHaveLength(1)

    const member = await app.newMember('member')
    const seen = await openPage(browser, app, '/console/billing', { cookie: member.cookie, size: 'narrow' })
    await seen.page.getByText(/Owners pay and change billing\./).waitFor()
    await seen.page.getByRole('row', { name: /Top-up/ }).waitFor()
    expect(await seen.page.getByRole('button', { name: 'Top up' }).count()).toBe(0)
    await seen.page.goto(`${app.baseUrl}/console/billing?tab=details`)
    await seen.page.getByText('Asha Rao, 1 Fort Road').waitFor()
    await settled(seen.page)
    expect([await seen.axe(), seen.faults]).toEqual([[], []])
    await seen.context.close()
    expect(opened.faults).toEqual([])
  })

  test('compliance: an admin sees where calls were served, checks the signature, takes the documents, and opens and shortens the window for content; an auditor only reads', async () => {
    const say = (model: string) => app.call('POST', '/v1/chat/completions', { model, messages: [{ role: 'user', content: 'Hello' }] })
    for (const model of ['test-model', 'alpha-only']) expect((await say(model)).status).toBe(200)
    await app.gateway.app.limits.flushNow()
    await page.goto(`${app.baseUrl}/console/compliance`)
    await page.getByText('are listed as evidence').waitFor()
    await page.getByRole('row', { name: /alpha-only text generation/ }).waitFor()
    await button('Check the signature').click()
    await page.getByText(/The signature is genuine, by the key/).waitFor()
    await isSound('compliance')
    const [json] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: /attestation\.json/ }).click()])
    expect(JSON.parse(await readFile(await json.path(), 'utf8')).payload.summary.total).toBe(2)
    const [report] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: /dpia\.md/ }).click()])
    expect(await readFile(await report.path(), 'utf8')).toContain('alpha-only')
    await page.getByText('Keep prompts and answers for some days').click()
    await page.getByLabel('Days', { exact: true }).fill('400')
    await page.getByText('Type a whole number of days, from 1 to 365.').waitFor()
    await page.getByLabel('Days', { exact: true }).fill('7')
    await button('Save').click()
    await page.getByText('Content is kept for 7 days.').waitFor()
    await page.getByText(/Prompts and answers of calls, at most 1 MiB/).waitFor()
    await page.getByText('Keep nothing').click()
    await button('Save').click()
    await page.getByText(/This deletes everything that was kept/).waitFor()
    expect((await api('GET', '/me')).org.data_retention_days).toBe(7)
    await page.getByRole('dialog').getByRole('button', { name: 'Delete and save' }).click()
    await page.getByText('Nothing is kept.').waitFor()
    expect((await api('GET', '/me')).org.data_retention_days).toBe(0)
    expect(opened.faults).toEqual([])

    const auditor = await app.newMember('member', { capabilities: ['audit:view'] })
    const seen = await openPage(browser, app, '/console/compliance', { cookie: auditor.cookie, size: 'narrow' })
    await seen.page.getByText('Owners and admins change it.').waitFor()
    await seen.page.getByText('are listed as evidence').waitFor()
    expect(await seen.page.getByRole('button', { name: 'Save' }).count()).toBe(0)
    await settled(seen.page)
    expect([await seen.axe(), seen.faults]).toEqual([[], []])
    await seen.context.close()
    const member = await app.newMember('member')
    const other = await openPage(browser, app, '/console/compliance', { cookie: member.cookie })
    await other.page.getByText('Owners, admins and auditors see compliance').waitFor()
    expect(other.faults).toEqual([])
    await other.context.close()
  })

  test('settings: a person changes their name and sees where they are signed in, ends one session and then all others; an owner renames the organisation and sets when unused keys end', async () => {
    const others = [await app.signIn(), await app.signIn(), await app.signIn()]
    await page.goto(`${app.baseUrl}/console/settings`)
    await page.getByText('This one').waitFor()
    await page.getByLabel('Name', { exact: true }).fill('Asha Rao')
    await page.getByRole('region', { name: 'Your name' }).getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    await page.getByLabel('Name of the organisation').fill('Fort Models')
    await page.getByRole('region', { name: 'Organisation' }).getByRole('button', { name: 'Save' }).click()
    await until(async () => (await api('GET', '/me')).org.name === 'Fort Models', 'the organisation is renamed')
    await page.getByText('Disabled after some days').click()
    await page.getByLabel('Days without use').fill('60')
    await page.getByRole('region', { name: 'Unused keys' }).getByRole('button', { name: 'Save' }).click()
    await until(async () => (await api('GET', '/me')).org.key_inactivity_days === 60, 'the days are set')
    expect((await api('GET', '/me')).user.name).toBe('Asha Rao')
    await isSound('settings')
    const before = (await api('GET', '/me/sessions')).sessions.length
    expect(before).toBeGreaterThanOrEqual(4)
    await button('End').first().click()
    await page.getByRole('dialog').getByRole('button', { name: 'End', exact: true }).click()
    await page.getByText('The session is ended.').waitFor()
    expect((await api('GET', '/me/sessions')).sessions).toHaveLength(before - 1)
    await button('End all others').click()
    await page.getByRole('dialog').getByRole('button', { name: 'End all others' }).click()
    await page.getByText(/sessions are ended\./).waitFor()
    expect((await api('GET', '/me/sessions')).sessions).toMatchObject([{ current: true }])
    await until(
      async () => (await Promise.all(others.map(old => app.call('GET', '/me', undefined, { cookie: old })))).every(({ status }) => status === 401),
      'they ended',
    )
    const member = await app.newMember('member')
    const seen = await openPage(browser, app, '/console/settings', { cookie: member.cookie, size: 'narrow' })
    await seen.page.getByText('This one').waitFor()
    await seen.page.getByText(/Owners and admins set what holds for the organisation\. Ask/).waitFor()
    expect(await seen.page.getByLabel('Name of the organisation').count()).toBe(0)
    expect([await seen.axe(), seen.faults]).toEqual([[], []])
    await seen.context.close()
    expect(opened.faults).toEqual([])
  })
})
