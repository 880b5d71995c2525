/** A plain key that names an agent in x-br-agent-id. The agent's budget, rules, limit of concurrent calls and revocation apply to every kind of call. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { bindingsOf, endpointTable } from '../../src/gateway/http/rows/endpoint-table.ts'
import { type ImageProviders, keys, startImageProviders } from '../gateway/inference/images/image-providers.ts'
import { defaultOperatorFile, startApp, type TestApp, until } from '../harness/app.ts'
import { picture as pictureOf } from '../harness/pictures.ts'
import { wavOf } from '../harness/wav.ts'
import { codeIn, familyOf, newName, said as saidBy } from './family.ts'

interface Answer {
  readonly status: number
  readonly code: string | null
}
interface Ask {
  (token: string, headers?: Record<string, string>): Promise<Answer>
  /** The path of the endpoint. */
  readonly at: string
}

const price = { source: 'test', as_of: '2026-01-01' }
const messages = [{ role: 'user', content: 'Hello there' }]
const content = { role: 'user', parts: [{ text: 'Hello there' }] }
const generated = { contents: [content], generationConfig: { maxOutputTokens: 50 } }
const embedded = { requests: [{ model: 'models/test-embed', content }] }
const picture = { data: [{ url: 'https://pictures.example/1.png' }] }
const members = ['flux-1-schnell', 'flux-1-dev', 'sdxl']

