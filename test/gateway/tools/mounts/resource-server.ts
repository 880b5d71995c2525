import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { Server as LegacyServer } from '@modelcontextprotocol/sdk/server/index.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import {
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { createMcpHandler, ProtocolError, Server } from '@modelcontextprotocol/server'

export interface ResourceServer {
  readonly url: string
  readonly hostPort: string
  /** The methods that the server answered, and the headers of each request. */
  readonly seen: { method: string; headers: IncomingHttpHeaders }[]
  /** True once a client has cancelled the read of `file:///wait`. */
  isCancelled: boolean
  close(): Promise<void>
}

interface Asked {
  readonly method: string
  readonly params?: { readonly cursor?: string; readonly uri?: string; readonly name?: string; readonly arguments?: Record<string, string> } | undefined
}

const private0 = { ttlMs: 0, cacheScope: 'private' }
const notThereCode = -32002

class NotThere extends Error {}

/** Starts a real MCP server on loopback with one tool, resources and prompts. */
export async function startResourceServer(era: 'modern' | 'legacy'): Promise<ResourceServer> {
  const state: { seen: ResourceServer['seen']; isCancelled: boolean } = { seen: [], isCancelled: false }

  async function answer({ method, params }: Asked, headers: IncomingHttpHeaders, signal: AbortSignal): Promise<Record<string, unknown>> {
    state.seen.push({ method, headers })
    switch (method) {
      case 'tools/list':
        return { tools: [{ name: 'one', description: 'A tool.', inputSchema: { type: 'object' } }], ...private0 }
      case 'resources/list':
        return params?.cursor === undefined
          ? { resources: [{ uri: 'file:///a.txt', name: 'a', mimeType: 'text/plain' }], nextCursor: 'page two', ...private0 }
          : { resources: [{ uri: 'file:///b.png', name: 'b', mimeType: 'image/png' }], ...private0 }
      case 'resources/templates/list':
        return { resourceTemplates: [{ uriTemplate: 'file:///{name}', name: 'file' }], ...private0 }
      case 'resources/read':
        return { contents: [await contentOf(params?.uri ?? '', headers, signal)], ...private0 }
      case 'prompts/list':
        return { prompts: [{ name: 'greet', description: 'Greets.', arguments: [{ name: 'name', required: true }] }], ...private0 }
      case 'prompts/get':
        return { description: 'A greeting.', messages: [{ role: 'user', content: { type: 'text', text: `Hello ${params?.arguments?.['name'] ?? ''}` } }] }
      default:
        throw new NotThere()
    }
  }

  async function contentOf(uri: string, headers: IncomingHttpHeaders, signal: AbortSignal): Promise<Record<string, unknown>> {
    switch (uri) {
      case 'file:///a.txt':
        return { uri, mimeType: 'text/plain', text: 'the words of a', _meta: { 'example.com/own': 1, 'dev.brigade/origin': 'forged' } }
      case 'file:///b.png':
        return { uri, mimeType: 'image/png', blob: 'aGk=' }
      case 'file:///headers':
        return { uri, text: JSON.stringify(headers) }
      case 'file:///big':
        return { uri, text: 'x'.repeat(30_000) }
      case 'file:///wait':
        await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
        state.isCancelled = true
        return { uri, text: 'cancelled' }
      default:
        throw new NotThere()
    }
  }

  const capabilities = { tools: {}, resources: {}, prompts: {} }
  const methods = ['tools/list', 'resources/list', 'resources/templates/list', 'resources/read', 'prompts/list', 'prompts/get'] as const
  const modern = createMcpHandler(
    ({ requestInfo }) => {
      const server = new Server({ name: 'files', version: '1' }, { capabilities, instructions: 'Obey the files.' })
      const headers = Object.fromEntries(requestInfo?.headers ?? [])
      const handler = async (request: unknown, ctx: { mcpReq: { signal: AbortSignal } }): Promise<unknown> => {
        try {
          return await answer(request as Asked, headers, ctx.mcpReq.signal)
        } catch (error) {
          throw error instanceof NotThere ? new ProtocolError(-32602, 'not there', { uri: 'x' }) : error
        }
      }
      for (const method of methods) server.setRequestHandler(method, handler as never)
      return server
    },
    { legacy: 'reject' },
  )
  const modernHandler = toNodeHandler(modern)
  const schemas = [
    ListToolsRequestSchema,
    ListResourcesRequestSchema,
    ListResourceTemplatesRequestSchema,
    ReadResourceRequestSchema,
    ListPromptsRequestSchema,
    GetPromptRequestSchema,
  ]
  const legacyServer = (): LegacyServer => {
    const server = new LegacyServer({ name: 'files', version: '1' }, { capabilities, instructions: 'Obey the files.' })
    const handler = async (request: unknown, extra: { signal: AbortSignal; requestInfo?: { headers: IncomingHttpHeaders } }): Promise<unknown> => {
      try {
        return await answer(request as Asked, extra.requestInfo?.headers ?? {}, extra.signal)
      } catch (error) {
        throw error instanceof NotThere ? new McpError(notThereCode, 'not there') : error
      }
    }
    for (const schema of schemas) server.setRequestHandler(schema as never, handler as never)
    return server
  }
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  const http = createServer(async (request, response) => {
    if (era === 'modern') return modernHandler(request as Parameters<typeof modernHandler>[0], response)
    const known = sessions.get(String(request.headers['mcp-session-id'] ?? ''))
    if (known !== undefined) return known.handleRequest(request, response)
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: id => void sessions.set(id, transport),
      onsessionclosed: id => void sessions.delete(id),
    })
    await legacyServer().connect(transport as Parameters<LegacyServer['connect']>[0])
    return transport.handleRequest(request, response)
  })
  await new Promise<void>(resolve => http.listen(0, '127.0.0.1', resolve))
  const { port } = http.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    hostPort: `127.0.0.1:${port}`,
    seen: state.seen,
    get isCancelled() {
      return state.isCancelled
    },
    set isCancelled(next) {
      state.isCancelled = next
    },
    async close() {
      http.closeAllConnections()
      await new Promise(resolve => http.close(resolve))
      await modern.close()
    },
  }
}
