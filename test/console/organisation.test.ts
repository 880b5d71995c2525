/** The pages of the organisation, each driven through its main job by a person. The gateway, the receiver of webhooks and the issuer of tokens are real. */
import { createHmac } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { type McpFixture, startMcpFixture } from '../gateway/tools/mcp-server.ts'
import { register } from '../gateway/tools/registered.ts'
import { startApp, type TestApp } from '../harness/app.ts'
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
  let opened: ConsolePage
  let page: Page
  beforeAll(async () => {
    await builtConsole()
    receiver = await startWebhookReceiver()
    tools = await startMcpFixture('modern')
    app = await startApp({ env: { CONSOLE_RPM: '10000', OUTBOUND_ALLOW: `${receiver.hostPort},${tools.hostPort}`, WEBHOOK_POLL_MS: '100' } })
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
    for (let change = 0; change < 102; change++) await api('PATCH', `/me/keys/${key.id}`, { rpm: change + 1 })
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
    await page.getByLabel('Act', { exact: true }).selectOption({ label: 'make key' })
    await page.getByRole('row', { name: `You made key ${key.id}` }).waitFor()
    expect(page.url()).toContain('act=createKey')
    expect(await page.getByRole('row', { name: /changed key/ }).count()).toBe(0)
    await page.getByLabel('Act', { exact: true }).selectOption('')
    await page.getByLabel('Who').selectOption({ label: 'People' })
    await page.getByLabel('From').fill('2020-01-01')
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
    await page.getByLabel('To').fill('2020-01-02')
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
})
