import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startApp, type TestApp, until } from '../../harness/app.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../harness/webhook-receiver.ts'
import { type McpCaller, mcpCaller, register } from './registered.ts'
import { type ListedServer, startListedServer, type Tool, toolOf } from './registry/listed-server.ts'

const nested = (maxLength: number) => ({
  type: 'object',
  properties: { filter: { type: 'object', properties: { names: { type: 'array', items: { type: 'string', maxLength } } } } },
})
const base: Tool = { ...toolOf('echo'), title: 'Echo', annotations: { readOnlyHint: true }, inputSchema: nested(5) }
const others = [toolOf('add'), toolOf('list')]

let app: TestApp
let server: ListedServer
let receiver: WebhookReceiver
let owner: string
let token: string
let clients: McpCaller[]
let id: string
let round = 0

const slug = (): string => `s${round}`
const named = (name: string): string => `${slug()}__${name}`
const as = (method: string, path: string, body?: unknown) => app.call(method, `/me/tool-servers/${id}${path}`, body, { cookie: owner })
const sync = async () => (await as('POST', '/sync')).json.sync
const detail = async (name: string) => (await as('GET', `/tools/${named(name)}`)).json.tool
const hashOf = async (name: string): Promise<string> => (await detail(name)).hash
const approve = async (name: string, hash?: string) => as('POST', '/tools/approve', { tools: [{ name: named(name), hash: hash ?? (await hashOf(name)) }] })

beforeAll(async () => {
  ;[server, receiver] = await Promise.all([startListedServer('modern'), startWebhookReceiver()])
  app = await startApp({ env: { OUTBOUND_ALLOW: `${server.hostPort},${receiver.hostPort}`, WEBHOOK_POLL_MS: '20' } })
  owner = await app.signIn()
  await app.call('POST', '/me/webhooks', { url: `${receiver.url}/hook`, event_types: ['tool.changed'] }, { cookie: owner })
  const agent = await app.newAgent('lister')
  token = agent.token
  const patterns = Array.from({ length: 40 }, (_, i) => `s${i}__*`)
  await app.call('PATCH', `/v1/me/agents/${agent.id}`, { allowed_tools: patterns })
  clients = await Promise.all((['modern', 'legacy'] as const).map(era => mcpCaller(app, era, token)))
})
afterAll(async () => {
  await Promise.all(clients.map(client => client.close()))
  await app.stop()
  await Promise.all([server.close(), receiver.close()])
})

/** Registers a new server whose tools are all approved. */
async function begin(): Promise<void> {
  if (round > 0) await app.call('DELETE', `/me/tool-servers/${id}`, undefined, { cookie: owner })
  round++
  Object.assign(server, { tools: [base, ...others], pageSize: 1_000 })
  id = (await register(app, slug(), server.url)).id
  await until(() => events().length === 1)
}

/** Returns the tools of the present server that the agent sees. They are the same over HTTP and over MCP in both eras. */
async function listed(): Promise<string[]> {
  const lists = [
    (await app.call('GET', '/v1/tools', undefined, { token })).json.tools,
    ...(await Promise.all(clients.map(async client => (await client.list()).tools))),
  ].map((tools: { name: string }[]) => tools.map(({ name }) => name))
  for (const names of lists) expect(names).toEqual(lists[0])
  return (lists[0] ?? []).map(name => name.slice(slug().length + 2))
}
/** Returns the code with which a call of the tool is refused, over HTTP and over MCP. */
async function refusal(name: string): Promise<unknown[]> {
  const reply = await app.call('POST', `/v1/tools/${named(name)}/call`, {}, { token })
  const thrown = await clients[0]?.call(named(name)).catch((error: { code?: number }) => error.code)
  return [reply.json.error?.code, thrown]
}
const events = () =>
  receiver
    .at('/hook')
    .map(({ json }) => json.data)
    .filter(({ server_id }) => server_id === id)
const lines = async (): Promise<string[]> => {
  const { entries } = (await app.call('GET', '/me/audit?act=noteToolChanges&limit=100', undefined, { cookie: owner })).json
  return entries.map(({ target }: { target: string }) => target).filter((target: string) => target.includes(id))
}
const replace = (change: (tool: Tool) => Tool): void => {
  server.tools = server.tools.map(tool => (tool['name'] === 'echo' ? change(tool) : tool))
}
const counts = (more: object) => ({ new: 0, changed: 0, gone: 0, returned: 0, ...more })

/** Changes `echo`, and checks everything that must follow until an admin approves the new definition. */
async function waits(what: string, change: (tool: Tool) => Tool, at: string): Promise<void> {
  const [eventsBefore, linesBefore, approvedHash] = [events().length, (await lines()).length, await hashOf('echo')]
  expect(await listed(), what).toEqual(['add', 'echo', 'list'])
  replace(change)
  expect(await sync(), what).toMatchObject(counts({ changed: 1 }))
  expect(await listed(), what).toEqual(['add', 'list'])
  expect(await refusal('echo'), what).toEqual(['tool_not_found', -32602])
  const shown = await detail('echo')
  const places = shown.diff.map((each: { at: string }) => each.at)
  expect([shown.state, places, shown.approved_hash], what).toEqual(['changed', [at], approvedHash])
  await until(() => events().length === eventsBefore + 1)
  expect(events().at(-1), what).toMatchObject({
    server_slug: slug(),
    ...counts({ changed: 1 }),
    tools: [{ tool: named('echo'), change: 'changed', hash: shown.hash, approved_hash: approvedHash }],
  })
  expect(await lines(), what).toHaveLength(linesBefore + 1)
  expect((await lines())[0], what).toBe(`tool_server=${id} new=0 changed=1 gone=0 returned=0`)
  expect((await approve('echo')).status, what).toBe(200)
  const one = (await app.call('GET', `/v1/tools/${named('echo')}`, undefined, { token })).json
  expect([one.hash, await listed()], what).toEqual([shown.hash, ['add', 'echo', 'list']])
}

