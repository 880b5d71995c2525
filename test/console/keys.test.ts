import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, until } from '../harness/app.ts'
import { builtConsole, openPage, program, startBrowser, suiteName } from './browser.ts'

describe.skipIf(program === null)(suiteName('keys in the console'), { timeout: 120_000 }, () => {
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

  const keyNamed = async (cookie: string, name: string) =>
    (await app.call('GET', '/me/keys', undefined, { cookie })).json.keys.find((key: { name: string }) => key.name === name)

  test('CONS-10 a key is created by keyboard alone, its secret is shown once and works, and a click outside does not close it', async () => {
    const cookie = await app.signIn()
    const opened = await openPage(browser, app, '/console/keys', { cookie })
    const { page } = opened
    await page.getByRole('table').waitFor()
    await page.keyboard.press('n')
    const dialog = page.getByRole('dialog', { name: 'New key' })
    await dialog.waitFor()
    expect(await page.evaluate('document.activeElement.labels[0].textContent')).toBe('Name')
    await page.keyboard.type('Laptop')
    await page.keyboard.press('Enter')
    const panel = page.getByRole('dialog', { name: 'Laptop is ready' })
    await panel.waitFor()
    const secret = (await panel.locator('.secret-text').textContent()) ?? ''
    expect(secret).toMatch(/^br-/)
    await page.mouse.click(5, 5)
    await page.keyboard.press('Escape')
    await page.keyboard.press('Escape')
    expect(await panel.isVisible()).toBe(true)
    expect(await opened.axe()).toEqual([])
    await panel.getByRole('button', { name: 'Copy', exact: true }).first().click()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(secret)
    const download = page.waitForEvent('download')
    await panel.getByRole('button', { name: 'Download .env' }).click()
    expect((await download).suggestedFilename()).toBe('brigade.env')
    expect((await app.call('GET', '/v1/me/whoami', undefined, { token: secret })).json).toMatchObject({ key: { name: 'Laptop' }, scope: 'inference' })
    await panel.getByRole('button', { name: 'I have stored it' }).click()
    await page.getByRole('rowheader', { name: /Laptop/ }).waitFor()
    expect(await page.content()).not.toContain(secret)
    const expires = (await keyNamed(cookie, 'Laptop')).expires_at
    expect(Math.round((Date.parse(expires) - Date.now()) / 86_400_000)).toBe(90)
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('the gateway searches, filters and sorts the keys, and the address holds the filters', async () => {
    const cookie = await app.signIn()
    for (const name of ['find zebra', 'Find apple', 'other tree']) expect((await app.call('POST', '/me/keys', { name }, { cookie })).status).toBe(201)
    const off = await keyNamed(cookie, 'find zebra')
    await app.call('PATCH', `/me/keys/${off.id}`, { enabled: false }, { cookie })
    const opened = await openPage(browser, app, '/console/keys?sort=name', { cookie })
    const { page } = opened
    const shown = async (): Promise<string[]> =>
      (await page.getByRole('rowheader').allTextContents()).filter(name => /find|tree/i.test(name)).map(name => name.replace(/br-.*/, ''))
    await page.getByRole('rowheader', { name: /other tree/ }).waitFor()
    await page.getByRole('searchbox', { name: 'Search keys' }).fill('FIND')
    await page.getByRole('rowheader', { name: /other tree/ }).waitFor({ state: 'detached' })
    expect(await shown()).toEqual(['Find apple', 'find zebra'])
    await page.getByLabel('State').selectOption('disabled')
    await page.getByRole('rowheader', { name: /Find apple/ }).waitFor({ state: 'detached' })
    expect(await shown()).toEqual(['find zebra'])
    expect(new URL(page.url()).search).toBe('?sort=name&q=FIND&state=disabled')
    expect(await opened.axe()).toEqual([])
    await page.getByRole('searchbox', { name: 'Search keys' }).fill('nothing has this name')
    await page.getByRole('button', { name: 'Clear the filters' }).click()
    await page.getByRole('rowheader', { name: /other tree/ }).waitFor()
    expect(new URL(page.url()).search).toBe('')
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('CONS-10 a limit changes only when a person changes it: No limit is a choice, an empty amount cannot be saved, and untouched fields are not sent', async () => {
    const cookie = await app.signIn()
    const { keyId } = await app.newKey({ name: 'Batch', budgetInr: 500, rpm: 60 })
    const opened = await openPage(browser, app, `/console/keys?key=${keyId}`, { cookie })
    const { page } = opened
    const peek = page.getByRole('complementary', { name: 'Batch' })
    await peek.getByText('Edit limits').click()
    const save = peek.getByRole('button', { name: 'Save' })
    const amount = peek.getByLabel('Budget a month in rupees')
    expect([await amount.inputValue(), await save.isDisabled()]).toEqual(['500', true])
    await amount.fill('')
    expect(await save.isDisabled()).toBe(true)
    await amount.fill('0')
    expect(await peek.getByRole('alert').textContent()).toContain('0 is not a limit')
    expect(await save.isDisabled()).toBe(true)
    await amount.fill('₹1,750.5')
    const sent = page.waitForRequest(request => request.method() === 'PATCH')
    await save.click()
    expect((await sent).postDataJSON()).toEqual({ budget_inr: 1750.5 })
    await page.getByText('Saved.').waitFor()
    expect(await keyNamed(cookie, 'Batch')).toMatchObject({ budget_inr: 1750.5, rpm_limit: 60 })
    await peek.getByRole('group', { name: 'Budget a month' }).getByLabel('No limit').check()
    const lifted = page.waitForRequest(request => request.method() === 'PATCH')
    await save.click()
    expect((await lifted).postDataJSON()).toEqual({ budget_inr: null })
    await until(async () => (await keyNamed(cookie, 'Batch')).budget_inr === null)
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('revoking a key needs its name typed, and a key that is disabled can be enabled again', async () => {
    const cookie = await app.signIn()
    const { key } = await app.newKey({ name: 'Old demo' })
    const opened = await openPage(browser, app, '/console/keys', { cookie })
    const { page } = opened
    const act = async (name: string): Promise<void> => {
      await page.getByRole('button', { name: 'Acts of Old demo' }).click()
      await page.getByRole('menuitem', { name }).click()
    }
    await act('Disable')
    await page.getByText('Old demo is disabled').waitFor()
    expect((await app.call('GET', '/v1/me/whoami', undefined, { token: key })).status).toBe(401)
    await act('Enable')
    await page.getByText('Old demo works again').waitFor()
    expect((await app.call('GET', '/v1/me/whoami', undefined, { token: key })).status).toBe(200)
    await act('Revoke')
    const confirm = page.getByRole('dialog', { name: 'Revoke the key' })
    const revoke = confirm.getByRole('button', { name: 'Revoke' })
    expect(await revoke.isDisabled()).toBe(true)
    await confirm.getByLabel('Type Old demo to confirm').fill('Old demo')
    await revoke.click()
    await page.getByText('Old demo is revoked.').waitFor()
    expect(await page.getByRole('rowheader', { name: /Old demo/ }).count()).toBe(0)
    expect((await app.call('GET', '/v1/me/whoami', undefined, { token: key })).status).toBe(401)
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('a refused name stays in the form with the sentence of the gateway, and nothing that was typed is lost', async () => {
    const cookie = await app.signIn()
    await app.newKey({ name: 'Taken' })
    const opened = await openPage(browser, app, '/console/keys?new=true', { cookie, expected: [/status of 400/] })
    const { page } = opened
    await page.getByLabel('Name').fill('Taken')
    await page.getByLabel('Ends').selectOption('365')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByRole('alert').waitFor()
    expect([await page.getByLabel('Name').inputValue(), await page.getByLabel('Ends').inputValue()]).toEqual(['Taken', '365'])
    expect(await page.getByLabel('Name').getAttribute('aria-invalid')).toBe('true')
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('a member is offered only what the gateway would allow: rotating an own key, and no limits of others', async () => {
    const member = await app.newMember('member')
    await app.call('POST', '/me/keys', { name: 'Mine' }, { cookie: member.cookie })
    await app.newKey({ name: 'Of the owner' })
    const opened = await openPage(browser, app, '/console/keys', { cookie: member.cookie })
    const { page } = opened
    await page.getByRole('rowheader', { name: /Mine/ }).waitFor()
    expect(await page.getByRole('button', { name: 'Acts of Of the owner' }).count()).toBe(0)
    await page.getByRole('button', { name: 'Acts of Mine' }).click()
    expect(await page.getByRole('menuitem').filter({ visible: true }).allTextContents()).toEqual(['Rotate…'])
    await page.getByRole('menuitem', { name: 'Rotate' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click()
    await page.getByRole('dialog', { name: 'Mine has a new secret' }).waitFor()
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })
})
