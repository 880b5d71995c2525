/** The tools that each kind of credential sees, with and without `?toolsets=`, and the error of a call to another tool. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { toolsetsOf } from '../../src/mcp/tools/toolbox/toolset-choice.ts'
import { agentScopes } from '../../src/platform/security/principal.ts'
import { startApp, type TestApp } from '../harness/app.ts'
import { mcpClients } from './mcp-clients.ts'

const sets = {
  core: ['chat', 'embed', 'models_list', 'route_preview', 'whoami'],
  memory: [
    'memory_append',
    'memory_delete',
    'memory_edit',
    'memory_history',
    'memory_list',
    'memory_paths',
    'memory_promote',
    'memory_read',
    'memory_restore',
    'memory_search',
    'memory_share',
    'memory_shares',
    'memory_write',
  ],
  usage: ['budget_get', 'budget_request', 'usage_get'],
  images: ['image_generate'],
}
const usual = [...sets.core, ...sets.memory, ...sets.usage].sort()
const everything = [...usual, ...sets.images].sort()
const without = (all: readonly string[], ...gone: string[]) => all.filter(name => !gone.includes(name))
const needsFull = ['memory_promote', 'memory_share']
const forAgents = without(usual, ...needsFull)

/** The tools that a token with only this scope sees. */
const ofScope: Record<string, string[]> = {
  inference: ['chat', 'embed', 'route_preview'],
  'memory:read': ['memory_history', 'memory_list', 'memory_paths', 'memory_read', 'memory_search', 'memory_shares'],
  'memory:write': ['memory_append', 'memory_delete', 'memory_restore', 'memory_write', 'memory_edit'],
  'usage:read': ['budget_get', 'usage_get'],
  // The tools of an organisation's servers are in a set of their own.
  'tools:call': [],
}
const forAnyToken = ['budget_request', 'models_list', 'whoami']

let app: TestApp
/** Every kind of credential with the tools that it sees. */
const callers: Record<string, { token: string; tools: string[] }> = {}
beforeAll(async () => {
  app = await startApp({ env: { FOLDER_STORE: 'on' } })
  await app.gateway.app.memory.useFolder(app.orgId)
  const keyOf = async (cookie: string): Promise<string> => (await app.call('POST', '/me/keys', { name: `key ${Math.random()}` }, { cookie })).json.key
  const agent = await app.newAgent('listed')
  const minted = async (scope: string): Promise<string> => (await app.call('POST', `/v1/me/agents/${agent.id}/token`, { scope })).json.access_token
  Object.assign(callers, {
    'full key of an owner': { token: app.key, tools: usual },
    'full key of an admin': { token: await keyOf((await app.newMember('admin')).cookie), tools: usual },
    'full key of a member': { token: await keyOf((await app.newMember('member')).cookie), tools: without(usual, 'memory_promote') },
    'full key without a user': { token: (await app.newKey({ withUser: false })).key, tools: forAgents },
    'inference key': { token: (await app.newKey({ scope: 'inference' })).key, tools: forAgents },
    'agent token': { token: agent.token, tools: forAgents },
  })
  for (const scope of agentScopes)
    callers[`agent token of ${scope}`] = { token: await minted(scope), tools: [...forAnyToken, ...(ofScope[scope] ?? [])].sort() }
})
afterAll(() => app.stop())

const asked = { accept: 'application/json, text/event-stream' }
async function rpc(token: string | null, method: string, params: object = {}, query = '') {
  const reply = await app.call('POST', `/mcp${query}`, { jsonrpc: '2.0', id: 1, method, params }, { token, headers: asked })
  const message = reply.status === 200 ? JSON.parse(reply.text.startsWith('{') ? reply.text : (/^data: (.*)$/m.exec(reply.text)?.[1] ?? 'null')) : null
  return { status: reply.status, code: reply.json?.error?.code ?? null, text: reply.text, result: message?.result, error: message?.error }
}
// biome-ignore lint/suspicious/noExplicitAny: arbitrary JSON of a tool list.
const listOf = async (token: string, query = ''): Promise<any[]> => (await rpc(token, 'tools/list', {}, query)).result.tools
const namesOf = async (token: string, query = '') => (await listOf(token, query)).map(tool => tool.name)

test('MCPX-05 MCP-04 every credential sees the tools that it may use, always in one order. There are about 20, each with schemas and annotations', async () => {
  expect(Object.keys(callers)).toHaveLength(11)
  for (const [name, { token, tools }] of Object.entries(callers)) {
    expect(await namesOf(token), name).toEqual(tools)
    expect(await namesOf(token), name).toEqual(tools)
  }
  const list = await listOf(app.key, '?toolsets=all')
  expect(list.length).toBeGreaterThanOrEqual(18)
  expect(list.length).toBeLessThanOrEqual(22)
  for (const tool of list) {
    expect(tool.name).toMatch(/^[a-z_]{3,40}$/)
    expect(tool.title.length).toBeGreaterThan(2)
    expect(tool.description.length).toBeGreaterThan(30)
    expect(tool.inputSchema).toMatchObject({ type: 'object', properties: expect.any(Object), additionalProperties: false })
    expect(tool.outputSchema).toMatchObject({ type: 'object', properties: { code: {}, message: {}, status: {} } })
    expect(Object.keys(tool.outputSchema.properties).length, tool.name).toBeGreaterThan(3)
    for (const hint of ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint']) expect(tool.annotations[hint], tool.name).toBeTypeOf('boolean')
  }
  const hints = (hint: string) => list.filter(tool => tool.annotations[hint]).map(tool => tool.name)
  expect(hints('openWorldHint')).toEqual(['chat', 'embed', 'image_generate'])
  for (const name of hints('readOnlyHint')) expect(hints('destructiveHint')).not.toContain(name)
  expect(hints('readOnlyHint')).toEqual(
    expect.arrayContaining(['budget_get', 'memory_paths', 'memory_read', 'models_list', 'route_preview', 'usage_get', 'whoami']),
  )
})

test('the total text of all tools is bounded: names, descriptions and arguments', async () => {
  const list = await listOf(app.key, '?toolsets=all')
  const read = list.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))
  expect(JSON.stringify(read).length).toBeLessThan(24_000)
  expect(JSON.stringify(list).length).toBeLessThan(52_000)
  expect(JSON.stringify(list)).not.toContain('9007199254740991')
})