async function eachMemberCounts(): Promise<void> {
  await begin()
  await waits('one character', tool => ({ ...tool, description: 'Does echo!' }), '/description')
  await waits('title', tool => ({ ...tool, title: 'Echo ' }), '/title')
  await waits('annotations', tool => ({ ...tool, annotations: { readOnlyHint: false } }), '/annotations/readOnlyHint')
  await waits('unknown member', tool => ({ ...tool, 'x-strange': { deep: [1] } }), '/x-strange')
  await waits('nested schema', tool => ({ ...tool, inputSchema: nested(6) }), '/inputSchema/properties/filter/properties/names/items/maxLength')
  server.pageSize = 1
  server.tools = [...server.tools].reverse()
  expect(await sync()).toMatchObject(counts({}))
  await waits('on the last page', tool => ({ ...tool, description: 'Does more.' }), '/description')
}

async function orderDoesNotCount(): Promise<void> {
  await begin()
  const before = [events().length, (await lines()).length]
  const turned = (value: unknown): unknown =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(
          Object.entries(value)
            .reverse()
            .map(([name, inner]) => [name, turned(inner)]),
        )
      : value
  replace(tool => turned(tool) as Tool)
  expect(await sync()).toMatchObject(counts({}))
  expect(await listed()).toEqual(['add', 'echo', 'list'])
  expect([events().length, (await lines()).length]).toEqual(before)
}

async function unseenCharactersNeverPass(): Promise<void> {
  await begin()
  replace(tool => ({ ...tool, description: 'Does\u200b echo.' }))
  expect(await sync()).toMatchObject(counts({ changed: 1 }))
  expect(await listed()).toEqual(['add', 'list'])
  const refused = await approve('echo')
  expect([refused.status, refused.json.error.code, (await detail('echo')).findings[0].code_point]).toEqual([409, 'tool_not_approvable', 'U+200B'])
  expect(await listed()).toEqual(['add', 'list'])
}

async function newNamesWait(): Promise<void> {
  await begin()
  server.pageSize = 2
  server.tools = [...server.tools, toolOf('fresh')]
  expect(await sync()).toMatchObject(counts({ new: 1 }))
  expect([await listed(), await refusal('fresh')]).toEqual([
    ['add', 'echo', 'list'],
    ['tool_not_found', -32602],
  ])
  expect((await approve('fresh')).status).toBe(200)
  expect(await listed()).toEqual(['add', 'echo', 'fresh', 'list'])
  server.tools = server.tools.map(tool => (tool['name'] === 'echo' ? { ...tool, name: 'echo2' } : tool))
  expect(await sync()).toMatchObject(counts({ new: 1, gone: 1 }))
  expect(await listed()).toEqual(['add', 'fresh', 'list'])
  await until(() => events().length === 3)
  const [renamed] = await lines()
  expect([
    events()
      .at(-1)
      .tools.map((each: { change: string }) => each.change),
    renamed,
  ]).toEqual([['new', 'gone'], `tool_server=${id} new=1 changed=0 gone=1 returned=0`])
  expect((await detail('echo2')).state).toBe('pending')
}

async function goneAndBack(): Promise<void> {
  await begin()
  server.tools = others
  expect(await sync()).toMatchObject(counts({ gone: 1 }))
  expect(await listed()).toEqual(['add', 'list'])
  server.tools = [base, ...others]
  expect(await sync()).toMatchObject(counts({ returned: 1 }))
  expect(await listed()).toEqual(['add', 'echo', 'list'])
  server.tools = others
  await sync()
  server.tools = [{ ...base, description: 'Another one.' }, ...others]
  expect(await sync()).toMatchObject(counts({ returned: 1 }))
  expect([await listed(), (await detail('echo')).state]).toEqual([['add', 'list'], 'changed'])
}

async function approvalIsForOneHash(): Promise<void> {
  await begin()
  replace(tool => ({ ...tool, description: 'Read by the admin.' }))
  await sync()
  const read = await hashOf('echo')
  replace(tool => ({ ...tool, description: 'Changed since then.' }))
  await sync()
  const late = await approve('echo', read)
  expect([late.status, late.json.error.code, late.json.tools]).toEqual([409, 'tool_changed', [named('echo')]])
  expect([await listed(), await refusal('echo')]).toEqual([
    ['add', 'list'],
    ['tool_not_found', -32602],
  ])
}

describe('definitions that nobody approved', () => {
  it('TGW-02 a new or changed definition is in no list and cannot be called until an admin approves its hash, with a diff, a webhook and an audit line', async () => {
    await eachMemberCounts()
    await orderDoesNotCount()
    await unseenCharactersNeverPass()
    await newNamesWait()
    await goneAndBack()
    await approvalIsForOneHash()
  }, 60_000)
})
