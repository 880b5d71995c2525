/**
 * Serves MCP clients of protocol version 2026-07-28, which begin with `server/discover`, through the 2.x SDK. This version is stateless: each request
 * contains its own client information.
 */
import {
  CLIENT_CAPABILITIES_META_KEY,
  createMcpHandler,
  type InputRequiredResult,
  inputRequired,
  type McpServerFactory,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import { type Asked, type Questions, questionMethods, type Surface, SurfaceError, type ToolRun } from '../surface.ts'
import type { McpIdentity } from './instructions.ts'

export interface DiscoverEra {
  /** Serves one POST whose body is already parsed. */
  serve(request: Request, parsedBody: unknown, surface: Surface): Promise<Response>
  /** Ends the requests that still run. */
  close(): Promise<void>
}

/** Returns the handler of this protocol version. The transport has already enforced `bodyLimitBytes`, and the SDK checks the same bound again. */
export function makeDiscoverEra(identity: McpIdentity, bodyLimitBytes: number): DiscoverEra {
  // The SDK calls a factory to build the server of a request, and passes only the Request object. This map finds the caller's surface for that
  // object.
  const surfaces = new WeakMap<Request, Surface>()
  const factory: McpServerFactory = ({ requestInfo }) => {
    const surface = requestInfo && surfaces.get(requestInfo)
    if (!surface) throw new Error('a request of the discover era came without its surface')
    return discoverServer(surface, identity)
  }
  // The reply to a tool call is a stream from the start. Its keep-alives prevent idle timeouts while a model thinks for a minute.
  const calls = createMcpHandler(factory, { legacy: 'reject', responseMode: 'sse', maxRequestBodySize: bodyLimitBytes })
  const rest = createMcpHandler(factory, { legacy: 'reject', maxRequestBodySize: bodyLimitBytes })
  return {
    serve(request, parsedBody, surface) {
      surfaces.set(request, surface)
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

/** Returns a server of this protocol era for one request. It announces the capabilities and change notifications that the surface has. */
export function discoverServer(surface: Surface, identity: McpIdentity): Server {
  const server = new Server(
    { name: identity.name, title: identity.title, version: identity.version },
    { capabilities: capabilitiesOf(surface), instructions: surface.instructions ?? identity.instructions },
  )
  serveTools(server, surface)
  serveResources(server, surface)
  servePrompts(server, surface)
  return server
}

type Capabilities = ReturnType<Server['getCapabilities']>

function capabilitiesOf({ resources, prompts, complete, changes, logging }: Surface): Capabilities {
  const listChanged = (list: 'tools' | 'prompts' | 'resources') => (changes?.lists.includes(list) ? { listChanged: true } : {})
  return {
    tools: listChanged('tools'),
    ...(resources ? { resources: { ...listChanged('resources'), ...(changes ? { subscribe: true } : {}) } } : {}),
    ...(prompts ? { prompts: listChanged('prompts') } : {}),
    ...(complete ? { completions: {} } : {}),
    ...(logging ? { logging: {} } : {}),
  }
}

function serveTools(server: Server, { tools, logging }: Surface): void {
  server.setRequestHandler('tools/list', request => (tools.page === undefined ? { tools: tools.list() } : asProtocol(tools.page(request.params?.cursor))))
  server.setRequestHandler('tools/call', async (request, ctx) => {
    const { name, arguments: args } = request.params
    if (!tools.has(name)) throw new ProtocolError(ProtocolErrorCode.InvalidParams, tools.unknown(name))
    const progressToken = ctx.mcpReq._meta?.progressToken
    const report: ToolRun['report'] =
      progressToken === undefined
        ? null
        : noted => {
            ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, ...noted } }).catch(() => undefined)
          }
    const log: ToolRun['log'] = (level, data) => {
      if (logging) ctx.mcpReq.log(level, data).catch(() => undefined)
    }
    return answerOrQuestions(await asProtocol(tools.run(name, args, { signal: ctx.mcpReq.signal, report, log, asked: askedOf(ctx) })))
  })
}

function serveResources(server: Server, { resources }: Surface): void {
  if (!resources) return
  server.setRequestHandler('resources/list', (request, ctx) => asProtocol(resources.list(request.params?.cursor, ctx.mcpReq.signal)))
  server.setRequestHandler('resources/templates/list', (request, ctx) =>
    resources.templatesPage === undefined
      ? { resourceTemplates: resources.templates() }
      : asProtocol(resources.templatesPage(request.params?.cursor, ctx.mcpReq.signal)),
  )
  server.setRequestHandler('resources/read', async (request, ctx) => ({
    contents: await asProtocol(resources.read(request.params.uri, ctx.mcpReq.signal)),
  }))
}

function servePrompts(server: Server, { prompts, complete }: Surface): void {
  if (prompts) {
    server.setRequestHandler('prompts/list', (request, ctx) =>
      prompts.page === undefined ? { prompts: prompts.list() } : asProtocol(prompts.page(request.params?.cursor, ctx.mcpReq.signal)),
    )
    server.setRequestHandler('prompts/get', async ({ params }, ctx) =>
      answerOrQuestions(await asProtocol(prompts.get(params.name, params.arguments ?? {}, ctx.mcpReq.signal, askedOf(ctx)))),
    )
  }
  if (complete)
    server.setRequestHandler('completion/complete', async (request, ctx) => ({
      completion: { ...(await asProtocol(complete(request.params, ctx.mcpReq.signal))) },
    }))
}

const declaring = z.object({ [CLIENT_CAPABILITIES_META_KEY]: z.record(z.string(), z.unknown()) })

/** Returns the kinds of questions that the client of a request can answer, and its answers to the questions of the last round. */
function askedOf({ mcpReq }: ServerContext): Asked {
  const declared = declaring.safeParse(mcpReq.envelope).data?.[CLIENT_CAPABILITIES_META_KEY]
  return {
    can: kind => declared?.[kind] !== undefined,
    modes: modesOf(declared?.['elicitation']),
    answers: mcpReq.inputResponses,
    state: mcpReq.requestState<string>(),
  }
}

/** Returns the modes that a client declares. An empty object means forms. */
function modesOf(declared: unknown): Asked['modes'] {
  if (typeof declared !== 'object' || declared === null) return { form: false, url: false }
  return { form: 'form' in declared || Object.keys(declared).length === 0, url: 'url' in declared }
}

/** Returns the answer, or the questions in the form of the SDK. The SDK checks whether the client declares this kind of question. */
function answerOrQuestions<T extends object>(said: T | Questions): T | InputRequiredResult {
  if (!('questions' in said)) return said
  const inputRequests = Object.entries(said.questions).map(([name, { kind, params }]) => [name, { method: questionMethods[kind], params }])
  return inputRequired({ inputRequests: Object.fromEntries(inputRequests), ...(said.state === undefined ? {} : { requestState: said.state }) })
}

/** Converts errors into errors of the SDK, because the SDK of this era hides every other error. */
async function asProtocol<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (thrown) {
    throw thrown instanceof SurfaceError ? new ProtocolError(thrown.code, thrown.message, thrown.data) : thrown
  }
}
