/** The pages of tools, driven by a person from the registration of a server to its removal. The MCP servers and the issuer are real. */
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { definitionText, readDefinition } from '../../src/console/pages/tools/server/definition-text.ts'
import { fixtureTools, type McpFixture, startMcpFixture } from '../gateway/tools/mcp-server.ts'
import { type GuardedServer, startGuardedServer } from '../gateway/tools/oauth/guarded-server.ts'
import { startApp, type TestApp } from '../harness/app.ts'
import { type StrictIssuer, startStrictIssuer } from '../harness/strict-issuer.ts'
import { until } from '../harness/until.ts'
import { builtConsole, type ConsolePage, openPage, program, settled, sizes, startBrowser, suiteName } from './browser.ts'
import { tabTo } from './keyboard.ts'

/** With this variable the test writes pictures into a folder. */
const pictures = process.env['CONSOLE_PICTURES']
const secret = 'Bearer very-secret-token-of-a-server'

test('a definition becomes lines in which nothing is hidden, and a changed sentence changes one line', () => {
  const tool = {
    description: 'One\u200bx. Two sentences, of which the second one is long enough that each of them is on a line of its own. Three.',
    inputSchema: { b: 1, a: [] },
    name: 'n',
  }
  const lines = definitionText(tool).split('\n')
  expect(lines).toEqual([
    '{',
    '  "name": "n"',
    '  "description":',
    '    "One\\u200bx. "',
    '    "Two sentences, of which the second one is long enough that each of them is on a line of its own. "',
    '    "Three."',
    '  "inputSchema": {',
    '    "a": []',
    '    "b": 1',
    '  }',
    '}',
  ])
  expect(definitionText({ name: 'n', inputSchema: { a: [], b: 1 }, description: tool.description })).toBe(lines.join('\n'))
  const odd = {
    title: 7,
    inputSchema: { properties: { 'a\u202e': { type: ['string', 'null'] }, b: { enum: ['x', 'y'] }, c: 3 }, required: 'a' },
    annotations: [],
  }
  expect(readDefinition(odd)).toEqual({
    title: '',
    description: '',
    args: [
      { name: 'a\\u202e', type: 'string | null', isRequired: false, about: '' },
      { name: 'b', type: 'x | y', isRequired: false, about: '' },
      { name: 'c', type: 'any', isRequired: false, about: '' },
    ],
    hints: [],
  })
})

