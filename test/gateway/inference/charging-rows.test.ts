/** Checks every rule of credentials on every charging endpoint and on the token count, with one table. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { bindingsOf, endpointTable } from '../../../src/gateway/http/rows/endpoint-table.ts'
import { codeIn } from '../../agents/family.ts'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import { picture as pictureOf } from '../../harness/pictures.ts'
import { checkAgainstRow } from '../../harness/row-contract.ts'
import { wavOf } from '../../harness/wav.ts'

interface Answer {
  readonly status: number
  readonly code: string | null
  readonly headers: Headers
}

/** One endpoint: a model with routes at alpha, beta and indus (India), a model with a route only at alpha, and the body of a call. */
interface Charging {
  readonly at: string
  /** The path, when the model is in it. */
  readonly path?: (model: string) => string
  readonly model: string
  readonly alphaOnly: string
  /** The fields of a JSON body, or of a form when the endpoint takes a file. */
  readonly body: Readonly<Record<string, unknown>>
  readonly file?: { readonly field: string; readonly bytes: () => Promise<Buffer> | Buffer }
  /** The answer of the providers. */
  readonly reply?: unknown
  readonly replyType?: string
}

const messages = [{ role: 'user', content: 'hello' }]
const content = { role: 'user', parts: [{ text: 'hello' }] }
const ofGoogle = (verb: string) => ({ at: `/v1beta/models/{model+}:${verb}`, path: (model: string) => `/v1beta/models/${model}:${verb}` })
const generated = { model: 'test-model', alphaOnly: 'alpha-only', body: { contents: [content], generationConfig: { maxOutputTokens: 100 } } }
const embedded = { model: 'row-embed', alphaOnly: 'row-embed-alpha' }
const ranking = { id: 'r', results: [{ index: 1, relevance_score: 0.5 }], meta: { billed_units: { search_units: 1 } } }
const moderation = { id: 'm', model: 'x', results: [{ flagged: false, categories: {}, category_scores: {} }] }
const picture = { data: [{ url: 'https://pictures.example/1.png' }] }
const sound = { file: { field: 'file', bytes: () => wavOf(1) }, reply: { text: 'hello', usage: { type: 'duration', seconds: 1 } } }
const rows: readonly Charging[] = [
  { at: '/v1/chat/completions', model: 'test-model', alphaOnly: 'alpha-only', body: { messages, max_tokens: 100 } },
  { at: '/v1/messages', model: 'test-model', alphaOnly: 'alpha-only', body: { messages, max_tokens: 100 } },
  { at: '/v1/responses', model: 'test-model', alphaOnly: 'alpha-only', body: { input: 'hello', max_output_tokens: 100 } },
  { ...ofGoogle('generateContent'), ...generated },
  { ...ofGoogle('streamGenerateContent'), ...generated },
  { ...ofGoogle('embedContent'), ...embedded, body: { content } },
  { ...ofGoogle('batchEmbedContents'), ...embedded, body: { requests: [{ content }] } },
  { at: '/v1/embeddings', model: 'row-embed', alphaOnly: 'row-embed-alpha', body: { input: 'hello' } },
  { at: '/v1/images/generations', model: 'row-draw', alphaOnly: 'row-draw-alpha', body: { prompt: 'hello' }, reply: picture },
  {
    at: '/v1/images/edits',
    model: 'row-draw',
    alphaOnly: 'row-draw-alpha',
    body: { prompt: 'hello' },
    reply: picture,
    file: { field: 'image', bytes: () => pictureOf(8, 8) },
  },
  { at: '/v1/rerank', model: 'row-rank', alphaOnly: 'row-rank-alpha', body: { query: 'a', documents: ['a', 'b'] }, reply: ranking },
  { at: '/v1/moderations', model: 'row-moderate', alphaOnly: 'row-moderate-alpha', body: { input: 'hello' }, reply: moderation },
  { at: '/v1/audio/speech', model: 'row-speak', alphaOnly: 'row-speak-alpha', body: { input: 'hello' }, reply: 'sound', replyType: 'audio/mpeg' },
  { at: '/v1/audio/transcriptions', model: 'row-hear', alphaOnly: 'row-hear-alpha', body: {}, ...sound },
]

