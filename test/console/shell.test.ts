import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { count, money } from '../../src/console/ui/format/numbers.ts'
import { startApp, type TestApp } from '../harness/app.ts'
import { builtConsole, openPage, program, startBrowser, suiteName } from './browser.ts'

describe.skipIf(program === null)(suiteName('the shell of the console'), { timeout: 120_000 }, () => {
  let app: TestApp
  let browser: Browser
  let cookie: string
  beforeAll(async () => {
    await builtConsole()
    app = await startApp()
    cookie = await app.signIn()
    browser = await startBrowser()
  }, 60_000)
  afterAll(async () => {
    await browser?.close()
    await app?.stop()
  })

  test('the palette, `g` and a letter, and `?` work by keyboard; typing in a field is no shortcut', async () => {
    const opened = await openPage(browser, app, '/console', { cookie })
    const { page } = opened
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('k')
    await page.waitForURL(/\/console\/keys$/)
    await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor()
    await page.keyboard.press('Control+k')
    const palette = page.getByRole('dialog', { name: 'Commands' })
    await palette.waitFor()
    expect(await opened.axe()).toEqual([])
    await page.keyboard.type('overv')
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/console\/?$/)
    const anyPalette = page.locator('dialog.palette')
    await anyPalette.waitFor({ state: 'detached' })
    await page.keyboard.press('/')
    await page.keyboard.type('new k g')
    await page.getByText('Nothing fits').waitFor()
    expect(new URL(page.url()).pathname).toMatch(/^\/console\/?$/)
    await page.keyboard.press('Escape')
    await anyPalette.waitFor({ state: 'detached' })
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor()
    await page.getByRole('radio', { name: 'Off' }).check({ force: true })
    await page.keyboard.press('Escape')
    await page.keyboard.press('g')
    await page.keyboard.press('k')
    expect(new URL(page.url()).pathname).toMatch(/^\/console\/?$/)
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('the search finds an agent by a part of its name, and the way to connect a client', async () => {
    await app.newAgent('night-reviewer')
    const opened = await openPage(browser, app, '/console/keys', { cookie })
    const { page } = opened
    await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor()
    await page.keyboard.press('Control+k')
    await page.keyboard.type('reviewer')
    await page.getByRole('option', { name: /night-reviewer/ }).waitFor()
    expect(await opened.axe()).toEqual([])
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'night-reviewer' }).waitFor()
    await page.keyboard.press('Control+k')
    await page.keyboard.type('connect curl')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Connect a client' }).waitFor()
    await page.waitForURL(/\/console\/keys\?connect=curl$/)
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('the first Tab reaches a link that skips the navigation', async () => {
    const opened = await openPage(browser, app, '/console/keys', { cookie })
    const { page } = opened
    await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor()
    await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the content')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
    expect(await page.evaluate("document.activeElement.closest('main') !== null")).toBe(true)
    await opened.context.close()
  })

  test('a chosen theme stays for the next visit and is set before the page is drawn', async () => {
    const opened = await openPage(browser, app, '/console', { cookie, theme: 'light' })
    const { page } = opened
    await page.getByRole('button', { name: /owner/ }).filter({ visible: true }).last().click()
    await page.getByRole('menuitemradio', { name: 'Dark' }).click()
    const background = 'getComputedStyle(document.body).backgroundColor'
    await expect.poll(() => page.evaluate(background)).toBe('rgb(13, 14, 17)')
    await page.route('**/index-*.js', route => route.abort())
    await page.goto(`${app.baseUrl}/console/keys`)
    expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark')
    await opened.context.close()
  })

  test('a phone has a bar at the bottom, and a menu gives the focus back when it closes', async () => {
    const opened = await openPage(browser, app, '/console', { cookie, size: 'narrow' })
    const { page } = opened
    await page.getByRole('navigation', { name: 'Pages, short' }).getByRole('link', { name: 'Usage' }).click()
    await page.waitForURL(/\/console\/usage/)
    const button = page.getByRole('button', { name: /Test Org/ }).filter({ visible: true })
    await button.press('Enter')
    await page
      .getByRole('menuitemradio', { name: /Test Org/ })
      .filter({ visible: true })
      .waitFor()
    await page.keyboard.press('Escape')
    expect(await button.evaluate('this === undefined || document.activeElement.getAttribute("title")')).toBe('Organisation: Test Org')
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('an error of one panel leaves the others, names the request, and can be tried again', async () => {
    const opened = await openPage(browser, app, '/console/gallery', { cookie, expected: [/status of 503/] })
    const { page } = opened
    let isBroken = true
    await page.route('**/me/budgets*', route =>
      isBroken
        ? route.fulfill({
            status: 503,
            headers: { 'x-request-id': 'req_broken' },
            json: { error: { message: 'The database does not answer.', code: 'database_unavailable' } },
          })
        : route.continue(),
    )
    await page.goto(`${app.baseUrl}/console`)
    const panel = page.getByRole('region', { name: 'Budgets' })
    await panel.getByText('The database does not answer.').waitFor()
    await panel.getByText('req_broken').waitFor()
    const attention = page.getByRole('region', { name: 'Needs attention' })
    await attention.getByText('Not checked, because it could not be read: budgets.').waitFor()
    expect(await attention.getByText('All is well').count(), 'it does not say more than it knows').toBe(0)
    isBroken = false
    await attention.getByRole('button', { name: 'Try again' }).click()
    await attention.getByText('All is well').waitFor()
    await panel.getByRole('button', { name: 'Try again' }).click()
    await panel.getByText('No budget is set').waitFor()
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('the overview of an organisation without calls offers a key, and its figures equal those of the API after a call', async () => {
    const opened = await openPage(browser, app, '/console', { cookie })
    const { page } = opened
    await page.getByText('Make your first call').waitFor()
    app.alpha.script({ usage: { prompt_tokens: 100_000, completion_tokens: 20_000, total_tokens: 120_000 } })
    await app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: 'Hi' }] })
    await app.gateway.app.limits.flushNow()
    const { totals } = (await app.call('GET', '/me/activity', undefined, { cookie })).json
    await page.reload()
    const card = page.locator('.card', { hasText: 'Spend this month' })
    await card.waitFor()
    expect(totals.value_inr).toBeGreaterThan(1)
    expect(await card.locator('.card-value').textContent()).toBe(money(totals.value_inr))
    await page.getByRole('radio', { name: 'Tokens' }).check({ force: true })
    await page.waitForURL(/metric=tokens/)
    await page.getByRole('button', { name: 'Show as table' }).click()
    await page
      .getByRole('cell', { name: count(totals.tokens), exact: true })
      .first()
      .waitFor()
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })
})
