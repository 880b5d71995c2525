import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { Server as LegacyServer } from '@modelcontextprotocol/sdk/server/index.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { createMcpHandler, Server } from '@modelcontextprotocol/server'

/** A call as the server sees it. */
export interface SeenCall {
  readonly name: string
  readonly args: Record<string, unknown>
  readonly headers: IncomingHttpHeaders
  /** True once the client has cancelled. */
  cancelled: boolean
  done: boolean
}

export interface McpFixture {
  readonly url: string
  readonly hostPort: string
  /** The calls so far, oldest first. */
  readonly calls: SeenCall[]
  /** The headers of every request. */
  readonly requests: { method: string | undefined; headers: IncomingHttpHeaders }[]
  /** The definitions. A test may change them. */
  tools: Record<string, unknown>[]
  close(): Promise<void>
}

const anything = { type: 'object', properties: {} }

/** The tools of the fixture. `wait` runs until it is cancelled. */
export const fixtureTools: Record<string, unknown>[] = [
  {
    name: 'echo',
    title: 'Echo',
    description: 'Says what it got.',
    inputSchema: {
      type: 'object',
      properties: { text: { type: 'string', maxLength: 2_000_000, pattern: '^[^!]*$' }, times: { type: 'integer', minimum: 1 } },
      required: ['text'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true },
    'x-unknown': { kept: true },
  },
  { name: 'all-kinds', description: 'Every kind of content.', inputSchema: anything },
  { name: 'fails', description: 'Fails.', inputSchema: anything },
  { name: 'wait', description: 'Runs until it is cancelled.', inputSchema: anything },
  { name: 'steps', description: 'Reports progress.', inputSchema: anything },
  { name: 'headers', description: 'Shows the headers of its request.', inputSchema: anything },
  { name: 'big', description: 'Answers with many bytes.', inputSchema: { type: 'object', properties: { bytes: { type: 'integer' } } } },
]

interface Run {
  readonly signal: AbortSignal
  readonly headers: IncomingHttpHeaders
  report(progress: number, message: string): Promise<void>
}

async function answer(name: string, args: Record<string, unknown>, run: Run, calls: SeenCall[]): Promise<Record<string, unknown>> {
  const seen: SeenCall = { name, args, headers: run.headers, cancelled: false, done: false }
  calls.push(seen)
  const cancelled = new Promise<void>(resolve => {
    run.signal.addEventListener('abort', () => {
      seen.cancelled = true
      resolve()
    })
  })
  const result = await resultOf(name, args, run, cancelled)
  seen.done = true
  return result
}

async function resultOf(name: string, args: Record<string, unknown>, run: Run, cancelled: Promise<void>): Promise<Record<string, unknown>> {
  const text = (said: string) => ({ content: [{ type: 'text', text: said }] })
  switch (name) {
    case 'echo':
      return text(`echo: ${String(args['text'])}`)
    case 'all-kinds':
      return {
        content: [
          { type: 'text', text: 'all', annotations: { audience: ['user'] } },
          { type: 'image', data: 'aGk=', mimeType: 'image/png' },
          { type: 'audio', data: 'aGk=', mimeType: 'audio/wav' },
          { type: 'resource_link', uri: 'file:///a.txt', name: 'a' },
          { type: 'resource', resource: { uri: 'file:///b.txt', text: 'b', mimeType: 'text/plain' } },
        ],
        structuredContent: { answer: 42, list: [1, 2] },
        _meta: { 'example.com/own': 1, 'dev.brigade/origin': 'forged' },
      }
    case 'fails':
      return { ...text('it failed'), isError: true }
    case 'wait':
      await cancelled
      return text('cancelled')
    case 'steps':
      await run.report(1, 'one')
      await run.report(2, 'two')
      return text('done')
    case 'headers':
      return text(JSON.stringify(run.headers))
    case 'big':
      return text('x'.repeat(Number(args['bytes'])))
    default:
      throw new Error(`unknown tool ${name}`)
  }
}

/** Starts a real MCP server on loopback, of one era. */
export async function startMcpFixture(era: 'modern' | 'legacy', tools = fixtureTools): Promise<McpFixture> {
  const calls: SeenCall[] = []
  const fixture: { tools: Record<string, unknown>[]; requests: McpFixture['requests'] } = { tools: structuredClone(tools), requests: [] }
  const list = () => ({ tools: fixture.tools, ttlMs: 0, cacheScope: 'private' as const })
  const modern = createMcpHandler(
    ({ requestInfo }) => {
      const server = new Server({ name: 'fixture', version: '1' }, { capabilities: { tools: {} } })
      // biome-ignore lint/suspicious/noExplicitAny: the fixture sends what no type allows.
      server.setRequestHandler('tools/list', list as any)
      server.setRequestHandler('tools/call', (request, ctx) => {
        const { progressToken } = (ctx.mcpReq._meta ?? {}) as { progressToken?: string | number }
        const report = async (progress: number, message: string): Promise<void> => {
          if (progressToken !== undefined) await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, message } })
        }
        const headers = Object.fromEntries(requestInfo?.headers ?? [])
        const run = { signal: ctx.mcpReq.signal, headers, report }
        // biome-ignore lint/suspicious/noExplicitAny: the fixture sends what no type allows.
        return answer(request.params.name, request.params.arguments ?? {}, run, calls) as any
      })
      return server
    },
    { legacy: 'reject' },
  )
  const modernHandler = toNodeHandler(modern)
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  const legacyServer = (): LegacyServer => {
    const server = new LegacyServer({ name: 'fixture', version: '1' }, { capabilities: { tools: {} } })
    // biome-ignore lint/suspicious/noExplicitAny: the fixture sends what no type allows.
    server.setRequestHandler(ListToolsRequestSchema, list as any)
    server.setRequestHandler(CallToolRequestSchema, (request, extra) => {
      const progressToken = extra._meta?.progressToken
      const report = async (progress: number, message: string): Promise<void> => {
        if (progressToken !== undefined) await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress, message } })
      }
      const run = { signal: extra.signal, headers: (extra.requestInfo?.headers ?? {}) as IncomingHttpHeaders, report }
      // biome-ignore lint/suspicious/noExplicitAny: the fixture sends what no type allows.
      return answer(request.params.name, request.params.arguments ?? {}, run, calls) as any
    })
    return server
  }
  const http = createServer(async (request, response) => {
    fixture.requests.push({ method: request.method, headers: request.headers })
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
    calls,
    requests: fixture.requests,
    get tools() {
      return fixture.tools
    },
    set tools(next) {
      fixture.tools = next
    },
    async close() {
      http.closeAllConnections()
      await new Promise(resolve => http.close(resolve))
      await modern.close()
    },
  }
}
