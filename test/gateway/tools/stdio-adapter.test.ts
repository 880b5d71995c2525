/** A stdio server behind the adapter of docs/guides/stdio-servers.md, called through the gateway. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { until } from '../../harness/until.ts'
import { AdapterFolder, adapterAuth } from './adapter.ts'
import { mcpCaller, register } from './registered.ts'

/** A server over standard input and output with a tool that adds, one that waits, and one that ends the program. */
const program = `
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { CallToolRequestSchema, ListToolsRequestSchema, ListResourcesRequestSchema, ReadResourceRequestSchema } from '@modelcontextprotocol/sdk/types.js'
const server = new Server({ name: 'sums', version: '1' }, { capabilities: { tools: {}, resources: {} } })
const object = properties => ({ type: 'object', properties })
server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [
  { name: 'add', description: 'Adds.', inputSchema: object({ a: { type: 'number' }, b: { type: 'number' } }) },
  { name: 'wait', description: 'Waits.', inputSchema: object({}) },
  { name: 'cancelled', description: 'Counts cancels.', inputSchema: object({}) },
  { name: 'end', description: 'Ends.', inputSchema: object({}) },
] }))
server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources: [{ uri: 'sum:///pi', name: 'pi' }] }))
server.setRequestHandler(ReadResourceRequestSchema, ({ params }) => ({ contents: [{ uri: params.uri, text: '3.14' }] }))
let cancelled = 0
server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal, sendNotification, _meta }) => {
  const text = said => ({ content: [{ type: 'text', text: String(said) }] })
  if (params.name === 'end') process.exit(1)
  if (params.name === 'cancelled') return text(cancelled)
  if (params.name === 'wait') {
    if (_meta?.progressToken !== undefined) await sendNotification({ method: 'notifications/progress', params: { progressToken: _meta.progressToken, progress: 1, message: 'waiting' } })
    await new Promise(resolve => signal.addEventListener('abort', resolve))
    cancelled += 1
    return text('cancelled')
  }
  return text(params.arguments.a + params.arguments.b)
})
await server.connect(new StdioServerTransport())
`

let app: TestApp
let folder: AdapterFolder
let agent: { id: number; token: string }

beforeAll(async () => {
  folder = new AdapterFolder()
  writeFileSync(join(folder.path, 'program.mjs'), program)
  const { url, hostPort } = await folder.start(['stdio-adapter.mjs', '0', process.execPath, join(folder.path, 'program.mjs')])
  app = await startApp({ env: { OUTBOUND_ALLOW: hostPort, TOOL_TIMEOUT_MS: '5000' } })
  await register(app, 'sums', url, { auth: adapterAuth })
  agent = await app.newAgent('adds')
  await app.call('PATCH', `/v1/me/agents/${agent.id}`, { allowed_tools: ['sums__*'] })
  expect((await fetch(url, { method: 'POST' })).status).toBe(401)
}, 30_000)
afterAll(async () => {
  await folder.close()
  await app.stop()
})

const call = (name: string, args: object = {}, signal?: AbortSignal) =>
  app.call('POST', `/v1/tools/sums__${name}/call`, { arguments: args }, { token: agent.token, ...(signal === undefined ? {} : { signal }) })

describe('a stdio server behind the adapter of the guide', () => {
  it('its tools and resources work in both eras, with progress, and a caller that leaves cancels its call', async () => {
    for (const era of ['modern', 'legacy'] as const) {
      const client = await mcpCaller(app, era, agent.token, 'tools:sums')
      expect((await client.call('sums__add', { a: 2, b: 3 })).content).toEqual([{ type: 'text', text: '5' }])
      const notes: unknown[] = []
      const cut = new AbortController()
      const waiting = client.call('sums__wait', {}, { signal: cut.signal, onprogress: note => notes.push(note) }).catch((error: unknown) => error)
      await until(() => notes.length > 0, 'progress arrived')
      cut.abort(new Error('enough'))
      expect(await waiting).toBeInstanceOf(Error)
      await client.close()
    }
    await until(async () => (await call('cancelled')).json.content?.[0]?.text === '2', 'the program saw both cancels')
    const read = await app.call('GET', '/v1/tool-servers/sums/resource?uri=sum:///pi', undefined, { token: agent.token })
    expect(read.json.contents).toMatchObject([{ uri: 'sum:///pi', text: '3.14' }])
  })

  it('when the program ends in the middle of a call, that call fails, and the next one works', async () => {
    const ended = await call('end')
    expect(ended.status).toBeGreaterThanOrEqual(502)
    await until(async () => (await call('add', { a: 20, b: 22 })).json.content?.[0]?.text === '42', 'the program runs again')
  })
})
