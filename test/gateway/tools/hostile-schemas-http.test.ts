/** Schemas and lists of a hostile MCP server that cost the most to check. Everybody else waits meanwhile. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { type HostileServer, startHostileServer } from './hostile-server.ts'
import { type McpFixture, startMcpFixture } from './mcp-server.ts'
import { register } from './registered.ts'

const numbers = Array.from({ length: 40_000 }, (_, index) => index)
const long = 'a'.repeat(900_000)
const texts = Array.from({ length: 4000 }, (_, index) => `text ${index}`)
const wide = Object.fromEntries(Array.from({ length: 9000 }, (_, index) => [`n${index}`, 1]))
const list = (schema: object): object => ({ type: 'object', properties: { value: schema } })

/** A schema for the argument `value`, and an argument that takes the longest to check. */
const shapes: Readonly<Record<string, { readonly schema: object; readonly value: unknown }>> = {
  'items that must differ': { schema: { type: 'array', uniqueItems: true }, value: numbers.map(each => [each]).slice(0, 20_000) },
  'one item of many values': { schema: { type: 'array', contains: { enum: texts } }, value: numbers },
  'many schemas of one object': { schema: { allOf: Array.from({ length: 15_000 }, () => ({})) }, value: wide },
  'many lengths of one text': { schema: { allOf: Array.from({ length: 3000 }, () => ({ minLength: 1 })) }, value: long },
  'objects among the values': { schema: { enum: Array.from({ length: 6000 }, () => ({ a: 1 })) }, value: wide },
  'a pattern with many states': { schema: { pattern: '(a?){1000}(a?){1000}(a?){1000}b' }, value: long.slice(0, 60_000) },
  'many patterns with many states': {
    schema: { type: 'array', items: { pattern: '(a?a?a?a?a?a?){160}b' } },
    value: Array.from({ length: 200 }, () => long.slice(0, 4000)),
  },
}
const names = Object.keys(shapes)

let app: TestApp
let server: McpFixture
let hostile: HostileServer
beforeAll(async () => {
  const tools = names.map((name, index) => ({ name: `t${index}`, description: name, inputSchema: list(shapes[name]?.schema ?? {}) }))
  ;[server, hostile] = await Promise.all([startMcpFixture('modern', tools), startHostileServer('two-answers')])
  app = await startApp({ env: { OUTBOUND_ALLOW: [server.hostPort, hostile.hostPort].join(',') } })
  await register(app, 'slow', server.url)
})
afterAll(async () => {
  await app.stop()
  await Promise.all([server.close(), hostile.close()])
})

/** Returns the longest time in milliseconds for which the event loop of this process did nothing else during the work. */
async function longestPauseMs(work: () => Promise<unknown>): Promise<number> {
  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()
  await work()
  await new Promise(resolve => setImmediate(resolve))
  delay.disable()
  return delay.max / 1e6
}

test.each(names)('HARD-01 arguments for %s are checked or refused without a long pause of everybody else', async name => {
  const agent = await app.newAgent(`caller of ${name}`)
  expect((await app.call('PATCH', `/v1/me/agents/${agent.id}`, { allowed_tools: ['slow__*'] })).status).toBe(200)
  const body = JSON.stringify({ arguments: { value: shapes[name]?.value } })
  let status = 0
  const pausedMs = await longestPauseMs(async () => {
    status = (await app.call('POST', `/v1/tools/slow__t${names.indexOf(name)}/call`, body, { token: agent.token })).status
  })
  // The tool of the server fails for every call, so a call that is made answers 502 or with a result.
  expect([200, 400, 502]).toContain(status)
  expect(pausedMs).toBeLessThan(3000)
})

test('HARD-01 a result of many values is an error that names the bound', async () => {
  hostile.tools = [{ name: 'x', inputSchema: { type: 'object' } }]
  hostile.mode = 'many-values'
  await register(app, 'values', hostile.url)
  const agent = await app.newAgent('caller of many values')
  expect((await app.call('PATCH', `/v1/me/agents/${agent.id}`, { allowed_tools: ['values__*'] })).status).toBe(200)
  const { status, json } = await app.call('POST', '/v1/tools/values__x/call', { arguments: {} }, { token: agent.token })
  expect([status, json.error.code, json.error.message]).toEqual([502, 'tool_result_too_large', expect.stringContaining('more than 150000 values')])
})

test('HARD-01 a result of many wrong items is refused at the first one', async () => {
  hostile.tools = [{ name: 'x', inputSchema: { type: 'object' } }]
  hostile.mode = 'many-wrong-items'
  await register(app, 'wrong', hostile.url)
  const agent = await app.newAgent('caller of wrong items')
  expect((await app.call('PATCH', `/v1/me/agents/${agent.id}`, { allowed_tools: ['wrong__*'] })).status).toBe(200)
  let answer: unknown[] = []
  const pausedMs = await longestPauseMs(async () => {
    const { status, json } = await app.call('POST', '/v1/tools/wrong__x/call', { arguments: {} }, { token: agent.token })
    answer = [status, json.error.code]
  })
  expect(answer).toEqual([502, 'tool_server_failed'])
  expect(pausedMs).toBeLessThan(1000)
})

test('HARD-01 a list of hundreds of thousands of tools is not read to its end', async () => {
  hostile.tools = Array.from({ length: 500_000 }, () => ({ name: 'a' }))
  const cookie = await app.signIn()
  const { status, json } = await app.call('POST', '/me/tool-servers', { name: 'many', slug: 'many', url: hostile.url }, { cookie })
  expect([status, JSON.stringify(json)]).toEqual([expect.any(Number), expect.stringContaining('too_large')])
})
