import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OwnServer, startOwnServer } from '../gateway/byok/own-server.ts'
import { type ListedServer, startListedServer, toolOf } from '../gateway/tools/registry/listed-server.ts'
import { startApp, type TestApp } from '../harness/app.ts'
import { builtConsole, type ConsolePage, openPage, program, settled, type sizes, startBrowser, suiteName, type Theme } from './browser.ts'
import { clockBefore, makeUsage, namedModels } from './usage-days.ts'

/** With this variable the tests write pictures of all pages into a folder. */
const pictures = process.env['CONSOLE_PICTURES']

/** Makes an agent with two children, calls and memory. Returns its id. */
async function makeFamily(app: TestApp): Promise<number> {
  expect((await app.call('PUT', '/v1/me/memory-store', { store: 'folder' })).status).toBe(200)
  const agents = async (path: string, body: object, token?: string) => (await app.call('POST', `/v1/me/agents${path}`, body, token ? { token } : {})).json
  const rules = { may_delegate: true, allowed_models: ['claude-sonnet-4.5', 'gpt-5-mini'], max_cost_inr_per_call: 50, max_concurrency: 4 }
  const { id } = await agents('', { name: 'lead', ...rules })
  await agents(`/${id}/budget`, { monthly_budget_inr: 500 })
  const { access_token: token } = await agents(`/${id}/token`, {})
  const writer = await agents(`/${id}/children`, { name: 'lead-writer', monthly_budget_inr: 200 }, token)
  const reviewer = await agents(`/${id}/children`, { name: 'lead-reviewer', monthly_budget_inr: 100 }, token)
  await agents(`/${writer.agent.id}/pause`, {})
  for (const model of ['claude-sonnet-4.5', 'gpt-5-mini', 'claude-sonnet-4.5'])
    await app.call('POST', '/v1/chat/completions', { model, messages: [{ role: 'user', content: 'Hello' }], max_tokens: 100 }, { token })
  await app.call('PUT', '/v1/me/memory/o?key=agents/lead/notes.md', 'Prefers short answers.', { token })
  await makeRuns(app, id, token, (await agents(`/${reviewer.agent.id}/token`, {})).access_token)
  await app.gateway.app.limits.flushNow()
  return id
}

/** Makes a run of an agent and its child that a cap holds, and one that goes on, with a request for more of the first. */
async function makeRuns(app: TestApp, id: number, token: string, childToken: string): Promise<void> {
  await app.call('PATCH', `/v1/me/agents/${id}`, { run: { max_cost_inr: 25, max_calls: 3, max_minutes: 480, max_subagents: 20 } })
  const call = (run: string, by = token) =>
    app.call(
      'POST',
      '/v1/chat/completions',
      { model: 'claude-sonnet-4.5', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 100 },
      { token: by, headers: { 'x-br-run-id': run } },
    )
  for (const run of ['pr-1234', 'pr-1234', 'nightly-build-2026-11-29']) await call(run)
  await call('pr-1234', childToken)
  const asked = { scope: 'run', run_id: 'pr-1234', calls: 40, reason: 'Two more files to review, and the tests of the parser still fail.' }
  expect((await app.call('POST', '/v1/me/budget-requests', asked, { token })).status).toBe(200)
}

/** Makes workspaces, people and an invitation. Returns the id of a workspace. */
async function makeTeam(app: TestApp, cookie: string): Promise<number> {
  const made = async (path: string, body: object) => {
    const reply = await app.call('POST', path, body, { cookie })
    expect(reply.status, path).toBeLessThan(300)
    return reply.json
  }
  const { userId } = await app.newMember('admin')
  await app.newMember('member')
  await made('/me/members', { email: 'guest@people.example', role: 'member' })
  const { id } = await made('/me/workspaces', { name: 'Research', monthly_budget_inr: 2_000, member_uids: [userId] })
  const old = await made('/me/workspaces', { name: 'Prototype of last year' })
  expect((await app.call('DELETE', `/me/workspaces/${old.id}`, undefined, { cookie })).status).toBe(200)
  await made('/me/keys', { name: 'Research notebook', workspace_id: id })
  await made('/me/budgets', { scope: 'member', target_id: userId, monthly_budget_inr: 800, strict: true })
  return id
}

