import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { builtConsole, openPage, program, settled, startBrowser, suiteName } from './browser.ts'
import { tabTo } from './keyboard.ts'

describe.skipIf(program === null)(suiteName('workspaces in the console'), { timeout: 120_000 }, () => {
  let app: TestApp
  let browser: Browser
  beforeAll(async () => {
    await builtConsole()
    app = await startApp({ env: { CONSOLE_RPM: '10000' } })
    browser = await startBrowser()
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    await app?.stop()
  })

  const listed = async (cookie: string) => (await app.call('GET', '/me/workspaces', undefined, { cookie })).json.workspaces

  test('CONS-10 a workspace is made with a budget, given a team, archived and restored under another name by keyboard alone, and only what differs is sent', async () => {
    const { userId, orgId } = await app.otherOrg('Quarry')
    const cookie = await app.signIn(userId, orgId)
    const opened = await openPage(browser, app, '/console/workspaces', { cookie })
    const { page } = opened
    await page.getByText('No workspace yet').waitFor()
    await settled(page)
    await page.keyboard.press('n')
    await page.getByRole('dialog', { name: 'New workspace' }).waitFor()
    await page.keyboard.type('Research')
    await tabTo(page, 'Budget a month in rupees')
    await page.keyboard.type('1,500')
    expect(await opened.axe()).toEqual([])
    await page.keyboard.press('Enter')
    const peek = page.getByRole('complementary', { name: 'Research' })
    await peek.waitFor()
    expect(await listed(cookie)).toMatchObject([{ name: 'Research', monthly_budget_inr: 1_500, member_uids: [], keys: 0 }])
    const [{ id }] = await listed(cookie)
    await page.goto(`${app.baseUrl}/console/keys?new=true`)
    await page.getByRole('dialog', { name: 'New key' }).getByText('Limits', { exact: true }).click()
    await page.getByRole('combobox', { name: 'Workspace' }).fill('res')
    await page.getByRole('option', { name: 'Research' }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByRole('button', { name: 'I have stored it' }).click()
    await page.goto(`${app.baseUrl}/console/workspaces?workspace=${id}`)
    await peek.waitFor()

    await peek.locator('summary').filter({ hasText: 'Name and team' }).focus()
    await page.keyboard.press('Enter')
    await peek.getByLabel('Name', { exact: true }).waitFor()
    await tabTo(page, 'Team')
    await page.keyboard.type('owner')
    await peek.getByRole('listbox').getByRole('option').first().waitFor()
    const sent = page.waitForRequest(request => request.method() === 'PATCH')
    await page.keyboard.press('Enter')
    await tabTo(page, 'Save')
    await page.keyboard.press('Enter')
    expect((await sent).postDataJSON()).toEqual({ member_uids: [userId] })
    await page.getByText('Saved.').waitFor()
    await peek.getByText('Name and team').waitFor()
    expect(await listed(cookie)).toMatchObject([{ member_uids: [userId], monthly_budget_inr: 1_500, keys: 1 }])

    await page.reload()
    await peek.getByRole('button', { name: 'Archive' }).focus()
    await page.keyboard.press('Enter')
    const confirm = page.getByRole('dialog', { name: 'Archive the workspace' })
    await confirm.getByText(/Its key works on within its budget: revoke it to stop calls/).waitFor()
    await tabTo(page, 'Archive')
    await page.keyboard.press('Enter')
    await page.getByText('Research is archived.').waitFor()
    await peek.getByRole('button', { name: 'Restore' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Restore the workspace' }).getByLabel('Name').fill('Research 2')
    await page.keyboard.press('Enter')
    await page.getByText('Research 2 is active again.').waitFor()
    expect(await listed(cookie)).toMatchObject([{ name: 'Research 2', archived: false, member_uids: [userId] }])
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('a name that is taken stays in the form with the sentence of the gateway, the gateway searches, and a budget is lifted only by its own choice', async () => {
    const { userId, orgId } = await app.otherOrg('Kiln')
    const cookie = await app.signIn(userId, orgId)
    for (const name of ['Alpha team', 'Beta team']) await app.call('POST', '/me/workspaces', { name, monthly_budget_inr: 100 }, { cookie })
    const opened = await openPage(browser, app, '/console/workspaces?new=true', { cookie, expected: [/status of 400/] })
    const { page } = opened
    await page.getByLabel('Name', { exact: true }).fill('alpha TEAM')
    await page.getByRole('button', { name: 'Create workspace' }).click()
    await page.getByRole('alert').waitFor()
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('alpha TEAM')
    await page.keyboard.press('Escape')
    await page.getByRole('searchbox', { name: 'Search workspaces' }).fill('BETA')
    await page.getByRole('rowheader', { name: 'Alpha team' }).waitFor({ state: 'detached' })
    await page.getByRole('rowheader', { name: 'Beta team' }).click()
    const peek = page.getByRole('complementary', { name: 'Beta team' })
    await peek.getByText('Set the budget').click()
    const save = peek.getByRole('button', { name: 'Save the budget' })
    for (const typed of ['', '0', '0,5']) {
      await peek.getByLabel('Budget a month in rupees').fill(typed)
      expect(await save.isDisabled(), typed).toBe(true)
    }
    await peek.getByRole('radio', { name: 'No limit' }).check()
    const sent = page.waitForRequest(request => request.method() === 'POST')
    await save.click()
    expect((await sent).postDataJSON()).toMatchObject({ scope: 'workspace', monthly_budget_inr: null })
    await page.getByText('Beta team has no budget of its own any more.').waitFor()
    expect((await listed(cookie)).map((each: { monthly_budget_inr: number | null }) => each.monthly_budget_inr)).toEqual([100, null])
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('a member sees the workspaces, no act and whom to ask, and nobody opens a workspace of another organisation', async () => {
    const { userId, orgId } = await app.otherOrg('Basin')
    const cookie = await app.signIn(userId, orgId)
    const { id } = (await app.call('POST', '/me/workspaces', { name: 'Visible team' }, { cookie })).json
    const member = await app.newMember('member', { orgId })
    const asMember = await openPage(browser, app, `/console/workspaces?workspace=${id}`, { cookie: member.cookie })
    await asMember.page.getByRole('complementary', { name: 'Visible team' }).waitFor()
    await asMember.page
      .getByText(/Ask \S+\./)
      .first()
      .waitFor()
    expect(await asMember.page.getByText(/^(New workspace|Archive|Set the budget|Name and team)$/).count()).toBe(0)
    expect(await asMember.page.getByRole('button', { name: /^Acts of/ }).count()).toBe(0)
    expect(asMember.faults).toEqual([])
    await asMember.context.close()
    const other = await app.otherOrg('Delta')
    const asOther = await openPage(browser, app, `/console/workspaces?workspace=${id}`, { cookie: await app.signIn(other.userId, other.orgId) })
    await asOther.page.getByText('not among those loaded').waitFor()
    await asOther.page.getByText('No workspace yet').waitFor()
    expect(await asOther.page.content()).not.toContain('Visible team')
    expect(asOther.faults).toEqual([])
    await asOther.context.close()
  })
})
