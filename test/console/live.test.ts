import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { until } from '../harness/until.ts'
import { builtConsole, openPage, program, startBrowser, suiteName } from './browser.ts'

/** What a browser says about requests that a test refuses or breaks. */
const expected = [/Failed to load resource/, /ERR_/, /EventSource/]

describe.skipIf(program === null)(suiteName('a console that stays up to date'), { timeout: 120_000 }, () => {
  let app: TestApp
  let browser: Browser
  beforeAll(async () => {
    await builtConsole()
    app = await startApp({ env: { CONSOLE_RPM: '10000' } })
    browser = await startBrowser()
  }, 60_000)
  afterAll(async () => {
    await browser?.close()
    await app?.stop()
  })

  const live = (page: Page, state: string): Promise<void> => page.locator(`[data-live=${state}]`).filter({ visible: true }).waitFor()
  const server = (): Server => app.gateway.app.server
  /** Lets the server refuse connections and then accept them again, as a restart does. */
  const restart = async (whileAway: () => Promise<void>): Promise<void> => {
    const { port } = server().address() as AddressInfo
    const closed = new Promise<void>(done => server().close(() => done()))
    server().closeAllConnections()
    await closed
    await whileAway()
    await new Promise<void>(done => server().listen(port, () => done()))
  }
  const useCookie = async (context: BrowserContext, cookie: string): Promise<void> => {
    const [name = '', value = ''] = cookie.split(';')[0]?.split(/=(.*)/s) ?? []
    await context.addCookies([{ name, value, url: app.baseUrl, httpOnly: true, sameSite: 'Lax' }])
  }

  test('a change of another person appears by a hint, and the bar says that the page is live and when it was read', async () => {
    const opened = await openPage(browser, app, '/console/keys', { cookie: await app.signIn() })
    const { page } = opened
    await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor()
    await live(page, 'live')
    await page
      .getByText(/Updated \d+ s ago/)
      .filter({ visible: true })
      .waitFor()
    const colleague = await app.newMember('admin')
    const made = await app.call('POST', '/me/keys', { name: 'made by a colleague' }, { cookie: colleague.cookie })
    await page.getByText('made by a colleague').waitFor({ timeout: 5_000 })
    await app.call('PATCH', `/me/keys/${made.json.id}`, { name: 'renamed by a colleague' }, { cookie: colleague.cookie })
    await page.getByText('renamed by a colleague').waitFor({ timeout: 8_000 })
    expect(await opened.axe()).toEqual([])
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('the tabs of a browser share one stream, and another tab takes it over', async () => {
    const opened = await openPage(browser, app, '/console/gallery', { cookie: await app.signIn(), expected })
    const { page, context } = opened
    let streams = 0
    context.on('request', request => {
      if (request.url().endsWith('/me/events')) streams++
    })
    await page.goto(`${app.baseUrl}/console/keys`)
    await live(page, 'live')
    // The first page may have asked for a stream, too, before it was left.
    const before = streams
    const second = await context.newPage()
    opened.watch(second, new URL(app.baseUrl).origin)
    await second.goto(`${app.baseUrl}/console/keys`)
    await live(second, 'live')
    expect([before > 0, streams]).toEqual([true, before])
    await app.newKey({ name: 'before' })
    await page.close()
    await until(() => streams === before + 1, 'the stream of the other tab')
    await live(second, 'live')
    const colleague = await app.newMember('admin')
    await app.call('POST', '/me/keys', { name: 'seen by the second tab' }, { cookie: colleague.cookie })
    await second.getByText('seen by the second tab').waitFor({ timeout: 12_000 })
    expect(opened.faults).toEqual([])
    await context.close()
  })

  test('CONS-13 a session that ends, 412, 409, 429, a network that is away and a restarted server keep the page and its draft, with one dialog; without the stream of hints the page polls', async () => {
    const cookie = await app.signIn()
    await app.newKey({ name: 'Taken' })
    const opened = await openPage(browser, app, '/console/keys?new=true', { cookie, expected })
    const { page, context } = opened
    const name = page.getByLabel('Name', { exact: true })
    const create = page.getByRole('button', { name: 'Create key' })
    const kept = async (draft: string): Promise<void> => {
      expect(await name.inputValue()).toBe(draft)
      expect(await page.evaluate('window.isSamePage')).toBe(true)
      expect(new URL(page.url()).pathname).toBe('/console/keys')
    }
    await live(page, 'live')
    await page.evaluate('window.isSamePage = true')

    // 409, by the gateway itself.
    await name.fill('Taken')
    await create.click()
    await page
      .getByText(/already|taken/i)
      .first()
      .waitFor()
    await kept('Taken')

    // 412: nothing of this page is conditional, so the refusal is made here.
    await page.route('**/me/keys', route =>
      route.request().method() === 'POST'
        ? route.fulfill({ status: 412, json: { error: { message: 'It has changed since it was read.', code: 'precondition_failed' } } })
        : route.continue(),
    )
    await create.click()
    await page.getByRole('alert').getByText('It has changed since it was read.').waitFor()
    await kept('Taken')
    await page.unroute('**/me/keys')

    // 429: the page says how long, and sends the request again by itself, which then meets the gateway.
    let tries = 0
    await page.route('**/me/keys', async route => {
      if (route.request().method() !== 'POST') return route.continue()
      tries++
      if (tries > 1) return route.continue()
      return route.fulfill({ status: 429, headers: { 'retry-after': '2' }, json: { error: { message: 'Too many requests.', code: 'rate_limit_exceeded' } } })
    })
    await create.click()
    await page.getByText(/goes on by itself in [12] s/).waitFor()
    await until(() => tries === 2, 'the second try', 10_000)
    await page.getByText(/goes on by itself/).waitFor({ state: 'detached' })
    await kept('Taken')
    await page.unroute('**/me/keys')

    // The network is away.
    await context.setOffline(true)
    await create.click()
    await page.getByRole('alert').getByText('does not answer').waitFor()
    await live(page, 'offline')
    await kept('Taken')
    await context.setOffline(false)
    await page.getByText('the page goes on when it is back').waitFor({ state: 'detached' })

    // The server is restarted: the stream comes back and hints work.
    await restart(async () => {
      await page.locator('[data-live=live]').filter({ visible: true }).waitFor({ state: 'detached' })
      await kept('Taken')
    })
    await live(page, 'live')
    await app.call('POST', '/me/keys', { name: 'after the restart' }, { cookie })
    await page.getByText('after the restart').waitFor()
    await kept('Taken')

    // The session ends: one dialog, by a hint and without a click.
    await name.fill('My draft')
    await app.call('POST', '/auth/logout', undefined, { cookie })
    const ended = page.getByRole('dialog', { name: 'Your session has ended' })
    await ended.waitFor()
    expect(await ended.count()).toBe(1)
    await kept('My draft')
    const again = await app.signIn()
    await useCookie(context, again)
    const tab = await context.newPage()
    await tab.goto(`${app.baseUrl}/console/signed-in`)
    await tab.getByText('You are signed in').waitFor()
    await tab.close()
    await page.bringToFront()
    await ended.waitFor({ state: 'detached' })
    await live(page, 'live')
    await kept('My draft')

    // The stream is gone: the page polls.
    await page.route('**/me/events', route => route.abort())
    server().closeAllConnections()
    await live(page, 'polling')
    await app.call('POST', '/me/keys', { name: 'found by polling' }, { cookie: again })
    await page.getByText('found by polling').waitFor({ timeout: 25_000 })
    await kept('My draft')
    await create.click()
    await page.getByRole('dialog', { name: 'My draft is ready' }).waitFor()
    expect(opened.faults).toEqual([])
    await context.close()
  })
})
