import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { builtConsole, openPage, program, settled, startBrowser, suiteName } from './browser.ts'

describe.skipIf(program === null)(suiteName('connecting clients in the console'), { timeout: 120_000 }, () => {
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

  test('the panel Connect of an agent and of the keys has what the gateway plans, and a key for it with the least rights', async () => {
    const cookie = await app.signIn()
    const { id } = (await app.call('POST', '/me/agents', { name: 'helper' }, { cookie })).json
    const opened = await openPage(browser, app, `/console/agents/${id}`, { cookie })
    const { page } = opened
    await page.getByRole('button', { name: 'Connect' }).click()
    for (const client of ['Claude Code', 'Codex', 'opencode', 'Cursor', 'VS Code']) {
      await page.getByRole('tab', { name: client }).click()
      await page.getByText('--agent helper --write').waitFor()
    }
    const planned = (await app.call('GET', '/me/connect/vscode?agent=helper', undefined, { cookie })).json
    await page.getByText('Or write the settings yourself').click()
    expect(await page.locator('.fold pre').first().textContent()).toBe(planned.files[0].text)
    await page.getByRole('button', { name: 'Make a key for it' }).click()
    const panel = page.getByRole('dialog', { name: 'helper in VS Code is ready' })
    const secret = (await panel.locator('.secret-text').textContent()) ?? ''
    expect((await app.call('POST', `/v1/me/agents/${id}/token`, {}, { token: secret })).status, 'it makes tokens of the agent').toBe(200)
    await panel.getByRole('button', { name: 'I have stored it' }).click()
    expect(await opened.axe()).toEqual([])

    await page.goto(`${app.baseUrl}/console/keys`)
    await page.getByRole('button', { name: 'Connect a client' }).click()
    const dialog = page.getByRole('dialog', { name: 'Connect a client' })
    await dialog.getByRole('tab', { name: 'Codex' }).click()
    await dialog.getByText(`npx brigade connect codex --base-url ${app.baseUrl} --write`).waitFor()
    await dialog.getByRole('button', { name: 'Make a key for it' }).click()
    const made = page.getByRole('dialog', { name: 'Codex is ready' })
    const plain = (await made.locator('.secret-text').textContent()) ?? ''
    expect((await app.call('GET', '/v1/me/whoami', undefined, { token: plain })).json.scope).toBe('inference')
    await page.keyboard.press('Escape')
    expect(await made.isVisible(), 'the secret stays').toBe(true)
    await made.getByRole('button', { name: 'I have stored it' }).click()
    await dialog.getByRole('button', { name: 'Close' }).last().click()
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('a key for tokens calls models only, ends after 30 days, and its secret is shown once', async () => {
    const member = await app.newMember('member')
    const { id } = (await app.call('POST', '/me/agents', { name: 'minter' }, { cookie: member.cookie })).json
    const opened = await openPage(browser, app, `/console/agents/${id}?tab=tokens`, { cookie: member.cookie })
    const { page } = opened
    await page.getByRole('button', { name: 'Make a key for tokens' }).click()
    const panel = page.getByRole('dialog', { name: 'Tokens of minter is ready' })
    await panel.waitFor()
    const secret = (await panel.locator('.secret-text').textContent()) ?? ''
    const { keys } = (await app.call('GET', '/me/keys', undefined, { cookie: member.cookie })).json
    const key = keys.find(({ name }: { name: string }) => name === 'Tokens of minter')
    await settled(page)
    expect([key.scope, Math.round((Date.parse(key.expires_at) - Date.now()) / 86_400_000)]).toEqual(['inference', 30])
    expect(await panel.isVisible(), 'the list was read again, and the secret is still shown').toBe(true)
    await panel.getByRole('button', { name: 'I have stored it' }).click()
    await page.getByRole('button', { name: 'Make a token' }).click()
    const token = (await page.getByRole('dialog', { name: 'A token of minter' }).locator('.secret-text').textContent()) ?? ''
    const messages = [{ role: 'user', content: 'Hello' }]
    expect((await app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages, max_tokens: 50 }, { token })).status).toBe(200)
    expect(await page.content()).not.toContain(secret)
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })
})
