import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'

export interface HostileServer {
  readonly url: string
  readonly hostPort: string
  /** What the server does with the next calls of a tool. */
  mode: HostileMode
  /** The definitions that it lists. */
  tools: object[]
  /** Calls of a tool that arrived. */
  calls: number
  /** True once a connection of a call was closed by the client. */
  hungUp: boolean
  close(): Promise<void>
}

export type HostileMode =
  | { readonly status: number; readonly headers?: Record<string, string> }
  | 'hang'
  | 'hang-mid-stream'
  | 'comments'
  | 'huge'
  | 'gzip'
  | 'deep'
  | 'many-values'
  | 'many-wrong-items'
  | 'wrong-id'
  | 'two-answers'
  | 'no-answer'
  | 'broken-json'
  | 'cursor-loop'
  | 'endless-pages'
  | 'rpc-error'
  | 'asks'
  | 'drop'

const meta = { 'io.modelcontextprotocol/serverInfo': { name: 'hostile', version: '1' } }

/** Starts a server that speaks 2026-07-28 by hand, and misbehaves as `mode` says. */
export async function startHostileServer(mode: HostileMode): Promise<HostileServer> {
  const state = { mode, tools: [] as object[], calls: 0, hungUp: false }
  let page = 0
  const http = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { id, method } = JSON.parse(Buffer.concat(chunks).toString() || '{}') as { id?: unknown; method?: string }
      const json = (result: object): void => {
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...result } }))
      }
      if (method === 'server/discover') {
        json({ supportedVersions: ['2026-07-28'], capabilities: { tools: {} }, ttlMs: 0, cacheScope: 'private', _meta: meta })
        return
      }
      if (method === 'tools/list') {
        page++
        const nextCursor = state.mode === 'cursor-loop' ? 'again' : state.mode === 'endless-pages' ? `page-${page}` : undefined
        json({ tools: state.tools, ttlMs: 0, cacheScope: 'private', ...(nextCursor === undefined ? {} : { nextCursor }) })
        return
      }
      if (method !== 'tools/call') {
        json({})
        return
      }
      state.calls++
      response.on('close', () => {
        if (!response.writableFinished) state.hungUp = true
      })
      misbehave(state.mode, id, response)
    })
  })
  await new Promise<void>(resolve => http.listen(0, '127.0.0.1', resolve))
  const { port } = http.address() as AddressInfo
  return Object.assign(state, {
    url: `http://127.0.0.1:${port}/mcp`,
    hostPort: `127.0.0.1:${port}`,
    async close() {
      http.closeAllConnections()
      await new Promise(resolve => http.close(resolve))
    },
  })
}

const answerTo = (id: unknown, text = 'hello'): string =>
  JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete', content: [{ type: 'text', text }] } })

function misbehave(mode: HostileMode, id: unknown, response: ServerResponse): void {
  const stream = (): void => void response.writeHead(200, { 'content-type': 'text/event-stream' })
  const json = (body: string | Buffer, headers: Record<string, string> = {}): void => {
    response.writeHead(200, { 'content-type': 'application/json', ...headers })
    response.end(body)
  }
  const pump = (line: string): void => {
    stream()
    const more = (): void => {
      while (!response.destroyed && response.write(line));
      if (!response.destroyed) response.once('drain', more)
    }
    more()
  }
  if (typeof mode === 'object') {
    response.writeHead(mode.status, mode.headers)
    response.end('secret words of the server')
    return
  }
  switch (mode) {
    case 'hang':
      return
    case 'hang-mid-stream':
      stream()
      response.write(`data: ${answerTo(id).slice(0, 20)}`)
      return
    case 'comments':
      pump(`: ${'x'.repeat(4000)}\n\n`)
      return
    case 'huge':
      json(answerTo(id, 'x'.repeat(3_000_000)))
      return
    case 'gzip':
      json(gzipSync(Buffer.alloc(5_000_000, 'x')), { 'content-encoding': 'gzip' })
      return
    case 'deep':
      json(
        `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"resultType":"complete","content":[],"structuredContent":${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}}}`,
      )
      return
    case 'many-values':
      json(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"resultType":"complete","content":[],"structuredContent":[${'[],'.repeat(200_000)}[]]}}`)
      return
    case 'many-wrong-items':
      json(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"resultType":"complete","content":[${'{},'.repeat(70_000)}{}]}}`)
      return
    case 'wrong-id':
      json(answerTo('another'))
      return
    case 'two-answers':
      stream()
      response.end(`data: ${answerTo(id, 'first')}\n\ndata: ${answerTo(id, 'second')}\n\n`)
      return
    case 'no-answer':
      stream()
      response.end(': bye\n\n')
      return
    case 'broken-json':
      stream()
      response.end('data: {"jsonrpc":\n\n')
      return
    case 'rpc-error':
      json(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32602, message: 'Unknown tool: hello; Bearer top-secret-token' } }))
      return
    case 'asks':
      json(JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'input_required', inputRequests: {}, requestState: 'state' } }))
      return
    case 'drop':
      response.destroy()
      return
    default:
      json(answerTo(id))
  }
}
