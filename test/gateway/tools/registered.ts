import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as LegacyTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { TestApp } from '../../harness/app.ts'
import type { Fleet } from '../../harness/fleet.ts'

/** A registered server of the organisation with approved tools. */
export interface Registered {
  readonly id: string
  readonly slug: string
  /** Hashes by public name. */
  readonly hashes: ReadonlyMap<string, string>
}

/** The parts of a gateway that a registration needs. */
export type RegisteringApp = Pick<TestApp, 'call'> & { signIn(): Promise<string> }

/** Returns a process of a fleet as a caller with the key of its owner. */
export function processApp(fleet: Fleet, process: { readonly baseUrl: string }): RegisteringApp {
  return {
    signIn: () => fleet.signIn(),
    async call(method, path, body, { token = fleet.key, cookie, headers = {}, signal } = {}) {
      const credential: Record<string, string> = cookie === undefined ? { authorization: `Bearer ${token}` } : { cookie }
      const response = await fetch(process.baseUrl + path, {
        method,
        headers: { ...credential, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(signal === undefined ? {} : { signal }),
      })
      const text = await response.text()
      return { status: response.status, headers: response.headers, text, json: text === '' ? null : JSON.parse(text) }
    },
  }
}

/** Registers an MCP server over HTTP and approves all of its tools. */
export async function register(app: RegisteringApp, slug: string, url: string, more: object = {}): Promise<Registered> {
  const cookie = await app.signIn()
  const made = await app.call('POST', '/me/tool-servers', { name: slug, slug, url, ...more }, { cookie })
  if (made.status !== 201) throw new Error(`the server was not registered: ${made.text}`)
  const { id } = made.json.server
  const pins: { name: string; hash: string }[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const page: { tools: { name: string; hash: string }[]; next_cursor: string | null } = (
      await app.call('GET', `/me/tool-servers/${id}/tools?limit=200${cursor === '' ? '' : `&cursor=${cursor}`}`, undefined, { cookie })
    ).json
    pins.push(...page.tools.map(({ name, hash }) => ({ name, hash })))
    cursor = page.next_cursor
  }
  const approved = await app.call('POST', `/me/tool-servers/${id}/tools/approve`, { tools: pins }, { cookie })
  if (approved.status !== 200) throw new Error(`the tools were not approved: ${approved.text}`)
  return { id, slug, hashes: new Map(pins.map(({ name, hash }) => [name, hash])) }
}

/** The parts of both clients that tests use. */
export interface McpCaller {
  // biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
  list(cursor?: string): Promise<any>
  call(
    name: string,
    args?: Record<string, unknown>,
    options?: { readonly signal?: AbortSignal; readonly onprogress?: (note: unknown) => void },
    // biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
  ): Promise<any>
  close(): Promise<void>
}

/** Connects a client of one era to /mcp. */
export async function mcpCaller(app: TestApp, era: 'modern' | 'legacy', token: string, toolsets = 'tools'): Promise<McpCaller> {
  const url = new URL(`${app.baseUrl}/mcp?toolsets=${toolsets}`)
  const requestInit = { headers: { authorization: `Bearer ${token}` } }
  if (era === 'modern') {
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } })
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit }))
    return {
      list: cursor => client.request({ method: 'tools/list', params: cursor === undefined ? {} : { cursor } }),
      call: (name, args = {}, options = {}) =>
        client.callTool({ name, arguments: args }, { ...options, toolDefinition: { name, inputSchema: { type: 'object' } } } as never),
      close: () => client.close(),
    }
  }
  const client = new LegacyClient({ name: 'test', version: '1' })
  await client.connect(new LegacyTransport(url, { requestInit }) as Parameters<LegacyClient['connect']>[0])
  return {
    list: cursor => client.listTools(cursor === undefined ? {} : { cursor }),
    call: (name, args = {}, options = {}) => client.callTool({ name, arguments: args }, undefined, options as never),
    close: () => client.close(),
  }
}
