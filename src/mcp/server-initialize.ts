/** Serves the `initialize` era (2025-11-25 and older) with the 1.x SDK. It is stateless: every POST has a new server and transport. */
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import {
  CallToolRequestSchema,
  CancelledNotificationSchema,
  CompleteRequestSchema,
  ErrorCode,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { z } from 'zod'
import type { McpIdentity } from './documents/instructions.ts'
import { type Questions, type Surface, SurfaceError, type ToolAnswer, type ToolEntry, type ToolRun } from './surface.ts'
import type { Cancellations } from './transport/cancellations.ts'
import { listTurn } from './transport/list-turns.ts'

/** The running calls of `owner`. A cancel notification may end them. */
export interface CancelScope {
  readonly cancellations: Cancellations
  readonly owner: string
}

/** Serves one POST whose body is already parsed. The reply's stream ends with the last answer. An abort of `request.signal` ends running tools. */
export async function serveInitializeEra(
  request: Request,
  parsedBody: unknown,
  surface: Surface,
  identity: McpIdentity,
  scope: CancelScope,
): Promise<Response> {
  if (request.signal.aborted) return new Response(null, { status: 499 })
  const server = makeServer(surface, identity)
  serveTools(server, surface, scope)
  serveResources(server, surface)
  servePrompts(server, surface)
  const transport = new WebStandardStreamableHTTPServerTransport({})
  await server.connect(transport)
  // A stateless transport does not watch the socket. Without this listener, the tool would continue and cost money after its client has disconnected.
  request.signal.addEventListener('abort', () => void server.close(), { once: true })
  return transport.handleRequest(request, { parsedBody })
}

/** The SDK would make a validator of JSON Schema for every server, so for every POST. Only questions to a client need one, and this era asks none. */
const noValidator = {
  getValidator: (): never => {
    throw new Error('a server of this era asks its client nothing')
  },
}

/** Returns the server of one POST. It announces no list changes and no subscriptions, because without sessions there is no stream for notifications. */
function makeServer(surface: Surface, identity: McpIdentity): Server {
  return new Server(
    { name: identity.name, title: identity.title, version: identity.version },
    {
      capabilities: {
        tools: {},
        ...(surface.resources ? { resources: {} } : {}),
        ...(surface.prompts ? { prompts: {} } : {}),
        ...(surface.complete ? { completions: {} } : {}),
        ...(surface.logging ? { logging: {} } : {}),
      },
      instructions: surface.instructions ?? identity.instructions,
      jsonSchemaValidator: noValidator,
    },
  )
}

/**
 * The SDK checks a call itself and answers -32602 when it is malformed. If this schema checked the whole call, the client would see a failure of the
 * gateway.
 */
const toolCall = z.looseObject({ method: z.literal('tools/call') })

function serveTools(server: Server, { tools, logging }: Surface, { cancellations, owner }: CancelScope): void {
  server.setRequestHandler(ListToolsRequestSchema, async request => {
    await listTurn()
    return tools.page === undefined ? { tools: tools.list() } : ofThisEra(await tools.page(request.params?.cursor))
  })
  server.setNotificationHandler(CancelledNotificationSchema, notification => {
    const id = notification.params.requestId
    if (id !== undefined) cancellations.cancel(owner, id)
  })
  server.setRequestHandler(toolCall, (request, extra) => {
    const { name, arguments: args } = CallToolRequestSchema.parse(request).params
    if (!tools.has(name)) throw new McpError(ErrorCode.InvalidParams, tools.unknown(name))
    const progressToken = extra._meta?.progressToken
    const report: ToolRun['report'] =
      progressToken === undefined
        ? null
        : noted => {
            extra.sendNotification({ method: 'notifications/progress', params: { progressToken, ...noted } }).catch(() => undefined)
          }
    const log: ToolRun['log'] = (level, data) => {
      if (logging) extra.sendNotification({ method: 'notifications/message', params: { level, data } }).catch(() => undefined)
    }
    return cancellations.run(owner, extra.requestId, async cancelled =>
      withoutOther(answerOnly(await tools.run(name, args, { signal: AbortSignal.any([extra.signal, cancelled]), report, log, asked: null }))),
    )
  })
}

function serveResources(server: Server, { resources }: Surface): void {
  if (!resources) return
  server.setRequestHandler(ListResourcesRequestSchema, async (request, extra) => {
    await listTurn()
    return resources.list(request.params?.cursor, extra.signal)
  })
  server.setRequestHandler(ListResourceTemplatesRequestSchema, async (request, extra) => {
    await listTurn()
    return resources.templatesPage === undefined ? { resourceTemplates: resources.templates() } : resources.templatesPage(request.params?.cursor, extra.signal)
  })
  server.setRequestHandler(ReadResourceRequestSchema, async (request, extra) => ({ contents: await resources.read(request.params.uri, extra.signal) }))
}

function servePrompts(server: Server, { prompts, complete }: Surface): void {
  if (prompts) {
    server.setRequestHandler(ListPromptsRequestSchema, async (request, extra) => {
      await listTurn()
      return prompts.page === undefined ? { prompts: prompts.list() } : prompts.page(request.params?.cursor, extra.signal)
    })
    server.setRequestHandler(GetPromptRequestSchema, async ({ params }, extra) =>
      answerOnly(await prompts.get(params.name, params.arguments ?? {}, extra.signal, null)),
    )
  }
  if (complete)
    server.setRequestHandler(CompleteRequestSchema, async (request, extra) => ({ completion: { ...(await complete(request.params, extra.signal)) } }))
}

/** Returns the answer. Throws SurfaceError when the tool asks questions, because this era has no way to ask its client. */
function answerOnly<T extends object>(said: T | Questions): T {
  if ('questions' in said) throw new SurfaceError('refused', 'This asks its caller back, which needs a client of protocol 2026-07-28.')
  return said
}

const isObject = (value: unknown): value is { readonly [key: string]: unknown } => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Leaves out structured content that is no object, because this era has no place for it. The texts of the answer stay. */
function withoutOther(answer: ToolAnswer): ToolAnswer {
  if (answer.structuredContent === undefined || isObject(answer.structuredContent)) return answer
  const { structuredContent: _other, ...rest } = answer
  return rest
}

/** Leaves out output schemas that describe something else than an object. */
function ofThisEra({ tools, ...page }: { tools: ToolEntry[]; nextCursor?: string }): { tools: ToolEntry[]; nextCursor?: string } {
  return { ...page, tools: tools.map(tool => (isOfThisEra(tool['outputSchema']) ? tool : withoutOutput(tool))) }
}

const isOfThisEra = (schema: unknown): boolean => schema === undefined || (isObject(schema) && schema['type'] === 'object')

function withoutOutput({ outputSchema: _other, ...rest }: ToolEntry): ToolEntry {
  return { ...rest, name: rest.name, inputSchema: rest.inputSchema }
}
