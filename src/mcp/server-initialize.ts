/** The `initialize` era (2025-11-25 and older): the 1.x SDK, stateless, a fresh server and transport for every POST. */
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import { CallToolRequestSchema, ErrorCode, ListToolsRequestSchema, McpError } from '@modelcontextprotocol/sdk/types.js'
import type { McpIdentity } from './instructions.ts'
import type { Toolbox } from './toolbox.ts'

/** Serves one POST whose body is already parsed. The reply's stream ends with the last answer; an abort of `request.signal` ends running tools. */
export async function serveInitializeEra(request: Request, parsedBody: unknown, toolbox: Toolbox, identity: McpIdentity): Promise<Response> {
  const server = makeServer(toolbox, identity)
  const transport = new WebStandardStreamableHTTPServerTransport({})
  await server.connect(transport)
  // Without this the tool would run on, and bill, after its client has gone: a stateless transport does not watch the socket.
  const close = (): void => void server.close()
  request.signal.addEventListener('abort', close, { once: true })
  return transport.handleRequest(request, { parsedBody })
}

function makeServer(toolbox: Toolbox, identity: McpIdentity): Server {
  const server = new Server({ name: identity.name, title: identity.title, version: identity.version }, { capabilities: { tools: {} }, instructions: identity.instructions })
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: toolbox.list() }))
  server.setRequestHandler(CallToolRequestSchema, (request, extra) => {
    const { name, arguments: args } = request.params
    if (!toolbox.has(name)) throw new McpError(ErrorCode.InvalidParams, `Unknown tool: ${name}`)
    const token = extra._meta?.progressToken
    if (token === undefined) return toolbox.run(name, args, extra.signal, null)
    return toolbox.run(name, args, extra.signal, ({ progress, message }) => {
      extra.sendNotification({ method: 'notifications/progress', params: { progressToken: token, progress, message } }).catch(() => undefined)
    })
  })
  return server
}
