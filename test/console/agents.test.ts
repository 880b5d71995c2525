import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, until } from '../harness/app.ts'
import { builtConsole, openPage, program, startBrowser, suiteName } from './browser.ts'

describe.skipIf(program === null)(suiteName('agents in the console'), { timeout: 120_000 }, () => {
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

  const agentsOf = async (cookie: string, query = '') => (await app.call('GET', `/me/agents${query}`, undefined, { cookie })).json
  const make = async (cookie: string, body: object) => (await app.call('POST', '/me/agents', body, { cookie })).json
  /** Moves the focus by Tab until it is on an element with this name. */
  const tabTo = async (page: Page, name: RegExp): Promise<void> => {
    for (let step = 0; step < 60; step++) {
      const label = await page.evaluate('(e => e.getAttribute("aria-label") ?? e.labels?.[0]?.textContent ?? e.textContent ?? "")(document.activeElement)')
      if (name.test(String(label).trim())) return
      await page.keyboard.press('Tab')
    }
    throw new Error(`no Tab reaches ${name}`)
  }

  test('CONS-05 an agent is created with a budget, paused, resumed and ended by keyboard alone, and its end needs the name', async () => {
    const cookie = await app.signIn()
    const opened = await openPage(browser, app, '/console/agents', { cookie })
    const { page } = opened
    await page.getByText('No agents yet').waitFor()
    await page.keyboard.press('n')
    await page.getByRole('dialog', { name: 'New agent' }).waitFor()
    await page.keyboard.type('reviewer')
    await tabTo(page, /^Budget a month in rupees$/)
    await page.keyboard.type('1,500')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'reviewer' }).waitFor()
    await page.waitForURL(/\/console\/agents\/\d+$/)
    const [agent] = (await agentsOf(cookie)).agents
    expect(agent).toMatchObject({ name: 'reviewer', monthly_budget_inr: 1500, may_delegate: false, allowed_models: null })
    const status = async () => (await app.call('GET', `/me/agents/${agent.id}`, undefined, { cookie })).json.status
    for (const [act, said, after] of [
      ['Pause', 'reviewer is paused', 'paused'],
      ['Resume', 'reviewer works again', 'active'],
    ] as const) {
      await tabTo(page, new RegExp(`^${act}$`))
      await page.keyboard.press('Enter')
      await page.getByText(said).waitFor()
      expect(await status()).toBe(after)
    }
    await tabTo(page, /^End agent$/)
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'End the agent' })
    await dialog.waitFor()
    await page.keyboard.type('review')
    await page.keyboard.press('Enter')
    expect([await dialog.isVisible(), await status()], 'a part of the name ends nothing').toEqual([true, 'active'])
    await page.keyboard.type('er')
    await page.keyboard.press('Enter')
    await page.getByText('reviewer has ended').waitFor()
    expect(await status()).toBe('revoked')
    await page.getByText('This agent has ended for good').waitFor()
    expect(await page.getByRole('button', { name: 'Pause' }).count()).toBe(0)
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('the budget changes only by an own choice, and the rules send only what a person touched', async () => {
    const cookie = await app.signIn()
    const { id } = await make(cookie, { name: 'batcher', max_output_tokens: 500, max_concurrency: 4 })
    const opened = await openPage(browser, app, `/console/agents/${id}`, { cookie })
    const { page } = opened
    await page.getByRole('button', { name: 'Set budget' }).click()
    const dialog = page.getByRole('dialog', { name: 'Budget of the agent' })
    const save = dialog.getByRole('button', { name: 'Save' })
    expect(await save.isDisabled()).toBe(true)
    await dialog.getByLabel('Budget a month in rupees').fill('0')
    expect([await save.isDisabled(), await dialog.getByRole('alert').textContent()]).toEqual([true, expect.stringContaining('0 is not a limit')])
    await dialog.getByLabel('Budget a month in rupees').fill('250')
    await save.click()
    await page.getByText('of ₹250').first().waitFor()
    await page.getByRole('tab', { name: 'Rules' }).click()
    await page.waitForURL(/tab=rules/)
    await page.getByLabel('Concurrent calls').fill('2')
    const sent = page.waitForRequest(request => request.method() === 'PATCH')
    await page.getByRole('button', { name: 'Save' }).click()
    expect((await sent).postDataJSON()).toEqual({ max_concurrency: 2 })
    const now = async () => (await app.call('GET', `/me/agents/${id}`, undefined, { cookie })).json
    await until(async () => (await now()).max_concurrency === 2)
    expect(await now()).toMatchObject({ monthly_budget_inr: 250, max_output_tokens: 500, max_concurrency: 2 })
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('the gateway searches, filters and sorts, the address keeps the filters, and the back button leaves the list as it was', async () => {
    const cookie = await app.signIn()
    for (const name of ['indexer-a', 'indexer-b', 'other']) await make(cookie, { name })
    const opened = await openPage(browser, app, '/console/agents', { cookie })
    const { page } = opened
    await page.getByRole('rowheader', { name: /other/ }).waitFor()
    const asked = page.waitForRequest(request => request.url().includes('q=indexer'))
    await page.getByRole('searchbox', { name: 'Search agents' }).fill('indexer')
    await asked
    await page.waitForURL(/q=indexer/)
    await page.getByRole('rowheader', { name: /other/ }).waitFor({ state: 'detached' })
    await page.getByLabel('Order').selectOption('name')
    await page.waitForURL(/sort=name/)
    await page.reload()
    await page.getByText('2 agents').waitFor()
    expect(await page.getByRole('rowheader').allTextContents()).toEqual([expect.stringContaining('indexer-a'), expect.stringContaining('indexer-b')])
    expect(await page.getByRole('searchbox', { name: 'Search agents' }).inputValue()).toBe('indexer')
    await page.getByRole('link', { name: 'indexer-b' }).click()
    await page.getByRole('heading', { level: 1, name: 'indexer-b' }).waitFor()
    await page.goBack()
    await page.getByText('2 agents').waitFor()
    expect(new URL(page.url()).search).toContain('q=indexer')
    await page.getByRole('radio', { name: 'Paused' }).check({ force: true })
    await page.getByText('No agent fits').waitFor()
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('a form for a new agent never changes an agent that has the name', async () => {
    const cookie = await app.signIn()
    await make(cookie, { name: 'taken', max_concurrency: 3 })
    const opened = await openPage(browser, app, '/console/agents?new=true', { cookie })
    const { page } = opened
    await page.getByLabel('Name', { exact: true }).fill('taken')
    await page.getByRole('button', { name: 'Create agent' }).click()
    expect(await page.getByRole('alert').textContent()).toContain('An active agent has this name')
    expect((await agentsOf(cookie, '?q=taken')).agents).toMatchObject([{ name: 'taken', max_concurrency: 3 }])
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('CONS-05 the end names the children that end too, and the family has a tree in which a child is made', async () => {
    const cookie = await app.signIn()
    const parent = await make(cookie, { name: 'head' })
    const opened = await openPage(browser, app, `/console/agents/${parent.id}?tab=family`, { cookie })
    const { page } = opened
    await page.getByRole('button', { name: 'New child' }).click()
    await page.getByRole('dialog', { name: 'New child of head' }).waitFor()
    await page.keyboard.type('hand')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'hand' }).waitFor()
    await page.getByRole('treeitem', { name: /head/ }).first().waitFor()
    expect(await page.getByRole('treeitem').count()).toBe(2)
    await page.getByRole('navigation', { name: 'Agents above' }).getByRole('link', { name: 'head' }).click()
    await page.getByRole('heading', { level: 1, name: 'head' }).waitFor()
    await page.getByRole('button', { name: 'End agent' }).click()
    const dialog = page.getByRole('dialog', { name: 'End the agent' })
    await dialog.getByText('Ends too: hand.').waitFor()
    expect(await opened.axe()).toEqual([])
    await dialog.getByLabel('Type head to confirm').fill('head')
    await dialog.getByRole('button', { name: 'End agent' }).click()
    await until(async () => (await agentsOf(cookie, '?q=hand')).agents[0].status === 'revoked')
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('CONS-05 a token with fewer scopes is shown once, works, and does no more than it says', async () => {
    const cookie = await app.signIn()
    await app.newKey({ name: 'For everything' })
    const { id } = await make(cookie, { name: 'reader' })
    const opened = await openPage(browser, app, `/console/agents/${id}?tab=tokens`, { cookie })
    const { page } = opened
    await page.getByLabel('Call models').uncheck()
    await page.getByLabel('Write memory').uncheck()
    await page.getByLabel('Call tools').uncheck()
    await page.getByLabel('Lives for').selectOption('300')
    await page.getByRole('button', { name: 'Make a token' }).click()
    const panel = page.getByRole('dialog', { name: 'A token of reader' })
    await panel.waitFor()
    const token = (await panel.locator('.secret-text').textContent()) ?? ''
    expect((await app.call('GET', '/v1/me/whoami', undefined, { token })).json).toMatchObject({ agent: { name: 'reader' }, scope: 'memory:read usage:read' })
    expect((await app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: 'Hello' }] }, { token })).status).toBe(
      403,
    )
    expect(await opened.axe()).toEqual([])
    await panel.getByRole('button', { name: 'I have stored it' }).click()
    await until(async () => !(await page.content()).includes(token))
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('the agents whose budget is about to end are listed by the gateway, with the order that it has', async () => {
    const cookie = await app.signIn()
    const { id } = await make(cookie, { name: 'nearly-out' })
    await make(cookie, { name: 'far-from-it' })
    const { access_token: token } = (await app.call('POST', `/v1/me/agents/${id}/token`, {})).json
    await app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 50 }, { token })
    await app.gateway.app.limits.flushNow()
    const { spend_month_inr: spent } = (await app.call('GET', `/me/agents/${id}`, undefined, { cookie })).json
    await app.setBudget('agent', id, spent / 0.9)
    const opened = await openPage(browser, app, '/console/agents', { cookie })
    const { page } = opened
    await page.getByRole('rowheader', { name: /far-from-it/ }).waitFor()
    await page.getByLabel('Budget', { exact: true }).selectOption('80% used or more')
    await page.waitForURL(/budget_used_percent=80/)
    await page.getByRole('rowheader', { name: /far-from-it/ }).waitFor({ state: 'detached' })
    expect(await page.getByRole('rowheader').allTextContents()).toEqual([expect.stringContaining('nearly-out')])
    expect(await page.getByLabel('Order').locator('option').allTextContents()).toEqual(['Highest spend first'])
    await page.reload()
    await page.getByRole('rowheader', { name: /nearly-out/ }).waitFor()
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('several agents are selected by checkbox and by x, and paused or ended with one question, which lists each that failed', async () => {
    const cookie = await app.signIn()
    const names = ['many-a', 'many-b', 'many-c']
    const ids: number[] = []
    for (const name of names) ids.push((await make(cookie, { name })).id)
    await app.call('POST', `/me/agents/${ids[1]}/children`, { name: 'many-b-child' }, { cookie })
    const opened = await openPage(browser, app, '/console/agents?q=many-&parent=none&sort=name', { cookie, expected: [/status of 409/] })
    const { page } = opened
    const statuses = async () => Promise.all(ids.map(async id => (await app.call('GET', `/me/agents/${id}`, undefined, { cookie })).json.status))
    const bar = page.getByRole('region', { name: 'Selected agents' })
    await page.getByRole('rowheader', { name: /many-a/ }).waitFor()
    await page.getByRole('checkbox', { name: 'Select many-a' }).check()
    await bar.getByText('1 selected').waitFor()
    await page.getByRole('row', { name: /many-b/ }).focus()
    await page.keyboard.press('x')
    await bar.getByText('2 selected').waitFor()
    expect(await opened.axe()).toEqual([])

    // One of the two ends while the question is open, so its pause fails, and the other is paused all the same.
    await bar.getByRole('button', { name: 'Pause' }).click()
    const pausing = page.getByRole('dialog', { name: 'Pause several agents' })
    await pausing.getByText('many-a and many-b.').waitFor()
    await app.call('POST', `/me/agents/${ids[0]}/revoke`, undefined, { cookie })
    await pausing.getByRole('button', { name: 'Pause 2 agents' }).click()
    await pausing.getByText('1 agent is paused.').waitFor()
    expect(await pausing.getByRole('listitem').allTextContents()).toEqual([expect.stringMatching(/^many-a .+/)])
    await pausing.getByRole('button', { name: 'Close' }).last().click()
    expect(await statuses()).toEqual(['revoked', 'paused', 'active'])

    // An agent that has ended has no checkbox. The end names the children, and needs its words.
    await page.getByRole('checkbox', { name: 'Select all that you may act on' }).check()
    await bar.getByText('2 selected').waitFor()
    await bar.getByRole('button', { name: 'End' }).click()
    const ending = page.getByRole('dialog', { name: 'End several agents' })
    await ending.getByText('1 child of these agents ends too.').waitFor()
    const end = ending.getByRole('button', { name: 'End 2 agents' })
    expect(await end.isDisabled()).toBe(true)
    await ending.getByLabel('Type end 2 agents to confirm').fill('end 2 agents')
    await end.click()
    await page.getByText('2 agents have ended.').waitFor()
    expect(await statuses()).toEqual(['revoked', 'revoked', 'revoked'])
    await bar.waitFor({ state: 'detached' })
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('a member is offered acts on own agents only, and reads whom to ask for another', async () => {
    const owner = await app.signIn()
    const theirs = await make(owner, { name: 'of-the-owner' })
    const member = await app.newMember('member')
    const mine = await make(member.cookie, { name: 'of-the-member' })
    const opened = await openPage(browser, app, '/console/agents', { cookie: member.cookie })
    const { page } = opened
    await page.getByRole('rowheader', { name: /of-the-owner/ }).waitFor()
    expect(await page.getByRole('button', { name: 'Acts of of-the-owner' }).count()).toBe(0)
    expect(await page.getByRole('button', { name: 'Acts of of-the-member' }).count()).toBe(1)
    await page.goto(`${app.baseUrl}/console/agents/${theirs.id}`)
    await page.getByText(/change this agent\. Ask /).waitFor()
    for (const name of ['Pause', 'End agent', 'Set budget', 'Change rules'])
      expect(await page.getByRole('button', { name }).or(page.getByRole('link', { name })).count(), name).toBe(0)
    await page.getByRole('tab', { name: 'Tokens' }).click()
    await page.getByRole('heading', { name: 'Make a token' }).waitFor()
    expect(await page.getByRole('button', { name: 'Make a token' }).count()).toBe(0)
    await page.goto(`${app.baseUrl}/console/agents/${mine.id}`)
    await page.getByRole('button', { name: 'End agent' }).waitFor()
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('an agent of another organisation is not here, and its name is nowhere', async () => {
    const cookie = await app.signIn()
    const there = await app.otherOrg('Elsewhere')
    const foreign = await make(await app.signIn(there.userId, there.orgId), { name: 'foreign-agent' })
    const opened = await openPage(browser, app, `/console/agents/${foreign.id}`, { cookie, expected: [/status of 404/] })
    await opened.page.getByText('It was removed, or it belongs to another organisation.').waitFor()
    await opened.page.goto(`${app.baseUrl}/console/agents?q=foreign`)
    await opened.page.getByText('No agent fits').waitFor()
    expect(await opened.page.content()).not.toContain('foreign-agent')
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })
})
