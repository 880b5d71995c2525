import { readFile } from 'node:fs/promises'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { spanBefore, spanOf } from '../../src/console/pages/activity/span.ts'
import { figureOf, formats, metrics } from '../../src/console/pages/usage/metrics.ts'
import { dayText, istDay } from '../../src/console/ui/format/dates.ts'
import { count, exactMoney, money, shortCount, wholeMoney } from '../../src/console/ui/format/numbers.ts'
import { startApp, type TestApp, until } from '../harness/app.ts'
import { builtConsole, openPage, program, startBrowser, suiteName } from './browser.ts'
import { clockBefore, makeUsage, namedModels } from './usage-days.ts'

/** More days than a page of calls with filters looks at. */
const days = 45
// biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
type Json = any

const route = (provider: string, inr: number) => ({
  provider,
  upstream_model: `${provider}-upstream`,
  input_inr_per_mtok: inr,
  output_inr_per_mtok: inr * 4,
  source: 'test',
  as_of: '2026-01-01',
})
/** The models of the tests, and one that a second provider serves when the first fails. */
const withFailover = (urls: Parameters<typeof namedModels>[0]) => {
  const file = namedModels(urls)
  const model = { id: 'two-routes', kind: 'chat', context_length: 100_000, tools: true, routes: [route('alpha', 10), route('indus', 20)] }
  return { ...file, models: [...file.models, model] }
}