describe.skipIf(program === null)(suiteName('tools in the console'), { timeout: 180_000 }, () => {
  let app: TestApp
  let browser: Browser
  let cookie: string
  let weather: McpFixture
  let issuer: StrictIssuer
  let crm: GuardedServer
  let opened: ConsolePage
  let page: Page
  beforeAll(async () => {
    await builtConsole()
    weather = await startMcpFixture('modern')
    issuer = await startStrictIssuer('/tenant')
    crm = await startGuardedServer(issuer)
    app = await startApp({ env: { CONSOLE_RPM: '10000', OUTBOUND_ALLOW: [weather.hostPort, issuer.hostPort, crm.hostPort].join(',') } })
    cookie = await app.signIn()
    browser = await startBrowser()
    const toIssuer = new RegExp(`another origin: http://${issuer.hostPort}/`)
    opened = await openPage(browser, app, '/console/tools', { cookie, expected: [toIssuer] })
    page = opened.page
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    await app?.stop()
    await Promise.all([weather, crm, issuer].map(each => each?.close()))
  })

  const api = async (method: string, path: string, body?: object) => (await app.call(method, path, body, { cookie })).json
  const servers = async () => (await api('GET', '/me/tool-servers')).servers
  const button = (name: string | RegExp) => page.getByRole('button', { name, exact: typeof name === 'string' })
  const tab = (name: string) => page.getByRole('tab', { name, exact: true }).click()
  const call = async (token: string, name: string) => (await app.call('POST', `/v1/tools/${name}/call`, { arguments: { text: 'Pune' } }, { token })).status
  /** Nothing is wrong with the page as it is now. */
  const isSound = async (): Promise<void> => {
    await settled(page)
    expect(await opened.axe()).toEqual([])
    expect(await page.locator('body').innerText()).not.toContain('very-secret')
    expect(opened.faults).toEqual([])
    if (pictures !== undefined) await takePictures(pictures)
  }
  let taken = 0
  const takePictures = async (into: string): Promise<void> => {
    taken += 1
    for (const [theme, size] of [
      ['light', 'wide'],
      ['dark', 'wide'],
      ['dark', 'narrow'],
    ] as const) {
      await page.emulateMedia({ colorScheme: theme })
      await page.setViewportSize(sizes[size])
      await page.screenshot({ path: join(into, `tools-${String(taken).padStart(2, '0')}-${theme}-${size}.png`), fullPage: true })
    }
    await page.emulateMedia({ colorScheme: 'light' })
    await page.setViewportSize(sizes.wide)
  }

  /** Registers a server with a header and a price, by keyboard alone. Returns its id. */
  async function registers(): Promise<string> {
    await page.getByText('No server yet').waitFor()
    await page.keyboard.press('n')
    const dialog = page.getByRole('dialog', { name: 'Register an MCP server' })
    await dialog.waitFor()
    await page.keyboard.type('Weather')
    await tabTo(page, 'Address')
    await page.keyboard.type(weather.url)
    await page.keyboard.press('Tab')
    await page.keyboard.press('ArrowDown')
    await tabTo(page, 'Value')
    await page.keyboard.type(secret)
    await tabTo(page, 'Test')
    await page.keyboard.press('Enter')
    await dialog.getByText(`Brigade read ${fixtureTools.length} tools, in the protocol of 2026-07-28.`).waitFor()
    expect(await servers()).toEqual([])
    await dialog.getByText('Slug, price, time, place').click()
    await dialog.getByLabel('Price of a call in rupees').fill('1.5')
    await isSound()
    await dialog.getByLabel('Name', { exact: true }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Weather' }).waitFor()
    const [server] = await servers()
    expect(server).toMatchObject({ slug: 'weather', price_inr_per_call: 1.5, auth: { kind: 'header' }, tools: { pending: fixtureTools.length, approved: 0 } })
    expect(weather.requests.at(-1)?.headers['authorization']).toBe(secret)
    return server.id
  }

  /** Reads one definition and approves it by keyboard, then approves all others together. */
  async function approves(): Promise<void> {
    await page.getByText(`${fixtureTools.length} new definitions wait for approval.`).first().waitFor()
    await isSound()
    await page.getByRole('row', { name: /weather__echo/ }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 2, name: 'weather__echo' }).waitFor()
    await page.getByText('Says what it got.', { exact: true }).waitFor()
    await page.getByRole('row', { name: /text required.*string/ }).waitFor()
    await page.getByText('it only reads').waitFor()
    await isSound()
    await tabTo(page, 'Approve')
    await page.keyboard.press('Enter')
    await page.getByText('weather__echo is approved.').waitFor()
    await button('All tools').click()
    await button('Approve all new…').click()
    const dialog = page.getByRole('dialog', { name: 'Approve all new tools' })
    await dialog.getByText('weather__wait').waitFor()
    await isSound()
    await dialog.getByRole('button', { name: `Approve ${fixtureTools.length - 1} tools` }).click()
    await page.getByText(`${fixtureTools.length - 1} tools are approved.`).waitFor()
    expect((await servers())[0].tools).toMatchObject({ pending: 0, approved: fixtureTools.length })
  }

  /** Allows an agent to call the tools, after a preview, and shows what stops a child. Returns a token of the agent. */
  async function allows(): Promise<string> {
    const agent = await app.newAgent('lead')
    await api('PATCH', `/me/agents/${agent.id}`, { may_delegate: true })
    await page.goto(`${app.baseUrl}/console/agents/${agent.id}?tab=tools`)
    await page.getByText(`It may call 0 tools of ${fixtureTools.length} approved.`).waitFor()
    await page.getByRole('combobox', { name: 'Patterns' }).fill('weath')
    await page.getByRole('option', { name: /^weather__\*/ }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByText(`With the changes it may call ${fixtureTools.length} tools, now 0.`).waitFor()
    await page.getByText(`matches ${fixtureTools.length} tools`).waitFor()
    expect(await page.getByRole('row', { name: /weather__echo.*Allowed.*weather__\*.*₹1.5/ }).count()).toBe(1)
    await page.keyboard.press('Escape')
    await isSound()
    expect((await api('GET', `/me/agents/${agent.id}`)).allowed_tools).toBeNull()
    const sent = page.waitForRequest(request => request.method() === 'PATCH')
    await button('Save').click()
    expect((await sent).postDataJSON()).toEqual({ allowed_tools: ['weather__*'] })
    await page.getByText('Saved. It applies to the next call.').waitFor()
    expect(await call(agent.token, 'weather__echo')).toBe(200)

    const child = await api('POST', `/me/agents/${agent.id}/children`, { name: 'child', allowed_tools: ['weather__echo', 'weather__fails'] })
    await api('PATCH', `/me/agents/${agent.id}`, { allowed_tools: ['weather__echo'] })
    await page.goto(`${app.baseUrl}/console/agents/${child.id}?tab=tools`)
    await page.getByRole('row', { name: /weather__fails.*Stopped by lead/ }).waitFor()
    await page.getByText('All approved', { exact: true }).click()
    await page.getByRole('button', { name: 'Allow weather__wait' }).click()
    await page.getByText('With the changes it may call 1 tool, as many as now.').waitFor()
    await isSound()
    return agent.token
  }

  /** The call is in the list with its price and its server, and the filters are those of the gateway. */
  async function listsCalls(): Promise<void> {
    await app.gateway.app.limits.flushNow()
    await page.goto(`${app.baseUrl}/console/tools?tab=calls`)
    await page.getByRole('row', { name: /weather__echo.*weather.*lead.*Answered.*₹1.50/ }).waitFor()
    await isSound()
    await page.getByRole('combobox', { name: 'Outcome' }).selectOption('cut')
    await page.getByText('No call fits').waitFor()
    await button('Clear the filters').click()
    await page.getByRole('row', { name: /weather__echo/ }).click()
    await page.getByRole('complementary', { name: 'weather__echo' }).getByText('mcp:weather').first().waitFor()
    expect(new URL(page.url()).searchParams.get('kind')).toBe('tool')
  }

  /** A changed definition is shown as a difference. A hidden character in it is named, and nobody can approve it. */
  async function showsChanges(id: string, token: string): Promise<void> {
    const [echo, ...rest] = weather.tools
    weather.tools = [
      { ...echo, description: 'Says what it got, twice.' },
      ...rest.map(tool => (tool['name'] === 'fails' ? { ...tool, title: 'No\u200bne' } : tool)),
    ]
    await page.goto(`${app.baseUrl}/console/tools/${id}`)
    await button('Read now').click()
    await page.getByText('0 new, 2 changed, 0 gone.').waitFor()
    await button('Show the changed').click()
    await page.getByRole('row', { name: /weather__echo.*Changed/ }).click()
    const changes = page.getByRole('group', { name: 'Comparison' })
    await changes.locator('mark', { hasText: 'twice' }).waitFor()
    await isSound()
    expect(await call(token, 'weather__echo')).toBe(404)
    await button('Approve the new definition').click()
    await page.getByText('weather__echo is approved.').waitFor()
    expect(await call(token, 'weather__echo')).toBe(200)
    await page.goto(`${app.baseUrl}/console/tools/${id}?tool=weather__fails`)
    await page.getByText('This definition cannot be approved').waitFor()
    await page.getByText('a character without width (U+200B)').waitFor()
    expect(await button(/^Approve/).count()).toBe(0)
    await isSound()
  }

  /** Blocks a tool with a reason, changes only the price, and uses the off switch. */
  async function stops(id: string, token: string): Promise<void> {
    await page.goto(`${app.baseUrl}/console/tools/${id}?tool=weather__echo`)
    await button('Block').click()
    await page
      .getByRole('dialog', { name: 'Block the tool' })
      .getByLabel(/^Reason/)
      .fill('wrong since Monday')
    await page.keyboard.press('Enter')
    await page.getByText('weather__echo is blocked.').waitFor()
    await page.getByText('wrong since Monday').waitFor()
    expect(await call(token, 'weather__echo')).toBe(404)
    await button('Approve').click()
    await page.getByText('weather__echo is approved.').waitFor()
    await tab('Settings')
    await page.getByLabel('Price of a call in rupees').fill('2')
    const sent = page.waitForRequest(request => request.method() === 'PATCH')
    await button('Save').click()
    expect((await sent).postDataJSON()).toEqual({ price_inr_per_call: 2 })
    await page.getByText('Saved.', { exact: true }).waitFor()
    await page.getByText('Replace the credential').click()
    await isSound()
    await button('Switch off').click()
    await page.getByRole('dialog', { name: 'Switch the server off' }).getByRole('button', { name: 'Switch off' }).click()
    await page.getByText('Weather is off.').waitFor()
    expect(await call(token, 'weather__echo')).toBe(404)
    await button('Switch on').click()
    await page.getByText('Weather is on again.').waitFor()
    expect([await call(token, 'weather__echo'), (await servers())[0].price_inr_per_call]).toEqual([200, 2])
  }

  /** Registers a server with OAuth for each person, connects by way of the issuer, and disconnects. */
  async function connects(): Promise<void> {
    await page.goto(`${app.baseUrl}/console/tools?new=true`)
    const dialog = page.getByRole('dialog', { name: 'Register an MCP server' })
    await dialog.getByLabel('Name', { exact: true }).fill('Crm')
    await dialog.getByLabel('Address').fill(crm.url)
    await dialog.getByText('OAuth for each person').click()
    await dialog.getByText('/me/tool-connections/callback').waitFor()
    await dialog.getByLabel('Client id').fill(issuer.clientId)
    await dialog.getByLabel('Client secret').fill(issuer.clientSecret)
    await isSound()
    await dialog.getByRole('button', { name: 'Register', exact: true }).click()
    await page.getByText('Nobody is connected.').waitFor()
    await page.getByText('Its tools are read after an owner or admin has connected.').waitFor()
    await isSound()
    await button('Connect').click()
    await page.getByRole('heading', { name: 'Connected' }).waitFor()
    await page.getByRole('link', { name: 'Your connections' }).click()
    const card = page.getByRole('region', { name: 'Crm' })
    await card.getByText('Connected', { exact: true }).waitFor()
    await isSound()
    await until(async () => (await servers()).find(({ slug }: { slug: string }) => slug === 'crm').tools.pending > 0, 'the tools of the server are read')
    await card.getByRole('button', { name: 'Disconnect' }).click()
    await page.getByRole('dialog', { name: 'Disconnect' }).getByRole('button', { name: 'Disconnect' }).click()
    await card.getByText('Not connected').waitFor()
    expect((await api('GET', '/me/tool-connections')).connections).toEqual([])
    await until(() => issuer.ended.revoked === 1, 'the tokens are revoked at the issuer')
  }

  async function removes(id: string, token: string): Promise<void> {
    await page.goto(`${app.baseUrl}/console/tools/${id}`)
    await page.getByRole('button', { name: 'More acts' }).click()
    await page.getByRole('menuitem', { name: 'Remove…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Remove the server' })
    await dialog.getByLabel('Type weather to confirm').fill('weather')
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await page.getByText('Weather is removed.').waitFor()
    expect([(await servers()).map(({ slug }: { slug: string }) => slug), await call(token, 'weather__echo')]).toEqual([['crm'], 404])
  }

  test('a person registers a server with a header, approves its tools, allows an agent to call them after a preview, sees calls and changes, blocks, prices, switches off, connects by OAuth and removes', async () => {
    const id = await registers()
    await approves()
    const token = await allows()
    await listsCalls()
    await showsChanges(id, token)
    await stops(id, token)
    await connects()
    await removes(id, token)
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })

  test('a member sees servers and their tools, has no act of an admin, and knows whom to ask; another organisation sees nothing', async () => {
    const [{ id }] = await servers()
    const member = await app.newMember('member')
    const seen = await openPage(browser, app, `/console/tools/${id}`, { cookie: member.cookie, size: 'narrow' })
    await seen.page.getByRole('row', { name: /crm__echo/ }).click()
    await seen.page.getByRole('heading', { level: 2, name: 'crm__echo' }).waitFor()
    await settled(seen.page)
    expect(await seen.page.getByRole('button', { name: /^(Approve|Block|Read now|Switch off)/ }).count()).toBe(0)
    expect(await seen.axe()).toEqual([])
    await seen.page.goto(`${app.baseUrl}/console/tools`)
    await seen.page.getByText(/Owners and admins register servers and approve tools. Ask/).waitFor()
    expect(await seen.page.getByRole('button', { name: 'Register a server' }).count()).toBe(0)
    expect(seen.faults).toEqual([])
    await seen.context.close()
    const other = await app.otherOrg('Elsewhere')
    const stranger = await openPage(browser, app, `/console/tools/${id}`, { cookie: await app.signIn(other.userId, other.orgId) })
    await stranger.page.getByText('There is no such server').waitFor()
    expect(stranger.faults).toEqual([])
    await stranger.context.close()
  })
})