describe('an agent that a plain key names', () => {
  let app: TestApp
  let family: ReturnType<typeof familyOf>
  let providers: ImageProviders
  beforeAll(async () => {
    providers = await startImageProviders()
    app = await startApp({
      env: { ...providers.env, TEST_GANGA_KEY: keys.ganga, CIRCUIT_FAILURES: '1000', FOLDER_STORE: 'on' },
      operatorFile: urls => {
        const file = defaultOperatorFile(urls)
        const at = (more: object) => [{ provider: 'alpha', upstream_model: 'up', ...more, ...price }]
        return {
          providers: [...file.providers, { id: 'ganga', base_url: `${providers.origin}/ganga/v1`, residency: 'india', api_key_env: 'TEST_GANGA_KEY' }],
          models: [
            ...file.models,
            { id: 'draw', kind: 'image', inr_per_image: 3, edits: true, routes: [{ provider: 'alpha', upstream_model: 'up' }] },
            { id: 'say', kind: 'speech', default_voice: 'v', routes: at({ inr_per_million_characters: 50 }) },
            { id: 'rank', kind: 'rerank', routes: at({ inr_per_thousand_searches: 192 }) },
            { id: 'guard', kind: 'moderation', routes: at({ input_inr_per_mtok: 10 }) },
            { id: 'hear', kind: 'transcription', routes: at({ inr_per_minute: 0.6 }) },
            {
              id: 'eye',
              kind: 'chat',
              context_length: 100_000,
              modalities: ['text', 'image'],
              routes: at({ input_inr_per_mtok: 10, output_inr_per_mtok: 40 }),
            },
            ...members.map(id => ({ id, inr_per_image: 3, routes: [{ provider: 'ganga' }] })),
          ],
        }
      },
    })
    await app.gateway.app.memory.useFolder(app.orgId)
    family = familyOf(app)
  })
  afterAll(async () => {
    await app.stop()
    await providers.close()
  })
  beforeEach(() => {
    providers.reset()
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
    app.alpha.script(({ path }) => {
      if (path.includes('/images/')) return { body: picture }
      if (path.endsWith('/rerank')) return { body: { results: [{ index: 0, relevance_score: 1 }] } }
      if (path.endsWith('/moderations')) return { body: { id: 'm', results: [{ categories: {} }] } }
      if (path.endsWith('/speech')) return { body: 'sound', headers: { 'content-type': 'audio/mpeg' } }
      if (path.endsWith('/transcriptions')) return { body: { text: 'hello', usage: { type: 'duration', seconds: 1 } } }
      return {}
    })
  })

  const asking = (at: string, ask: (token: string, headers: Record<string, string>) => Promise<Answer>): Ask =>
    Object.assign((token: string, headers: Record<string, string> = {}) => ask(token, headers), { at })
  const json = (path: string, body: object, at = path): Ask =>
    asking(at, async (token, headers) => {
      const { status, json } = await app.call('POST', path, body, { token, headers })
      return { status, code: codeIn(json) ?? null }
    })
  const google = (model: string, verb: string, body: object): Ask => json(`/v1beta/models/${model}:${verb}`, body, `/v1beta/models/{model+}:${verb}`)
  const form = (path: string, model: string, field: string, bytes: () => Promise<Buffer> | Buffer): Ask =>
    asking(path, async (token, headers) => {
      const body = new FormData()
      body.append('model', model)
      body.append('prompt', 'hello')
      body.append(field, new Blob([new Uint8Array(await bytes())]), 'a.bin')
      const reply = await fetch(app.baseUrl + path, { method: 'POST', headers: { authorization: `Bearer ${token}`, ...headers }, body })
      const text = await reply.text()
      return { status: reply.status, code: text.startsWith('{') ? (JSON.parse(text).error?.code ?? null) : null }
    })
  const tool = (name: string, args: object): Ask =>
    asking('/mcp', async (token, headers) => {
      const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }
      const { text } = await app.call('POST', '/mcp', message, { token, headers: { accept: 'application/json, text/event-stream', ...headers } })
      const { result } = JSON.parse(text.startsWith('{') ? text : (/^data: (.*)$/m.exec(text)?.[1] ?? 'null'))
      return result.isError ? { status: result.structuredContent.status, code: result.structuredContent.code } : { status: 200, code: null }
    })

  /** Every kind of call that charges. `model` is the model that serves the call. */
  const charging: Record<string, { readonly model: string; readonly ask: Ask }> = {
    chat: { model: 'alpha-only', ask: json('/v1/chat/completions', { model: 'alpha-only', messages, max_tokens: 50 }) },
    'streamed chat': { model: 'alpha-only', ask: json('/v1/chat/completions', { model: 'alpha-only', messages, max_tokens: 50, stream: true }) },
    messages: { model: 'alpha-only', ask: json('/v1/messages', { model: 'alpha-only', messages, max_tokens: 50 }) },
    responses: { model: 'alpha-only', ask: json('/v1/responses', { model: 'alpha-only', input: 'Hello there', max_output_tokens: 50 }) },
    gemini: { model: 'alpha-only', ask: google('alpha-only', 'generateContent', generated) },
    'streamed gemini': { model: 'alpha-only', ask: google('alpha-only', 'streamGenerateContent', generated) },
    'an embedding of gemini': { model: 'test-embed', ask: google('test-embed', 'embedContent', { content }) },
    'embeddings of gemini': { model: 'test-embed', ask: google('test-embed', 'batchEmbedContents', embedded) },
    embeddings: { model: 'test-embed', ask: json('/v1/embeddings', { model: 'test-embed', input: 'Hello there' }) },
    images: { model: 'draw', ask: json('/v1/images/generations', { model: 'draw', prompt: 'a boat' }) },
    'image edits': { model: 'draw', ask: form('/v1/images/edits', 'draw', 'image', () => pictureOf(8, 8)) },
    'the image panel': { model: 'brigade/image-sangam', ask: json('/v1/images/generations', { model: 'image-sangam', prompt: 'a boat' }) },
    rerank: { model: 'rank', ask: json('/v1/rerank', { model: 'rank', query: 'red', documents: ['a red apple'] }) },
    moderation: { model: 'guard', ask: json('/v1/moderations', { model: 'guard', input: 'hello' }) },
    speech: { model: 'say', ask: json('/v1/audio/speech', { model: 'say', input: 'hello', voice: 'v' }) },
    transcription: { model: 'hear', ask: form('/v1/audio/transcriptions', 'hear', 'file', () => wavOf(1)) },
    'the chat tool': { model: 'alpha-only', ask: tool('chat', { model: 'alpha-only', prompt: 'Hello there', max_tokens: 50 }) },
  }
  const said = ({ status, code }: Answer) => `${status} ${code}`
  const spent = async (id: number): Promise<number> => {
    await app.gateway.app.limits.flushNow()
    return (await family.listed(id)).spend_month_inr
  }
  const dialed = (): number => app.alpha.requests.length + providers.seen.length

  test('this file tests every endpoint that charges', () => {
    const rows = bindingsOf(endpointTable).filter(({ row }) => row.inference === true)
    const asked = new Set(Object.values(charging).map(({ ask }) => `POST ${ask.at}`))
    expect(rows.map(({ at }) => at).filter(at => !asked.has(at))).toEqual([])
  })

  for (const [kind, { model, ask }] of Object.entries(charging))
    describe(kind, () => {
      const byKey = (label: string) => ask(app.key, { 'x-br-agent-id': label })

      test("AGENT-17 a call in the name of an agent, by id or name, spends the agent's budget and is refused when it is spent. A revoked agent gets 403 before any dial", async () => {
        const name = newName('named')
        const { id } = await app.newAgent(name)
        expect(said(await byKey(name))).toBe('200 null')
        const once = await spent(id)
        expect(once).toBeGreaterThan(0)
        expect(said(await byKey(String(id)))).toBe('200 null')
        expect(await spent(id)).toBeCloseTo(2 * once, 9)
        await family.budget(id, once)
        const before = dialed()
        for (const label of [name, String(id)]) expect(said(await byKey(label))).toBe('429 agent_budget_exceeded')
        await family.budget(id, null)
        await family.revoke(id)
        for (const label of [name, String(id)]) expect(said(await byKey(label))).toBe('403 agent_revoked')
        expect(dialed()).toBe(before)
        // The name is free again. From now on it means the next agent with that name.
        const heir = await app.newAgent(name)
        expect(said(await byKey(name))).toBe('200 null')
        expect(await spent(heir.id)).toBeGreaterThan(0)
        expect(said(await byKey(String(id)))).toBe('403 agent_revoked')
      })

      test('AGENT-14 with an agent token, the agent of the token is charged and the agent in the header is ignored', async () => {
        const speaker = await app.newAgent(newName('speaker'))
        const victim = await app.newAgent(newName('victim'))
        await family.patch(victim.id, { allowed_models: ['no-such-model'] })
        for (const label of [String(victim.id), 'nobody known']) expect(said(await ask(speaker.token, { 'x-br-agent-id': label }))).toBe('200 null')
        await family.revoke(victim.id)
        expect(said(await ask(speaker.token, { 'x-br-agent-id': String(victim.id) }))).toBe('200 null')
        expect([await spent(victim.id), (await spent(speaker.id)) > 0]).toEqual([0, true])
      })

      test('the rules of the agent apply to the call until they are removed', async () => {
        const { id } = await app.newAgent(newName('ruled'))
        await family.patch(id, { allowed_models: ['no-such-model'] })
        expect(said(await byKey(String(id)))).toBe('403 model_not_allowed')
        expect(said(await ask(app.key))).toBe('200 null')
        await family.patch(id, { allowed_models: [model] })
        expect(said(await byKey(String(id)))).toBe('200 null')
        await family.patch(id, { max_cost_inr_per_call: 0.000001 })
        expect(said(await byKey(String(id)))).toBe('403 call_cap_exceeded')
      })

      test('the name of an unknown agent appears as a label in reports', async () => {
        const label = newName('label')
        expect(said(await byKey(label))).toBe('200 null')
        await app.gateway.app.limits.flushNow()
        const { by_agent } = (await app.call('GET', '/v1/usage')).json
        expect(by_agent.find((row: { label: string | null }) => row.label === label)).toMatchObject({ id: null, label })
      })

      if (kind !== 'the image panel')
        test("the agent's limit of concurrent calls applies, and a revocation of the agent cuts a running call", async () => {
          const { id, token } = await app.newAgent(newName('busy'))
          await family.patch(id, { max_concurrency: 1 })
          app.alpha.hold()
          const running = byKey(String(id))
          await until(() => app.alpha.requests.length === 1)
          for (const other of [byKey(String(id)), ask(token)]) expect(said(await other)).toBe('429 concurrency_limit_reached')
          await family.revoke(id)
          expect(said(await running)).toBe('403 agent_revoked')
          app.alpha.release()
        })
    })

  test('token counting and route previews recognise the agent too', async () => {
    const name = newName('asked')
    const { id } = await app.newAgent(name)
    const asks = [json('/v1/messages/count_tokens', { model: 'alpha-only', messages }), json('/me/route/preview', { model: 'alpha-only', messages })]
    for (const ask of asks) expect((await ask(app.key, { 'x-br-agent-id': name })).status).toBe(200)
    await family.patch(id, { allowed_models: ['test-model'] })
    for (const ask of asks) expect(said(await ask(app.key, { 'x-br-agent-id': name }))).toBe('403 model_not_allowed')
    await family.revoke(id)
    for (const ask of asks) expect(said(await ask(app.key, { 'x-br-agent-id': name }))).toBe('403 agent_revoked')
  })

  test("a write to memory, over HTTP and with tools, records the agent. A revoked agent's write is refused, and its read is not", async () => {
    const name = newName('writer')
    const { id, token } = await app.newAgent(name)
    const key = `agents/${name.replace(' ', '-')}.md`
    const path = `/v1/me/memory/o?key=${key}`
    const http = (method: string, at: string, body?: string): Ask =>
      asking(at, async (credential, headers) => {
        const reply = await app.call(method, at, body, { token: credential, headers })
        return { status: reply.status, code: reply.json?.error?.code ?? null }
      })
    const writes: Record<string, Ask> = {
      PUT: http('PUT', path, 'kept'),
      DELETE: http('DELETE', path),
      memory_write: tool('memory_write', { key, content: 'kept' }),
      memory_delete: tool('memory_delete', { key }),
    }
    const author = async () => (await app.call('GET', path)).headers.get('x-br-meta-agent')
    const header = { 'x-br-agent-id': name }
    for (const way of ['PUT', 'memory_write'] as const) {
      expect(said(await (writes[way] as Ask)(app.key, header))).toBe('200 null')
      expect(await author()).toBe(JSON.stringify(name))
      expect(said(await (writes[way] as Ask)(token, { 'x-br-agent-id': 'somebody else' }))).toBe('200 null')
      expect(await author()).toBe(String(id))
    }
    const { versions } = (await app.call('GET', `/v1/me/memory/history?key=${key}`)).json
    writes['append'] = json('/v1/me/memory/append', { path: 'agents/notes', content: 'kept' })
    writes['restore'] = json('/v1/me/memory/restore', { key, version: versions[0].version })
    writes['promote'] = json('/v1/me/memory/promote', { name: 'kept.md', content: 'kept' })
    await family.revoke(id)
    for (const label of [name, String(id)])
      for (const [way, write] of Object.entries(writes)) expect(said(await write(app.key, { 'x-br-agent-id': label })), way).toBe('403 agent_revoked')
    for (const read of [http('GET', path), http('GET', '/v1/me/memory/list'), tool('memory_read', { key }), tool('memory_list', {})])
      expect((await read(app.key, header)).status).toBe(200)
    expect(saidBy(await app.call('PUT', path, 'x', { token }))).toEqual([401, 'invalid_api_key'])
  })
})
