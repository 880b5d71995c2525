import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { builtConsole, openPage, program, settled, type sizes, startBrowser, suiteName } from './browser.ts'

/** With this variable the tests write pictures of all pages into a folder. */
const pictures = process.env['CONSOLE_PICTURES']

/** The pages for people and money, with the read of their list and what they show before there is anything in it. */
const pages = [
  { path: '/console/members', read: '/me/members', empty: 'You are the only member' },
  { path: '/console/budgets', read: '/me/budgets', empty: 'No budget is set' },
  { path: '/console/workspaces', read: '/me/workspaces', empty: 'No workspace yet' },
] as const

describe.skipIf(program === null)(suiteName('states of the pages for people and money'), { timeout: 300_000 }, () => {
  let app: TestApp
  let browser: Browser
  let cookie: string
  beforeAll(async () => {
    await builtConsole()
    app = await startApp({ env: { CONSOLE_RPM: '10000' } })
    const { userId, orgId } = await app.otherOrg('Empty Works')
    cookie = await app.signIn(userId, orgId)
    browser = await startBrowser()
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    await app?.stop()
  })

  test('a page without anything says what it is for and offers its first act, in both themes and widths', async () => {
    for (const size of ['wide', 'narrow'] as const satisfies readonly (keyof typeof sizes)[]) {
      const opened = await openPage(browser, app, '/console/keys', { cookie, size })
      for (const theme of ['light', 'dark'] as const) {
        await opened.page.emulateMedia({ colorScheme: theme })
        for (const { path, empty } of pages) {
          await opened.page.goto(app.baseUrl + path)
          await opened.page.getByText(empty).waitFor()
          await settled(opened.page)
          if (pictures !== undefined) {
            mkdirSync(pictures, { recursive: true })
            await opened.page.screenshot({ path: join(pictures, `${path.split('/')[2]}-empty-${theme}-${size}.png`), fullPage: true })
          }
          expect.soft(await opened.axe(theme === 'dark' ? ['color-contrast'] : undefined), `${path}, ${theme}, ${size}`).toEqual([])
          expect.soft(await opened.page.evaluate('document.documentElement.scrollWidth <= innerWidth'), `${path}, ${size}`).toBe(true)
        }
      }
      expect(opened.faults).toEqual([])
      await opened.context.close()
    }
  })

  test('a page waits with a skeleton that says so, a list that cannot be read fails alone with a way to try again, and then it is there', async () => {
    const opened = await openPage(browser, app, '/console/keys', { cookie, expected: [/status of 400/] })
    const { page } = opened
    for (const { path, read, empty } of pages) {
      let fail = (): void => {}
      const asked = new Promise<void>(resolve => {
        fail = resolve
      })
      const matches = (url: URL): boolean => url.pathname === read
      await page.route(matches, async route => {
        await asked
        await route.fulfill({ status: 400, json: { error: { code: 'bad_request', message: 'The list is not here today.' } } })
      })
      await page.goto(app.baseUrl + path)
      await page.locator('[aria-busy=true]').first().waitFor()
      fail()
      await page.getByText('The list is not here today.').first().waitFor()
      expect(await page.getByRole('heading', { level: 1 }).count(), path).toBe(1)
      expect(await opened.axe(), path).toEqual([])
      await page.unroute(matches)
      await page.getByRole('button', { name: 'Try again' }).first().click()
      await page.getByText(empty).waitFor()
    }
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })
})
