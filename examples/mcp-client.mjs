// An MCP client with version 1 of the SDK (@modelcontextprotocol/sdk). It lists the tools, writes and searches shared memory, and chats.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { connectAgent } from 'brigade-gateway/agents'

const { BRIGADE = 'http://127.0.0.1:8787', BRIGADE_KEY, MODEL = 'sandbox-chat' } = process.env
if (!BRIGADE_KEY) {
  console.error('Set BRIGADE_KEY to an API key of the gateway; its first start has printed one.')
  process.exit(2)
}

const agent = connectAgent({ baseUrl: BRIGADE, agent: 'example-mcp', credential: BRIGADE_KEY, create: true })
const client = new Client({ name: 'example', version: '1' })
await client.connect(new StreamableHTTPClientTransport(...agent.mcp()))
console.log('connected to', client.getServerVersion().name)

const { tools } = await client.listTools()
console.log(tools.length, 'tools:', tools.map(tool => tool.name).join(', '))

/** Calls a tool. A refusal is also a result. Its text says what to do, so that a model can correct the call. */
async function call(name, args = {}) {
  const { isError, structuredContent, content } = await client.callTool({ name, arguments: args })
  if (isError) throw new Error(content[0].text)
  return structuredContent
}

const key = 'agents/example-mcp/notes.md'
await call('memory_write', { key, content: 'The build is green.' })
const { hits } = await call('memory_search', { query: 'build is', prefix: 'agents/example-mcp/' })
console.log('found', hits[0].key, 'line', hits[0].line, 'by', (await call('whoami')).agent.name)

const chat = await call('chat', { model: MODEL, messages: [{ role: 'user', content: 'Say hello to the crew.' }] })
console.log('chat:', JSON.stringify(chat).slice(0, 200))
await client.close()
