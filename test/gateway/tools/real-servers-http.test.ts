/** MCP servers that others wrote, unmodified from npm, called through the gateway. Two of them speak over standard input and are behind the adapter of the guide. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { type StartedProgram, startProgram } from '../../harness/started-program.ts'
import { until } from '../../harness/until.ts'
import { AdapterFolder, adapterAuth, guideLine } from './adapter.ts'
import { type McpCaller, mcpCaller, type Registered, register } from './registered.ts'

/** One red pixel. */
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='
const packageOf = (name: string): string => dirname(createRequire(import.meta.url).resolve(`@modelcontextprotocol/${name}/package.json`))

let app: TestApp
let folder: AdapterFolder
let reports: string
let everything: StartedProgram
let agent: { id: number; token: string }
const registered = new Map<string, Registered>()

beforeAll(async () => {
  folder = new AdapterFolder()
  reports = join(folder.path, 'reports')
  mkdirSync(reports)
  writeFileSync(join(reports, 'june.txt'), 'Sales went up.\n')
  writeFileSync(join(reports, 'pixel.png'), Buffer.from(pixel, 'base64'))
  const port = await freePort()
  everything = startProgram(process.execPath, [join(packageOf('server-everything'), 'dist/index.js'), 'streamableHttp'], { env: { PORT: String(port) } })
  const lineOf = (program: string, mine: Readonly<Record<string, string>>) => guideLine(program).map(word => mine[word] ?? word)
  const [files, notes] = await Promise.all([
    folder.start(lineOf('server-filesystem', { '/srv/reports': reports })),
    folder.start(lineOf('server-memory', { 'MEMORY_FILE_PATH=/srv/notes.jsonl': `MEMORY_FILE_PATH=${join(folder.path, 'notes.jsonl')}` })),
    until(() => everything.err().includes('listening on port'), 'the server of everything listens'),
  ])
  app = await startApp({ env: { OUTBOUND_ALLOW: [`127.0.0.1:${port}`, files.hostPort, notes.hostPort].join(',') } })
  registered.set('every', await register(app, 'every', `http://127.0.0.1:${port}/mcp`, { price_inr_per_call: 0.5 }))
  registered.set('files', await register(app, 'files', files.url, { auth: adapterAuth }))
  registered.set('notes', await register(app, 'notes', notes.url, { auth: adapterAuth }))
  agent = await app.newAgent('tries')
  await app.call('PATCH', `/v1/me/agents/${agent.id}`, { allowed_tools: ['every__*', 'files__*', 'notes__*'] })
}, 60_000)
afterAll(async () => {
  everything?.child.kill()
  await everything?.ended
  await folder?.close()
  await app?.stop()
})

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}

type Call = McpCaller['call']
const texts = ({ content }: { content: { type: string; text?: string }[] }): string => content.map(({ text = '' }) => text).join('')

/** The server of everything: text, images, structured content, links, resources, a failure of the tool, and progress. */
async function callsEverything(call: Call, withProgress: boolean): Promise<void> {
  expect(texts(await call('every__echo', { message: 'Namaste' }))).toBe('Echo: Namaste')
  expect(texts(await call('every__get-sum', { a: 20, b: 22 }))).toContain('42')
  const image = (await call('every__get-tiny-image')).content.find(({ type }: { type: string }) => type === 'image')
  expect(image).toMatchObject({ mimeType: 'image/png', data: expect.stringMatching(/^iVBORw0KGgo/) })
  const weather = await call('every__get-structured-content', { location: 'Chicago' })
  expect(weather.structuredContent).toEqual({ temperature: 36, conditions: 'Light rain / drizzle', humidity: 82 })
  expect(weather._meta['dev.brigade/origin']).toEqual({
    server: 'every',
    tool: 'get-structured-content',
    hash: registered.get('every')?.hashes.get('every__get-structured-content'),
    untrusted: true,
  })
  const marked = await call('every__get-annotated-message', { messageType: 'error', includeImage: true })
  expect(marked.content[0].annotations).toMatchObject({ priority: 1, audience: ['user', 'assistant'] })
  const links = (await call('every__get-resource-links', { count: 3 })).content.filter(({ type }: { type: string }) => type === 'resource_link')
  expect(links).toHaveLength(3)
  const zipped = await call('every__gzip-file-as-resource', { name: 'a.gz', data: 'data:text/plain,hello', outputType: 'resource' })
  expect(zipped.content[0].resource).toMatchObject({ mimeType: 'application/gzip', blob: expect.any(String) })
  expect(await call('every__gzip-file-as-resource', { data: 'ftp://127.0.0.1/a' })).toMatchObject({ isError: true })
  const notes: unknown[] = []
  const options = withProgress ? { onprogress: (note: unknown) => notes.push(note) } : {}
  expect(texts(await call('every__trigger-long-running-operation', { duration: 0.1, steps: 2 }, options))).toContain('completed')
  if (withProgress)
    expect(notes).toMatchObject([
      { progress: 1, total: 2 },
      { progress: 2, total: 2 },
    ])
}