describe.skipIf(program === null)(suiteName('usage and calls in the console'), { timeout: 120_000 }, () => {
  let app: TestApp
  let browser: Browser
  let cookie: string
  beforeAll(async () => {
    await builtConsole()
    const clock = clockBefore(days)
    app = await startApp({ clock, operatorFile: withFailover })
    await makeUsage(app, clock, days)
    cookie = await app.signIn()
    browser = await startBrowser()
  }, 180_000)
  afterAll(async () => {
    await browser?.close()
    await app?.stop()
  })

  const read = async (query: object, path = '/me/activity'): Promise<Json> => {
    const reply = await app.call('GET', `${path}?${new URLSearchParams(query as Record<string, string>)}`, undefined, { cookie })
    expect(reply.status, reply.text).toBe(200)
    return reply.json
  }
  const chat = async (token = app.key): Promise<string> => {
    const messages = [{ role: 'user', content: 'zqsaidzq' }]
    const reply = await app.call('POST', '/v1/chat/completions', { model: 'two-routes', messages }, { token })
    await app.gateway.app.limits.flushNow()
    return reply.headers.get('x-request-id') ?? ''
  }
  /** The rows of the table of shares: the name, and calls, tokens, cost and value with all their digits. */
  const rowsOf = async (page: Page, label: string): Promise<(string | null)[][]> => {
    const rows = await page.getByRole('table', { name: label, exact: true }).locator('tbody tr').all()
    return Promise.all(
      rows.map(async row => {
        const cells = row.locator('> *')
        const texts = await cells.allTextContents()
        const exact = (index: number) => cells.nth(index).locator('> *').first().getAttribute('title')
        return [texts[0] ?? null, texts[1] ?? null, texts[3] ?? null, await exact(4), await exact(5)]
      }),
    )
  }
  const rowOf = (name: string, row: Json) => [name, count(row.requests), count(row.tokens), exactMoney(row.cost_inr), exactMoney(row.value_inr)]
  const choose = (page: Page, name: string | RegExp) => page.getByRole('radio', { name }).check({ force: true })
  const searchOf = (page: Page) => Object.fromEntries(new URL(page.url()).searchParams)

  test('CONS-07 usage shows every metric and group of a range in the address, beside the period before, with figures that equal /me/activity to the unit, as a chart, a table and CSV', async () => {
    const span = spanOf({ range: '7d' }, istDay(Date.now()))
    const [report, before] = [await read(span), await read(spanBefore(span))]
    const opened = await openPage(browser, app, '/console/usage?range=7d', { cookie })
    const { page } = opened
    await page.getByText('vs ').first().waitFor()
    const cards = page.locator('.metric-card')
    for (const [place, metric] of metrics.entries()) {
      const total = metric === 'p95' ? report.latency.p95_ms : (figureOf(metric, report.totals) ?? 0)
      const was = metric === 'p95' ? before.latency.p95_ms : (figureOf(metric, before.totals) ?? 0)
      const isMoney = metric === 'value' || metric === 'cost'
      expect.soft(await cards.nth(place).locator('.metric-value').textContent(), metric).toBe(formats[metric].formatShort(total))
      if (isMoney) expect.soft(await cards.nth(place).getAttribute('title'), metric).toBe(exactMoney(total))
      const past = was === 0 ? 'None before' : `vs ${isMoney ? wholeMoney(was) : formats[metric].formatShort(was)}`
      expect.soft(await cards.nth(place).locator('.metric-before').textContent(), metric).toContain(past)
    }
    expect(report.totals.requests).toBeGreaterThan(10)
    const total = rowOf('Total', report.totals)
    expect(await rowsOf(page, 'Models')).toEqual([...report.top_models.map((row: Json) => rowOf(row.model, row)), total])
    await choose(page, 'Keys')
    expect(await rowsOf(page, 'Keys')).toEqual([...report.top_keys.map((row: Json) => rowOf(row.name, row)), total])
    await choose(page, 'Agents')
    expect(await rowsOf(page, 'Agents')).toEqual([rowOf('Without an agent', report.by_agent[0]), total])
    await choose(page, 'People')
    expect(await rowsOf(page, 'People')).toEqual([
      rowOf(report.by_member[0].name ?? report.by_member[0].email ?? 'Keys without a person', report.by_member[0]),
      total,
    ])
    await choose(page, 'Providers')
    const providers = ((await rowsOf(page, 'Providers')) as string[][]).slice(0, -1)
    expect(providers.map(([name]) => name).sort()).toEqual(['alpha', 'indus'])
    expect(providers.reduce((sum, row) => sum + Number(row[1]), 0)).toBe(report.totals.requests)

    await page.getByRole('button', { name: 'Show as table' }).click()
    const names = await page.locator('.bars-table thead th').allTextContents()
    const first = await page.locator('.bars-table tbody tr').first().locator('th, td').allTextContents()
    const inrOf = (model: string) => report.days.find((row: Json) => row.day === span.from && row.model === model)?.value_inr ?? 0
    expect(first).toEqual([dayText(span.from), ...names.slice(1).map(model => money(inrOf(model)))])

    const download = page.waitForEvent('download')
    await page.getByRole('link', { name: 'CSV' }).click()
    const csv = await readFile(await (await download).path(), 'utf8')
    expect(csv).toBe((await app.call('GET', `/me/activity?${new URLSearchParams({ ...span, format: 'csv' })}`, undefined, { cookie })).text)
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('metric, group, range and filters survive a reload, and a row leads to its calls with the same filters', async () => {
    const opened = await openPage(browser, app, '/console/usage', { cookie })
    const { page } = opened
    await page.getByRole('table', { name: 'Models' }).waitFor()
    await page.getByTitle('Span of days').click()
    await page.getByRole('menuitemradio', { name: 'Last 7 days' }).click()
    await choose(page, /^Tokens/)
    await choose(page, 'Keys')
    await page.getByRole('button', { name: 'Filter', exact: true }).click()
    const dialog = page.getByRole('dialog', { name: 'Filters' })
    await dialog.getByLabel('Model').selectOption('sarvam-m')
    await dialog.getByRole('button', { name: 'Apply' }).click()
    await page.getByRole('button', { name: 'Remove the filter Model sarvam-m' }).waitFor()
    expect(searchOf(page)).toEqual({ range: '7d', metric: 'tokens', group: 'key', model: 'sarvam-m' })
    const report = await read({ ...spanOf({ range: '7d' }, istDay(Date.now())), model: 'sarvam-m' })
    const showsReport = async (): Promise<boolean> =>
      (await page.locator('.metric-card').nth(3).locator('.metric-value').textContent()) === shortCount(report.totals.tokens)
    await until(showsReport)
    await page.reload()
    await page.getByRole('table', { name: 'Keys' }).waitFor()
    expect([await page.getByRole('radio', { name: /^Tokens/ }).isChecked(), await page.getByRole('radio', { name: 'Keys' }).isChecked()]).toEqual([true, true])
    await until(showsReport)
    const key = report.top_keys[0]
    await page.getByRole('rowheader', { name: key.name }).getByRole('link').click()
    await page.waitForURL(/\/console\/calls/)
    expect(searchOf(page)).toEqual({ range: '7d', model: 'sarvam-m', key_id: String(key.key_id) })
    await page.getByRole('button', { name: `Remove the filter Key ${key.name}` }).waitFor()
    await page.getByRole('table', { name: 'Calls' }).waitFor()
    expect(await page.getByRole('table', { name: 'Calls' }).locator('tbody tr').count()).toBe(key.requests)
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('hours of today add up to its totals, and days without calls say so', async () => {
    const opened = await openPage(browser, app, '/console/usage?range=today&metric=calls', { cookie })
    const { page } = opened
    const today = istDay(Date.now())
    await page.getByRole('button', { name: 'Show as table' }).click()
    const cells = await page.locator('.bars-table tbody td').allTextContents()
    expect(cells.reduce((sum, text) => sum + Number(text), 0)).toBe((await read({ from: today, to: today })).totals.requests)
    expect(await page.locator('.bars-table tbody tr').count()).toBe(24)
    await page.goto(`${app.baseUrl}/console/usage?from=2020-01-01&to=2020-01-31`)
    await page.getByText('No calls, 1 Jan – 31 Jan').waitFor()
    expect(await opened.axe()).toEqual([])
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('CONS-08 calls are searched by request id on the server, filtered in the address, followed live, and opened beside the list with the routes that were tried', async () => {
    app.alpha.script({ status: 503, body: { error: { message: 'zqprovidersaidzq' } } })
    const id = await chat()
    const opened = await openPage(browser, app, '/console/calls', { cookie })
    const { page } = opened
    const table = page.getByRole('table', { name: 'Calls' })
    await table.waitFor()
    const asked = page.waitForRequest(request => new URL(request.url()).searchParams.get('request_id') === id)
    await page.getByRole('searchbox', { name: 'Search by request id' }).fill(id)
    await page.keyboard.press('Enter')
    await asked
    await until(async () => (await table.locator('tbody tr').count()) === 1)
    await page.reload()
    await until(async () => (await table.locator('tbody tr').count()) === 1)
    expect(searchOf(page)).toEqual({ request_id: id })
    await table.locator('tbody tr').focus()
    await page.keyboard.press('Enter')
    const peek = page.getByRole('complementary', { name: 'two-routes' })
    const routes = peek.getByRole('list', { name: 'Routes tried' }).getByRole('listitem')
    await routes.first().waitFor()
    const whole = (await read({}, `/me/activity/events/${id}`)).calls[0]
    expect(await routes.allTextContents()).toEqual([
      expect.stringMatching(/^Failedalphatwo-routes · Global · Status 503/),
      expect.stringMatching(/^Answeredindustwo-routes · (India|Global)/),
    ])
    const facts = await peek.locator('.facts').allTextContents()
    expect(facts.join(' ')).toContain(`Value${exactMoney(whole.value_inr)}`)
    expect(facts.join(' ')).toContain(id)
    await peek.getByText('Prompts and answers are not stored.').waitFor()
    await peek.getByText('Show as curl').click()
    await peek.getByText(`/me/activity/events/${id}`).waitFor()
    expect(await page.content()).not.toMatch(/zqsaidzq|zqprovidersaidzq/)
    expect(await opened.axe()).toEqual([])
    await page.keyboard.press('Escape')
    await peek.waitFor({ state: 'detached' })

    await page.goto(`${app.baseUrl}/console/calls?outcome=ok&model=two-routes`)
    await until(async () => (await table.locator('tbody tr').count()) === 1)
    await page.getByRole('button', { name: 'Live' }).click()
    await page.getByText('New calls appear by themselves.').waitFor({ state: 'attached' })
    await chat()
    await until(async () => (await table.locator('tbody tr').count()) === 2)
    expect(searchOf(page)).toEqual({ outcome: 'ok', model: 'two-routes', live: 'true' })
    await page.getByRole('button', { name: 'Remove the filter Model two-routes' }).click()
    // A long table draws the rows on the screen and says how many there are.
    await until(async () => Number(await table.getAttribute('aria-rowcount')) > 50)
    await page.evaluate('scrollTo(0, 2000)')
    await page.getByText('Live waits while you scroll.').waitFor({ state: 'attached' })
    expect(searchOf(page)).toEqual({ outcome: 'ok', live: 'true' })
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('the panel beside the list moves by keyboard alone, and the focus returns to the row of the call that was open last', async () => {
    const events = (await read({ limit: '3' }, '/me/activity/events')).events as Json[]
    const opened = await openPage(browser, app, '/console/calls', { cookie })
    const { page } = opened
    await page.getByRole('table', { name: 'Calls' }).waitFor()
    await page.locator('tbody tr').first().focus()
    await page.keyboard.press('Enter')
    const shown = (place: number) => page.locator('.peek-title code', { hasText: events[place].request_id }).waitFor()
    await shown(0)
    expect(await page.getByRole('button', { name: 'Previous call' }).isDisabled()).toBe(true)
    await page.keyboard.press('j')
    await shown(1)
    await page.keyboard.press('j')
    await shown(2)
    await page.keyboard.press('k')
    await shown(1)
    await page.reload()
    await shown(1)
    await page.locator('tr[data-open]').waitFor()
    await page.keyboard.press('j')
    await shown(2)
    await page.keyboard.press('Escape')
    await page.locator('.peek').waitFor({ state: 'detached' })
    await until(async () => (await page.evaluate('[...document.querySelectorAll("tbody tr")].indexOf(document.activeElement)')) === 2)
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('a page of calls that is empty before the end offers to continue, and then says that nothing fits', async () => {
    const opened = await openPage(browser, app, '/console/calls?range=90d&kind=speech', { cookie })
    const { page } = opened
    await page.getByText('Nothing among the calls looked at so far').waitFor()
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByText('No call of these days fits the filters.').waitFor()
    await page.getByRole('button', { name: 'Clear filters' }).last().click()
    await page.getByRole('table', { name: 'Calls' }).waitFor()
    expect(searchOf(page)).toEqual({ range: '90d' })
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('a member sees the figures of the organisation, and nothing of another one', async () => {
    const member = await app.newMember('member')
    const other = await app.otherOrg('Elsewhere')
    const id = await chat(other.key)
    const opened = await openPage(browser, app, `/console/calls?request_id=${id}&call=${id}`, { cookie: member.cookie, expected: [/status of 404/] })
    const { page } = opened
    await page.getByText('No call of this organisation has this request id.').waitFor()
    await page.getByText('It was removed, or it belongs to another organisation.').waitFor()
    await page.goto(`${app.baseUrl}/console/usage?key_id=${other.keyId}`)
    await page.getByText('No call of these days fits the filters.').waitFor()
    await page.getByRole('button', { name: 'Clear filters' }).last().click()
    await page.getByRole('table', { name: 'Models' }).waitFor()
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('the page of calls shows why calls were refused, by agent and key, with the limit and the last request id, and its empty state in words', async () => {
    const agent = await app.newAgent('over-budget')
    await app.setBudget('agent', agent.id, 0.0001)
    await chat(agent.token)
    const refused = await chat(agent.token)
    const opened = await openPage(browser, app, '/console/calls', { cookie })
    const { page } = opened
    await choose(page, 'Refused')
    const row = page.getByRole('table', { name: 'Refused' }).getByRole('row').filter({ hasText: 'over-budget' })
    await row.waitFor()
    expect(await row.textContent()).toContain('agent_budget_exceeded')
    expect(await row.textContent()).toContain('limit of the agent')
    expect(searchOf(page)['refused']).toBe('true')
    expect(await opened.axe()).toEqual([])
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await row.getByRole('button', { name: 'Copy the last request id' }).click()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(refused)
    await page.goto(`${app.baseUrl}/console/calls?refused=true&agent_id=${agent.id + 1000}`)
    await page.getByText(/No call was refused/).waitFor()
    await choose(page, 'Calls')
    await page.getByRole('table', { name: 'Calls' }).or(page.getByText('No call fits')).first().waitFor()
    await opened.context.close()
  })
})
