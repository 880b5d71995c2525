import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fileOf } from '../gateway/access/company-sign-in.ts'
import { startApp, type TestApp } from '../harness/app.ts'
import { builtConsole, openPage, program, settled, startBrowser, suiteName } from './browser.ts'

const issuer = {
  id: 'acme',
  name: 'Acme & Sons',
  issuer: 'https://id.acme.test',
  client_id: 'brigade',
  client_secret_env: 'ACME_SECRET',
  icon: 'building',
  claims: { groups: 'groups' },
  domains: { 'acme.test': { org: 1 } },
}

describe.skipIf(program === null)(suiteName('sign-in of companies in the console'), { timeout: 120_000 }, () => {
  let app: TestApp
  let browser: Browser
  beforeAll(async () => {
    await builtConsole()
    app = await startApp({ env: { SIGN_IN_FILE: fileOf({ issuers: [issuer] }), ACME_SECRET: 's', CONSOLE_RPM: '10000' } })
    browser = await startBrowser()
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    await app?.stop()
  })

  test('CAPI-13 the console shows the issuer with its name and icon, and an owner maps a group to a role and a workspace there', async () => {
    const cookie = await app.signIn()
    const { json: workspace } = await app.call('POST', '/me/workspaces', { name: 'Research' }, { cookie })
    const opened = await openPage(browser, app, '/console/settings', { cookie })
    const { page } = opened
    const panel = page.getByRole('region', { name: 'Sign-in with Acme & Sons' })
    await panel.getByText('People with an address of acme.test who sign in with Acme & Sons join this organisation.').waitFor()
    await settled(page)
    const icon = panel.locator('img')
    expect(await icon.getAttribute('src')).toMatch(/^data:image\/svg\+xml;base64,/)
    expect(await page.evaluate(`document.querySelector('.sign-in-issuer img').decode().then(() => true)`)).toBe(true)
    await panel.getByLabel('Group', { exact: true }).fill('platform')
    await panel.getByLabel('Role').selectOption('admin')
    await panel.getByRole('combobox', { name: 'Workspaces' }).fill('Res')
    await page.getByRole('option', { name: 'Research' }).click()
    await page.keyboard.press('Tab')
    await panel.getByRole('button', { name: 'Add the group' }).click()
    await panel.getByText(`platform: Admin, workspace ${workspace.id}`).waitFor()
    expect(await opened.axe()).toEqual([])
    await panel.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Sign-ins with Acme & Sons follow these rules from now on.').waitFor()
    const { issuers } = (await app.call('GET', '/me/sign-in-rules', undefined, { cookie })).json
    expect(issuers[0]).toMatchObject({ default_role: 'member', groups: [{ group: 'platform', role: 'admin', workspace_ids: [workspace.id] }] })

    const admin = await openPage(browser, app, '/console/settings', { cookie: (await app.newMember('admin')).cookie })
    await admin.page.getByText(`platform: Admin, workspace ${workspace.id}`).waitFor()
    expect(await admin.page.getByRole('button', { name: 'Add the group' }).count()).toBe(0)
    expect([...opened.faults, ...admin.faults]).toEqual([])
  })

  test('CAPI-13 the page with the ways to sign in shows the picture under its policy', async () => {
    const { page, faults } = await openPage(browser, app, '/auth', {})
    const link = page.getByRole('link', { name: 'Continue with Acme & Sons' })
    await link.waitFor()
    expect(await page.evaluate(`document.querySelector('a img').decode().then(() => true)`)).toBe(true)
    expect(faults).toEqual([])
  })
})
