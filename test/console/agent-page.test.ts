import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, until } from '../harness/app.ts'
import { builtConsole, openPage, program, settled, startBrowser, suiteName } from './browser.ts'

const money = (inr: number): string => new Intl.NumberFormat('en-IN', { style: 'currency', currency: 'INR', maximumFractionDigits: 2 }).format(inr)

describe.skipIf(program === null)(suiteName('the page of an agent in the console'), { timeout: 180_000 }, () => {
  let app: TestApp
  let browser: Browser
  let cookie: string
  beforeAll(async () => {
    await builtConsole()
    app = await startApp({ env: { FOLDER_STORE: 'true' } })
    cookie = await app.signIn()
    browser = await startBrowser()
  }, 60_000)
  afterAll(async () => {
    app?.alpha.release()
    await browser?.close()
    await app?.stop()
  })

  const api = async (method: string, path: string, body?: object) => (await app.call(method, path, body, { cookie })).json

  /** The four parts of the budget as the page shows them. */
  const partsOf = async (page: Page): Promise<Record<string, string>> => {
    const names = await page.locator('.budget-parts dt').allTextContents()
    const amounts = await page.locator('.budget-parts dd').allTextContents()
    return Object.fromEntries(names.map((name, index) => [name.trim(), (amounts[index] ?? '').trim()]))
  }

  test('CONS-05 the page of an agent shows its family, its budget with what is spent, held, in doubt and left, its rules in words, its calls, memory, tokens and how to connect; an end names what it ends', async () => {
    expect((await app.call('PUT', '/v1/me/memory-store', { store: 'folder' })).status).toBe(200)
    const rules = { may_delegate: true, allowed_models: ['alpha-only', 'test-model'], max_cost_inr_per_call: 5, max_concurrency: 4 }
    const { id } = await api('POST', '/me/agents', { name: 'lead', ...rules })
    await api('POST', `/me/agents/${id}/budget`, { monthly_budget_inr: 100 })
    await api('POST', `/me/agents/${id}/children`, { name: 'helper', monthly_budget_inr: 30 })
    const { access_token: token } = (await app.call('POST', `/v1/me/agents/${id}/token`, {})).json
    const chat = () =>
      app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 50_000 }, { token })
    expect((await chat()).status).toBe(200)
    await app.call('PUT', '/v1/me/memory/o?key=agents/lead/plan.md', 'First the tests.', { token })
    await app.gateway.app.limits.flushNow()
    app.alpha.hold()
    const running = chat()
    await until(async () => (await api('GET', `/me/agents/${id}`)).held_inr > 0)

    const opened = await openPage(browser, app, '/console/agents', { cookie })
    const { page } = opened
    await page.getByRole('link', { name: 'lead', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'lead' }).waitFor()
    await settled(page)
    const agent = await api('GET', `/me/agents/${id}`)
    const left = 100 - agent.spend_month_inr - agent.held_inr - agent.in_doubt_inr
    const shown = await partsOf(page)
    expect(Object.keys(shown)).toEqual(['Spent', 'Held', 'In doubt', 'Left'])
    expect([shown['Held'], shown['In doubt'], shown['Left']]).toEqual([money(agent.held_inr), '₹0', money(left)])
    for (const words of ['Only the models alpha-only or test-model', 'At most ₹5', 'At most 4 calls at the same time', 'It may create child agents'])
      expect(await page.getByText(words).first().isVisible(), words).toBe(true)
    await page.getByRole('tab', { name: 'Family' }).click()
    await page.getByRole('treeitem', { name: /helper/ }).waitFor()
    await page.getByText(/take ₹30 of ₹100/).waitFor()
    await page.getByRole('tab', { name: 'Calls' }).click()
    await page
      .getByRole('cell', { name: /alpha-only/ })
      .or(page.getByRole('rowheader', { name: /alpha-only/ }))
      .first()
      .waitFor()
    await page.getByRole('tab', { name: 'Memory' }).click()
    await page.getByText('agents/lead/plan.md').first().waitFor()
    await page.getByRole('tab', { name: 'Tokens' }).click()
    await page.getByRole('button', { name: 'Make a token' }).waitFor()
    await page.getByRole('tab', { name: 'Connect' }).click()
    await page
      .getByText(/brigade connect/)
      .first()
      .waitFor()

    await page.getByRole('button', { name: 'End agent' }).click()
    const dialog = page.getByRole('dialog', { name: 'End the agent' })
    await dialog.getByText('Ends too: helper.').waitFor()
    await dialog.getByText('Running calls are cut: at least 1 now.').waitFor()
    await dialog.getByLabel('Type lead to confirm').fill('lead')
    await dialog.getByRole('button', { name: 'End agent' }).click()
    await page.getByText('This agent has ended for good').waitFor()
    expect((await running).status, 'the running call is cut').not.toBe(200)
    app.alpha.release()
    const ended = (await api('GET', '/me/agents?limit=10')).agents
    expect(ended.map(({ name, status }: { name: string; status: string }) => [name, status]).sort()).toEqual([
      ['helper', 'revoked'],
      ['lead', 'revoked'],
    ])
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })
})
