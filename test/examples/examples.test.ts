/** Every program of examples/ as a process of its own against one gateway, and what the gateway knows of it afterwards. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { buildToolkit, exampleNames, exampleText, type Ran, runExample, runExamples } from './run-example.ts'

interface Expected {
  /** What it has to say, in this order. */
  readonly says: readonly (string | RegExp)[]
  /** Model calls of each agent. */
  readonly calls?: Readonly<Record<string, number>>
  /** Agents and the places below which they alone have written; a key may stand for itself. */
  readonly wrote?: Readonly<Record<string, string>>
}

const reply = 'This is a simulated reply'
const afterTool = 'the tool answered with'
const many = /\((1\d|2\d) pieces\)/

const examples: Readonly<Record<string, Expected>> = {
  openai: {
    says: [`chat:      ${reply}`, 'answered by sandbox for ₹ 0.00', `stream:    ${reply}`, many, `responses: ${reply}`],
    calls: { 'example-openai': 3 },
  },
  anthropic: {
    says: [`message: ${reply}`, `stream:  ${reply}`, many, 'asked for the weather in Mysuru', afterTool],
    calls: { 'example-anthropic': 4 },
  },
  'anthropic-memory-tool': {
    says: ['File created successfully', 'has been edited', "Here's the content", /holds "The build is green\.\\n" by example-claude$/m],
    calls: { 'example-claude': 6 },
    wrote: { 'example-claude': 'agents/example-claude/' },
  },
  'ai-sdk': {
    says: ['memory_append({"path"', '"ok":true', afterTool, 'memory_search({"query"', 'The tide was high at noon.', afterTool],
    calls: { 'example-ai-sdk': 4 },
    wrote: { 'example-ai-sdk': 'agents/example-ai-sdk/log/' },
  },
  langchain: {
    says: [`chain:  ${reply}`, /stream: 2\d pieces/, 'Kept as agents/example-langchain/log/', afterTool],
    calls: { 'example-langchain': 4 },
    wrote: { 'example-langchain': 'agents/example-langchain/log/' },
  },
  langgraph: {
    says: ['the writer found facts/tides/monday', `the writer wrote: ${reply}`, 'in memory it is 4 metres by example-researcher'],
    calls: { 'example-researcher': 1, 'example-writer': 1 },
    wrote: { 'example-researcher': 'agents/example-langgraph/' },
  },
  'openai-agents': {
    says: ['kept as agents/example-agents-sdk/log/', afterTool, 'handoff: keeper answered', `stream:  ${reply}`, many],
    calls: { 'example-agents-sdk': 5 },
    wrote: { 'example-agents-sdk': 'agents/example-agents-sdk/log/' },
  },
  'mcp-client': {
    says: ['connected to brigade', /^1\d tools: .*memory_write/m, 'found agents/example-mcp/notes.md line 1 by example-mcp', reply],
    calls: { 'example-mcp': 1 },
    wrote: { 'example-mcp': 'agents/example-mcp/notes.md' },
  },
  'mcp-client-2': {
    says: ['era: modern', 'listens to memory://agents/example-news/plan.md', 'news: put agents/example-news/plan.md by agent', 'We sail on Monday.'],
    wrote: { 'example-planner': 'agents/example-news/' },
  },
  'two-agents-share-memory': {
    says: [
      '"Sail on Monday.\\n" by example-one',
      'refused: memory_conflict',
      'Sail on Tuesday.',
      /200 etag "\w+" agent \d+/,
      /put by agent \d+\n.*put by agent \d+/,
    ],
  },
  'budget-stops-a-loop': {
    says: ['turn 5 is done', 'stopped: 429 agent_budget_exceeded', 'Do not retry', /agent: ₹0\.01\d* of ₹0\.01, until/],
    calls: { 'example-loop': 6 },
  },
  'kill-switch': {
    says: ['the stream was cut: agent_revoked', 'onRevoked: agent_revoked', 'the next call: 401 agent_revoked'],
    calls: { 'example-runaway': 1 },
  },
  'parent-and-children': {
    says: [`the worker: ${reply}`, 'refused: 403 forbidden', 'memory:write', 'refused: 409 budget_not_available', 'after the end of the lead: agent_revoked'],
    calls: { 'example-worker': 1 },
  },
}

interface MadeAgent {
  readonly id: number
  readonly name: string
  readonly status: string
  readonly parent_id: number | null
  readonly monthly_budget_inr: number | null
  readonly spend_month_inr: number
}

let app: TestApp
let settings: { BRIGADE: string; BRIGADE_KEY: string }
let ran: Map<string, Ran>
let agents: readonly MadeAgent[]
const agentNamed = (name: string): MadeAgent | undefined => agents.find(agent => agent.name === name)

beforeAll(async () => {
  await buildToolkit()
  app = await startApp({ env: { SANDBOX: 'on', FOLDER_STORE: 'on' } })
  expect((await app.call('PUT', '/v1/me/memory-store', { store: 'folder' })).status).toBe(200)
  settings = { BRIGADE: app.baseUrl, BRIGADE_KEY: app.key }
  ran = await runExamples(exampleNames, settings)
  await app.gateway.app.limits.flushNow()
  agents = (await app.call('GET', '/v1/me/agents?limit=200')).json.agents
}, 120_000)
afterAll(() => app?.stop())

