import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, until } from '../harness/app.ts'
import { builtConsole, openPage, program, startBrowser, suiteName } from './browser.ts'
import { type Library, libraryOptions, makeLibrary } from './memory-library.ts'

describe.skipIf(program === null)(suiteName('memory in the console'), { timeout: 120_000 }, () => {
  let app: TestApp
  let browser: Browser
  let library: Library
  beforeAll(async () => {
    await builtConsole()
    const options = libraryOptions()
    app = await startApp(options)
    library = await makeLibrary(app, options.clock)
    browser = await startBrowser()
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    await app?.stop()
  })

  const open = (path: string, more: Parameters<typeof openPage>[3] = {}) => openPage(browser, app, `/console/memory${path}`, { cookie: library.owner, ...more })
  const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name, exact: true }).waitFor()

  /** Replaces the text of the editor, as a person does. */
  const type = async (page: Page, text: string): Promise<void> => {
    await page.getByRole('textbox', { name: /^Text of/ }).focus()
    await page.keyboard.press('Control+a')
    await page.keyboard.press('Delete')
    await page.keyboard.insertText(text)
  }

  test('CONS-06 memory: the tree, Markdown, versions with the difference of any two, restore, an edit on its ETag with a merge when somebody was faster, search, a share, a promotion and the quota', async () => {
    const opened = await open('', { expected: [/status of 412/] })
    const { page } = opened
    // The tree opens folder by folder, with plain names, and the address is the key.
    const tree = page.getByRole('tree')
    await tree.getByRole('treeitem', { name: 'Workspace: Research' }).waitFor()
    expect(await tree.getByRole('treeitem').allTextContents()).toEqual(['Organisation records', 'Workspace: Research', 'Shared spaces', 'My files', 'Agents'])
    await tree.getByRole('treeitem', { name: 'Agents' }).click()
    await tree.getByRole('treeitem', { name: 'reviewer' }).click()
    await tree.getByRole('treeitem', { name: 'notes.md' }).click()
    await page.waitForURL('**/console/memory/agents/reviewer/notes.md')
    await page.getByText('Written by others: information, not instructions').waitFor()
    await page.getByRole('heading', { level: 2, name: 'Notes' }).waitFor()
    await page.getByRole('listitem').filter({ hasText: 'The zebrafish test is slow.' }).waitFor()
    const facts = page.getByRole('region', { name: 'About this object' })
    await facts.getByText('reviewer', { exact: true }).waitFor()
    expect(await page.getByRole('img', { name: /^Room: .* of 1 GB$/ }).count()).toBe(1)

    // Any two versions, and then an old one again.
    await page.getByRole('tab', { name: 'Versions' }).click()
    await page.getByText('Asha Rao').first().waitFor()
    expect(await page.getByRole('radio', { name: /^Older version/ }).count()).toBe(3)
    await page
      .getByRole('radio', { name: /^Older version/ })
      .nth(2)
      .check()
    await page.getByRole('button', { name: 'Compare' }).click()
    const difference = page.getByRole('table')
    await difference.waitFor()
    expect((await difference.locator('td.diff-removed.diff-text').allTextContents()).map(text => text.replace('−', ''))).toEqual([
      'removed: - Releases happen on Mondays.',
    ])
    expect(await difference.locator('mark').allTextContents()).toEqual(['Mondays', 'Tuesdays'])
    await page.getByRole('button', { name: 'All versions' }).click()
    await page
      .getByRole('button', { name: /^Restore the version/ })
      .last()
      .click()
    await page.getByText('The version is restored, as a new version.').waitFor()
    expect(await library.read('agents/reviewer/notes.md')).toBe(
      '# Notes\n\n- The build is green.\n- Releases happen on Mondays.\n- The owner prefers short answers.\n',
    )

    // An edit, while somebody else is faster in another place and in the same one.
    await page.getByRole('tab', { name: 'Read' }).click()
    await page.getByRole('link', { name: 'Edit' }).click()
    await type(page, '# Notes\n\n- The build is red.\n- Releases happen on Mondays.\n- The owner prefers short answers.\n')
    await library.put(
      'agents/reviewer/notes.md',
      '# Notes\n\n- The build is blue.\n- Releases happen on Mondays.\n- The owner prefers short answers.\n\nSeen by Asha.\n',
      library.asha.cookie,
    )
    await page.keyboard.press('Control+s')
    await page.getByRole('heading', { name: 'Somebody was faster' }).waitFor()
    await page.getByText('Asha Rao saved this object after you opened it.').waitFor()
    const conflict = page.getByRole('region', { name: /^Changed by both/ })
    expect(await conflict.locator('pre').allTextContents()).toEqual(['- The build is green.', '- The build is blue.', '- The build is red.'])
    const save = page.getByRole('button', { name: 'Save the merge' })
    expect(await save.isDisabled()).toBe(true)
    await conflict.locator('label').filter({ hasText: 'Yours' }).click()
    await save.click()
    await page.getByText('notes.md is saved.').waitFor()
    expect(await library.read('agents/reviewer/notes.md')).toBe(
      '# Notes\n\n- The build is red.\n- Releases happen on Mondays.\n- The owner prefers short answers.\n\nSeen by Asha.\n',
    )

    // Search, and from a line that it found to the object.
    await page.getByRole('searchbox', { name: 'Search in memory' }).fill('DOCUMENT.cookie')
    await page.keyboard.press('Enter')
    await page.getByText(/Scanned \d+ objects/).waitFor()
    await page.getByText('Everything was looked at.').waitFor()
    await page.getByRole('link', { name: /alert\(document\.cookie\)/ }).click()
    await page.waitForURL('**/console/memory/agents/house.md?view=source&line=*')
    expect(await page.locator('.memory-line-marked').textContent()).toBe('<script>alert(document.cookie)</script>\n')

    // A copy for others, and a record for everybody.
    await page.getByRole('button', { name: 'Acts of house.md' }).click()
    await page.getByRole('menuitem', { name: 'Share a copy' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Share' }).click()
    await page.getByText('A copy is in launch.').waitFor()
    expect((await app.call('GET', '/me/memory/o?key=shared/launch/house.md', undefined, { cookie: library.asha.cookie })).status).toBe(200)
    await page.getByRole('button', { name: 'Acts of house.md' }).click()
    await page.getByRole('menuitem', { name: 'Promote to a record' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Promote' }).click()
    await page.waitForURL('**/console/memory/org/records/house.md')
    await page.getByText('Promoted by').waitFor()
    expect(await library.read('org/records/house.md')).toBe(await library.read('agents/house.md'))
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('the text of others cannot run, load a picture or lead to a script, and its headings keep the outline of the page', async () => {
    const opened = await open('/agents/house.md')
    const { page } = opened
    await page.getByRole('heading', { level: 2, name: 'House style of answers' }).waitFor()
    expect(await page.locator('.md :is(script, img, iframe)').count()).toBe(0)
    const addresses = await Promise.all((await page.locator('.md a').all()).map(link => link.getAttribute('href')))
    expect(addresses).toEqual(['/console/memory/agents/plan.md', 'https://example.com/style', 'https://www.example.org', 'https://tracker.test/pixel.png'])
    expect(await page.getByRole('heading', { level: 4, name: 'A heading that leaves out a level' }).count()).toBe(1)
    expect(await opened.axe()).toEqual([])
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('a deep link opens an object whose key has signs, bytes that are not text, and a folder of a phone in one pane', async () => {
    const signs = await open('/agents/50%25%20done%3F%20%231.md')
    await heading(signs.page, '50% done? #1.md')
    await signs.page.getByText('A key with signs.').waitFor()
    await signs.page.getByRole('treeitem', { name: 'diagram.png' }).click()
    await heading(signs.page, 'diagram.png')
    await signs.page.getByText('This is not text').waitFor()
    await signs.page.getByText('89 50 4e 47 0d 0a 00 01 02 03 ff').waitFor()
    const download = signs.page.waitForEvent('download')
    await signs.page.getByRole('link', { name: 'Download' }).click()
    expect((await download).suggestedFilename()).toBe('diagram.png')
    expect(signs.faults).toEqual([])
    await signs.context.close()

    const phone = await open('/agents/reviewer', { size: 'narrow', theme: 'dark' })
    await heading(phone.page, 'reviewer')
    expect(await phone.page.getByRole('tree').isVisible()).toBe(false)
    await phone.page.getByRole('link', { name: 'plan.md' }).click()
    await heading(phone.page, 'plan.md')
    await phone.page.getByRole('link', { name: 'the notes' }).click()
    await heading(phone.page, 'notes.md')
    await phone.page.getByRole('navigation', { name: 'Folders above' }).getByRole('link', { name: 'Memory' }).click()
    await heading(phone.page, 'Memory')
    expect(await phone.axe()).toEqual([])
    expect(phone.faults).toEqual([])
    await phone.context.close()
  })

  test('an open object that somebody changes says who did, keeps its text until it is asked for, and a draft is kept', async () => {
    const key = 'agents/live.md'
    await library.put(key, '# Live\n\nThe first text.\n')
    const opened = await open(`/${key}`, { expected: [/status of 412/] })
    const { page } = opened
    await page.getByText('The first text.').waitFor()
    await page.locator('[data-live=live]').filter({ visible: true }).waitFor()
    await library.put(key, '# Live\n\nThe second text.\n', library.asha.cookie)
    const news = page.getByRole('status').filter({ hasText: 'Changed by Asha Rao' })
    await news.getByText('just now').waitFor({ timeout: 15_000 })
    expect([await page.getByText('The first text.').count(), await page.getByText('The second text.').count()], 'the text stays').toEqual([1, 0])
    expect(await opened.axe()).toEqual([])
    await news.getByRole('button', { name: 'Show', exact: true }).click()
    await page.getByText('The second text.').waitFor()
    await news.waitFor({ state: 'detached' })

    // While a person writes, the draft stays, the change is shown beside it, and saving keeps both.
    await page.getByRole('link', { name: 'Edit' }).click()
    await type(page, '# Live\n\nThe second text.\n\nAdded by me.\n')
    await library.put(key, '# Live, and well\n\nThe second text.\n', library.asha.cookie)
    const beside = page.getByRole('region', { name: 'A change of somebody else' })
    await beside.getByText('Changed by Asha Rao').waitFor({ timeout: 15_000 })
    await beside.getByRole('button', { name: 'Show' }).click()
    await beside.getByRole('table').getByText('# Live, and well').waitFor()
    expect(await page.getByRole('textbox', { name: 'Text of live.md' }).textContent()).toContain('Added by me.')
    expect(await opened.axe()).toEqual([])
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('button', { name: 'Save the merge' }).click()
    await page.getByText('live.md is saved.').waitFor()
    expect(await library.read(key)).toBe('# Live, and well\n\nThe second text.\n\nAdded by me.\n')
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('a member is offered what the gateway would allow: records without Edit, and no promotion', async () => {
    const opened = await open('/org/records/security.md', { cookie: library.asha.cookie })
    const { page } = opened
    await page.getByText('Tokens live 15 minutes.').waitFor()
    expect(await page.getByRole('link', { name: 'Edit' }).count()).toBe(0)
    await page.getByRole('button', { name: 'Acts of security.md' }).click()
    expect((await page.getByRole('menuitem').filter({ visible: true }).allTextContents()).sort()).toEqual(['Copy link', 'Download', 'Share a copy…'])
    await until(async () => (await page.getByRole('treeitem', { name: 'security.md' }).count()) === 1)
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })
})
