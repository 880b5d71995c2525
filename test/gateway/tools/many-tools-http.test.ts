import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { type McpCaller, mcpCaller, type Registered, register } from './registered.ts'
import { type ListedServer, startListedServer, toolOf } from './registry/listed-server.ts'

const serversCount = 40
const toolsOfServer = 50
const numbered = (count: number): number[] => Array.from({ length: count }, (_, i) => i)
const two = (i: number): string => String(i).padStart(2, '0')
const slugs = numbered(serversCount).map(i => `s${two(i)}`)
const namesOf = (slug: string): string[] => numbered(toolsOfServer).map(i => `${slug}__tool-${two(i)}`)

let app: TestApp
let server: ListedServer
let cookie: string
const registered = new Map<string, Registered>()

beforeAll(async () => {
  server = await startListedServer(
    'modern',
    numbered(toolsOfServer).map(i => toolOf(`tool-${two(i)}`)),
  )
  app = await startApp({ env: { OUTBOUND_ALLOW: server.hostPort } })
  cookie = await app.signIn()
  for (const slug of slugs) registered.set(slug, await register(app, slug, server.url))
}, 60_000)
afterAll(async () => {
  await app.stop()
  await server.close()
})

/** Reads all pages of a client. Returns the tools with their pages. */
async function wholeList(client: McpCaller): Promise<{ tools: { name: string }[]; pages: number[] }> {
  const tools: { name: string }[] = []
  const pages: number[] = []
  let cursor: string | undefined
  do {
    const page = await client.list(cursor)
    tools.push(...page.tools)
    pages.push(page.tools.length)
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return { tools, pages }
}
const namesIn = async (client: McpCaller): Promise<string[]> => (await wholeList(client)).tools.map(({ name }) => name)
async function newCaller(allowed_tools: readonly string[]): Promise<{ id: number; token: string }> {
  const agent = await app.newAgent(`of ${allowed_tools.length} patterns`)
  expect((await app.call('PATCH', `/v1/me/agents/${agent.id}`, { allowed_tools })).status).toBe(200)
  return agent
}

describe('2,000 tools of 40 servers', () => {
  it('TGW-05 of 2,000 tools, both eras list exactly what the caller may call now, in pages of 200 and in one order, for all servers or for one, and ask no server', async () => {
    const { token } = await newCaller(slugs.map(slug => `${slug}__*`))
    const few = await newCaller(['s03__*', 's07__tool-01', 's39__tool-49', 's40__*'])
    const asked = server.requests.length
    for (const era of ['modern', 'legacy'] as const) {
      const client = await mcpCaller(app, era, token)
      const first = await wholeList(client)
      expect([first.tools.length, first.pages]).toEqual([2000, Array(10).fill(200)])
      expect(first.tools.map(({ name }) => name)).toEqual(slugs.flatMap(namesOf))
      expect(await wholeList(client)).toEqual(first)
      const one = await mcpCaller(app, era, token, 'tools:s07')
      expect(await namesIn(one)).toEqual(namesOf('s07'))
      const narrow = await mcpCaller(app, era, few.token)
      expect(await namesIn(narrow)).toEqual([...namesOf('s03'), 's07__tool-01', 's39__tool-49'])
      await Promise.all([client, one, narrow].map(each => each.close()))
    }
    const client = await mcpCaller(app, 'modern', few.token)
    await changes(client, few.id)
    expect(server.requests.length).toBe(asked)
    // A server that does not answer changes no list.
    server.hangs = true
    expect(await namesIn(client)).toEqual(['s03__tool-00'])
    await client.close()
  })

  /** Each change is in the list of the next request. */
  async function changes(client: McpCaller, agentId: number): Promise<void> {
    const idOf = (slug: string): string => registered.get(slug)?.id ?? ''
    await app.call('POST', `/me/tool-servers/${idOf('s07')}/off`, undefined, { cookie })
    expect(await namesIn(client)).toEqual([...namesOf('s03'), 's39__tool-49'])
    await app.call('POST', `/me/tool-servers/${idOf('s39')}/tools/block`, { tools: ['s39__tool-49'] }, { cookie })
    expect(await namesIn(client)).toEqual(namesOf('s03'))
    await app.call('PATCH', `/v1/me/agents/${agentId}`, { allowed_tools: ['s03__tool-00', 's07__*'] })
    expect(await namesIn(client)).toEqual(['s03__tool-00'])
  }
})
