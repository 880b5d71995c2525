import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, inputRequired, Server } from '@modelcontextprotocol/server'

export interface AskingServer {
  readonly url: string
  readonly hostPort: string
  /** What the server read of the client with each call. */
  readonly calls: { readonly capabilities: unknown; readonly answers: unknown; readonly state: unknown }[]
  /** The definitions. A test may change them. */
  tools: Record<string, unknown>[]
  close(): Promise<void>
}

const capabilitiesKey = 'io.modelcontextprotocol/clientCapabilities'
const form = { message: 'Who?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } }

/** What each tool asks. */
const asks: Readonly<Record<string, Record<string, unknown>>> = {
  form: { who: { method: 'elicitation/create', params: form } },
  link: { pay: { method: 'elicitation/create', params: { mode: 'url', message: 'Pay here.', url: 'https://pay.example.com/a?b=c', elicitationId: 'e1' } } },
  'plain-link': { pay: { method: 'elicitation/create', params: { mode: 'url', message: 'Pay here.', url: 'http://pay.example.com/', elicitationId: 'e1' } } },
  sampling: { say: { method: 'sampling/createMessage', params: { messages: [], maxTokens: 5 } } },
  many: Object.fromEntries(Array.from({ length: 9 }, (_, at) => [`q${at}`, { method: 'elicitation/create', params: form }])),
}

/** Starts a real server of protocol 2026-07-28 whose tools ask their caller before they answer. */
export async function startAskingServer(): Promise<AskingServer> {
  const state: { calls: AskingServer['calls']; tools: Record<string, unknown>[] } = {
    calls: [],
    tools: Object.keys(asks).map(name => ({ name, description: 'Asks.', inputSchema: { type: 'object', properties: { text: { type: 'string' } } } })),
  }
  const handler = createMcpHandler(
    () => {
      const server = new Server({ name: 'asking', version: '1' }, { capabilities: { tools: {} } })
      server.setRequestHandler('tools/list', (() => ({ tools: state.tools, ttlMs: 0, cacheScope: 'private' })) as never)
      server.setRequestHandler('tools/call', ((request: { params: { name: string } }, ctx: { mcpReq: Asked }) => {
        const { mcpReq } = ctx
        state.calls.push({ capabilities: mcpReq.envelope?.[capabilitiesKey], answers: mcpReq.inputResponses, state: mcpReq.requestState() })
        if (mcpReq.inputResponses === undefined)
          return inputRequired({ inputRequests: asks[request.params.name], requestState: 'secret state of the server' } as never)
        return { content: [{ type: 'text', text: JSON.stringify(mcpReq.inputResponses) }] }
      }) as never)
      return server
    },
    { legacy: 'reject' },
  )
  const node = toNodeHandler(handler)
  const http = createServer((request, response) => node(request as Parameters<typeof node>[0], response))
  await new Promise<void>(resolve => http.listen(0, '127.0.0.1', resolve))
  const { port } = http.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    hostPort: `127.0.0.1:${port}`,
    calls: state.calls,
    get tools() {
      return state.tools
    },
    set tools(next) {
      state.tools = next
    },
    async close() {
      http.closeAllConnections()
      await new Promise(resolve => http.close(resolve))
      await handler.close()
    },
  }
}

interface Asked {
  readonly envelope?: Readonly<Record<string, unknown>>
  readonly inputResponses?: unknown
  requestState(): unknown
}
