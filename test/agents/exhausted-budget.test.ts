/** An agent whose budget is spent. Every endpoint and every tool that charges says so, and no provider is dialed. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { bindingsOf, endpointTable } from '../../src/gateway/http/rows/endpoint-table.ts'
import { mcpTools } from '../../src/mcp/tools/tools.ts'
import { defaultOperatorFile, startApp, type TestApp } from '../harness/app.ts'
import { picture as pictureOf } from '../harness/pictures.ts'
import { wavOf } from '../harness/wav.ts'
import { codeIn, familyOf, newName } from './family.ts'

/** A valid body: JSON fields, or a form when there is a file. */
interface Asked {
  /** The model in the path. */
  readonly model?: string
  readonly body: Readonly<Record<string, unknown>>
  readonly file?: { readonly field: string; readonly bytes: () => Promise<Buffer> | Buffer }
}

const messages = [{ role: 'user', content: 'Hello there' }]
const content = { role: 'user', parts: [{ text: 'Hello there' }] }
const generated = { contents: [content], generationConfig: { maxOutputTokens: 50 } }
/** Every endpoint that charges, with each kind of call that it accepts. */
const endpoints: Readonly<Record<string, readonly Asked[]>> = {
  'POST /v1/chat/completions': [
    { body: { model: 'alpha-only', messages, max_tokens: 50 } },
    { body: { model: 'alpha-only', messages, max_tokens: 50, stream: true } },
    { body: { model: 'auto', messages } },
  ],
  'POST /v1/messages': [{ body: { model: 'alpha-only', messages, max_tokens: 50 } }, { body: { model: 'alpha-only', messages, max_tokens: 50, stream: true } }],
  'POST /v1/responses': [{ body: { model: 'alpha-only', input: 'Hello there' } }, { body: { model: 'alpha-only', input: 'Hello there', stream: true } }],
  'POST /v1beta/models/{model+}:generateContent': [{ model: 'alpha-only', body: generated }],
  'POST /v1beta/models/{model+}:streamGenerateContent': [{ model: 'alpha-only', body: generated }],
  'POST /v1beta/models/{model+}:embedContent': [{ model: 'test-embed', body: { content } }],
  'POST /v1beta/models/{model+}:batchEmbedContents': [{ model: 'test-embed', body: { requests: [{ model: 'models/test-embed', content }] } }],
  'POST /v1/embeddings': [{ body: { model: 'test-embed', input: 'Hello there' } }],
  'POST /v1/images/generations': [{ body: { model: 'draw', prompt: 'a boat' } }],
  'POST /v1/images/edits': [{ body: { model: 'draw', prompt: 'a boat' }, file: { field: 'image', bytes: () => pictureOf(8, 8) } }],
  'POST /v1/rerank': [{ body: { model: 'rank', query: 'red', documents: ['a red apple'] } }],
  'POST /v1/moderations': [{ body: { model: 'guard', input: 'hello' } }],
  'POST /v1/audio/speech': [{ body: { model: 'say', input: 'hello', voice: 'v' } }],
  'POST /v1/audio/transcriptions': [{ body: { model: 'hear' }, file: { field: 'file', bytes: () => wavOf(1) } }],
}
/** Every tool that charges. */
const tools: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  chat: { model: 'alpha-only', prompt: 'Hello there', max_tokens: 50 },
  embed: { model: 'test-embed', input: ['Hello there'] },
  image_generate: { model: 'draw', prompt: 'a boat' },
}

const price = { source: 'test', as_of: '2026-01-01' }
let app: TestApp
/** The callers: an agent that has spent its budget, a child of it, and a plain key that names it. */
const exhausted: Record<string, { token: string; headers: Record<string, string> }> = {}