/** Registers an MCP server with a changed definition of an approved tool. Returns its id. */
async function makeTools(app: TestApp, server: ListedServer, lead: number): Promise<string> {
  const described = (description: string) => ({ ...toolOf('forecast', { title: 'Forecast', annotations: { readOnlyHint: true } }), description })
  server.tools = [described('Says how the weather will be.'), toolOf('alerts'), toolOf('history', { title: 'Hist\u200bory' })]
  const cookie = await app.signIn()
  const made = await app.call('POST', '/me/tool-servers', { name: 'Weather', url: server.url, price_inr_per_call: 0.5 }, { cookie })
  const { id } = made.json.server
  const pins = (await app.call('GET', `/me/tool-servers/${id}/tools`, undefined, { cookie })).json.tools
  const tools = pins.filter(({ approvable, name }: { approvable: boolean; name: string }) => approvable && name !== 'weather__alerts')
  const approve = { tools: tools.map(({ name, hash }: { name: string; hash: string }) => ({ name, hash })) }
  expect((await app.call('POST', `/me/tool-servers/${id}/tools/approve`, approve, { cookie })).status).toBe(200)
  await app.call('PATCH', `/me/agents/${lead}`, { allowed_tools: ['weather__*'] }, { cookie })
  return id
}

/** Saves a key of a provider, a chain, an own server and a collection with health. Returns the id of the collection. */
async function makeRouting(app: TestApp, own: OwnServer): Promise<number> {
  const cookie = await app.signIn()
  const made = async (method: string, path: string, body?: object) => {
    const reply = await app.call(method, path, body, { cookie })
    expect(reply.status, `${path} ${reply.text}`).toBeLessThan(300)
    return reply.json
  }
  app.indus.script(() => ({ body: { data: [{ id: 'sarvam-m' }, { id: 'sarvam-large' }] } }))
  await made('PUT', '/me/byok/indus', { key: 'indus-0123456789-TAIL', label: 'Team of Pune', always_use: true })
  app.indus.reset()
  own.behave(null)
  await made('POST', '/me/endpoints', { name: 'Pune cluster', model: 'gpt-5-mini', base_url: own.url, upstream_model: 'own-model', residency: 'india' })
  const steps = [{ model: 'claude-sonnet-4.5', provider: 'alpha' }, 'gpt-5-mini', { model: 'gpt-5-mini', provider: 'byoe:pune-cluster' }]
  await made('PUT', '/me/routing/claude-sonnet-4.5', { steps })
  await made('PUT', '/me/routing/sarvam-m', { steps: ['sarvam-m', 'auto:sovereign'] })
  const collection = { name: 'Cheap and steady', model: 'gpt-5-mini', steps: ['gpt-5-mini', 'gemini-3-pro'], readme_md: '# Why\n\nThe small model first.' }
  const { id, slug } = await made('POST', '/me/collections', { ...collection, public: true })
  await made('PATCH', `/me/collections/${id}`, { steps: ['gpt-5-mini', 'claude-sonnet-4.5', 'gemini-3-pro'] })
  await made('POST', `/me/collections/${slug}/check`)
  await made('POST', `/me/collections/${slug}/alerts`, { metric: 'error_rate', threshold: 0.05, channel: 'email' })
  return id
}

/** Adds a webhook and a trust rule. Returns the id of the webhook. */
async function makeOrganisation(app: TestApp, cookie: string, lead: number, receiver: string): Promise<string> {
  const made = async (path: string, body: object) => {
    const reply = await app.call('POST', path, body, { cookie })
    expect(reply.status, `${path} ${reply.text}`).toBe(201)
    return reply.json
  }
  const rule = { name: 'Deploys of acme/app', issuer: 'https://token.actions.githubusercontent.com', subject: 'repo:acme/app:ref:refs/heads/main' }
  await made('/me/agent-trust', { ...rule, agent_id: lead, key_id: app.keyId })
  const events = ['budget.block', 'run.held', 'key.revoked']
  return String((await made('/me/webhooks', { url: `http://${receiver}/brigade`, event_types: events, description: 'On call' })).id)
}

