import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, until } from '../harness/app.ts'
import { builtConsole, openPage, program, settled, startBrowser, suiteName } from './browser.ts'
import { tabTo } from './keyboard.ts'

describe.skipIf(program === null)(suiteName('budgets in the console'), { timeout: 120_000 }, () => {
  let app: TestApp
  let browser: Browser
  let orgs = 0
  beforeAll(async () => {
    await builtConsole()
    app = await startApp({ env: { CONSOLE_RPM: '10000' } })
    browser = await startBrowser()
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    await app?.stop()
  })

  /** Makes an organisation, and sends requests as its owner. */
  async function team() {
    const { orgId, userId, key } = await app.otherOrg(`Purse ${++orgs}`)
    const cookie = await app.signIn(userId, orgId)
    const as = async (method: string, path: string, body?: object) => {
      const reply = await app.call(method, path, body, { cookie })
      expect(reply.status, `${method} ${path}`).toBeLessThan(300)
      return reply.json
    }
    const chat = (token: string) => app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: [{ role: 'user', content: 'Hello' }] }, { token })
    return { orgId, userId, key, cookie, as, chat }
  }
  type Team = Awaited<ReturnType<typeof team>>
  const capOf = async ({ as }: Team, scope: string): Promise<number | null> => (await as('GET', `/me/budgets?scope=${scope}`)).budgets.at(0)?.cap_inr ?? null

  test('CONS-10 a first budget of the organisation and one of a person are set by keyboard alone, and the list shows them', async () => {
    const there = await team()
    const opened = await openPage(browser, app, '/console/budgets', { cookie: there.cookie })
    const { page } = opened
    await page.getByText('No budget is set').waitFor()
    await settled(page)
    await page.keyboard.press('n')
    const dialog = page.getByRole('dialog', { name: 'Set a budget' })
    await dialog.getByLabel('Budget a month in rupees').waitFor()
    await tabTo(page, 'Budget a month in rupees')
    await page.keyboard.type('2,000')
    await dialog.getByText(/of ₹2,000 is left\. When it is used up, the gateway refuses every call of the organisation/).waitFor()
    expect(await opened.axe()).toEqual([])
    await page.keyboard.press('Enter')
    await page.getByRole('rowheader', { name: /Purse/ }).waitFor()
    expect(await capOf(there, 'org')).toBe(2_000)

    await page.keyboard.press('n')
    await dialog.waitFor()
    await tabTo(page, 'What it binds')
    await page.keyboard.type('Member')
    await tabTo(page, 'Which one')
    await page.keyboard.type('owner')
    await dialog.getByRole('listbox').getByRole('option').first().waitFor()
    await page.keyboard.press('Enter')
    await tabTo(page, 'Budget a month in rupees')
    await page.keyboard.type('0.25')
    await page.keyboard.press('Enter')
    await page.getByRole('rowheader', { name: /Member/ }).waitFor()
    expect(await capOf(there, 'member')).toBe(0.25)
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('CONS-10 a budget changes only by an amount or by an explicit choice: empty, 0, a comma and pasted words are refused, and the page says what a change does', async () => {
    const there = await team()
    await there.as('POST', '/me/budgets', { scope: 'org', monthly_budget_inr: 500 })
    const opened = await openPage(browser, app, '/console/budgets', { cookie: there.cookie })
    const { page } = opened
    await page.getByRole('rowheader', { name: /Purse/ }).click()
    const peek = page.getByRole('complementary')
    const amount = peek.getByLabel('Budget a month in rupees')
    const save = peek.getByRole('button', { name: 'Save the budget' })
    expect([await amount.inputValue(), await save.isDisabled()]).toEqual(['500', true])
    const posts: unknown[] = []
    page.on('request', request => request.method() === 'POST' && posts.push(request.postDataJSON()))
    await amount.fill('')
    expect(await save.isDisabled()).toBe(true)
    for (const [typed, why] of [
      ['0', '0 is not a limit'],
      ['0.00', '0 is not a limit'],
      ['0,25', 'Write decimals with a point'],
      ['-5', 'Type an amount in rupees'],
      ['no limit', 'Type an amount in rupees'],
      ['0.0000001', 'at most six decimals'],
      ['20000000000', 'The largest amount'],
    ] as const) {
      await amount.fill(typed)
      await peek.getByRole('alert').filter({ hasText: why }).waitFor()
      expect(await save.isDisabled(), typed).toBe(true)
      await page.keyboard.press('Enter')
    }
    await page.evaluate(`navigator.clipboard.writeText(' ₹ 1,250.50\\n')`)
    await amount.fill('')
    await amount.focus()
    await page.keyboard.press('Control+V')
    await peek.getByText(/of ₹1,250\.50 is left/).waitFor()
    await save.click()
    await page.getByText(/The budget of Purse \d+ is ₹1,250\.50 a month\./).waitFor()
    expect(await capOf(there, 'org')).toBe(1_250.5)
    await peek.getByRole('radio', { name: 'No limit' }).check()
    await peek.getByText('This lifts the limit of ₹1,250.50.').waitFor()
    expect(await capOf(there, 'org')).toBe(1_250.5)
    expect(await opened.axe()).toEqual([])
    await save.click()
    await page.getByText('No budget is set').waitFor()
    expect(await capOf(there, 'org')).toBeNull()
    expect(posts).toEqual([
      { scope: 'org', monthly_budget_inr: 1_250.5 },
      { scope: 'org', monthly_budget_inr: null },
    ])
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('the budget with the most need comes first, states and scopes are filtered by the gateway, and an amount below what is spent says that it stops all calls', async () => {
    const there = await team()
    const { as, chat, key } = there
    const made = async (name: string) => as('POST', '/me/keys', { name, scope: 'inference' })
    const [quiet, near, over] = [await made('Quiet key'), await made('Near key'), await made('Over key')]
    for (const { key: token } of [near, over]) expect((await chat(token)).status).toBe(200)
    await chat(key)
    await app.gateway.app.limits.flushNow()
    const keys: { id: number; spend_month_inr: number }[] = (await as('GET', '/me/keys')).keys
    const spent = (id: number): number => keys.find(each => each.id === id)?.spend_month_inr ?? 0
    await as('POST', '/me/budgets', { scope: 'org', monthly_budget_inr: 900 })
    await as('POST', '/me/budgets', { scope: 'key', target_id: quiet.id, monthly_budget_inr: 100 })
    await as('POST', '/me/budgets', { scope: 'key', target_id: near.id, monthly_budget_inr: Number((spent(near.id) / 0.9).toFixed(6)) })
    await as('POST', '/me/budgets', { scope: 'key', target_id: over.id, monthly_budget_inr: Number((spent(over.id) / 2).toFixed(6)) })
    const opened = await openPage(browser, app, '/console/budgets', { cookie: there.cookie })
    const { page } = opened
    const names = async (): Promise<string[]> => (await page.getByRole('rowheader').allTextContents()).map(name => name.replace(/(Key|Organisation)$/, ''))
    await page.getByRole('rowheader', { name: /Over key/ }).waitFor()
    const shown = await names()
    expect([shown.slice(0, 2), shown.length]).toEqual([['Over key', 'Near key'], 4])
    expect(await page.getByText('Used up', { exact: true }).count()).toBe(2)
    await page.getByLabel('State').selectOption('warned')
    await page.getByRole('rowheader', { name: /Over key/ }).waitFor({ state: 'detached' })
    expect([await names(), new URL(page.url()).search]).toEqual([['Near key'], '?state=warned'])
    await page.getByLabel('State').selectOption('')
    await page.getByLabel('What it binds').selectOption('org')
    await page.getByRole('rowheader', { name: /Near key/ }).waitFor({ state: 'detached' })
    expect(await page.getByRole('rowheader').count()).toBe(1)
    await page.goto(`${app.baseUrl}/console/budgets?budget=key:${near.id}`)
    const peek = page.getByRole('complementary', { name: 'Near key' })
    await peek.getByLabel('Budget a month in rupees').fill('0.000001')
    await peek.getByText(/is already spent, so the gateway refuses every call with Near key until/).waitFor()
    await peek.getByRole('checkbox', { name: 'Strict' }).check()
    const sent = page.waitForRequest(request => request.method() === 'POST')
    await page.keyboard.press('Enter')
    expect((await sent).postDataJSON()).toEqual({ scope: 'key', target_id: near.id, monthly_budget_inr: 0.000001, strict: true })
    await until(async () => (await chat(near.key)).status === 429)
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('a budget that somebody else changes while a person types shows both amounts, and nothing that was typed is lost', async () => {
    const there = await team()
    await there.as('POST', '/me/budgets', { scope: 'org', monthly_budget_inr: 500 })
    const opened = await openPage(browser, app, `/console/budgets?budget=org:${there.orgId}`, { cookie: there.cookie })
    const { page } = opened
    const amount = page.getByLabel('Budget a month in rupees')
    await amount.fill('700')
    await there.as('POST', '/me/budgets', { scope: 'org', monthly_budget_inr: 600 })
    await page.getByText('changed this budget from ₹500 to ₹600 while you typed').waitFor()
    expect(await amount.inputValue()).toBe('700')
    await page.getByRole('button', { name: 'Take ₹600' }).click()
    expect(await amount.inputValue()).toBe('600')
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('a member is offered no budget and reads whom to ask, an admin sets them, and a budget of another organisation is not there', async () => {
    const there = await team()
    await there.as('POST', '/me/budgets', { scope: 'org', monthly_budget_inr: 500 })
    const member = await app.newMember('member', { orgId: there.orgId })
    const admin = await app.newMember('admin', { orgId: there.orgId })
    const asMember = await openPage(browser, app, '/console/budgets', { cookie: member.cookie })
    await asMember.page.getByText(/Ask \S+\./).waitFor()
    await settled(asMember.page)
    expect(await asMember.page.getByRole('link', { name: 'Budgets' }).count()).toBe(0)
    expect(await asMember.page.getByText(/₹500|Set a budget/).count()).toBe(0)
    expect(asMember.faults).toEqual([])
    await asMember.context.close()
    const other = await team()
    const asAdmin = await openPage(browser, app, `/console/budgets?budget=org:${other.orgId}`, { cookie: admin.cookie })
    await asAdmin.page.getByText('not among those loaded').waitFor()
    await asAdmin.page.getByRole('rowheader', { name: /Purse/ }).waitFor()
    expect(await asAdmin.page.getByRole('button', { name: 'Set a budget' }).count()).toBe(1)
    expect(asAdmin.faults).toEqual([])
    await asAdmin.context.close()
  })
})
