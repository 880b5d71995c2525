import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { builtConsole, openPage, program, startBrowser, suiteName } from './browser.ts'

describe.skipIf(program === null)(suiteName('the wizard of the console'), { timeout: 120_000 }, () => {
  let app: TestApp
  let browser: Browser
  beforeAll(async () => {
    await builtConsole()
    app = await startApp({ env: { SANDBOX: 'on' } })
    browser = await startBrowser()
  }, 60_000)
  afterAll(async () => {
    await browser?.close()
    await app?.stop()
  })

  /** Presses a key until the element with this name has the focus. */
  async function focus(page: Page, name: string, key = 'Tab'): Promise<void> {
    const focused = () =>
      page.evaluate('(e => (e.labels?.[0]?.textContent ?? e.getAttribute("aria-label") ?? e.textContent ?? "").trim())(document.activeElement)')
    for (let press = 0; press < 60; press++) {
      if (String(await focused()).startsWith(name)) return
      await page.keyboard.press(key)
    }
    throw new Error(`${key} never reaches "${name}"; the focus is on "${await focused()}"`)
  }
  const call = (token: string, model: string, content: string, agent?: string) =>
    app.call(
      'POST',
      '/v1/chat/completions',
      { model, messages: [{ role: 'user', content }], max_tokens: 50 },
      { token, ...(agent === undefined ? {} : { headers: { 'x-br-agent-id': agent } }) },
    )
  const agentNamed = async (cookie: string, name: string) =>
    (await app.call('GET', `/me/agents?q=${name}`, undefined, { cookie })).json.agents.find((agent: { name: string }) => agent.name === name)

  test('CONS-03 from an empty overview to the first call by keyboard alone: sandbox, agent with budget, client with a key that is shown once, and the page turns when the call arrives', async () => {
    const cookie = await app.signIn()
    const opened = await openPage(browser, app, '/console', { cookie })
    const { page } = opened
    await page.getByRole('link', { name: 'Get started' }).waitFor()
    await focus(page, 'Get started')
    await page.keyboard.press('Enter')

    await page.getByRole('heading', { name: 'Where do replies come from?' }).waitFor()
    await page.getByRole('radio', { name: /Add the key of a provider/ }).waitFor()
    await focus(page, 'Use alpha')
    await page.keyboard.press('ArrowDown')
    expect(await page.getByRole('radio', { name: /Use the sandbox/ }).isChecked()).toBe(true)
    await page.keyboard.press('Enter')

    await page.getByRole('heading', { name: 'Who makes the calls?' }).waitFor()
    await focus(page, 'Name')
    await page.keyboard.type('reviewer')
    await focus(page, 'Budget a month in rupees')
    expect(await page.getByLabel('Budget a month in rupees').inputValue()).toBe('500')
    await page.keyboard.press('Control+A')
    await page.keyboard.type('250')
    await page.keyboard.press('Enter')

    await page.getByRole('heading', { name: 'Connect your program' }).waitFor()
    const { id, monthly_budget_inr } = await agentNamed(cookie, 'reviewer')
    expect(monthly_budget_inr).toBe(250)
    await page.getByText(`npx brigade connect claude-code --base-url ${app.baseUrl} --agent reviewer --write`).waitFor()
    await focus(page, 'Claude Code')
    await page.keyboard.press('End')
    await page.getByText(`x-br-agent-id: ${id}`).waitFor()
    await focus(page, 'Make a key for it')
    await page.keyboard.press('Enter')
    const panel = page.getByRole('dialog', { name: 'reviewer in curl is ready' })
    await panel.waitFor()
    const secret = (await panel.locator('.secret-text').textContent()) ?? ''
    const key = (await app.call('GET', '/v1/me/whoami', undefined, { token: secret })).json
    expect(key.scope, 'the least scope that serves').toBe('inference')
    const listed = (await app.call('GET', '/me/keys', undefined, { cookie })).json.keys.find(({ name }: { name: string }) => name === 'reviewer in curl')
    expect(Math.round((Date.parse(listed.expires_at) - Date.now()) / 86_400_000)).toBe(30)
    await focus(page, 'I have stored it')
    await page.keyboard.press('Enter')
    await panel.waitFor({ state: 'hidden' })
    expect(await page.content()).not.toContain(secret)
    await focus(page, 'I have connected it')
    await page.keyboard.press('Enter')

    await page.getByRole('heading', { name: 'Waiting for the first call' }).waitFor()
    expect(await opened.axe()).toEqual([])
    expect((await call(secret, 'sandbox-chat', 'fail 503', String(id))).status).toBeGreaterThanOrEqual(500)
    await page.getByText('A call arrived, and it failed').waitFor()
    expect((await call(secret, 'sandbox-chat', 'Hello', String(id))).status).toBe(200)
    await page.getByRole('heading', { name: 'Your first call arrived' }).waitFor()
    await page.getByText('sandbox-chat answered through sandbox.').waitFor()
    expect(await opened.axe()).toEqual([])
    await focus(page, 'Open the agent')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'reviewer' }).waitFor()
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('the wizard goes on where it was left, steps can be skipped and opened again, and an older call does not turn the page', async () => {
    const cookie = await app.signIn()
    expect((await call(app.key, 'alpha-only', 'Hello')).status).toBe(200)
    await app.gateway.app.limits.flushNow()
    const opened = await openPage(browser, app, '/console/start', { cookie })
    const { page } = opened
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('heading', { name: 'Who makes the calls?' }).waitFor()
    await page.getByRole('button', { name: 'Skip', exact: true }).click()
    await page.getByText('Without an agent, a key makes the calls.').waitFor()
    await page.getByRole('tab', { name: 'Codex' }).click()
    await page.getByText('npx brigade connect codex').waitFor()
    await page.getByRole('link', { name: 'Skip the setup' }).first().click()
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    await page.goto(`${app.baseUrl}/console/start`)
    await page.getByText('npx brigade connect codex').waitFor()
    expect(await page.getByRole('tab', { name: 'Codex' }).getAttribute('aria-selected')).toBe('true')
    await page.getByRole('button', { name: 'I have connected it' }).click()
    await page.getByText('Listening…').waitFor()
    await page.getByRole('button', { name: /Agent/ }).click()
    await page.getByRole('heading', { name: 'Who makes the calls?' }).waitFor()
    await page.goBack()
    await page.getByText('Listening…').waitFor()
    expect((await call(app.key, 'alpha-only', 'Hello')).status).toBe(200)
    await page.getByText('alpha-only answered through alpha.').waitFor()
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('an owner adds the key of a provider, and reads why the provider refuses it; a member reads whom to ask', async () => {
    const cookie = await app.signIn()
    const opened = await openPage(browser, app, '/console/start?step=provider', { cookie, expected: [/status of 400/] })
    const { page } = opened
    await page.getByText('Add the key of a provider').click()
    await page.getByLabel('Provider', { exact: true }).selectOption('alpha')
    await page.getByLabel('Key', { exact: true }).fill('alpha-wrong-key-of-nobody')
    app.alpha.script(() => ({ status: 401, body: { error: { message: 'bad key' } } }))
    await page.getByRole('button', { name: 'Test and save' }).click()
    await page.getByRole('alert').waitFor()
    expect(await page.getByLabel('Key', { exact: true }).inputValue()).toBe('alpha-wrong-key-of-nobody')
    app.alpha.reset()
    await page.getByLabel('Key', { exact: true }).fill('alpha-good-key-of-ours')
    await page.getByRole('button', { name: 'Test and save' }).click()
    await page.getByText(/accepts the key/).waitFor()
    expect((await app.call('GET', '/me/byok', undefined, { cookie })).json.keys).toMatchObject([{ provider: 'alpha' }])
    expect(await page.content()).not.toContain('alpha-good-key-of-ours')
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('heading', { name: 'Who makes the calls?' }).waitFor()
    expect(opened.faults).toEqual([])
    await opened.context.close()

    const member = await openPage(browser, app, '/console/start?step=provider', { cookie: (await app.newMember('member')).cookie })
    await member.page.getByText(/Owners add keys of providers\. Ask owner@/).waitFor()
    expect(await member.page.getByText('Add the key of a provider').count()).toBe(0)
    expect(member.faults).toEqual([])
    await member.context.close()
  })
})