/** Every page, with a text that it shows when it is ready. */
const pages = [
  { name: 'overview', path: '/console', ready: 'Top models' },
  { name: 'agents', path: '/console/agents', ready: 'lead-writer' },
  { name: 'agents-new', path: '/console/agents?new=true', ready: 'Create agent' },
  { name: 'agents-none', path: '/console/agents?q=nothing', ready: 'No agent fits' },
  { name: 'agent', path: '/console/agents/{lead}', ready: 'claude-sonnet-4.5' },
  { name: 'agent-connect', path: '/console/agents/{lead}?tab=connect', ready: '--agent lead' },
  { name: 'agent-family', path: '/console/agents/{lead}?tab=family', ready: 'lead-writer' },
  { name: 'agent-tokens', path: '/console/agents/{lead}?tab=tokens', ready: 'Verify a token elsewhere' },
  { name: 'agent-memory', path: '/console/agents/{lead}?tab=memory', ready: 'agents/lead/notes.md' },
  { name: 'agent-calls', path: '/console/agents/{lead}?tab=calls', ready: 'claude-sonnet-4.5' },
  { name: 'agent-rules', path: '/console/agents/{lead}?tab=rules', ready: 'Concurrent calls' },
  { name: 'memory', path: '/console/memory', ready: 'Organisation records' },
  { name: 'memory-folder', path: '/console/memory/agents/lead', ready: 'notes.md' },
  { name: 'memory-object', path: '/console/memory/agents/lead/notes.md', ready: 'Prefers short answers.' },
  { name: 'memory-versions', path: '/console/memory/agents/lead/notes.md?view=history', ready: 'The organisation decides' },
  { name: 'memory-edit', path: '/console/memory/agents/lead/notes.md?view=edit', ready: 'Ctrl S saves' },
  { name: 'memory-search', path: '/console/memory?q=short', ready: 'Everything was looked at.' },
  { name: 'usage', path: '/console/usage', ready: 'Share of value' },
  { name: 'usage-hours', path: '/console/usage?range=today&metric=p95&group=agent', ready: 'Share of calls' },
  { name: 'runs', path: '/console/runs', ready: 'nightly-build-2026-11-29' },
  { name: 'run', path: '/console/runs/one?id=pr-1234&agent={lead}', ready: 'Caps' },
  { name: 'calls', path: '/console/calls', ready: 'Answered' },
  { name: 'calls-live', path: '/console/calls?outcome=failed&live=true', ready: 'No call fits' },
  { name: 'playground', path: '/console/playground?model=claude-sonnet-4.5&with=gpt-5-mini', ready: 'Say something to a model' },
  { name: 'start', path: '/console/start?step=provider', ready: 'Where do replies come from?' },
  { name: 'start-call', path: '/console/start?step=call&agent={lead}', ready: 'Your first call arrived' },
  { name: 'keys', path: '/console/keys', ready: 'Night batch' },
  { name: 'keys-new', path: '/console/keys?new=true', ready: 'Create key' },
  { name: 'budgets', path: '/console/budgets', ready: 'Night batch' },
  { name: 'budgets-new', path: '/console/budgets?new=true', ready: 'Save the budget' },
  { name: 'budget', path: '/console/budgets?budget=agent:{lead}', ready: 'Save the budget' },
  { name: 'members', path: '/console/members', ready: 'guest@people.example' },
  { name: 'members-invite', path: '/console/members?invite=true', ready: 'Mail addresses' },
  { name: 'member', path: '/console/members?member={owner}', ready: 'is the only owner' },
  { name: 'workspaces', path: '/console/workspaces', ready: 'Research' },
  { name: 'workspace', path: '/console/workspaces?workspace={workspace}', ready: 'Name and team' },
  { name: 'tools', path: '/console/tools', ready: '2 wait' },
  { name: 'tools-new', path: '/console/tools?new=true', ready: 'OAuth for each person' },
  { name: 'tool-server', path: '/console/tools/{server}', ready: 'weather__alerts' },
  { name: 'tool', path: '/console/tools/{server}?tool=weather__forecast', ready: 'Says how the weather will be.' },
  { name: 'tool-server-settings', path: '/console/tools/{server}?tab=settings', ready: 'How agents reach it' },
  { name: 'agent-tools', path: '/console/agents/{lead}?tab=tools', ready: 'matches 1 tool' },
  { name: 'models', path: '/console/models', ready: 'claude-sonnet-4.5' },
  { name: 'model', path: '/console/models?model=claude-sonnet-4.5', ready: 'A million tokens in' },
  { name: 'model-virtual', path: '/console/models?kind=virtual&model=auto', ready: 'Dialed in this order' },
  { name: 'providers', path: '/console/providers', ready: 'Your key first' },
  { name: 'provider', path: '/console/providers?provider=indus', ready: 'Test now' },
  { name: 'providers-add', path: '/console/providers?add=azure', ready: 'Deployments or models' },
  { name: 'routing', path: '/console/routing', ready: 'byoe:pune-cluster' },
  { name: 'routing-preview', path: '/console/routing?tab=preview&model=claude-sonnet-4.5', ready: 'The saved chain of the organisation decides.' },
  { name: 'chain', path: '/console/routing/chain?model=claude-sonnet-4.5', ready: 'Dialed in this order' },
  { name: 'collections', path: '/console/collections', ready: 'Cheap and steady' },
  { name: 'collections-new', path: '/console/collections?new=true', ready: 'Make the collection' },
  { name: 'collections-public', path: '/console/collections?tab=public&slug=cheap-and-steady', ready: 'The small model first.' },
  { name: 'collection', path: '/console/collections/{collection}', ready: 'Save a new version' },
  { name: 'collection-versions', path: '/console/collections/{collection}?tab=versions&version=1', ready: 'Use this version again' },
  { name: 'collection-health', path: '/console/collections/{collection}?tab=health', ready: 'Answers' },
  { name: 'collection-alerts', path: '/console/collections/{collection}?tab=alerts', ready: '5 % of the canaries fail' },
  { name: 'servers', path: '/console/servers', ready: 'byoe:pune-cluster' },
  { name: 'server', path: '/console/servers?server=1', ready: 'Answers a plain request' },
  { name: 'servers-new', path: '/console/servers?new=true', ready: 'Its own id for the model' },
  { name: 'settings', path: '/console/settings', ready: 'This month ends' },
  { name: 'webhooks', path: '/console/webhooks', ready: 'On call' },
  { name: 'webhooks-new', path: '/console/webhooks?new=true', ready: 'Events of later versions' },
  { name: 'webhook', path: '/console/webhooks/{webhook}', ready: 'Nothing was sent yet' },
  { name: 'webhook-settings', path: '/console/webhooks/{webhook}?tab=settings', ready: 'run.held' },
  { name: 'audit', path: '/console/audit', ready: 'You made' },
  { name: 'audit-verify', path: '/console/audit?tab=verify', ready: 'Records of tools' },
  { name: 'workloads', path: '/console/workloads', ready: 'repo:acme/app' },
  { name: 'workloads-new', path: '/console/workloads?new=true', ready: 'Where does it run?' },
  { name: 'workloads-test', path: '/console/workloads?tab=test', ready: 'Paste a token of a platform' },
  { name: 'compliance', path: '/console/compliance', ready: 'are listed as evidence' },
  { name: 'billing', path: '/console/billing', ready: 'No movement yet' },
  { name: 'billing-details', path: '/console/billing?tab=details', ready: 'Notice below' },
  { name: 'billing-top-up', path: '/console/billing?topup=true', ready: 'Set the billing address first' },
  { name: 'health', path: '/console/health', ready: 'Sums from' },
  { name: 'gallery', path: '/console/gallery', ready: 'Thing 3' },
  { name: 'not-found', path: '/console/nothing-here', ready: 'There is no such page' },
  { name: 'sign-in', path: '/auth', ready: 'You run this gateway' },
  { name: 'invitations', path: '/invitations', ready: 'no open invitation' },
  { name: 'mcp', path: '/mcp', ready: 'An address for MCP clients' },
] as const

