/**
 * The MCP server of the bench: a keep-alive server that speaks 2026-07-28 by hand and does as little work as possible. Each path is another server with the
 * same tools. `echo` answers immediately with 1 KiB, `slow` after a second, and `wait` never. Below `/bad` every call gets the status 500. It lists
 * `--tools` tools in all. It prints `listening <port>`.
 */
import { createServer } from 'node:http'
import { parseArgs } from 'node:util'

const { values } = parseArgs({ options: { tools: { type: 'string', default: '50' } } })
const slowMs = 1000
const version = '2026-07-28'

const inputSchema = { type: 'object', properties: { text: { type: 'string', description: 'A text to work on.' }, limit: { type: 'integer', minimum: 1 } } }
const toolOf = name => ({ name, description: `The tool ${name} of the bench. It takes a text and a limit, and answers with a text.`, inputSchema })
const own = ['echo', 'slow', 'wait']
const tools = [...own, ...Array.from({ length: Number(values.tools) - own.length }, (_, i) => `tool-${String(i).padStart(3, '0')}`)].map(toolOf)
const _meta = { 'io.modelcontextprotocol/serverInfo': { name: 'bench', version: '1' } }
const fresh = { ttlMs: 0, cacheScope: 'private' }
const content = [{ type: 'text', text: 'word '.repeat(205) }]

const resultOf = method => {
  if (method === 'server/discover') return { supportedVersions: [version], capabilities: { tools: {} }, ...fresh, _meta }
  if (method === 'tools/list') return { tools, ...fresh }
  return method === 'tools/call' ? { content } : {}
}

/** Calls of `wait` that arrived. GET answers with this number. */
let waits = 0

const server = createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
  if (request.method === 'GET') return void response.end(String(waits))
  const parts = []
  request.on('data', part => parts.push(part))
  request.on('end', () => {
    const { id, method, params } = JSON.parse(Buffer.concat(parts).toString() || '{}')
    const answer = () => {
      const body = JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...resultOf(method) } })
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
      response.end(body)
    }
    if (method !== 'tools/call') answer()
    else if (request.url.startsWith('/bad')) response.writeHead(500).end()
    else if (params.name === 'slow') setTimeout(answer, slowMs)
    else if (params.name === 'wait') waits += 1
    else answer()
  })
})
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => console.log(`listening ${server.address().port}`))
