/** Questions of a modern MCP server to a modern client, and the state that binds the answers to their call. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startApp, type TestApp } from '../../../harness/app.ts'
import { type MovableClock, movableClock } from '../../../harness/clock.ts'
import { mcpCaller, register } from '../registered.ts'
import { type AskingServer, startAskingServer } from './asking-server.ts'

const both = { form: {}, url: {} }
let app: TestApp
let server: AskingServer
let clock: MovableClock
let id: string
let named = 0

beforeAll(async () => {
  clock = movableClock()
  server = await startAskingServer()
  app = await startApp({ clock, env: { OUTBOUND_ALLOW: server.hostPort } })
  id = (await register(app, 'ask', server.url, { price_inr_per_call: 1 })).id
})
afterAll(async () => {
  await app.stop()
  await server.close()
})

async function agentWith(allowed_tools: readonly string[]) {
  const agent = await app.newAgent(`asked ${named++}`)
  expect((await app.call('PATCH', `/v1/me/agents/${agent.id}`, { allowed_tools })).status).toBe(200)
  return agent
}

type Said = {
  status: number
  result?: Record<string, unknown> & { inputRequests?: Record<string, { params: Record<string, unknown> }>; requestState?: string }
  error?: { code: number; data?: { code?: string } }
}

/** Calls a tool as a client of 2026-07-28 that declares this elicitation. */
async function ask(token: string, name: string, more: object = {}, elicitation: object | null = both, path = '/mcp?toolsets=tools'): Promise<Said> {
  const envelope = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': elicitation === null ? {} : { elicitation },
  }
  const headers = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': name }
  const params = { name, arguments: {}, ...more, _meta: envelope }
  const reply = await app.call('POST', path, { jsonrpc: '2.0', id: 1, method: 'tools/call', params }, { token, headers })
  return { status: reply.status, ...JSON.parse(/^data: (\{.*"(?:result|error)".*)$/m.exec(reply.text)?.[1] ?? reply.text) }
}
const accepted = { who: { action: 'accept', content: { name: 'Mira' } } }
const codeOf = ({ result, error }: Said): unknown =>
  error?.data?.code ?? (result?.['_meta'] as Record<string, { code?: string }> | undefined)?.['dev.brigade/error']?.code

