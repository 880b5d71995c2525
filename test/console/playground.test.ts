import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp, until } from '../harness/app.ts'
import { builtConsole, openPage, program, startBrowser, suiteName } from './browser.ts'

describe.skipIf(program === null)(suiteName('the playground of the console'), { timeout: 120_000 }, () => {
  let app: TestApp
  let browser: Browser
  beforeAll(async () => {
    await builtConsole()
    app = await startApp({ env: { SANDBOX: 'on' } })
    browser = await startBrowser()
  }, 60_000)
  beforeEach(() => app.alpha.reset())
  afterAll(async () => {
    await browser?.close()
    await app?.stop()
  })

  const say = async (page: Page, message: string): Promise<void> => {
    await page.getByRole('textbox', { name: 'Message', exact: true }).fill(message)
    await page.keyboard.press('Enter')
  }
  const answerOf = (page: Page, model: string) => page.getByRole('article', { name: `Answer of ${model}` })
  const factsOf = async (page: Page, model: string): Promise<Record<string, string>> =>
    Object.fromEntries(
      await answerOf(page, model)
        .last()
        .locator('.play-facts > div')
        .evaluateAll(rows => rows.map(row => [row.querySelector('dt')?.textContent ?? '', row.querySelector('dd')?.textContent ?? ''])),
    )

  test('CONS-09 answers stream and stop, with provider, ms, tokens and ₹, why the route was taken, two models side by side, and code to copy', async () => {
    const cookie = await app.signIn()
    const opened = await openPage(browser, app, '/console/playground?model=test-model', { cookie })
    const { page } = opened
    const answer = answerOf(page, 'test-model').last()

    // It streams: the first words are there while the provider still waits.
    app.alpha.script({ holdAfterChunks: 2 })
    await say(page, 'Hello')
    await answer.getByText('Hello from', { exact: true }).waitFor()
    expect(await answer.getAttribute('aria-busy')).toBe('true')
    app.alpha.release()
    await answer.getByText('Hello from the test upstream').waitFor()
    await answer.getByText('Why this route').waitFor()
    const facts = await factsOf(page, 'test-model')
    expect(facts).toMatchObject({ Provider: 'alpha', Tokens: '12 in, 5 out', Cost: '₹0.00032' })
    expect(facts['Time']).toMatch(/^\d+ ms$|^\d+\.\d+ s$/)
    expect(facts['Left of the budget']).toMatch(/^₹/)

    // Why this route: the rule, and each route in its order.
    await answer.getByText('Why this route').click()
    await answer.getByText('It is the cheapest route that can serve this call.').waitFor()
    expect(await answer.locator('.play-why ol li code').allTextContents()).toEqual(['alpha/test-model', 'beta/test-model', 'indus/test-model'])

    // Stop ends the call at the provider, and keeps what was written.
    app.alpha.script({ holdAfterChunks: 1 })
    await say(page, 'Again')
    await answer.getByText('Hello', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await answer.getByText('Stopped. What was written until then is charged.').waitFor()
    await until(() => app.alpha.requests.at(-1)?.aborted === true)
    expect(await page.evaluate('document.activeElement.placeholder')).toBe('Ask something…')
    app.alpha.release()

    // Two models side by side.
    await page.getByRole('button', { name: 'Compare' }).click()
    const second = page.getByRole('combobox', { name: 'Second model' })
    await second.fill('sandbox-reas')
    await page.getByRole('option', { name: /sandbox-reasoning/ }).click()
    await say(page, 'Both of you')
    const beside = answerOf(page, 'sandbox-reasoning').last()
    await beside.getByText('This is a simulated reply').waitFor()
    await answer.getByText('Hello from the test upstream').waitFor()
    expect(await factsOf(page, 'sandbox-reasoning')).toMatchObject({ Provider: 'sandbox' })
    const [left, right] = [await answer.boundingBox(), await beside.boundingBox()]
    expect([left?.y === right?.y, (left?.x ?? 0) < (right?.x ?? 0)]).toEqual([true, true])
    expect(app.alpha.requests.at(-1)?.json?.['messages'], 'the conversation goes on').toMatchObject([
      { content: 'Hello' },
      { content: 'Hello from the test upstream' },
      { content: 'Again' },
      { content: 'Hello' },
      { content: 'Both of you' },
    ])
    expect(await opened.axe()).toEqual([])

    // Code to copy.
    await page.getByRole('textbox', { name: 'Message', exact: true }).fill("What's next?")
    await page.getByRole('button', { name: 'Get code' }).click()
    const dialog = page.getByRole('dialog', { name: 'The same call in code' })
    for (const [tab, line] of [
      ['curl', `curl -N ${app.baseUrl}/v1/chat/completions`],
      ['OpenAI SDK', `baseURL: '${app.baseUrl}/v1'`],
      ['Anthropic SDK', `baseURL: '${app.baseUrl}'`],
      ['AI SDK', 'streamText({'],
    ] as const) {
      await dialog.getByRole('tab', { name: tab, exact: true }).click()
      await dialog.getByRole('button', { name: /Cop/ }).click()
      const copied = String(await page.evaluate('navigator.clipboard.readText()'))
      expect([copied.includes(line), copied.includes('test-model'), /next\?/.test(copied), copied.includes('BRIGADE_KEY')], tab).toEqual([
        true,
        true,
        true,
        true,
      ])
      expect(copied).not.toMatch(/eyJ|br-[A-Za-z0-9]{8}/)
    }
    expect(await opened.axe()).toEqual([])
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('nothing is stored but the draft of the tab: no message, no answer, and no token, which no cookie accompanies', async () => {
    const cookie = await app.signIn()
    const opened = await openPage(browser, app, '/console/playground?model=sandbox-chat', { cookie })
    const { page } = opened
    const sent = page.waitForRequest(request => request.url().endsWith('/v1/chat/completions'))
    await say(page, 'A sentence that nobody keeps')
    const headers = await (await sent).allHeaders()
    expect([headers['cookie'], /^Bearer eyJ/.test(headers['authorization'] ?? '')]).toEqual([undefined, true])
    await answerOf(page, 'sandbox-chat').getByText('This is a simulated reply').waitFor()
    await page.locator('#content').getByText('Settings').click()
    await page.getByLabel('System message').fill('Answer briefly')
    await page.getByRole('textbox', { name: 'Message', exact: true }).fill('An unsent draft')
    const stored = String(await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }])'))
    for (const secret of ['nobody keeps', 'simulated reply', 'eyJ']) expect(stored, secret).not.toContain(secret)
    expect(String(await page.evaluate('JSON.stringify({ ...localStorage })'))).not.toContain('unsent draft')
    await page.reload()
    await page.getByRole('heading', { name: 'Say something to a model' }).waitFor()
    expect(await page.getByRole('textbox', { name: 'Message', exact: true }).inputValue()).toBe('An unsent draft')
    const events = (await app.call('GET', '/me/activity/events?limit=1', undefined, { cookie })).json.events
    expect(JSON.stringify(events)).not.toContain('nobody keeps')
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('a starter sends itself, settings go with the call, and a setting that is wrong is not sent', async () => {
    const cookie = await app.signIn()
    const opened = await openPage(browser, app, '/console/playground?model=alpha-only', { cookie })
    const { page } = opened
    await page.getByRole('button', { name: /^Code/ }).waitFor()
    expect(await page.locator('.play-starters button').count()).toBe(3)
    await page.locator('#content').getByText('Settings').click()
    await page.getByLabel('System message').fill('Be kind')
    await page.getByLabel('Temperature').fill('3')
    await page.getByText('Type a number from 0 to 2').first().waitFor()
    await page.getByRole('button', { name: /^Explain/ }).click()
    expect(app.alpha.requests.length).toBe(0)
    await page.getByLabel('Temperature').fill('0.5')
    await page.getByLabel('Most output tokens').fill('77')
    await page.getByRole('button', { name: /^Explain/ }).click()
    await answerOf(page, 'alpha-only').getByText('Hello from the test upstream').waitFor()
    expect(app.alpha.requests.at(-1)?.json).toMatchObject({
      temperature: 0.5,
      max_tokens: 77,
      messages: [{ role: 'system', content: 'Be kind' }, { role: 'user' }],
    })
    await page.getByRole('button', { name: 'Clear' }).click()
    await page.getByRole('heading', { name: 'Say something to a model' }).waitFor()
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('an error is inside the answer that it belongs to, with the sentence of the gateway and a way on', async () => {
    const person = await app.newMember('admin')
    const opened = await openPage(browser, app, '/console/playground?model=byok-model', {
      cookie: person.cookie,
      expected: [/status of (400|404|429|503|5\d\d)/],
    })
    const { page } = opened
    await say(page, 'Hello')
    const alert = answerOf(page, 'byok-model').getByRole('alert')
    await alert.getByText(/No route can be used/).waitFor()
    expect(await page.getByRole('link', { name: 'Add a provider' }).getAttribute('href')).toContain('/console/start')
    expect(await opened.axe()).toEqual([])

    await page.goto(`${app.baseUrl}/console/playground?model=sandbox-chat`)
    await say(page, 'fail stream')
    await answerOf(page, 'sandbox-chat').getByRole('alert').waitFor()
    await answerOf(page, 'sandbox-chat').getByText('This simulated stream').waitFor()

    const { agent } = (await app.call('POST', '/me/playground/token', {}, { cookie: person.cookie })).json
    await app.call('POST', `/me/agents/${agent.id}/budget`, { monthly_budget_inr: 0.000001 }, { cookie: person.cookie })
    await say(page, 'Hello')
    await answerOf(page, 'sandbox-chat')
      .last()
      .getByRole('alert')
      .getByText(/budget/i)
      .waitFor()
    expect(await page.getByRole('link', { name: 'Open the playground agent' }).getAttribute('href')).toContain(`/console/agents/${agent.id}`)
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })
})
