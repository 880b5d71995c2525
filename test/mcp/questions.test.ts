/** Tools and prompts that ask their caller questions, in the wire format of both eras. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Asked, type Questions, type Surface, SurfaceError, type ToolAnswer } from '../../src/mcp/surface.ts'
import { type Mount, startMount } from './mount.ts'

const questions: Questions = {
  questions: { name: { kind: 'elicitation', params: { message: 'Who?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } } } },
  state: 'first',
}

const surface = (): Surface => ({
  tools: {
    running: 0,
    list: () => [{ name: 'ask', description: 'Asks.', inputSchema: { type: 'object' } }],
    has: name => name === 'ask',
    unknown: name => `Unknown tool: ${name}`,
    run: async (_name, _args, { asked }) => answer(asked),
  },
  prompts: {
    list: () => [{ name: 'ask' }],
    get: async (_name, _args, _signal, asked) => (asked?.answers ? { messages: [] } : questions),
  },
})

function answer(asked: Asked | null): ToolAnswer | Questions {
  if (asked?.answers === undefined) return questions
  if (asked.state !== 'first') throw new SurfaceError('badParams', 'The state is not the one that was given.')
  return { content: [{ type: 'text', text: JSON.stringify({ answers: asked.answers, sampling: asked.can('sampling') }) }] }
}

let mount: Mount
beforeAll(async () => {
  mount = await startMount(surface, { bearer: 'br-full' })
})
afterAll(() => mount.close())

type Message = { result?: Record<string, unknown>; error?: { code: number; message: string; data?: unknown } }

async function post(method: string, params: object, headers: Record<string, string>): Promise<Message> {
  const reply = await fetch(mount.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const text = await reply.text()
  return JSON.parse(/^data: (\{.*)$/m.exec(text)?.[1] ?? text)
}

/** Calls a method of the discover era as a client with these capabilities. */
function modern(method: string, params: object, capabilities: object): Promise<Message> {
  const envelope = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': capabilities }
  const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method, 'mcp-name': 'ask' }
  return post(method, { name: 'ask', ...params, _meta: envelope }, headers)
}

const said = { name: { action: 'accept', content: { name: 'Mira' } } }

describe('questions to the client', () => {
  test('a client of the discover era gets the questions with a state, and the tool gets its answers and the state', async () => {
    const first = await modern('tools/call', { arguments: {} }, { elicitation: {} })
    expect(first.result).toMatchObject({ resultType: 'input_required', requestState: 'first', inputRequests: { name: { method: 'elicitation/create' } } })
    const second = await modern('tools/call', { arguments: {}, inputResponses: said, requestState: 'first' }, { elicitation: {}, sampling: {} })
    expect(second.result).toMatchObject({ content: [{ text: JSON.stringify({ answers: said, sampling: true }) }] })
  })

  test("a changed state is refused with the surface's own message", async () => {
    const { error } = await modern('tools/call', { arguments: {}, inputResponses: said, requestState: 'other' }, { elicitation: {} })
    expect(error).toMatchObject({ code: -32602, message: 'The state is not the one that was given.' })
  })

  test('a client that does not declare the kind of a question gets an error that says so', async () => {
    const { error } = await modern('tools/call', { arguments: {} }, {})
    expect(error).toMatchObject({ code: -32021, data: { requiredCapabilities: { elicitation: {} } } })
  })

  test('a prompt can ask questions too', async () => {
    expect((await modern('prompts/get', {}, { elicitation: {} })).result).toMatchObject({ resultType: 'input_required' })
    expect((await modern('prompts/get', { inputResponses: said }, { elicitation: {} })).result).toMatchObject({ messages: [] })
  })

  test.each(['tools/call', 'prompts/get'])('a client of the initialize era gets an error from %s that says that it cannot be asked', async method => {
    const { error } = await post(method, { name: 'ask', arguments: {} }, { 'mcp-protocol-version': '2025-11-25' })
    expect(error?.message).toContain('needs a client of protocol 2026-07-28')
  })
})
