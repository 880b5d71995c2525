/** The `server/discover` era (2026-07-28): the 2.x SDK. It is stateless by design; each request brings its own envelope. */
import { createMcpHandler, ProtocolError, ProtocolErrorCode, Server } from '@modelcontextprotocol/server'
import type { McpIdentity } from './instructions.ts'
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
  const handler = createMcpHandler(
    ({ requestInfo }) => {
      const toolbox = requestInfo && toolboxes.get(requestInfo)
      if (!toolbox) throw new Error('a request of the discover era came without its toolbox')
      return makeServer(toolbox, identity)
    },
    { legacy: 'reject', maxRequestBodySize: bodyLimitBytes },
  )
  return {
    serve(request, parsedBody, toolbox) {
      toolboxes.set(request, toolbox)
      return handler.fetch(request, { parsedBody })
    },
    close: () => handler.close(),
  }
}

function makeServer(toolbox: Toolbox, identity: McpIdentity): Server {
  const server = new Server({ name: identity.name, title: identity.title, version: identity.version }, { capabilities: { tools: {} }, instructions: identity.instructions })
  server.setRequestHandler('tools/list', () => ({ tools: toolbox.list() }))
  server.setRequestHandler('tools/call', (request, ctx) => {
    const { name, arguments: args } = request.params
    if (!toolbox.has(name)) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${name}`)
    const token = ctx.mcpReq._meta?.progressToken
    if (token === undefined) return toolbox.run(name, args, ctx.mcpReq.signal, null)
    return toolbox.run(name, args, ctx.mcpReq.signal, ({ progress, message }) => {
      ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken: token, progress, message } }).catch(() => undefined)
    })
  })
  return server
}
