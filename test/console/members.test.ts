import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestMember, until } from '../harness/app.ts'
import { builtConsole, openPage, program, settled, startBrowser, suiteName } from './browser.ts'
import { tabTo } from './keyboard.ts'

const rename = statement<[id: number, name: string]>('test.rename_member_of_console', 'update users set name = $2::text where id = $1::int')

describe.skipIf(program === null)(suiteName('members in the console'), { timeout: 120_000 }, () => {
  let app: TestApp
  let browser: Browser
  let orgs = 0
  beforeAll(async () => {
    await builtConsole()
    app = await startApp({ env: { CONSOLE_RPM: '10000' } })
    browser = await startBrowser()
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    await app?.stop()
  })

  /** Makes an organisation with its owner, so that no test sees the people of another. */
  async function team(): Promise<{
    orgId: number
    owner: string
    ownerId: number
    person: (role: 'admin' | 'member' | 'owner', name: string) => Promise<TestMember>
  }> {
    const { orgId, userId } = await app.otherOrg(`Team ${++orgs}`)
    return {
      orgId,
      ownerId: userId,
      owner: await app.signIn(userId, orgId),
      person: async (role, name) => {
        const made = await app.newMember(role, { orgId })
        await app.db.exec(rename, made.userId, name)
        return made
      },
    }
  }
  const listed = async (cookie: string) => (await app.call('GET', '/me/members', undefined, { cookie })).json
  const act = async (page: Page, of: string, name: RegExp): Promise<void> => {
    await page.getByRole('button', { name: `Acts of ${of}` }).click()
    await page.getByRole('menuitem', { name }).click()
  }

  test('CONS-10 a pasted list of addresses is invited by keyboard alone, what is refused says why, and an invitation is handed over, mailed again and withdrawn', async () => {
    const { owner } = await team()
    await app.call('POST', '/me/members', { email: 'known@people.example', role: 'member' }, { cookie: owner })
    const opened = await openPage(browser, app, '/console/members', { cookie: owner, expected: [/status of 400/] })
    const { page } = opened
    await page.getByRole('table', { name: 'Members' }).waitFor()
    await settled(page)
    await page.keyboard.press('n')
    const dialog = page.getByRole('dialog', { name: 'Invite people' })
    await dialog.waitFor()
    expect(await page.evaluate('document.activeElement.labels[0].textContent')).toBe('Mail addresses')
    await page.evaluate(
      `navigator.clipboard.writeText('Asha Rao <asha@people.example>, known@people.example;\\nravi@people.example ASHA@people.example nobody')`,
    )
    await page.keyboard.press('Control+V')
    await dialog.getByText('3 addresses.').waitFor()
    expect(await opened.axe()).toEqual([])
    await tabTo(page, 'Invite 3 people')
    await page.keyboard.press('Enter')
    const done = page.getByRole('dialog', { name: '2 people invited' })
    await done.waitFor()
    expect(await done.getByRole('alert').textContent()).toContain('known@people.example')
    expect(await done.locator('pre').textContent()).toBe(`${app.baseUrl}/invitations`)
    await page.keyboard.press('Escape')
    const invitations = page.getByRole('table', { name: 'Open invitations' })
    await invitations.getByRole('rowheader', { name: 'asha@people.example' }).waitFor()
    expect((await listed(owner)).pending.map((each: { email: string }) => each.email)).toEqual([
      'known@people.example',
      'asha@people.example',
      'ravi@people.example',
    ])
    expect(await invitations.getByText('Waiting').count()).toBe(3)

    await act(page, 'asha@people.example', /Hand over the link/)
    const handed = page.getByRole('dialog', { name: 'Hand over the link' })
    await handed.getByRole('button', { name: 'Copy' }).click()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(`${app.baseUrl}/invitations`)
    await page.keyboard.press('Escape')
    await act(page, 'asha@people.example', /Send the mail again/)
    await page.getByText('was mailed within this hour').waitFor()
    await act(page, 'asha@people.example', /Withdraw/)
    await page.getByRole('dialog', { name: 'Withdraw the invitation' }).getByRole('button', { name: 'Withdraw' }).click()
    await invitations.getByRole('rowheader', { name: 'asha@people.example' }).waitFor({ state: 'detached' })
    expect((await listed(owner)).pending).toHaveLength(2)
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('the gateway searches and filters people and invitations, and the address holds the filters', async () => {
    const { owner, person } = await team()
    await person('admin', 'Meera Iyer')
    await person('member', 'Kabir Shah')
    await app.call('POST', '/me/members', { email: 'meera.new@people.example', role: 'member' }, { cookie: owner })
    const opened = await openPage(browser, app, '/console/members', { cookie: owner })
    const { page } = opened
    await page.getByRole('rowheader', { name: /Kabir/ }).waitFor()
    await page.getByRole('searchbox', { name: 'Search members' }).fill('MEERA')
    await page.getByRole('rowheader', { name: /Kabir/ }).waitFor({ state: 'detached' })
    expect(await page.getByRole('rowheader').count()).toBe(2)
    await page.getByLabel('Role').selectOption('admin')
    await page.getByRole('rowheader', { name: 'meera.new@people.example' }).waitFor({ state: 'detached' })
    await page.getByLabel('State').selectOption('invited')
    await page.getByText('Nobody fits').waitFor()
    expect(new URL(page.url()).search).toBe('?q=MEERA&role=admin&state=invited')
    await page.getByRole('button', { name: 'Clear the filters' }).click()
    await page.getByRole('rowheader', { name: /Kabir/ }).waitFor()
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('an owner changes a role and what a member sees, and only what differs is sent; the only owner can neither change nor leave', async () => {
    const { owner, ownerId, person } = await team()
    const { userId } = await person('member', 'Kabir Shah')
    const opened = await openPage(browser, app, `/console/members?member=${userId}`, { cookie: owner })
    const { page } = opened
    const peek = page.getByRole('complementary', { name: 'Kabir Shah' })
    await peek.getByText('Change the role').click()
    expect(await peek.getByRole('button', { name: 'Save the role' }).isDisabled()).toBe(true)
    await peek.getByLabel('Cost of the organisation').check()
    const sent = page.waitForRequest(request => request.method() === 'PATCH')
    await peek.getByRole('button', { name: 'Save the role' }).click()
    expect((await sent).postDataJSON()).toEqual({ capabilities: ['cost:org:view'] })
    await page.getByText('What Kabir Shah may do is saved.').waitFor()
    await peek.getByRole('definition').filter({ hasText: 'Cost of the organisation' }).waitFor()
    await peek.getByRole('radio', { name: /^Admin/ }).check()
    const promoted = page.waitForRequest(request => request.method() === 'PATCH')
    await peek.getByRole('button', { name: 'Save the role' }).click()
    expect((await promoted).postDataJSON()).toEqual({ role: 'admin' })
    await until(async () => (await listed(owner)).members.find((each: { uid: number }) => each.uid === userId).role === 'admin')

    await page.goto(`${app.baseUrl}/console/members?member=${ownerId}`)
    await page.getByText(/is the only owner/).waitFor()
    expect(await page.getByText('Change the role').count()).toBe(0)
    expect(await page.getByRole('complementary').getByRole('button', { name: 'Leave the organisation' }).count()).toBe(0)
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('CONS-10 the dialog that removes a member names the keys that end and the agents that stay, needs the address typed, and ends them', async () => {
    const { owner, person } = await team()
    const { userId, cookie, email } = await person('member', 'Asha Rao')
    const { key } = (await app.call('POST', '/me/keys', { name: 'Notebook', scope: 'full' }, { cookie })).json
    await app.call('POST', '/v1/me/agents', { name: 'asha-agent' }, { token: key })
    const opened = await openPage(browser, app, `/console/members?member=${userId}`, { cookie: owner })
    const { page } = opened
    const peek = page.getByRole('complementary', { name: 'Asha Rao' })
    await peek.getByRole('button', { name: 'Remove' }).click()
    const confirm = page.getByRole('dialog', { name: 'Remove the member' })
    await confirm.getByText(/1 key of this person ends for good.*: Notebook\./).waitFor()
    await confirm.getByText(/1 agent stays with the organisation/).waitFor()
    expect(await confirm.getByRole('button', { name: 'Remove' }).isDisabled()).toBe(true)
    expect(await opened.axe()).toEqual([])
    await confirm.getByLabel(`Type ${email} to confirm`).fill(email)
    await page.keyboard.press('Enter')
    await page.getByText('Asha Rao is no longer a member.').waitFor()
    expect((await app.call('GET', '/v1/me/whoami', undefined, { token: key })).status).toBe(401)
    await page.getByRole('rowheader', { name: /Asha/ }).waitFor({ state: 'detached' })
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('a member sees whom to ask and no act but leaving, an admin sets budgets and changes no role, and nobody opens a person of another organisation', async () => {
    const { owner, ownerId, orgId, person } = await team()
    const there = await team()
    const admin = await person('admin', 'Meera Iyer')
    const member = await person('member', 'Kabir Shah')
    await app.db.exec(rename, ownerId, 'Olga Owner')
    const asMember = await openPage(browser, app, `/console/members?member=${admin.userId}`, { cookie: member.cookie })
    await asMember.page.getByText('Ask Olga Owner.').first().waitFor()
    await settled(asMember.page)
    expect(await asMember.page.getByRole('button', { name: 'Invite people' }).count()).toBe(0)
    expect(await asMember.page.getByRole('complementary').getByRole('button', { name: 'Remove' }).count()).toBe(0)
    expect(await asMember.page.getByText(/Change the role|Set the budget|spent/).count()).toBe(0)
    expect(await asMember.page.getByRole('button', { name: /^Acts of/ }).count()).toBe(1)
    expect(asMember.faults).toEqual([])
    await asMember.context.close()

    const asAdmin = await openPage(browser, app, `/console/members?member=${member.userId}`, { cookie: admin.cookie })
    const peek = asAdmin.page.getByRole('complementary', { name: 'Kabir Shah' })
    await peek.getByText('Set the budget').waitFor()
    expect(await peek.getByText('Change the role').count()).toBe(0)
    await peek.getByText('Only an owner changes roles.').waitFor()
    await asAdmin.page.goto(`${app.baseUrl}/console/members?member=${ownerId}`)
    await asAdmin.page.getByRole('complementary', { name: 'Olga Owner' }).waitFor()
    expect(await asAdmin.page.getByRole('complementary').getByRole('button', { name: 'Remove' }).count()).toBe(0)
    await asAdmin.page.goto(`${app.baseUrl}/console/members?member=${there.ownerId}`)
    await asAdmin.page.getByText('not among those loaded').waitFor()
    expect(asAdmin.faults).toEqual([])
    await asAdmin.context.close()
    expect([orgId, (await listed(owner)).members.length]).toEqual([orgId, 3])
  })
})