test('every example is tested, told of in the pages, short, and begins with the same settings', () => {
  expect(exampleNames.sort()).toEqual(Object.keys(examples).sort())
  const [page, toolkitPage] = [exampleText('README.md'), exampleText('../docs/guides/toolkit.md')]
  const opening = /^const \{ BRIGADE = 'http:\/\/127\.0\.0\.1:8787', BRIGADE_KEY(, MODEL = 'sandbox-chat')? \} = process\.env\nif \(!BRIGADE_KEY\) \{$/m
  for (const name of exampleNames) {
    const text = exampleText(`${name}.mjs`)
    expect(text).toMatch(opening)
    expect(text.split('process.env')).toHaveLength(2)
    expect(text.split('\n').length - 1).toBeLessThanOrEqual(50)
    expect(page).toContain(`[${name}.mjs](${name}.mjs)`)
    expect(toolkitPage).toContain(`(../../examples/${name}.mjs)`)
  }
})

describe.each(Object.entries(examples))('%s.mjs', (name, { says, calls = {}, wrote = {} }) => {
  test('ends by itself with code 0 and says what happened', () => {
    const { code, out, err } = ran.get(name) ?? { code: null, out: '', err: 'did not run' }
    expect({ code, err }).toEqual({ code: 0, err: '' })
    let rest = out
    for (const words of says) {
      const found = typeof words === 'string' ? rest.indexOf(words) : rest.search(words)
      expect(found, `${words} in\n${rest}`).toBeGreaterThanOrEqual(0)
      rest = rest.slice(found)
    }
  })

  test('did that as its agents', async () => {
    const { by_agent } = (await app.call('GET', '/v1/usage')).json
    for (const [agent, requests] of Object.entries(calls))
      expect(by_agent).toContainEqual(expect.objectContaining({ id: agentNamed(agent)?.id, name: agent, requests }))
    for (const [agent, prefix] of Object.entries(wrote)) {
      const { keys } = (await app.call('GET', `/v1/me/memory/list?prefix=${prefix}`)).json
      expect(keys.map(({ author }: { author: object }) => author)).toEqual([{ user: String(app.userId), agent: String(agentNamed(agent)?.id), verified: true }])
    }
  })
})

test('two agents have written one object, each as itself, and nothing was lost', async () => {
  const key = 'agents/example-shared/plan.md'
  const [one, two] = [agentNamed('example-one')?.id, agentNamed('example-two')?.id]
  const { versions } = (await app.call('GET', `/v1/me/memory/history?key=${key}`)).json
  const authors = versions.map(({ author }: { author: { agent: string } }) => Number(author.agent))
  expect([...authors].sort()).toEqual([one, one, one, two].sort())
  expect((await app.call('GET', `/v1/me/memory/o?key=${key}`)).text.split('\n').sort()).toEqual([
    '',
    'Sail on Tuesday.',
    'The reader has packed.',
    'The writer has packed.',
  ])
})

test('the loop has spent its budget, and the gateway refuses it from then on', async () => {
  const loop = agentNamed('example-loop')
  expect(loop).toMatchObject({ status: 'active', monthly_budget_inr: 0.01 })
  expect(loop?.spend_month_inr).toBeGreaterThanOrEqual(0.01)
  const { access_token: token } = (await app.call('POST', `/v1/me/agents/${loop?.id}/token`, {})).json
  const refused = await app.call('POST', '/v1/chat/completions', { model: 'sandbox-chat', messages: [{ role: 'user', content: 'Hello' }] }, { token })
  expect({ status: refused.status, code: refused.json.error.code }).toEqual({ status: 429, code: 'agent_budget_exceeded' })
})

test('what was ended is ended: the runaway agent, the lead and its child, and no child that asked too much was made', () => {
  const lead = agentNamed('example-lead')
  expect(agentNamed('example-runaway')?.status).toBe('revoked')
  expect(lead?.status).toBe('revoked')
  expect(agentNamed('example-worker')).toMatchObject({ status: 'revoked', parent_id: lead?.id })
  expect(agentNamed('example-greedy')).toBeUndefined()
})

test('those that change what is there run a second time, and on another model', async () => {
  const names = ['two-agents-share-memory', 'budget-stops-a-loop', 'kill-switch', 'parent-and-children', 'langgraph']
  for (const [name, { code, err }] of await runExamples(names, { ...settings, MODEL: 'sandbox-reasoning' }))
    expect({ name, code, err }).toEqual({ name, code: 0, err: '' })
  await app.gateway.app.limits.flushNow()
  const { by_model } = (await app.call('GET', '/v1/usage')).json
  expect(by_model).toContainEqual(expect.objectContaining({ model: 'sandbox-reasoning' }))
})

test('without a key there is one clear line and code 2; a wrong key and a wrong address are named', async () => {
  const [none, wrong, away] = await Promise.all([
    runExample('mcp-client-2', { BRIGADE: settings.BRIGADE }),
    runExample('two-agents-share-memory', { ...settings, BRIGADE_KEY: 'br-wrong' }),
    runExample('two-agents-share-memory', { ...settings, BRIGADE: 'http://127.0.0.1:1' }),
  ])
  expect(none).toEqual({ code: 2, out: '', err: 'Set BRIGADE_KEY to an API key of the gateway; its first start has printed one.\n' })
  expect(wrong).toMatchObject({ code: 1, out: '', err: expect.stringContaining('invalid_api_key') })
  expect(away).toMatchObject({ code: 1, out: '', err: expect.stringContaining('no gateway answers at http://127.0.0.1:1') })
})
