import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { builtConsole, openPage, program, settled, startBrowser, suiteName } from './browser.ts'
import { tabTo } from './keyboard.ts'

describe.skipIf(program === null)(suiteName('runs in the console'), { timeout: 120_000 }, () => {
  let app: TestApp
  let browser: Browser
  let cookie: string
  beforeAll(async () => {
    await builtConsole()
    app = await startApp({ env: { CONSOLE_RPM: '10000', FX_RATES: 'USD=88.5@2026-11-01' } })
    cookie = await app.signIn()
    browser = await startBrowser()
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    await app?.stop()
  })

  const chat = (token: string, run: string) =>
    app.call(
      'POST',
      '/v1/chat/completions',
      { model: 'alpha-only', messages: [{ role: 'user', content: 'Hello there' }], max_tokens: 5 },
      { token, headers: { 'x-br-run-id': run } },
    )
  const codeOf = async (token: string, run: string): Promise<string> => (await chat(token, run)).json?.error?.code ?? 'ok'

  test('a run lives in the browser: caps of its agent, held, asked for more, granted, held by hand, raised by keyboard, and ended', async () => {
    const { id, token } = await app.newAgent('lead')
    const opened = await openPage(browser, app, `/console/agents/${id}?tab=rules`, { cookie })
    const { page } = opened
    const patches: unknown[] = []
    page.on('request', request => request.method() === 'PATCH' && patches.push(request.postDataJSON()))
    await page.getByText('Caps of each run').click()
    await page.getByLabel('Calls of a run').fill('2')
    await page.getByLabel('Most that a run may cost in rupees').fill('5')
    await page.getByLabel('Tokens a minute').fill('100000')
    await page.getByLabel('Calls of tools a day').fill('40')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').first().waitFor()
    expect(patches).toEqual([{ tpm_limit: 100_000, tool_daily: 40, run: { max_cost_inr: 5, max_calls: 2 } }])

    expect([await codeOf(token, 'job-1'), await codeOf(token, 'job-1'), await codeOf(token, 'job-1')]).toEqual(['ok', 'ok', 'run_calls_exceeded'])
    expect(await codeOf(token, 'other')).toBe('ok')
    const ask = (run: string) => app.call('POST', '/v1/me/budget-requests', { scope: 'run', run_id: run, calls: 9, reason: 'Two files are left' }, { token })
    expect((await ask('job-1')).status).toBe(200)
    expect((await ask('other')).status).toBe(200)

    // The list is searched and filtered by the gateway, and the address has the filters.
    await page.goto(`${app.baseUrl}/console/runs`)
    await page.getByRole('rowheader', { name: /other/ }).last().waitFor()
    await page.getByLabel('Search runs').fill('JOB')
    await page.waitForURL(/q=JOB/)
    const list = page.getByRole('table', { name: 'Runs' })
    await expect.poll(() => list.getByRole('rowheader').count()).toBe(1)
    await page.getByText('Held', { exact: true }).first().click()
    await page.waitForURL(/state=held/)
    await list.getByRole('rowheader', { name: /job-1/ }).waitFor()
    expect(await opened.axe()).toEqual([])

    // One request is refused, and the other is granted with another amount.
    await page.getByRole('button', { name: 'Refuse the request for Run other' }).click()
    await page.getByText('The request for Run other is refused.').waitFor()
    await page.getByRole('button', { name: 'Grant the request for Run job-1' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('“Two files are left”').waitFor()
    expect(await dialog.getByLabel('Calls more').inputValue()).toBe('9')
    await dialog.getByLabel('Calls more').fill('1')
    await dialog.getByLabel('Until').selectOption({ label: 'One day' })
    expect(await opened.axe()).toEqual([])
    await dialog.getByRole('button', { name: 'Grant more' }).click()
    await page.getByText(/Run job-1 has 1 call more until/).waitFor()
    await page.getByText('No run fits').waitFor()
    expect([await codeOf(token, 'job-1'), await codeOf(token, 'job-1')]).toEqual(['ok', 'run_calls_exceeded'])

    // The page of a run, from its row by keyboard.
    await page.goto(`${app.baseUrl}/console/runs?q=job-1`)
    await list.getByRole('rowheader', { name: /job-1/ }).waitFor()
    await list.getByRole('row').nth(1).focus()
    await page.keyboard.press('Enter')
    await page.waitForURL(/runs\/one/)
    await page.getByRole('img', { name: 'Calls: 3 of 3' }).waitFor()
    await page.getByText(/With 1 calls? granted beside it until/).waitFor()
    await page.getByText('1 call granted', { exact: false }).first().waitFor()
    await settled(page)
    await page.keyboard.press('e')
    await dialog.getByLabel('Most calls').waitFor()
    await tabTo(page, 'Most calls')
    await page.keyboard.press('Control+A')
    await page.keyboard.type('20')
    await page.keyboard.press('Enter')
    await page.getByText('The caps of the run are saved.').waitFor()
    expect(patches.at(-1)).toEqual({ max_calls: 20 })
    expect(await codeOf(token, 'job-1')).toBe('ok')
    await page.getByRole('button', { name: 'Hold' }).click()
    await page.getByText('The run is held.', { exact: false }).waitFor()
    expect(await codeOf(token, 'job-1')).toBe('run_calls_exceeded')
    expect(await opened.axe()).toEqual([])
    await page.getByRole('button', { name: 'Resume' }).click()
    // The agent's own cap of two calls holds it again, which the page says.
    await page.getByText('one of them holds it', { exact: false }).waitFor()
    await page.getByRole('button', { name: 'End run' }).click()
    await dialog.getByRole('button', { name: 'End run' }).click()
    await page.getByText('The run has ended.').waitFor()
    expect(await codeOf(token, 'job-1')).toBe('run_ended')
    expect(await page.getByRole('button', { name: /Hold|Resume|caps|End/ }).count()).toBe(0)

    // Another member sees the run, and no act of it.
    const { cookie: member } = await app.newMember('member')
    const guest = await openPage(browser, app, `/console/runs/one?id=other&agent=${id}`, { cookie: member })
    await guest.page.getByText('Sums').waitFor()
    await settled(guest.page)
    expect(await guest.page.getByRole('button', { name: /Hold|caps|End/ }).count()).toBe(0)
    expect([opened.faults, guest.faults]).toEqual([[], []])
    await Promise.all([opened.context.close(), guest.context.close()])
  })

  test('a budget of a day is set and changed, a request for it is granted on the page of budgets, and the organisation shows another currency', async () => {
    const opened = await openPage(browser, app, '/console/budgets?new=true', { cookie })
    const { page } = opened
    const posts: unknown[] = []
    page.on('request', request => ['POST', 'PUT'].includes(request.method()) && posts.push(request.postDataJSON()))
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Period').selectOption({ label: 'A day' })
    await dialog.getByLabel('Budget a day in rupees').fill('50')
    await dialog.getByText(/until the day has ended/).waitFor()
    await dialog.getByRole('button', { name: 'Save the budget' }).click()
    await page.getByRole('rowheader', { name: /A day/ }).click()
    const peek = page.getByRole('complementary')
    await peek.getByLabel('Budget a day in rupees').fill('60')
    await peek.getByRole('button', { name: 'Save the budget' }).click()
    await page.getByText(/is ₹60 a day\./).waitFor()
    expect(posts).toEqual([
      { scope: 'org', period: 'day', budget_inr: 50 },
      { scope: 'org', period: 'day', budget_inr: 60 },
    ])
    const asked = { scope: 'org', period: 'day', amount_inr: 40, reason: 'A demo today' }
    expect((await app.call('POST', '/v1/me/budget-requests', asked)).status).toBe(200)
    // The panel of the budget is open again, and Escape closes it.
    await page.reload()
    await peek.waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: /^Grant the request for Organisation/ }).click()
    await dialog.getByLabel('Rupees more').fill('12.5')
    await dialog.getByRole('button', { name: 'Grant more' }).click()
    await page.getByText(/has ₹12\.50 more until/).waitFor()
    await page.getByRole('rowheader', { name: /A day/ }).click()
    await peek.getByText(/₹12\.50 until/).waitFor()
    expect((await app.call('GET', '/me/budgets?scope=org', undefined, { cookie })).json.budgets).toMatchObject([
      { cap_inr: 60, increase_inr: 12.5, remaining_inr: 72.5 },
    ])
    expect(await opened.axe()).toEqual([])

    await page.goto(`${app.baseUrl}/console/settings`)
    await page.getByText('Rupees and another currency').click()
    await page.getByLabel('Currency', { exact: true }).fill('usd')
    await page.getByRole('region', { name: 'Currency beside rupees' }).getByRole('button', { name: 'Save' }).click()
    await page.getByText('Amounts are shown in USD too.').waitFor()
    await page.getByText('1 USD is ₹88.5').waitFor()
    await page.getByRole('textbox', { name: 'Time zone' }).fill('Europe/Berlin')
    await page.getByRole('region', { name: 'Time zone of budgets' }).getByRole('button', { name: 'Save' }).click()
    await page.getByText('follow Europe/Berlin').waitFor()
    expect(posts.slice(-2)).toEqual([{ currency: 'USD' }, { time_zone: 'Europe/Berlin' }])
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })
})
