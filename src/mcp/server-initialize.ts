/** The `initialize` era (2025-11-25 and older): the 1.x SDK, stateless, a fresh server and transport for every POST. */
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import { CallToolRequestSchema, CancelledNotificationSchema, ErrorCode, ListToolsRequestSchema, McpError } from '@modelcontextprotocol/sdk/types.js'
import type { Cancellations } from './cancellations.ts'
import type { McpIdentity } from './instructions.ts'
import type { ToolProgress } from './tool.ts'
import type { Toolbox } from './toolbox.ts'

/** Where cancels of this era find the calls of `owner`. */
export interface CancelScope {
  readonly cancellations: Cancellations
  readonly owner: string
}

/** Serves one POST whose body is already parsed. The reply's stream ends with the last answer; an abort of `request.signal` ends running tools. */
export async function serveInitializeEra(
  request: Request,
  parsedBody: unknown,
  toolbox: Toolbox,
  identity: McpIdentity,
  scope: CancelScope,
): Promise<Response> {
  if (request.signal.aborted) return new Response(null, { status: 499 })
  const server = makeServer(toolbox, identity, scope)
  const transport = new WebStandardStreamableHTTPServerTransport({})
  await server.connect(transport)
  // Without this the tool would run on, and bill, after its client has gone: a stateless transport does not watch the socket.
  request.signal.addEventListener('abort', () => void server.close(), { once: true })
  return transport.handleRequest(request, { parsedBody })
}

function makeServer(toolbox: Toolbox, identity: McpIdentity, { cancellations, owner }: CancelScope): Server {
  const server = new Server(
    { name: identity.name, title: identity.title, version: identity.version },
    { capabilities: { tools: {} }, instructions: identity.instructions },
  )
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: toolbox.list() }))
  server.setNotificationHandler(CancelledNotificationSchema, notification => {
    const id = notification.params.requestId
    if (id !== undefined) cancellations.cancel(owner, id)
  })
  server.setRequestHandler(CallToolRequestSchema, (request, extra) => {
    const { name, arguments: args } = request.params
    if (!toolbox.has(name)) throw new McpError(ErrorCode.InvalidParams, toolbox.unknown(name))
    const token = extra._meta?.progressToken
    const report = ({ progress, message }: ToolProgress): void => {
      extra.sendNotification({ method: 'notifications/progress', params: { progressToken: token ?? '', progress, message } }).catch(() => undefined)
    }
    return cancellations.run(owner, extra.requestId, cancelled =>
      toolbox.run(name, args, AbortSignal.any([extra.signal, cancelled]), token === undefined ? null : report),
    )
  })
  return server
}
