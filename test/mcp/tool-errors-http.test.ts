/** The content of a failed tool call: text for the model, data for the program, and the error in `_meta`. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { errorMetaKey } from '../../src/mcp/tools/toolbox/tool-errors.ts'
import { mcpTools } from '../../src/mcp/tools/tools.ts'
import { startApp, type TestApp, until } from '../harness/app.ts'
import { mcpClients } from './mcp-clients.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({ env: { FOLDER_STORE: 'on' } })
  await app.gateway.app.memory.useFolder(app.orgId)
})
afterAll(() => app.stop())
beforeEach(() => {
  for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
})
const clients = mcpClients(() => app, '/mcp?toolsets=all,tools:search')
afterEach(() => clients.closeAll())

async function raw(name: string, args: unknown) {
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }
  const reply = await app.call('POST', '/mcp?toolsets=all,tools:search', message, { headers: { accept: 'application/json, text/event-stream' } })
  const json = JSON.parse(reply.text.startsWith('{') ? reply.text : (/^data: (.*)$/m.exec(reply.text)?.[1] ?? 'null'))
  return { status: reply.status, result: json.result, error: json.error }
}

describe.each(clients.eras)('a failed call in the %s', (era, connect) => {
  test('MCP-08 a failed call is isError with status 200, and has code, message and status. Its text says what to do, and a reverse-DNS key of _meta has code and status', async () => {
    const client = await connect()
    const reply = await client.call('chat', { model: 'no-such-model', prompt: 'x' })
    expect(reply).toMatchObject({ isError: true, data: { code: 'model_not_found', status: 404, message: expect.any(String), request_id: expect.any(String) } })
    expect(reply.text).toBe(`model_not_found: ${reply.data.message} Next: ${reply.data.next}`)
    expect(errorMetaKey).toMatch(/^[a-z]+(\.[a-z]+)+\/error$/)
    expect(reply.meta[errorMetaKey]).toEqual({ type: 'not_found_error', code: 'model_not_found', status: 404, request_id: reply.data.request_id })
    expect((await raw('chat', { model: 'no-such-model', prompt: 'x' })).status).toBe(200)
  })

  test("MCP-08 a provider's refusal keeps its status, in every tool that calls a provider", async () => {
    const client = await connect()
    for (const [name, args] of [
      ['chat', { model: 'alpha-only', prompt: 'x' }],
      ['embed', { model: 'test-embed', input: ['x'], provider: 'alpha' }],
    ] as const) {
      app.alpha.script([{ status: 422, body: { error: { message: 'that is too odd', code: 'odd' } } }])
      const reply = await client.call(name, args)
      expect(reply, name).toMatchObject({ isError: true, data: { status: 422, code: 'odd' } })
      expect(reply.text).toContain('that is too odd')
      expect(reply.meta[errorMetaKey]).toMatchObject({ code: 'odd', status: 422, type: expect.any(String) })
    }
  })

  test('MCP-10 an unknown tool gets -32602, and the error names it', async () => {
    await expect((await connect()).call('no_such_tool')).rejects.toMatchObject({ code: -32602, message: expect.stringContaining('no_such_tool') })
  })

  test('MCP-26 an agent that has spent its budget gets agent_budget_exceeded, the figures, and advice not to retry. Its tools stay listed', async () => {
    const agent = await app.newAgent(`spent in the ${era}`)
    await app.setBudget('agent', agent.id, 0.000001)
    const client = await connect(agent.token)
    const names = await client.names()
    const ask = () => client.call('chat', { model: 'test-model', prompt: 'more', max_tokens: 10 })
    await ask()
    await until(async () => (await ask()).data.should_retry === false)
    const reply = await ask()
    expect(reply).toMatchObject({ isError: true, data: { code: 'agent_budget_exceeded', status: 429, scope: 'agent' } })
    expect(reply.text).toContain('Do not retry')
    expect(reply.meta[errorMetaKey]).toMatchObject({
      type: 'rate_limit_error',
      code: 'agent_budget_exceeded',
      status: 429,
      should_retry: false,
      scope: 'agent',
      cap_inr: 0.000001,
      spent_inr: expect.any(Number),
      resets_at: expect.stringMatching(/^\d{4}-/),
    })
    expect(reply.meta[errorMetaKey]).not.toHaveProperty('retry_after_s')
    expect(await client.names()).toEqual(names)
    const [budget] = (await client.call('budget_get', { scope: 'agent' })).data.budgets
    expect(budget).toMatchObject({ scope: 'agent', state: 'blocked', remaining_inr: 0 })
  })

  test('the error for an exceeded rate limit says how long to wait', async () => {
    // The handshake and the list of tools take three units in one era and two units in the other.
    const { key } = await app.newKey({ rpm: era.startsWith('initialize') ? 4 : 3 })
    const client = await connect(key)
    // The message pays for the first row that the tool calls, and no unit is left for the second row.
    const reply = await client.call('memory_paths')
    expect(reply.data).toMatchObject({ code: 'rate_limit_exceeded', status: 429, retry_after_s: expect.any(Number) })
    expect(reply.text).toMatch(/Next: Wait \d+ s and try again\.$/)
    expect(reply.meta[errorMetaKey]).toMatchObject({ retry_after_s: reply.data.retry_after_s })
  })
})

describe('MCP-09 invalid arguments', () => {
  const hostile: readonly unknown[] = [null, 0, -1, 1e300, true, '', 'x\u0000y', '../../etc', '\ud800', [], [null], {}, { a: { b: [] } }, 'x'.repeat(5000)]
  const tools = mcpTools(262_144)

  test.each(tools.map(tool => [tool.name, tool] as const))(
    'MCP-09 invalid arguments of %s get isError, or -32602 with the field, and never an error that blames the gateway',
    async (name, tool) => {
      const fields = Object.keys(tool.inputSchema.shape)
      await Promise.all(
        fields.flatMap(field =>
          hostile.slice(0, 4).map(async value => {
            const args = { [field]: value }
            const { status, result, error } = await raw(name, args)
            expect([200, 400], JSON.stringify(args)).toContain(status)
            expect(result?.structuredContent?.status ?? 400, `${JSON.stringify(args)} ${result?.content?.[0]?.text}`).toBeLessThan(500)
            if (error) expect(error.code).toBe(-32602)
          }),
        ),
      )
      const unknown = await raw(name, { no_such_argument: 1 })
      expect(unknown.result).toMatchObject({ isError: true, structuredContent: { code: 'bad_request', status: 400 } })
      expect(unknown.result.content[0].text).toContain('no_such_argument')
    },
  )

  test('MCP-09 hostile values in every field of tools that use a provider or the database are refused or served, never 500', async () => {
    for (const [name, good] of [
      ['chat', { model: 'alpha-only', prompt: 'x' }],
      ['embed', { model: 'test-embed', input: ['x'] }],
      ['models_list', {}],
      ['route_preview', { model: 'test-model', prompt: 'x' }],
      ['usage_get', {}],
      ['budget_get', {}],
    ] as const) {
      const fields = Object.keys(tools.find(tool => tool.name === name)?.inputSchema.shape ?? {})
      // Each field gets a third of the values, and the next field gets another third.
      const calls = fields.flatMap((field, at) => hostile.filter((_, n) => (n + at) % 3 === 0).map(value => ({ ...good, [field]: value })))
      for (let at = 0; at < calls.length; at += 20)
        await Promise.all(
          calls.slice(at, at + 20).map(async args => {
            const { result } = await raw(name, args)
            expect(result?.structuredContent?.status ?? 200, `${name} ${JSON.stringify(args).slice(0, 200)} ${result?.content?.[0]?.text}`).toBeLessThan(500)
          }),
        )
    }
  })

  test('MCP-09 arguments that are not an object get an error of the protocol', async () => {
    for (const args of [[], 'x', 7]) {
      const { status, result, error } = await raw('whoami', args)
      expect(status).toBeLessThan(500)
      expect(result?.isError === true || [-32602, -32600].includes(error?.code), JSON.stringify({ result, error })).toBe(true)
    }
  })
})
