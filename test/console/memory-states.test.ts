import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { builtConsole, openPage, program, startBrowser, suiteName } from './browser.ts'

describe.skipIf(program === null)(suiteName('states of memory in the console'), { timeout: 120_000 }, () => {
  let app: TestApp
  let browser: Browser
  let cookie: string
  beforeAll(async () => {
    await builtConsole()
    app = await startApp({ env: { FOLDER_STORE: 'true', CONSOLE_RPM: '100000', ANON_RPM: '100000' } })
    cookie = await app.signIn()
    browser = await startBrowser()
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    await app?.stop()
  })

  const open = (path: string, more: Parameters<typeof openPage>[3] = {}) => openPage(browser, app, `/console/memory${path}`, { cookie, ...more })
  const store = (more: object = {}) => app.call('PUT', '/v1/me/memory-store', { store: 'folder', ...more })
  const put = (key: string, text: string) => app.call('PUT', `/me/memory/o?key=${encodeURIComponent(key)}`, text, { cookie })
  const read = async (key: string): Promise<string> => (await app.call('GET', `/me/memory/o?key=${encodeURIComponent(key)}`, undefined, { cookie })).text
  const type = async (page: Page, text: string): Promise<void> => {
    await page.getByRole('textbox', { name: /^Text of/ }).focus()
    await page.keyboard.insertText(text)
  }

  test('without a store the page says what is missing, and then the roots and each empty folder say what belongs there', async () => {
    const off = await open('', { expected: [/status of 404/] })
    await off.page.getByText('Memory is not set up').waitFor()
    expect([await off.axe(), off.faults]).toEqual([[], []])
    // An owner sets it up with one click.
    await off.page.getByRole('button', { name: 'Use a folder of this gateway' }).click()
    await off.page.getByRole('treeitem', { name: 'My files' }).waitFor()
    expect(off.faults).toEqual([])
    await off.context.close()
    const opened = await open('/agents')
    const { page } = opened
    await page.getByText('Agents keep their notes here.').waitFor()
    await page.getByText('npx brigade memory put agents/notes.md').waitFor()
    await page.getByRole('treeitem', { name: 'Shared spaces' }).click()
    await page.getByText('No shared space yet').waitFor()
    expect([await opened.axe(), opened.faults]).toEqual([[], []])
    await opened.context.close()
  })

  test('a new file is written by keyboard alone: letters in the editor are text and no shortcuts, and nothing is lost by leaving', async () => {
    await store()
    const opened = await open('/agents')
    const { page } = opened
    await page.getByText('Agents keep their notes here.').waitFor()
    await page.keyboard.press('n')
    const dialog = page.getByRole('dialog', { name: 'New file' })
    await dialog.waitFor()
    await page.keyboard.type('ideas/first.md')
    await page.keyboard.press('Enter')
    const text = page.getByRole('textbox', { name: 'Text of first.md' })
    await text.waitFor()
    await page.keyboard.type('# An idea: gun? e/n')
    await page.keyboard.press('Tab')
    expect(await text.evaluate('document.activeElement.shadowRoot === null')).toBe(true)
    // Leaving asks first, and the answer no keeps the text.
    await page.getByRole('navigation', { name: 'Pages', exact: true }).getByRole('link', { name: 'Usage' }).click()
    await page.getByRole('dialog', { name: 'Leave without saving' }).getByRole('button', { name: 'Cancel' }).click()
    expect(await text.textContent()).toContain('# An idea: gun? e/n')
    await page.getByText('Preview').click()
    await page.getByRole('heading', { name: 'An idea: gun? e/n' }).waitFor()
    await page.getByText('Write', { exact: true }).click()
    expect(await opened.axe()).toEqual([])
    await text.focus()
    await page.keyboard.press('Control+s')
    await page.getByText('first.md is saved.').waitFor()
    await page.waitForURL(/\/console\/memory\/agents\/ideas\/first\.md$/)
    expect(await read('agents/ideas/first.md')).toBe('# An idea: gun? e/n')
    // The person wrote it, so it is not by others.
    await page.getByRole('heading', { level: 2, name: 'An idea: gun? e/n' }).waitFor()
    await page.getByRole('region', { name: 'About this object' }).getByText('just now').waitFor()
    expect(await page.getByText('Written by others').count()).toBe(0)
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('an edit of one line keeps the ends of the other lines', async () => {
    await store()
    await put('agents/windows.txt', 'one\r\ntwo\r\n')
    const opened = await open('/agents/windows.txt?view=edit')
    await type(opened.page, 'zero ')
    await opened.page.getByRole('button', { name: 'Save' }).click()
    await opened.page.getByText('windows.txt is saved.').waitFor()
    expect(await read('agents/windows.txt')).toBe('zero one\r\ntwo\r\n')
    await opened.context.close()
  })

  test('a full memory says so, and a refused save keeps the text in the editor', async () => {
    await store({ quota_mb: 1 })
    expect((await put('agents/large.txt', 'x'.repeat(1024 * 1024 - 200))).status).toBe(200)
    const opened = await open('/agents/small.md?view=edit&new=true', { expected: [/status of 413/] })
    const { page } = opened
    await page.getByText('Memory is nearly full.').waitFor()
    await type(page, 'y'.repeat(400))
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('alert').getByText('The memory quota is used up.').waitFor()
    expect(await page.getByRole('textbox', { name: 'Text of small.md' }).textContent()).toBe('y'.repeat(400))
    expect(await opened.axe()).toEqual([])
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('a folder that cannot be read leaves the other panes, names the request, and can be tried again', async () => {
    await store()
    const opened = await open('', { expected: [/status of 502/] })
    const { page } = opened
    let isBroken = true
    await page.route('**/me/memory/list?prefix=agents*', route =>
      isBroken
        ? route.fulfill({
            status: 502,
            headers: { 'x-request-id': 'req-1' },
            json: { error: { code: 'memory_store_failed', message: 'The memory store did not answer as it should.' } },
          })
        : route.continue(),
    )
    await page.getByRole('treeitem', { name: 'Agents' }).click()
    await page.getByText('The memory store did not answer as it should.').waitFor()
    await page.getByText('req-1').waitFor()
    await page.getByRole('treeitem', { name: 'Could not be read. Select to try again.' }).waitFor()
    expect(await page.getByRole('treeitem', { name: 'My files' }).count()).toBe(1)
    expect(await opened.axe()).toEqual([])
    isBroken = false
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('treeitem', { name: 'Could not be read. Select to try again.' }).click()
    await page.getByRole('treeitem', { name: 'windows.txt' }).waitFor()
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })
})