/** The server of a folder: what it writes is there, what it reads comes back, and a path outside is refused by it. */
async function callsFiles(call: Call, name: string): Promise<void> {
  expect(texts(await call('files__list_directory', { path: reports }))).toContain('[FILE] june.txt')
  expect(texts(await call('files__read_text_file', { path: join(reports, 'june.txt') }))).toBe('Sales went up.\n')
  const media = (await call('files__read_media_file', { path: join(reports, 'pixel.png') })).content[0]
  expect(media).toMatchObject({ type: 'image', mimeType: 'image/png', data: pixel })
  await call('files__write_file', { path: join(reports, name), content: 'Written through Brigade.' })
  expect(readFileSync(join(reports, name), 'utf8')).toBe('Written through Brigade.')
  expect(await call('files__read_text_file', { path: '/etc/hostname' })).toMatchObject({ isError: true })
}

/** The server of notes: all callers of one adapter share its state. */
async function callsNotes(call: Call, name: string): Promise<void> {
  const entity = { name, entityType: 'person', observations: ['likes tea'] }
  expect((await call('notes__create_entities', { entities: [entity] })).structuredContent).toEqual({ entities: [entity] })
  const graph = await call('notes__open_nodes', { names: [name] })
  expect([graph.structuredContent, JSON.parse(texts(graph))]).toEqual(Array(2).fill({ entities: [entity], relations: [] }))
}

describe('servers from npm through the gateway', () => {
  it('TGW-17 the servers everything, filesystem and memory list and answer over MCP in both eras and over HTTP, behind the adapter line of the guide where they speak stdio', async () => {
    for (const era of ['modern', 'legacy'] as const) {
      const client = await mcpCaller(app, era, agent.token)
      const { tools } = await client.list()
      const names = [...registered.values()].flatMap(({ hashes }) => [...hashes.keys()]).sort()
      expect(tools.map(({ name }: { name: string }) => name)).toEqual(names)
      expect(names.length).toBeGreaterThan(30)
      await callsEverything(client.call, true)
      await callsFiles(client.call, `${era}.txt`)
      await callsNotes(client.call, `Asha of ${era}`)
      await client.close()
    }
    const overHttp: Call = async (name, args = {}) => {
      const reply = await app.call('POST', `/v1/tools/${name}/call`, { arguments: args }, { token: agent.token })
      expect(reply.status, reply.text).toBe(200)
      return reply.json
    }
    await callsEverything(overHttp, false)
    await callsFiles(overHttp, 'http.txt')
    await callsNotes(overHttp, 'Asha of HTTP')
    await mounted()
    await cancelled()
  }, 60_000)

  /** The server alone, with the names that it knows itself. */
  async function mounted(): Promise<void> {
    const requestInit = { headers: { authorization: `Bearer ${agent.token}` } }
    const at = (query: string) => new StreamableHTTPClientTransport(new URL(`${app.baseUrl}/mcp/servers/every${query}`), { requestInit })
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } })
    await client.connect(at('?names=own'))
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toContain('get-sum')
    expect(tools.some(({ name }) => name.includes('__'))).toBe(false)
    expect((await client.callTool({ name: 'echo', arguments: { message: 'alone' } })).content).toEqual([{ type: 'text', text: 'Echo: alone' }])
    await expect(client.callTool({ name: 'every__echo', arguments: { message: 'alone' } })).rejects.toMatchObject({ code: -32602 })
    expect((await client.listResources()).resources.length).toBeGreaterThan(0)
    const prompt = await client.getPrompt({ name: 'args-prompt', arguments: { city: 'Pune' } })
    expect(JSON.stringify(prompt.messages)).toContain('Pune')
    await client.close()
    const wrong = new Client({ name: 'test', version: '1' })
    await expect(wrong.connect(at('?names=other'))).rejects.toThrow(/names/)
  }

  /** A caller that leaves ends its call, and pays for what was sent. */
  async function cancelled(): Promise<void> {
    const client = await mcpCaller(app, 'modern', agent.token)
    const cut = new AbortController()
    const notes: unknown[] = []
    const options = { signal: cut.signal, onprogress: (note: unknown) => notes.push(note) }
    const waiting = client.call('every__trigger-long-running-operation', { duration: 600, steps: 6_000 }, options).catch((error: unknown) => error)
    await until(() => notes.length > 0, 'progress arrived')
    cut.abort(new Error('enough'))
    expect(await waiting).toBeInstanceOf(Error)
    await client.close()
    const cookie = await app.signIn()
    const ended = async () => {
      await app.gateway.app.limits.flushNow()
      return (await app.call('GET', '/me/activity/events?kind=tool&outcome=client_gone', undefined, { cookie })).json.events
    }
    await until(async () => (await ended()).length === 1, 'the call has ended')
    expect(await ended()).toMatchObject([{ model: 'every__trigger-long-running-operation', provider: 'mcp:every', value_inr: 0.5 }])
  }
})