describe('SCOPE-15 /mcp', () => {
  test('/mcp accepts full keys, inference keys and agent tokens, and answers 401 to a session cookie or no credential', async () => {
    for (const [name, { token }] of Object.entries(callers)) {
      expect((await rpc(token, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } })).status, name).toBe(
        200,
      )
      const who = await rpc(token, 'tools/call', { name: 'whoami', arguments: {} })
      expect(who.result.isError, name).toBeUndefined()
    }
    const cookie = await app.signIn()
    for (const credential of [{ token: null }, { cookie }]) {
      const reply = await app.call('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list' }, { ...credential, headers: asked })
      expect([reply.status, reply.json.error.code]).toEqual([401, 'invalid_api_key'])
    }
  })

  test('a call of a tool that the credential may not use returns isError with forbidden and the reason, and has no effect', async () => {
    let refused = 0
    for (const [name, { token, tools }] of Object.entries(callers))
      for (const tool of without(usual, ...tools)) {
        const { result, error } = await rpc(token, 'tools/call', { name: tool, arguments: {} })
        expect(error, `${tool} by ${name}`).toBeUndefined()
        expect(result, `${tool} by ${name}`).toMatchObject({ isError: true, structuredContent: { code: 'forbidden', status: 403 } })
        expect(result.content[0].text).toMatch(/^forbidden: This needs .* Next: Do not retry/)
        refused++
      }
    expect(refused).toBeGreaterThan(50)
    const { entries } = (await app.call('GET', '/me/audit?limit=200', undefined, { cookie: await app.signIn() })).json
    const outcomes = entries.filter(({ act }: { act: string }) => act === 'promote').map(({ outcome }: { outcome: string }) => outcome)
    expect(outcomes).toEqual(Object.values(callers).flatMap(({ tools }) => (tools.includes('memory_promote') ? [] : ['forbidden'])))
    expect(app.alpha.requests).toHaveLength(0)
  })
})

describe('?toolsets=', () => {
  const clients = mcpClients(() => app, '/mcp?toolsets=usage,images')
  afterEach(() => clients.closeAll())

  test('?toolsets= names the sets. Without it, all sets but images are used, and "all" means all. Blanks, case and repetition do not matter', async () => {
    for (const [query, tools] of [
      ['', usual],
      ['?toolsets=', usual],
      ['?other=1', usual],
      ['?toolsets=all', everything],
      ['?toolsets=core', sets.core],
      ['?toolsets=memory', sets.memory],
      ['?toolsets=usage,images', [...sets.usage, ...sets.images].sort()],
      ['?toolsets=%20Usage%20,%20CORE', [...sets.core, ...sets.usage].sort()],
      ['?toolsets=usage&toolsets=core', [...sets.core, ...sets.usage].sort()],
      ['?toolsets=core,memory,usage', usual],
    ] as const)
      expect(await namesOf(app.key, query), query).toEqual([...tools].sort())
    const inference = callers['inference key']?.token ?? ''
    expect(await namesOf(inference, '?toolsets=memory')).toEqual(without(sets.memory, ...needsFull))
    expect(toolsetsOf(undefined)).toEqual(new Set(['core', 'memory', 'usage']))
  })

  test('an unknown name in ?toolsets= gets 400 with the valid names before any tool runs, and 401 without a credential', async () => {
    for (const query of ['?toolsets=memroy', '?toolsets=core,', '?toolsets=core,imagez']) {
      const reply = await rpc(app.key, 'tools/list', {}, query)
      if (query.endsWith(',')) expect(reply.status).toBe(200)
      else {
        expect([reply.status, reply.code]).toEqual([400, 'bad_request'])
        expect(reply.text).toContain('core, memory, usage, images, all')
      }
    }
    expect((await rpc(null, 'tools/list', {}, '?toolsets=memroy')).status).toBe(401)
  })

  test.each(clients.eras)('?toolsets= applies to lists and calls in the %s', async (_era, connect) => {
    const client = await connect()
    expect(await client.names()).toEqual(['budget_get', 'budget_request', 'image_generate', 'usage_get'])
    expect((await client.call('budget_get')).isError).toBeUndefined()
    await expect(client.call('chat', { prompt: 'x' })).rejects.toMatchObject({ code: -32602, message: expect.stringContaining('toolset core') })
    await expect(client.call('no_such_tool')).rejects.toMatchObject({ code: -32602, message: expect.stringContaining('no_such_tool') })
    expect(app.alpha.requests).toHaveLength(0)
  })
})