beforeAll(async () => {
  app = await startApp({
    operatorFile: urls => {
      const file = defaultOperatorFile(urls)
      const at = (more: object) => [{ provider: 'alpha', upstream_model: 'up', ...more, ...price }]
      return {
        ...file,
        models: [
          ...file.models,
          { id: 'draw', kind: 'image', inr_per_image: 3, edits: true, routes: [{ provider: 'alpha', upstream_model: 'up' }] },
          { id: 'say', kind: 'speech', default_voice: 'v', routes: at({ inr_per_million_characters: 50 }) },
          { id: 'rank', kind: 'rerank', routes: at({ inr_per_thousand_searches: 192 }) },
          { id: 'guard', kind: 'moderation', routes: at({ input_inr_per_mtok: 0 }) },
          { id: 'hear', kind: 'transcription', routes: at({ inr_per_minute: 0.6 }) },
        ],
      }
    },
  })
  const family = familyOf(app)
  const agent = await family.lead(0.02)
  const child = await family.born(agent, { monthly_budget_inr: 0.02 })
  const last = await family.chatUntilRefused(agent.token)
  expect([last.status, last.json.error.code]).toEqual([429, 'agent_budget_exceeded'])
  const name = newName('named')
  const named = await app.newAgent(name)
  await family.budget(named.id, 0.000001)
  await family.chatUntilRefused(named.token)
  exhausted['its own token'] = { token: agent.token, headers: {} }
  exhausted['a token of its child'] = { token: child.token, headers: {} }
  exhausted['a plain key in its name'] = { token: app.key, headers: { 'x-br-agent-id': name } }
})
afterAll(() => app.stop())
beforeEach(() => {
  for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
})

const dialed = () => [app.alpha, app.beta, app.indus].map(({ requests }) => requests.length)
const callers = ['its own token', 'a token of its child', 'a plain key in its name']

async function post(at: string, { model = '', body, file }: Asked, { token, headers }: { token: string; headers: Record<string, string> }) {
  const path = at.replace('POST ', '').replace('{model+}', model)
  if (file === undefined) return app.call('POST', path, body, { token, headers })
  const form = new FormData()
  for (const [name, value] of Object.entries(body)) form.append(name, String(value))
  form.append(file.field, new Blob([new Uint8Array(await file.bytes())]), 'a.bin')
  const reply = await fetch(app.baseUrl + path, { method: 'POST', headers: { authorization: `Bearer ${token}`, ...headers }, body: form })
  return { status: reply.status, headers: reply.headers, json: await reply.json() }
}

describe('BUDX-05 an agent that has spent its budget', () => {
  test('this file lists every endpoint and every tool that charges', () => {
    const rows = bindingsOf(endpointTable).filter(({ row }) => row.inference === true)
    expect(rows.map(({ at }) => at).sort()).toEqual(Object.keys(endpoints).sort())
    const charging = mcpTools(262_144).filter(({ row }) => row.inference === true)
    expect(charging.map(({ name }) => name).sort()).toEqual(Object.keys(tools).sort())
  })

  for (const [at, asked] of Object.entries(endpoints))
    test.each(callers)(`BUDX-05 ${at} answers 429 agent_budget_exceeded and says not to retry, for %s`, async caller => {
      for (const one of asked) {
        const reply = await post(at, one, exhausted[caller] ?? { token: '', headers: {} })
        expect([reply.status, codeIn(reply.json), reply.headers.get('x-should-retry')]).toEqual([429, 'agent_budget_exceeded', 'false'])
        expect(reply.json).toMatchObject({ scope: 'agent', cap_inr: expect.any(Number), spent_inr: expect.any(Number), resets_at: expect.any(String) })
      }
      expect(dialed()).toEqual([0, 0, 0])
    })

  for (const [name, args] of Object.entries(tools))
    test.each(callers)(`BUDX-05 the tool ${name} returns the error agent_budget_exceeded and says not to retry, for %s`, async caller => {
      const { token, headers } = exhausted[caller] ?? { token: '', headers: {} }
      const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }
      const { status, text } = await app.call('POST', '/mcp?toolsets=all', message, {
        token,
        headers: { ...headers, accept: 'application/json, text/event-stream' },
      })
      const { result } = JSON.parse(text.startsWith('{') ? text : (/^data: (.*)$/m.exec(text)?.[1] ?? 'null'))
      expect([status, result.isError]).toEqual([200, true])
      expect(result.structuredContent).toMatchObject({ code: 'agent_budget_exceeded', status: 429, scope: 'agent', should_retry: false })
      expect(result.content[0].text).toMatch(/^agent_budget_exceeded: .* Next: Do not retry/)
      expect(dialed()).toEqual([0, 0, 0])
    })
})
