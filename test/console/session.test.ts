import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { builtConsole, openPage, program, startBrowser, suiteName } from './browser.ts'

describe.skipIf(program === null)(suiteName('sessions in the console'), { timeout: 120_000 }, () => {
  let app: TestApp
  let browser: Browser
  beforeAll(async () => {
    await builtConsole()
    app = await startApp()
    browser = await startBrowser()
  }, 60_000)
  afterAll(async () => {
    await browser?.close()
    await app?.stop()
  })

  test('a person without a session is sent to sign in, and the address keeps the page that they wanted', async () => {
    const opened = await openPage(browser, app, '/console/keys?key=3', { expected: [/status of 401/] })
    await opened.page.waitForURL(/\/auth\?/)
    expect(new URL(opened.page.url()).searchParams.get('return_to')).toBe('/console/keys?key=3')
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('a session that ends shows one dialog and keeps the form; after signing in again in another tab the form is sent', async () => {
    const cookie = await app.signIn()
    const opened = await openPage(browser, app, '/console/keys?new=true', { cookie, expected: [/status of 401/] })
    const { page, context } = opened
    await page.getByLabel('Name').fill('A draft')
    await app.call('POST', '/auth/logout', undefined, { cookie })
    const ended = page.getByRole('dialog', { name: 'Your session has ended' })
    await ended.waitFor()
    expect(await page.getByRole('dialog', { name: 'Your session has ended' }).count()).toBe(1)
    expect(await page.getByLabel('Name').inputValue()).toBe('A draft')
    expect(await opened.axe()).toEqual([])
    const tab = context.waitForEvent('page')
    await ended.getByRole('link', { name: 'Sign in again' }).click()
    const signIn = await tab
    await signIn.waitForURL(/\/auth/)
    expect(new URL(signIn.url()).searchParams.get('return_to')).toBe('/console/signed-in')
    const [name = '', value = ''] = (await app.signIn()).split(';')[0]?.split(/=(.*)/s) ?? []
    await context.addCookies([{ name, value, url: app.baseUrl, httpOnly: true, sameSite: 'Lax' }])
    await signIn.goto(`${app.baseUrl}/console/signed-in`)
    await signIn.getByText('You are signed in').waitFor()
    await signIn.close()
    await page.bringToFront()
    await ended.waitFor({ state: 'detached' })
    expect(await page.getByLabel('Name').inputValue()).toBe('A draft')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByRole('dialog', { name: 'A draft is ready' }).waitFor()
    expect(opened.faults).toEqual([])
    await context.close()
  })

  test('moving to another organisation shows nothing of the first, also in a tab that was open', async () => {
    const other = await app.otherOrg('Second Org')
    await app.newKey({ name: 'Key of the first' })
    // The owner of the second organisation is another person, so this one gets an organisation of their own.
    const cookie = await app.signIn()
    const made = await app.call('POST', '/me/orgs', { name: 'Third Org' }, { cookie })
    expect(made.status).toBe(201)
    expect(other.orgId).not.toBe(app.orgId)
    const opened = await openPage(browser, app, '/console/keys', { cookie })
    const { page, context } = opened
    await page.getByText('Key of the first').waitFor()
    const second = await context.newPage()
    opened.watch(second, new URL(app.baseUrl).origin)
    await second.goto(`${app.baseUrl}/console/keys`)
    await second.getByText('Key of the first').waitFor()
    await page.getByRole('button', { name: /Test Org/ }).click()
    await page.getByRole('menuitemradio', { name: /Third Org/ }).click()
    await page.waitForURL(/\/console\/?$/)
    await page.getByRole('button', { name: /Third Org/ }).waitFor()
    await second.getByRole('button', { name: /Third Org/ }).waitFor()
    expect(await second.getByText('Key of the first').count()).toBe(0)
    expect(await page.getByText('Second Org').count()).toBe(0)
    expect(opened.faults).toEqual([])
    await context.close()
  })

  test('while the gateway is away the page says so, keeps its form, and goes on by itself', async () => {
    const cookie = await app.signIn()
    const opened = await openPage(browser, app, '/console/keys?new=true', { cookie, expected: [/ERR_INTERNET_DISCONNECTED|ERR_FAILED|Failed to load/] })
    const { page, context } = opened
    await page.getByLabel('Name').fill('Kept')
    await context.setOffline(true)
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByRole('alert').getByText('does not answer').waitFor()
    await page.getByText('What you typed is kept').first().waitFor()
    expect(await page.getByLabel('Name').inputValue()).toBe('Kept')
    await context.setOffline(false)
    await page.getByText('What you typed is kept; the page goes on').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByRole('dialog', { name: 'Kept is ready' }).waitFor()
    expect(opened.faults).toEqual([])
    await context.close()
  })

  test('signing out ends the session and leads to the page for signing in', async () => {
    const cookie = await app.signIn()
    const opened = await openPage(browser, app, '/console', { cookie })
    const { page, context } = opened
    await page.getByRole('button', { name: /owner/ }).last().click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await page.waitForURL(/\/auth/)
    expect((await app.call('GET', '/me', undefined, { cookie })).status).toBe(401)
    expect(opened.faults).toEqual([])
    await context.close()
  })
})