describe.skipIf(program === null)(suiteName('pages of the console'), () => {
  let app: TestApp
  let browser: Browser
  let cookie: string
  let lead: number
  let workspace: number
  let listed: ListedServer
  let server: string
  let own: OwnServer
  let collection: number
  let webhook: string
  beforeAll(async () => {
    await builtConsole()
    const clock = clockBefore(29)
    listed = await startListedServer('modern')
    own = await startOwnServer()
    const env = { FOLDER_STORE: 'true', OPERATOR_EMAILS: 'owner@test-org.test', OUTBOUND_ALLOW: `${listed.hostPort},${own.hostPort}` }
    app = await startApp({ clock, operatorFile: namedModels, env })
    await makeUsage(app, clock, 29)
    lead = await makeFamily(app)
    await app.setBudget('org', app.orgId, 2_000)
    cookie = (await app.gateway.app.sessions.create(app.userId, app.orgId, null, 'owner@test-org.test')).cookie
    workspace = await makeTeam(app, cookie)
    server = await makeTools(app, listed, lead)
    collection = await makeRouting(app, own)
    webhook = await makeOrganisation(app, cookie, lead, listed.hostPort)
    browser = await startBrowser()
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    await app?.stop()
    await Promise.all([listed?.close(), own?.close()])
  })

  const picture = async ({ page }: ConsolePage, name: string): Promise<void> => {
    if (pictures === undefined) return
    mkdirSync(pictures, { recursive: true })
    await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true })
  }

  /**
   * Opens every page in one tab of this size. Each is loaded in one theme, in turn light and dark, and then changes to the other. Only the contrast of colours
   * depends on the theme, so the second one is searched for that alone.
   */
  const checkPages = async (size: keyof typeof sizes): Promise<void> => {
    const opened = await openPage(browser, app, '/console', { cookie, size })
    let theme: Theme = 'light'
    const check = async (name: string, place: string, rules?: readonly string[]): Promise<void> => {
      await settled(opened.page)
      await picture(opened, `${name}-${theme}-${size}`)
      expect.soft(await opened.axe(rules), place).toEqual([])
      expect.soft(opened.faults.splice(0), place).toEqual([])
    }
    for (const { name, path, ready } of pages) {
      const place = (): string => `${path}, ${theme}, ${size}`
      await opened.page.goto(
        app.baseUrl +
          path
            .replace('{lead}', String(lead))
            .replace('{workspace}', String(workspace))
            .replace('{owner}', String(app.userId))
            .replace('{server}', server)
            .replace('{collection}', String(collection))
            .replace('{webhook}', webhook),
      )
      await opened.page.getByText(ready).filter({ visible: true }).first().waitFor()
      await check(name, place())
      expect.soft(await opened.page.evaluate('document.documentElement.scrollWidth <= innerWidth'), `${place()}: no scrolling sideways`).toBe(true)
      theme = theme === 'light' ? 'dark' : 'light'
      await opened.page.emulateMedia({ colorScheme: theme })
      await check(name, place(), ['color-contrast'])
    }
    await opened.context.close()
  }

  test('CONS-02 every page is free of faults in both themes, at 1280 and at 390 pixels: no console error, no violation of the policy, no other origin, no axe violation', async () => {
    await Promise.all([checkPages('wide'), checkPages('narrow')])
  }, 900_000)
})
