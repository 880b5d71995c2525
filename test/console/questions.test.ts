/**
 * The questions of a team lead, answered by what a person sees. The helpers find everything by its role and its label, and each answer has 30 seconds, loading
 * included.
 */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../harness/app.ts'
import { builtConsole, type ConsolePage, openPage, program, startBrowser, suiteName } from './browser.ts'
import { clockBefore, namedModels } from './usage-days.ts'

const dayMs = 86_400_000
const istOffsetMs = 5.5 * 3_600_000
const answerMs = 30_000
const rename = statement<[id: number, name: string]>('test.rename_asker', 'update users set name = $2::text where id = $1::int')

describe.skipIf(program === null)(suiteName('the questions of a team lead'), { timeout: 120_000 }, () => {
  let app: TestApp
  let browser: Browser
  let cookie: string
  let opened: ConsolePage
  let page: Page

  beforeAll(async () => {
    await builtConsole()
    const clock = clockBefore(3)
    app = await startApp({ clock, operatorFile: namedModels, env: { FOLDER_STORE: 'true', CONSOLE_RPM: '10000' } })
    const chat = async (token: string, model: string, words: number) =>
      app.call('POST', '/v1/chat/completions', { model, messages: [{ role: 'user', content: 'x'.repeat(words) }], max_tokens: 4_000 }, { token })
    app.alpha.script(({ json }) => ({ usage: { prompt_tokens: JSON.stringify(json?.['messages'] ?? '').length * 100, completion_tokens: 500 } }))

    // Asha spends most, on one model. The owner spends little, on another.
    const asha = await app.newMember('member')
    await app.db.exec(rename, asha.userId, 'Asha Rao')
    await app.db.exec(rename, app.userId, 'Ravi Menon')
    const ofAsha = (await app.call('POST', '/me/keys', { name: 'Notebooks', scope: 'inference', expires_days: 30 }, { cookie: asha.cookie })).json.key
    for (let call = 0; call < 4; call++) await chat(ofAsha, 'claude-sonnet-4.5', 400)
    await chat(ofAsha, 'gpt-5-mini', 20)
    await chat(app.key, 'gemini-3-pro', 40)

    // An agent that has used most of its budget, and one that has not.
    const token = async (id: number): Promise<string> => (await app.call('POST', `/v1/me/agents/${id}/token`, {})).json.access_token
    const agentOf = async (name: string): Promise<number> => (await app.call('POST', '/v1/me/agents', { name })).json.id
    const [reviewer, translator] = [await agentOf('reviewer'), await agentOf('translator')]
    await app.call('PUT', '/v1/me/memory-store', { store: 'folder' })
    const note = async (text: string) => app.call('PUT', '/v1/me/memory/o?key=agents/reviewer/plan.md', text, { token: await token(reviewer) })
    await note('# Plan\n\n- Read the code.\n- Ask the owner on Mondays.\n')
    // Noon of yesterday in India.
    const today = Math.floor((Date.now() + istOffsetMs) / dayMs) * dayMs - istOffsetMs
    clock.advance(today - dayMs / 2 - clock.nowMs())
    await note('# Plan\n\n- Read the code.\n- Ask the owner on Tuesdays.\n')
    clock.advance(Date.now() - clock.nowMs())
    for (const [id, share] of [
      [reviewer, 0.93],
      [translator, 0.2],
    ] as const) {
      await chat(await token(id), 'gpt-5-mini', 60)
      await app.gateway.app.limits.flushNow()
      const { spend_month_inr: spent } = (await app.call('GET', `/v1/me/agents/${id}`)).json
      await app.setBudget('agent', id, spent / share)
    }

    // A call that no provider served.
    app.alpha.script([{ status: 503, body: { error: { message: 'overloaded' } } }, { status: 503 }, { status: 503 }, { status: 503 }])
    await chat(ofAsha, 'claude-sonnet-4.5', 10)
    await app.gateway.app.limits.flushNow()
    app.alpha.script([])
    cookie = await app.signIn()
    browser = await startBrowser()
    opened = await openPage(browser, app, '/console', { cookie })
    page = opened.page
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    await app?.stop()
  })

  /** A person who does not know the interface begins each question at the overview. */
  const ask = async (answer: () => Promise<void>): Promise<void> => {
    await page.getByRole('link', { name: 'Overview' }).first().click()
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    const begun = performance.now()
    await answer()
    expect(performance.now() - begun).toBeLessThan(answerMs)
    expect(opened.faults.splice(0)).toEqual([])
  }
  const heading = (name: string) => page.getByRole('heading', { level: 1, name }).waitFor()
  const firstName = async (table: string): Promise<string> =>
    (await page.getByRole('table', { name: table }).getByRole('rowheader').first().textContent()) ?? ''

  test('who spent most this week, and on what?', () =>
    ask(async () => {
      await page.getByRole('link', { name: 'Usage' }).click()
      await heading('Usage')
      await page.getByRole('button', { name: /Last 30 days/ }).click()
      await page.getByRole('menuitemradio', { name: 'Last 7 days' }).click()
      await page.getByText('People', { exact: true }).click()
      await page.getByRole('table', { name: 'People' }).waitFor()
      expect(await firstName('People')).toBe('Asha Rao')
      await page.getByRole('button', { name: 'Filter by Asha Rao' }).click()
      await page.getByRole('button', { name: 'Remove the filter Person Asha Rao' }).waitFor()
      await page.getByRole('table', { name: 'Models' }).waitFor()
      expect(await firstName('Models')).toBe('claude-sonnet-4.5')
    }))

  test('which agent is about to run out?', () =>
    ask(async () => {
      await page.getByRole('link', { name: /^The budget of reviewer is used to 93/ }).waitFor()
      expect(await page.getByRole('link', { name: /^The budget of/ }).count()).toBe(1)
      await page.getByRole('link', { name: 'Agents' }).first().click()
      await page.getByLabel('Budget', { exact: true }).selectOption('80% used or more')
      await page.getByRole('rowheader', { name: /translator/ }).waitFor({ state: 'detached' })
      expect(await firstName('Agents')).toContain('reviewer')
    }))

  test('what did it write to memory yesterday, and what was there before?', () =>
    ask(async () => {
      await page.getByRole('link', { name: /^The budget of reviewer/ }).click()
      await heading('reviewer')
      await page.getByRole('tab', { name: 'Memory' }).click()
      const yesterday = page.getByRole('region', { name: 'Yesterday' })
      await yesterday.getByRole('link', { name: 'agents/reviewer/plan.md' }).waitFor()
      const change = yesterday.getByRole('table')
      await change.getByRole('columnheader', { name: /^Before: reviewer/ }).waitFor()
      expect(await change.locator('mark').allTextContents()).toEqual(['Mondays', 'Tuesdays'])
      expect(await opened.axe()).toEqual([])
    }))

  test('why did this call fail?', () =>
    ask(async () => {
      const failures = page.getByRole('region', { name: 'Recent failures' })
      await failures.getByRole('link', { name: 'claude-sonnet-4.5' }).first().click()
      await page.getByText('No provider served the call.').first().waitFor()
      const routes = page.getByRole('list', { name: 'Routes tried' })
      await routes.getByText(/alpha/).first().waitFor()
      expect(await routes.textContent()).toContain('503')
      await page.getByText('alpha answered 503: it is overloaded or down.').first().waitFor()
      await page.keyboard.press('Escape')
    }))

  test('how do I connect Codex?', () =>
    ask(async () => {
      await page.getByRole('button', { name: /Search or jump to/ }).click()
      await page.keyboard.type('codex')
      await page.getByRole('option', { name: /Connect Codex/ }).click()
      const dialog = page.getByRole('dialog', { name: 'Connect a client' })
      await dialog.getByText(/npx brigade connect codex/).waitFor()
      await dialog.getByRole('button', { name: 'Make a key for it' }).waitFor()
      await dialog.getByRole('button', { name: 'Close' }).last().click()
    }))

  test('stop it now', () =>
    ask(async () => {
      await page.getByRole('button', { name: /Search or jump to/ }).click()
      await page.keyboard.type('review')
      await page.getByRole('option', { name: /reviewer/ }).click()
      await heading('reviewer')
      await page.getByRole('button', { name: 'Pause' }).click()
      await page.getByText('reviewer is paused').waitFor()
      expect((await app.call('GET', '/me/agents?q=reviewer', undefined, { cookie })).json.agents).toMatchObject([{ status: 'paused' }])
    }))
})