const price = { source: 'test', as_of: '2026-01-01' }
const models = () =>
  [
    ['row-embed', { kind: 'embedding', context_length: 8192, dimensions: 4 }, { input_inr_per_mtok: 10, output_inr_per_mtok: 0, ...price }],
    ['row-rank', { kind: 'rerank' }, { inr_per_thousand_searches: 192, ...price }],
    ['row-moderate', { kind: 'moderation' }, { input_inr_per_mtok: 10, ...price }],
    ['row-draw', { kind: 'image', inr_per_image: 3, edits: true }, {}],
    ['row-speak', { kind: 'speech', default_voice: 'v' }, { inr_per_million_characters: 50, ...price }],
    ['row-hear', { kind: 'transcription' }, { inr_per_minute: 0.6, ...price }],
  ].flatMap(([id, model, route]) => [
    { id, ...(model as object), routes: ['alpha', 'beta', 'indus'].map(provider => ({ provider, upstream_model: `${provider}-up`, ...(route as object) })) },
    { id: `${id}-alpha`, ...(model as object), routes: [{ provider: 'alpha', upstream_model: 'alpha-up', ...(route as object) }] },
  ])

describe('every endpoint that charges', () => {
  let app: TestApp
  let cookie: string
  const page = 'https://page.example.test'
  beforeAll(async () => {
    app = await startApp({
      env: { CIRCUIT_FAILURES: '1000', CORS_ORIGINS: page, ANON_RPM: '100000' },
      operatorFile(urls) {
        const file = defaultOperatorFile(urls)
        return { ...file, models: [...file.models, ...models()] }
      },
    })
    cookie = await app.signIn()
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })

  const dialed = () => [app.alpha, app.beta, app.indus].map(({ requests }) => requests.length)
  const keyWith = async (rules: object) => {
    const made = await app.call('POST', '/me/keys', { name: `key ${Math.random()}`, ...rules }, { cookie })
    expect(made.status, made.text).toBe(201)
    return made.json as { id: number; key: string }
  }

  async function call(row: Charging, more: object = {}, token: string | null = app.key, headers: Record<string, string> = {}): Promise<Answer> {
    for (const upstream of [app.alpha, app.beta, app.indus])
      if (row.reply !== undefined) upstream.script(() => ({ body: row.reply, ...(row.replyType ? { headers: { 'content-type': row.replyType } } : {}) }))
    const asked: { readonly model: string } & Readonly<Record<string, unknown>> = { model: row.model, ...row.body, ...more }
    const { model, ...rest } = asked
    const path = row.path?.(model) ?? row.at
    const body = row.path === undefined ? asked : rest
    const sent = { ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...headers }
    let init: RequestInit
    if (row.file === undefined) init = { headers: { ...sent, 'content-type': 'application/json' }, body: JSON.stringify(body) }
    else {
      const form = new FormData()
      for (const [name, value] of Object.entries(body)) form.append(name, typeof value === 'string' ? value : JSON.stringify(value))
      form.append(row.file.field, new Blob([new Uint8Array(await row.file.bytes())]), 'a.bin')
      init = { headers: sent, body: form }
    }
    const reply = await fetch(app.baseUrl + path, { method: 'POST', ...init })
    const text = await reply.text()
    const json = reply.headers.get('content-type')?.includes('json') ? JSON.parse(text) : null
    checkAgainstRow('POST', path, reply.status, json)
    return { status: reply.status, code: codeIn(json) ?? null, headers: reply.headers }
  }
  const said = ({ status, code }: Answer) => `${status} ${code}`

  test('every charging endpoint is in this table', () => {
    const charging = bindingsOf(endpointTable).filter(({ row }) => row.inference === true)
    expect(charging.map(({ at }) => at.split(' ')[1]).sort()).toEqual(rows.map(({ at }) => at).sort())
  })

  for (const row of rows)
    describe(row.at, () => {
      const refused = async (expected: string, answer: Promise<Answer>) => {
        expect(said(await answer)).toBe(expected)
        expect(dialed()).toEqual([0, 0, 0])
      }

      test('serves an owner, an inference key and an agent with the cheapest provider', async () => {
        const inference = await app.newKey({ scope: 'inference' })
        const agent = await app.newAgent(`agent of ${row.at.replaceAll(/\W+/g, ' ')}`)
        for (const token of [app.key, inference.key, agent.token]) {
          const answer = await call(row, {}, token)
          expect(said(answer)).toBe('200 null')
          expect(answer.headers.get('x-br-provider')).toBe('alpha')
        }
      })

      test('serves no other caller, and no page with a cookie', async () => {
        const gone = await keyWith({})
        await app.call('DELETE', `/me/keys/${gone.id}`, undefined, { cookie })
        for (const token of [null, 'br-wrong', gone.key, '']) await refused('401 invalid_api_key', call(row, {}, token))
        await refused('401 invalid_api_key', call(row, {}, null, { cookie }))
      })

      test('obeys the allowed models and providers of a key, also on failover and for any provider that the request names', async () => {
        const other = await keyWith({ allowed_models: ['global-only'] })
        await refused('403 model_not_allowed', call(row, {}, other.key))
        await refused('403 model_not_allowed', call(row, { fallbacks: [row.alphaOnly] }, other.key))
        const beta = await keyWith({ allowed_providers: ['beta'] })
        await refused('403 model_not_allowed', call(row, { provider: 'alpha' }, beta.key))
        await refused('403 model_not_allowed', call(row, { model: row.alphaOnly }, beta.key))
        expect((await call(row, {}, beta.key)).headers.get('x-br-provider')).toBe('beta')
        app.beta.script([{ status: 500, body: {} }])
        expect(said(await call(row, {}, beta.key))).toBe('502 all_routes_failed')
        expect(dialed().filter((_count, index) => index !== 1)).toEqual([0, 0])
      })

      test('obeys the policies of an agent, even if only the label names it, and refuses the agent after its revocation', async () => {
        const name = `ruled of ${row.at.replaceAll(/\W+/g, ' ')}`
        const agent = await app.newAgent(name)
        expect((await app.call('PATCH', `/v1/me/agents/${agent.id}`, { allowed_providers: ['indus'] })).status).toBe(200)
        for (const answer of [await call(row, {}, agent.token), await call(row, {}, app.key, { 'x-br-agent-id': name })])
          expect(answer.headers.get('x-br-provider')).toBe('indus')
        await app.call('POST', `/v1/me/agents/${agent.id}/revoke`, {})
        for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
        await refused('401 invalid_api_key', call(row, {}, agent.token))
        await refused('403 agent_revoked', call(row, {}, app.key, { 'x-br-agent-id': name }))
      })

      test('keeps a call with india_only in India, also on failover', async () => {
        expect((await call(row, { data_policy: 'india_only' })).headers.get('x-br-provider')).toBe('indus')
        app.indus.script([{ status: 500, body: {} }])
        expect(said(await call(row, { data_policy: 'india_only' }))).toBe('502 all_routes_failed')
        for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
        await refused('422 no_route', call(row, { model: row.alphaOnly, data_policy: 'india_only' }))
        await refused('422 no_route', call(row, { model: row.alphaOnly, exclude: ['alpha'] }))
        await refused('400 bad_request', call(row, { data_policy: 'anywhere' }))
      })

      test('refuses above the rate, the daily limit, the budget and the cap of a call', async () => {
        // A budget that is not used up accepts one more call of any cost.
        const keys = [await keyWith({ rpm_limit: 1 }), await keyWith({ daily_limit: 1 }), await app.newKey({ budgetInr: 0.000001 })]
        for (const { key } of keys) {
          expect(said(await call(row, {}, key))).toBe('200 null')
          for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
          expect([(await call(row, {}, key)).status, dialed()]).toEqual([429, [0, 0, 0]])
        }
        const capped = await keyWith({ max_cost_inr_per_call: 0.000001 })
        await refused('403 call_cap_exceeded', call(row, {}, capped.key))
      })

      test('uses no keys, agents or settings of another organisation', async () => {
        const other = await app.otherOrg(`Other ${row.at.replaceAll(/\W+/g, ' ')}`)
        const mine = await app.newAgent(`mine ${row.at.replaceAll(/\W+/g, ' ')}`)
        await app.call('POST', `/v1/me/agents/${mine.id}/revoke`, {})
        // The id of an agent of this organisation is only a label for another organisation.
        expect(said(await call(row, {}, other.key, { 'x-br-agent-id': String(mine.id) }))).toBe('200 null')
        for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
        await refused('400 no_route', call(row, { provider: 'byoe:theirs' }, other.key))
      })

      test('sends CORS headers only to pages of listed origins, also on errors', async () => {
        const origin = (answer: Answer) => answer.headers.get('access-control-allow-origin')
        expect(origin(await call(row, {}, app.key, { origin: page }))).toBe(page)
        expect(origin(await call(row, {}, null, { origin: page }))).toBe(page)
        expect(origin(await call(row, {}, app.key, { origin: 'https://evil.example' }))).toBeNull()
      })
    })
})