async function carriesForms(): Promise<void> {
  const { token } = await agentWith(['ask__*'])
  const first = await ask(token, 'ask__form')
  expect(first.result).toMatchObject({
    resultType: 'input_required',
    inputRequests: { who: { method: 'elicitation/create', params: { message: 'The MCP server ask asks: Who?', requestedSchema: { required: ['name'] } } } },
  })
  const state = first.result?.requestState ?? ''
  expect(state).not.toContain('secret state')
  expect(server.calls.at(-1)).toMatchObject({ capabilities: { elicitation: { form: {}, url: {} } }, answers: undefined })
  const second = await ask(token, 'ask__form', { inputResponses: { ...accepted, other: { action: 'accept' } }, requestState: state })
  expect(second.result).toMatchObject({ content: [{ type: 'text', text: JSON.stringify(accepted) }], _meta: { 'dev.brigade/origin': { server: 'ask' } } })
  expect(server.calls.at(-1)).toMatchObject({ answers: accepted, state: 'secret state of the server' })
  const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: both }, versionNegotiation: { mode: 'auto' } })
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'Asha' } }))
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${app.baseUrl}/mcp?toolsets=tools`), { requestInit: { headers: { authorization: `Bearer ${token}` } } }),
  )
  const answer = await client.callTool({ name: 'ask__form', arguments: {} })
  expect(JSON.stringify(answer.content)).toContain('Asha')
  await client.close()
  const searched = await ask(token, 'tools_call', { arguments: { name: 'ask__form' } }, both, '/mcp?toolsets=tools:search')
  expect(searched.result).toMatchObject({ resultType: 'input_required' })
}

/** The state is valid for one answer of one call. */
async function isBound(): Promise<void> {
  const { id: agentId, token } = await agentWith(['ask__*'])
  const other = await agentWith(['ask__*'])
  const fresh = async (): Promise<string> => (await ask(token, 'ask__form')).result?.requestState ?? ''
  const refused = async (by: string, name: string, more: object): Promise<void> => {
    const before = server.calls.length
    expect(codeOf(await ask(by, name, more)), JSON.stringify(more).slice(0, 80)).toBe('bad_request')
    expect(server.calls.length).toBe(before)
  }
  const state = await fresh()
  await refused(token, 'ask__form', { inputResponses: accepted, requestState: `${state.slice(0, -4)}AAAA` })
  await refused(token, 'ask__form', { inputResponses: accepted, requestState: 'invented' })
  expect((await ask(token, 'ask__form', { inputResponses: accepted, requestState: 'invented' })).error?.code).toBe(-32602)
  await refused(token, 'ask__form', { inputResponses: accepted })
  await refused(token, 'ask__form', { requestState: state })
  await refused(token, 'ask__form', { inputResponses: { who: 'not an answer' }, requestState: state })
  await refused(token, 'ask__form', {
    inputResponses: { who: { action: 'accept', content: { a: 'x'.repeat(40_000), b: 'x'.repeat(40_000) } } },
    requestState: state,
  })
  await refused(token, 'ask__link', { inputResponses: accepted, requestState: state })
  await refused(token, 'ask__form', { arguments: { text: 'other' }, inputResponses: accepted, requestState: state })
  await refused(other.token, 'ask__form', { inputResponses: accepted, requestState: state })
  expect((await ask(token, 'ask__form', { inputResponses: accepted, requestState: state })).result).toHaveProperty('content')
  await refused(token, 'ask__form', { inputResponses: accepted, requestState: state })
  const old = await fresh()
  clock.advance(10 * 60_000 + 1)
  const again = (await app.call('POST', `/v1/me/agents/${agentId}/token`, {})).json.access_token
  await refused(again, 'ask__form', { inputResponses: accepted, requestState: old })
  const before = (await ask(again, 'ask__form')).result?.requestState ?? ''
  await changeDefinition()
  await refused(again, 'ask__form', { inputResponses: accepted, requestState: before })
}

async function changeDefinition(): Promise<void> {
  const cookie = await app.signIn()
  server.tools = server.tools.map(tool => (tool['name'] === 'form' ? { ...tool, description: 'Asks something else.' } : tool))
  await app.call('POST', `/me/tool-servers/${id}/sync`, undefined, { cookie })
  const { tool } = (await app.call('GET', `/me/tool-servers/${id}/tools/ask__form`, undefined, { cookie })).json
  const approved = await app.call('POST', `/me/tool-servers/${id}/tools/approve`, { tools: [{ name: tool.name, hash: tool.hash }] }, { cookie })
  expect(approved.status).toBe(200)
}

/** A link passes over https only, and shows its host. Nothing but elicitation passes, and only to clients that declare it. */
async function passesOnlyWhatIsDeclared(): Promise<void> {
  const { token } = await agentWith(['ask__*'])
  const link = await ask(token, 'ask__link')
  expect(link.result?.inputRequests?.['pay']?.params).toMatchObject({
    mode: 'url',
    url: 'https://pay.example.com/a?b=c',
    message: 'The MCP server ask asks you to open pay.example.com: Pay here.',
  })
  for (const name of ['ask__plain-link', 'ask__sampling', 'ask__many']) expect(codeOf(await ask(token, name)), name).toBe('tool_server_failed')
  expect(codeOf(await ask(token, 'ask__link', {}, { form: {} }))).toBe('tool_server_failed')
  expect(server.calls.at(-1)).toMatchObject({ capabilities: { elicitation: { form: {} } } })
  expect(codeOf(await ask(token, 'ask__form', {}, null))).toBe('tool_server_failed')
  expect(server.calls.at(-1)?.capabilities).toEqual({})
  const legacy = await mcpCaller(app, 'legacy', token)
  expect((await legacy.call('ask__form'))._meta['dev.brigade/error'].code).toBe('tool_server_failed')
  expect(server.calls.at(-1)?.capabilities).toEqual({})
  await legacy.close()
  const overHttp = await app.call('POST', '/v1/tools/ask__form/call', {}, { token })
  expect([overHttp.status, overHttp.json.error.code]).toEqual([502, 'tool_server_failed'])
}

describe('questions of a server', { timeout: 60_000 }, () => {
  it('TGW-13 elicitation of a modern server reaches a modern client that declares it, with a state bound to the call, and is else not declared', async () => {
    await carriesForms()
    await passesOnlyWhatIsDeclared()
    await isBound()
    expect(app.logLines.join('\n')).not.toMatch(/Mira|Asha/)
    expect(await app.dump()).not.toMatch(/Mira|secret state/)
  })
})
