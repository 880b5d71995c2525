/** A real MCP server on loopback that lists tools, for tests of the registry. Its list, its pages and the header that it requires can be changed. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { Server as LegacyServer } from '@modelcontextprotocol/sdk/server/index.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { createMcpHandler, Server } from '@modelcontextprotocol/server'

export type Tool = Record<string, unknown>

export interface ListedServer {
  readonly url: string
  readonly hostPort: string
  /** The definitions from now on. */
  tools: readonly Tool[]
  /** Number of tools of a page. */
  pageSize: number
  /** True: a page names a page that came before. */
  isEndless: boolean
  /** The value of `x-test-key` that requests must have, or null. Others get 401. */
  key: string | null
  /** True: no request gets an answer. */
  hangs: boolean
  /** The headers of every request so far. */
  readonly requests: IncomingHttpHeaders[]
  close(): Promise<void>
}

const anything = { type: 'object', properties: { text: { type: 'string' } } }

/** Returns a definition with that name. */
export const toolOf = (name: string, more: Tool = {}): Tool => ({ name, description: `Does ${name}.`, inputSchema: anything, ...more })

/** Starts a server of one era of the protocol. */
export async function startListedServer(era: 'modern' | 'legacy', tools: readonly Tool[] = [toolOf('echo'), toolOf('add')]): Promise<ListedServer> {
  const state = { tools, pageSize: 1_000, isEndless: false, key: null as string | null, hangs: false, requests: [] as IncomingHttpHeaders[] }
  const list = (cursor: string | undefined) => {
    const from = Number(cursor ?? 0)
    const to = from + state.pageSize
    const next = state.isEndless ? { nextCursor: '0' } : to < state.tools.length ? { nextCursor: String(to) } : {}
    return { tools: state.tools.slice(from, to), ttlMs: 0, cacheScope: 'private', ...next }
  }
  const modern = createMcpHandler(
    () => {
      const server = new Server({ name: 'listed', version: '1' }, { capabilities: { tools: {} } })
      // biome-ignore lint/suspicious/noExplicitAny: the server sends what no type allows.
      server.setRequestHandler('tools/list', request => list(request.params?.cursor) as any)
      return server
    },
    { legacy: 'reject' },
  )
  const modernHandler = toNodeHandler(modern)
  const legacyHandler = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const server = new LegacyServer({ name: 'listed', version: '1' }, { capabilities: { tools: {} } })
    // biome-ignore lint/suspicious/noExplicitAny: the server sends what no type allows.
    server.setRequestHandler(ListToolsRequestSchema, asked => list(asked.params?.cursor) as any)
    const transport = new StreamableHTTPServerTransport({})
    await server.connect(transport as Parameters<LegacyServer['connect']>[0])
    await transport.handleRequest(request, response)
  }
  const http = createServer(async (request, response) => {
    state.requests.push(request.headers)
    if (state.hangs) return
    if (state.key !== null && request.headers['x-test-key'] !== state.key) {
      response.writeHead(401).end()
      return
    }
    await (era === 'modern' ? modernHandler(request as Parameters<typeof modernHandler>[0], response) : legacyHandler(request, response))
  })
  await new Promise<void>(resolve => http.listen(0, '127.0.0.1', resolve))
  const { port } = http.address() as AddressInfo
  return Object.assign(state, {
    url: `http://127.0.0.1:${port}/mcp`,
    hostPort: `127.0.0.1:${port}`,
    async close() {
      http.closeAllConnections()
      await new Promise(resolve => http.close(resolve))
      await modern.close()
    },
  })
}
