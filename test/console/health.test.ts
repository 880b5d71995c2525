import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { signInByLink } from '../gateway/operator/operators.ts'
import { startApp, type TestApp } from '../harness/app.ts'
import { builtConsole, openPage, program, settled, startBrowser, suiteName } from './browser.ts'

describe.skipIf(program === null)(suiteName('health in the console'), { timeout: 120_000 }, () => {
  let app: TestApp
  let browser: Browser
  let cookie: string
  beforeAll(async () => {
    await builtConsole()
    app = await startApp({ env: { OPERATOR_EMAILS: 'owner@test-org.test', OUTBOUND_ALLOW: '127.0.0.1:1', WEBHOOK_POLL_MS: '600000' } })
    cookie = await signInByLink(app, 'owner@test-org.test')
    for (const name of ['Alder', 'Birch']) await app.otherOrg(name)
    await app.call('POST', '/me/members', { email: 'guest@people.test', role: 'member' }, { cookie })
    const { id } = (await app.call('POST', '/me/webhooks', { url: 'http://127.0.0.1:1/hook' }, { cookie })).json
    await app.call('POST', `/me/webhooks/${id}/test`, {}, { cookie })
    browser = await startBrowser()
  }, 60_000)
  afterAll(async () => {
    await browser?.close()
    await app?.stop()
  })

  test('an operator finds the page in the navigation, with the findings of the doctor and what waits, and without addresses of people', async () => {
    const opened = await openPage(browser, app, '/console', { cookie })
    const { page } = opened
    await page.getByRole('navigation', { name: 'Pages', exact: true }).getByRole('link', { name: 'Health' }).click()
    await page.getByRole('heading', { name: 'Health', level: 1 }).waitFor()
    const panel = (name: string) => page.getByRole('region', { name, exact: true })
    await settled(page)
    const { findings } = (await app.call('GET', '/me/operator/doctor', undefined, { cookie })).json
    const problem = findings.find((finding: { state: string }) => finding.state !== 'ok')
    await panel('Doctor').getByText(problem.detail).waitFor()
    await panel('Doctor').getByText('Checks that found nothing').click()
    await panel('Doctor').getByText('leases, spend and ledger add up').waitFor()
    expect(await panel('Outbox of mail').textContent()).toContain('SMTP_URL is not set')
    await panel('Webhook deliveries').getByText('Endpoints with problems').click()
    await panel('Webhook deliveries').getByText('127.0.0.1:1').waitFor()
    const shown = (await page.locator('main').textContent()) ?? ''
    expect(shown).not.toContain('guest@people.test')
    expect(shown).not.toContain('platform-secret')
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('a key is tested, and a key that the provider refuses is shown with what to do', async () => {
    app.beta.script([{ status: 401, body: { error: { message: 'no' } } }])
    const opened = await openPage(browser, app, '/console/health', { cookie })
    const { page } = opened
    await page.getByRole('button', { name: 'Test the key at alpha' }).click()
    await page.getByText('The provider accepts this key. It reaches 1 model.').waitFor()
    await page.getByRole('button', { name: 'Test the key at beta' }).click()
    await page.getByText('The provider refuses this key.').waitFor()
    expect(await opened.axe()).toEqual([])
    // The browser itself reports the refusal of a second test.
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('a route is taken out of use on a phone after a person has read what that means, and released again', async () => {
    const opened = await openPage(browser, app, '/console/health', { cookie, size: 'narrow' })
    const { page } = opened
    await page.getByRole('button', { name: 'Take a route out of use' }).click()
    const dialog = page.getByRole('dialog', { name: 'Take a route out of use' })
    await dialog.waitFor()
    expect(await dialog.getByRole('button', { name: 'Take out of use' }).isDisabled()).toBe(true)
    await dialog.getByRole('combobox', { name: 'Route' }).fill('alpha/test-m')
    await dialog.getByRole('option', { name: 'alpha/test-model', exact: true }).click()
    await dialog.getByLabel('For', { exact: true }).selectOption('3600')
    expect(await opened.axe()).toEqual([])
    await dialog.getByRole('button', { name: 'Take out of use' }).click()
    await page.getByRole('button', { name: 'Release alpha/test-model' }).waitFor()
    const { withheld } = (await app.call('GET', '/me/operator/maintenance', undefined, { cookie })).json
    expect(withheld).toMatchObject([{ route: 'alpha/test-model', set_by: 'operator' }])
    await page.getByRole('button', { name: 'Release alpha/test-model' }).click()
    await page.getByRole('dialog', { name: 'Release the route?' }).getByRole('button', { name: 'Release' }).click()
    await page.getByText('Every route may be used.').waitFor()
    expect((await app.call('GET', '/me/operator/maintenance', undefined, { cookie })).json.withheld).toEqual([])
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('the gateway searches and sorts the organisations, and the address holds the search', async () => {
    const opened = await openPage(browser, app, '/console/health?sort=name', { cookie })
    const { page } = opened
    await page.getByRole('rowheader', { name: /Alder/ }).waitFor()
    expect((await page.getByRole('rowheader').allTextContents()).map(name => name.replace(/id .*/, ''))).toEqual(['Alder', 'Birch', 'Test Org'])
    await page.getByRole('searchbox', { name: 'Search organisations' }).fill('bIRCH')
    await page.getByRole('rowheader', { name: /Alder/ }).waitFor({ state: 'detached' })
    expect(new URL(page.url()).search).toBe('?sort=name&q=bIRCH')
    await page.getByRole('searchbox', { name: 'Search organisations' }).fill('nobody has this name')
    await page.getByRole('button', { name: 'Clear the search' }).click()
    await page.getByRole('rowheader', { name: /Alder/ }).waitFor()
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('a person who is no operator finds no link to the page, and its address says who sees it', async () => {
    const { cookie: member } = await app.newMember('admin')
    const opened = await openPage(browser, app, '/console/health', { cookie: member })
    const { page } = opened
    await page.getByText('This page is for operators').waitFor()
    expect(await page.getByRole('link', { name: 'Health' }).count()).toBe(0)
    expect(await page.getByRole('heading', { name: 'Operator' }).count()).toBe(0)
    expect(await opened.axe()).toEqual([])
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })
})
