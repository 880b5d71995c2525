/** The `server/discover` era (2026-07-28): the 2.x SDK. It is stateless by design; each request brings its own envelope. */
import { createMcpHandler, type McpServerFactory, ProtocolError, ProtocolErrorCode, Server } from '@modelcontextprotocol/server'
import type { McpIdentity } from './instructions.ts'
import type { ToolProgress } from './tool.ts'
import type { Toolbox } from './toolbox.ts'

export interface DiscoverEra {
  /** Serves one POST whose body is already parsed. */
  serve(request: Request, parsedBody: unknown, toolbox: Toolbox): Promise<Response>
  /** Ends what still runs. */
  close(): Promise<void>
}

/** Makes the handler of this era; `bodyLimitBytes` only repeats the bound that the transport has already held. */
export function makeDiscoverEra(identity: McpIdentity, bodyLimitBytes: number): DiscoverEra {
  // The SDK builds a server for a request through a factory that sees the Request object alone; this is how it finds the caller's tools.
  const toolboxes = new WeakMap<Request, Toolbox>()
  const factory: McpServerFactory = ({ requestInfo }) => {
    const toolbox = requestInfo && toolboxes.get(requestInfo)
    if (!toolbox) throw new Error('a request of the discover era came without its toolbox')
    return makeServer(toolbox, identity)
  }
  // A tool call answers as a stream from the start: its keep-alives carry a model that thinks for a minute past idle timeouts.
  const calls = createMcpHandler(factory, { legacy: 'reject', responseMode: 'sse', maxRequestBodySize: bodyLimitBytes })
  const rest = createMcpHandler(factory, { legacy: 'reject', maxRequestBodySize: bodyLimitBytes })
  return {
    serve(request, parsedBody, toolbox) {
      toolboxes.set(request, toolbox)
      return (isToolCall(parsedBody) ? calls : rest).fetch(request, { parsedBody })
    },
    close: async () => {
      await calls.close()
      await rest.close()
    },
  }
}

function isToolCall(body: unknown): boolean {
  return typeof body === 'object' && body !== null && 'method' in body && body.method === 'tools/call'
}

function makeServer(toolbox: Toolbox, identity: McpIdentity): Server {
  const server = new Server(
    { name: identity.name, title: identity.title, version: identity.version },
    { capabilities: { tools: {} }, instructions: identity.instructions },
  )
  server.setRequestHandler('tools/list', () => ({ tools: toolbox.list() }))
  server.setRequestHandler('tools/call', (request, ctx) => {
    const { name, arguments: args } = request.params
    if (!toolbox.has(name)) throw new ProtocolError(ProtocolErrorCode.InvalidParams, toolbox.unknown(name))
    const token = ctx.mcpReq._meta?.progressToken
    const report = ({ progress, message }: ToolProgress): void => {
      ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken: token ?? '', progress, message } }).catch(() => undefined)
    }
    return toolbox.run(name, args, ctx.mcpReq.signal, token === undefined ? null : report)
  })
  return server
}
