import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startGateway } from '../../../composition/serve.ts'
import { loadConfig } from '../../../platform/config.ts'
import { noProgress, type Progress } from '../../../platform/observe/terminal/progress.ts'
import { callTool, type Http, http, must } from './demo-client.ts'

interface Step {
  readonly title: string
  run(): Promise<string>
}

/** Runs the demonstration on a gateway of its own (free ports, temporary DATA_DIR) and prints the result. Resolves to the number of steps that failed. */
export async function runDemo(print: (line: string) => void, progress: Progress = noProgress): Promise<number> {
  const dataDir = mkdtempSync(join(tmpdir(), 'brigade-demo-'))
  const configFile = join(dataDir, 'brigade.config.json')
  writeFileSync(configFile, '{}')
  const env = { PORT: '0', DATA_DIR: dataDir, SANDBOX: 'on', LOCAL_SERVERS: 'off', LOG_LEVEL: 'error', CONFIG_FILE: configFile }
  progress.now('Starting a gateway for the demonstration')
  const gateway = await startGateway(loadConfig(env))
  progress.done('A gateway of its own runs')
  try {
    const key = must(gateway.firstRun, 'a first run makes a key').key
    return await play(steps(gateway.baseUrl, key), print, progress)
  } finally {
    await gateway.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

async function play(list: readonly Step[], print: (line: string) => void, progress: Progress): Promise<number> {
  let failed = 0
  for (const [index, step] of list.entries()) {
    try {
      progress.now(step.title)
      const result = await step.run()
      progress.done()
      print(`${index + 1}. ${step.title}\n   ${result.replaceAll('\n', '\n   ')}`)
    } catch (error) {
      failed++
      progress.done()
      print(`${index + 1}. ${step.title}\n   FAILED: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  print(failed === 0 ? '\nThe main job works, end to end.' : `\n${failed} of ${list.length} steps failed.`)
  return failed
}

function steps(baseUrl: string, key: string): Step[] {
  const asOwner = http(baseUrl, key)
  const agent = { id: 0, token: '' }
  const asAgent = (): Http => http(baseUrl, agent.token)
  return [
    { title: 'An agent gets an identity and a short-lived token', run: () => identity(asOwner, agent) },
    { title: 'It chats through /v1', run: () => chat(asAgent()) },
    { title: 'It streams', run: () => stream(asAgent()) },
    { title: 'It chats through MCP', run: () => chatOverMcp(asAgent()) },
    { title: 'It writes and reads shared memory over MCP', run: () => memory(asAgent(), asOwner) },
    { title: 'It sees its usage and budget', run: () => usage(asAgent(), agent.id) },
    { title: 'It is stopped when the budget is spent', run: () => exhaust(asAgent(), asOwner, agent.id) },
    { title: 'It is cut off by one revoke', run: () => revoke(asAgent(), asOwner, agent.id) },
  ]
}

async function identity(owner: Http, agent: { id: number; token: string }): Promise<string> {
  const made = await owner('POST', '/v1/me/agents', { name: 'demo-agent' })
  agent.id = Number(made.json['id'])
  expect(made.status === 201 && agent.id > 0, `agent: ${made.status}`)
  const token = await owner('POST', `/v1/me/agents/${agent.id}/token`, {})
  agent.token = String(token.json['access_token'])
  expect(token.status === 200 && agent.token.split('.').length === 3, `token: ${token.status}`)
  return `agent ${agent.id}, token for ${String(token.json['expires_in'])} s: ${agent.token.slice(0, 16)}…`
}

async function chat(agent: Http): Promise<string> {
  const reply = await agent('POST', '/v1/chat/completions', { model: 'sandbox-chat', messages: [{ role: 'user', content: 'Say hello to the reader.' }] })
  const choice = (reply.json['choices'] as { message: { content: string } }[] | undefined)?.[0]
  expect(reply.status === 200 && typeof choice?.message.content === 'string', `chat: ${reply.status} ${reply.text}`)
  return `${reply.headers.get('x-br-provider')}: ${choice?.message.content}`
}

async function stream(agent: Http): Promise<string> {
  const reply = await agent('POST', '/v1/chat/completions', { model: 'sandbox-chat', stream: true, messages: [{ role: 'user', content: 'Count to three.' }] })
  const events = reply.text.split('\n\n').filter(event => event.startsWith('data: '))
  expect(reply.status === 200 && events.at(-1) === 'data: [DONE]', `stream: ${reply.status}`)
  expect(
    events.some(event => event.includes('"usage":{')),
    'the stream carries usage',
  )
  return `${events.length} events, the last but one carries the usage, then [DONE]`
}

async function chatOverMcp(agent: Http): Promise<string> {
  const { structured } = await callTool(agent, 'chat', { model: 'sandbox-chat', prompt: 'Say hello over MCP.' })
  expect(typeof structured['text'] === 'string', 'the tool answers with text')
  return String(structured['text'])
}

async function memory(agent: Http, owner: Http): Promise<string> {
  const key = 'agents/handover.md'
  const text = 'The build is green. Next: write the release notes.'
  await callTool(agent, 'memory_write', { key, content: text })
  const read = await callTool(agent, 'memory_read', { key })
  expect(String(read.structured['content']) === text, 'what was written is read back')
  const peer = await owner('GET', `/v1/me/memory/o?key=${encodeURIComponent(key)}`)
  expect(peer.status === 200 && peer.text === text, `a peer reads it over HTTP: ${peer.status}`)
  return `${key}, written by ${peer.headers.get('x-br-meta-agent') ?? 'unknown'}, read by the agent and by a peer`
}

async function usage(agent: Http, agentId: number): Promise<string> {
  const report = await agent('GET', '/v1/usage')
  const rows = (report.json['by_agent'] ?? []) as { id: number | null; requests: number; value_inr: number }[]
  const own = rows.find(row => row.id === agentId)
  expect(report.status === 200 && own !== undefined && own.requests === 3, `usage by agent: ${report.text}`)
  const budget = await callTool(agent, 'budget_get', {})
  expect(Array.isArray(budget.structured['budgets']), 'budget_get lists budgets')
  return `${own?.requests} calls of this agent, worth ₹${own?.value_inr}`
}

async function exhaust(agent: Http, owner: Http, agentId: number): Promise<string> {
  const set = await owner('POST', `/v1/me/agents/${agentId}/budget`, { monthly_budget_inr: 0.05 })
  expect(set.status === 200, `budget: ${set.status} ${set.text}`)
  for (let calls = 1; calls <= 200; calls++) {
    const reply = await agent('POST', '/v1/chat/completions', { model: 'sandbox-chat', max_tokens: 200, messages: [{ role: 'user', content: 'long 200' }] })
    if (reply.status === 429) {
      const error = reply.json['error'] as { code: string }
      expect(error.code === 'agent_budget_exceeded', `429 with ${error.code}`)
      if (Number(reply.headers.get('retry-after')) > 60)
        return `call ${calls}: 429 ${error.code}, spent ₹${String(reply.json['spent_inr'])} of ₹${String(reply.json['cap_inr'])}, resets ${String(reply.json['resets_at'])}`
    } else expect(reply.status === 200, `call ${calls}: ${reply.status} ${reply.text}`)
  }
  throw new Error('200 calls and the budget never stopped them')
}

async function revoke(agent: Http, owner: Http, agentId: number): Promise<string> {
  const revoked = await owner('POST', `/v1/me/agents/${agentId}/revoke`, {})
  expect(revoked.status === 200, `revoke: ${revoked.status}`)
  const after = await agent('GET', '/v1/me/whoami')
  expect(after.status === 401 && after.json['reason'] === 'agent_revoked', `after revoke: ${after.status} ${after.text}`)
  return `the next call answers 401, reason ${String(after.json['reason'])}`
}

function expect(isSo: boolean, otherwise: string): void {
  if (!isSo) throw new Error(otherwise)
}
