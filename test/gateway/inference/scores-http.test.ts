import { CohereClient } from 'cohere-ai'
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import { usageRows } from '../../harness/usage-rows.ts'

const rankSums = statement<[orgId: number], { requests: bigint; cost: bigint }>(
  'test.rank_sums',
  `select count(*) as requests, sum(cost_uinr)::bigint as cost from usage_events where org_id = $1::int and model = 'rank' and provider = 'cohere'`,
)
const price = { source: 'test', as_of: '2026-01-01' }
const bySearch = { inr_per_thousand_searches: 192, ...price }
const byToken = { input_inr_per_mtok: 4.8, ...price }
const documents = ['red apple', 'blue sea', 'red sea']

/** The vendors of the catalog at the test's own servers. `rank` has a route at each of them. */
function operatorFile(urls: { alpha: string; beta: string; indus: string }) {
  const file = defaultOperatorFile(urls)
  const routes = [
    { provider: 'cohere', upstream_model: 'rerank-v3.5', ...bySearch, rank: 1 },
    { provider: 'jina', upstream_model: 'jina-reranker-v2', ...byToken },
    { provider: 'voyage', upstream_model: 'rerank-2.5', ...byToken },
    { provider: 'tei', ...byToken },
  ]
  return {
    providers: [
      ...file.providers,
      { id: 'cohere', base_url: urls.alpha },
      { id: 'jina', base_url: urls.beta },
      { id: 'voyage', base_url: urls.indus },
      { id: 'tei', base_url: urls.indus.replace('/v1', ''), rerank_style: 'tei', auth: 'none' },
      { id: 'openai', base_url: urls.alpha },
      { id: 'mistral', base_url: urls.beta },
    ],
    models: [
      ...file.models,
      { id: 'rank', kind: 'rerank', routes },
      { id: 'rank-two', kind: 'rerank', routes: [{ ...routes[1], input_inr_per_mtok: 1 }, routes[0]] },
      {
        id: 'two-vendors',
        kind: 'moderation',
        routes: [
          { provider: 'openai', upstream_model: 'omni-moderation-latest', input_inr_per_mtok: 5, ...price },
          { provider: 'mistral', upstream_model: 'mistral-moderation-latest', input_inr_per_mtok: 0, ...price },
        ],
      },
    ],
  }
}

const keys = {
  COHERE_API_KEY: 'co-platform',
  JINA_API_KEY: 'jina_platform',
  VOYAGE_API_KEY: 'pa-platform',
  OPENAI_API_KEY: 'sk-platform',
  MISTRAL_API_KEY: 'mi',
}
const cohereReply = (scores: readonly number[], units = 1) => ({
  body: {
    id: 'from-cohere',
    results: scores.map((relevance_score, index) => ({ index, relevance_score })),
    meta: { api_version: { version: '2' }, billed_units: { search_units: units } },
  },
})

describe('models that score texts', () => {
  let app: TestApp
  let cookie: string
  let cohere: CohereClient
  let openai: OpenAI
  beforeAll(async () => {
    app = await startApp({ env: { SANDBOX: 'on', CIRCUIT_FAILURES: '1000', ...keys }, operatorFile })
    cookie = await app.signIn()
    cohere = new CohereClient({ token: app.key, baseUrl: app.baseUrl, maxRetries: 0 })
    openai = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })
  const rank = (more: object = {}, token = app.key) => app.call('POST', '/v1/rerank', { model: 'rank', query: 'red', documents, ...more }, { token })
  const moderate = (more: object = {}) => app.call('POST', '/v1/moderations', { input: 'hello', ...more })

  test("CLOUD-07 Cohere's own client ranks with the sandbox, whose scores are the words in common", async () => {
    const first = await cohere.rerank({ model: 'sandbox-rerank', query: 'red apple', documents: ['blue sea', { text: 'a red apple' }], returnDocuments: true })
    expect(first.results).toEqual([
      { index: 1, relevanceScore: 2 / 3, document: { text: 'a red apple' } },
      { index: 0, relevanceScore: 0, document: { text: 'blue sea' } },
    ])
    expect(first.meta?.billedUnits?.searchUnits).toBe(1)
    const second = await cohere.rerank({ model: 'sandbox-rerank', query: 'red apple', documents: ['blue sea', 'a red apple'], topN: 1 })
    expect(second.results).toEqual([{ index: 1, relevanceScore: 2 / 3 }])
    // ₹100 for a thousand searches.
    expect(await usageRows(app, 2)).toMatchObject([
      { kind: 'rerank', model: 'sandbox-rerank', searches: 1, costUinr: 100_000n, estimated: false },
      { searches: 1, costUinr: 100_000n },
    ])
    await expect(cohere.rerank({ model: 'no-such', query: 'a', documents: ['b'] })).rejects.toMatchObject({ statusCode: 400 })
  })

  test('CLOUD-07 a request is written for each vendor, and each reply comes back in the form of Cohere with the best first', async () => {
    app.alpha.script(cohereReply([0.1, 0.2, 0.9]))
    app.beta.script({ body: { model: 'j', usage: { total_tokens: 1234 }, results: [0.9, 0.1].map((relevance_score, index) => ({ index, relevance_score })) } })
    app.indus.script([
      { body: { object: 'list', data: [{ index: 2, relevance_score: 0.4 }], model: 'v', usage: { total_tokens: 10 } } },
      { body: [0.1, 0.8, 0.3].map((score, index) => ({ index, score })) },
    ])
    const told = { top_n: 2, max_tokens_per_doc: 100 }
    const [co, ji, vo, te] = [
      await rank({ provider: 'cohere', ...told, priority: 0 }),
      await rank({ provider: 'jina', ...told, return_documents: true, documents: ['red apple', { text: 'blue sea', id: 7 }, 'red sea'] }),
      await rank({ provider: 'voyage', ...told }),
      await rank({ provider: 'tei', ...told }),
    ]
    expect([co, ji, vo, te].map(({ status }) => status)).toEqual([200, 200, 200, 200])
    const [toCohere, toJina, toVoyage, toTei] = [app.alpha.requests[0], app.beta.requests[0], ...app.indus.requests]
    expect([toCohere?.path, toJina?.path, toVoyage?.path, toTei?.path]).toEqual(['/v2/rerank', '/v1/rerank', '/v1/rerank', '/rerank'])
    expect(toCohere?.headers.authorization).toBe('Bearer co-platform')
    const texts = { query: 'red', documents }
    expect(toCohere?.json).toEqual({ ...texts, model: 'rerank-v3.5', top_n: 2, max_tokens_per_doc: 100 })
    expect(toJina?.json).toEqual({ ...texts, model: 'jina-reranker-v2', top_n: 2, return_documents: false })
    expect(toVoyage?.json).toEqual({ ...texts, model: 'rerank-2.5', top_k: 2 })
    expect(toTei?.json).toEqual({ query: 'red', texts: documents, truncate: true })
    expect(co.headers.get('x-br-dropped-params')).toBe('priority')
    expect(ji.headers.get('x-br-dropped-params')).toBe('max_tokens_per_doc')

    expect(co.json).toEqual({
      id: 'from-cohere',
      model: 'rank',
      results: [
        { index: 2, relevance_score: 0.9 },
        { index: 1, relevance_score: 0.2 },
      ],
      meta: { api_version: { version: '2' }, billed_units: { search_units: 1 } },
    })
    expect(ji.json.results).toEqual([
      { index: 0, relevance_score: 0.9, document: { text: 'red apple' } },
      { index: 1, relevance_score: 0.1, document: { text: 'blue sea', id: 7 } },
    ])
    expect(ji.json.meta).toEqual({ api_version: { version: '2' }, billed_units: { input_tokens: 1234 }, tokens: { input_tokens: 1234 } })
    expect(vo.json.results).toEqual([{ index: 2, relevance_score: 0.4 }])
    expect(te.json.results).toEqual([
      { index: 1, relevance_score: 0.8 },
      { index: 2, relevance_score: 0.3 },
    ])

    // Newest first. 1234 tokens at ₹4.8 a million are 5923.2 millionths of a rupee. The last vendor reports no tokens.
    const rows = await usageRows(app, 4)
    expect(rows[3]).toMatchObject({ provider: 'cohere', searches: 1, promptTokens: 0n, costUinr: 192_000n, valueUinr: 192_000n, estimated: false })
    expect(rows[2]).toMatchObject({ provider: 'jina', searches: 1, promptTokens: 1234n, costUinr: 5923n, estimated: false })
    expect(rows[1]).toMatchObject({ provider: 'voyage', promptTokens: 10n, costUinr: 48n, estimated: false })
    expect(rows[0]).toMatchObject({ provider: 'tei', promptTokens: 12n, costUinr: 58n, estimated: true })
    expect(co.headers.get('x-br-cost-inr')).toBe('0.192')
  })

  test('CLOUD-07 a call holds one search for each started hundred of documents, and is charged what the vendor bills', async () => {
    const many = Array.from({ length: 250 }, (_, n) => `document ${n}`)
    const scores = many.map((_, n) => 1 / (n + 1))
    const capped = async (inr: number) =>
      (await app.call('POST', '/me/keys', { name: `cap ${inr}`, max_cost_inr_per_call: inr }, { cookie })).json.key as string
    const below = await rank({ provider: 'cohere', documents: many }, await capped(0.5))
    expect([below.status, below.json.error.code, app.alpha.requests.length]).toEqual([403, 'call_cap_exceeded', 0])
    expect(below.json.error.message).toContain('could cost ₹0.576')
    // Long documents count as several, so the caps of a call and the balance hold the most that the vendor may bill.
    const long = many.map(text => text.repeat(20))
    const tooLong = await rank({ provider: 'cohere', documents: long }, await capped(0.576))
    expect([tooLong.status, tooLong.json.error.code, app.alpha.requests.length]).toEqual([403, 'call_cap_exceeded', 0])
    app.alpha.script([cohereReply(scores, 4), cohereReply(scores, 4_000_000), { body: { results: [{ index: 0, relevance_score: 1 }] } }])
    const enough = await capped(0.576)
    const dearer = await capped(0.96)
    for (const [searches, uinr, estimated] of [
      [4, 768_000n, false],
      [3, 576_000n, true],
      [3, 576_000n, true],
    ] as const) {
      const isLong = searches === 4
      expect((await rank({ provider: 'cohere', documents: isLong ? long : many }, isLong ? dearer : enough)).status).toBe(200)
      expect((await usageRows(app))[0]).toMatchObject({ searches, costUinr: uinr, estimated })
    }
  })

  test('CLOUD-07 a budget that is used up refuses before a vendor is called, and an agent needs the scope and the model', async () => {
    app.alpha.script(() => cohereReply([0.1, 0.2, 0.3]))
    const agent = await app.newAgent('ranker')
    await app.setBudget('agent', agent.id, 0.3)
    for (const status of [200, 200, 429]) expect((await rank({ provider: 'cohere' }, agent.token)).status).toBe(status)
    expect(app.alpha.requests).toHaveLength(2)
    expect((await app.call('PATCH', `/v1/me/agents/${agent.id}`, { allowed_models: ['test-model'] })).status).toBe(200)
    expect((await rank({}, agent.token)).json.error.code).toBe('model_not_allowed')
    const scoped = await app.call('POST', `/v1/me/agents/${agent.id}/token`, { scope: 'usage:read' })
    expect((await rank({}, scoped.json.access_token)).status).toBe(403)
    expect(app.alpha.requests).toHaveLength(2)
  })

  test('CLOUD-07 a vendor that fails or sends no ranking gives way to the next one', async () => {
    app.alpha.script(() => cohereReply([0.3, 0.2, 0.1]))
    const bad = [
      { status: 500, body: {} },
      { body: { results: [{ index: 3, relevance_score: 1 }] } },
      { body: { results: [0, 0].map(index => ({ index, relevance_score: 1 })) } },
      { body: { results: [{ index: 0, relevance_score: 'high' }] } },
      { body: { results: [] } },
      { body: 'no JSON' },
    ]
    app.beta.script(bad)
    for (const _ of bad) {
      const reply = await rank({ model: 'rank-two' })
      expect([reply.status, reply.headers.get('x-br-provider')]).toEqual([200, 'cohere'])
    }
    expect(app.beta.requests).toHaveLength(bad.length)
    app.beta.script([{ status: 400, body: { message: 'too long' } }])
    const refused = await rank({ model: 'rank-two' })
    expect([refused.status, refused.json.error.message]).toEqual([400, 'too long'])
    // The vendor bills a ranking that cannot be read. It is charged when no other route answers.
    const unread = { body: { results: [], meta: { billed_units: { search_units: 1 } } } }
    app.alpha.script(() => unread)
    expect((await rank({ provider: 'cohere' })).status).toBe(502)
    expect((await usageRows(app))[0]).toMatchObject({ provider: 'cohere', searches: 1, costUinr: 192_000n, estimated: true })
  })

  test('CLOUD-07 the call shows its searches in the reports, and its cost in the CSV', async () => {
    app.alpha.script(cohereReply([0.3, 0.2, 0.1], 2))
    const reply = await rank({ provider: 'cohere', documents: documents.map(text => text.repeat(9000)) })
    await app.gateway.app.limits.flushNow()
    const { json } = await app.call('GET', `/me/activity/events/${reply.headers.get('x-request-id')}`, undefined, { cookie })
    expect(json.calls).toMatchObject([{ kind: 'rerank', model: 'rank', searches: 2, images: 0, cost_inr: 0.384, cached: false }])
    const listed = await app.call('GET', '/me/activity/events?kind=rerank&limit=1', undefined, { cookie })
    expect(listed.json.events).toMatchObject([{ kind: 'rerank', cost_inr: 0.384 }])
    const csv = await app.call('GET', '/v1/usage?format=csv')
    const [head = '', ...lines] = csv.text.trim().split(/\r?\n/)
    const names = head.split(',')
    const line = lines.map(text => text.split(',')).find(cells => cells[names.indexOf('model')] === 'rank' && cells[names.indexOf('provider')] === 'cohere')
    const { requests, cost } = await app.db.one(rankSums, app.orgId)
    expect([line?.[names.indexOf('requests')], line?.[names.indexOf('cost_uinr')]]).toEqual([String(requests), String(cost)])
  })

  test.each([
    ['an empty query', { query: ' ' }, '"query"'],
    ['no documents', { documents: [] }, '"documents"'],
    ['too many documents', { documents: Array.from({ length: 1001 }, () => 'a') }, '1 to 1000'],
    ['a document without a text', { documents: ['a', { title: 'b' }] }, '"documents[1]"'],
    ['a top_n of 0', { top_n: 0 }, '"top_n"'],
    ['a part of a token', { max_tokens_per_doc: 1.5 }, '"max_tokens_per_doc"'],
    ['return_documents as text', { return_documents: 'yes' }, '"return_documents"'],
    ['rank_fields', { rank_fields: ['title'] }, '"rank_fields"'],
  ])('a request to rank with %s is refused, and the error names the field', async (_what, more, named) => {
    const reply = await rank(more)
    expect([reply.status, reply.json.error.code]).toEqual([400, 'bad_request'])
    expect(reply.json.error.message).toContain(named)
  })

  test("CLOUD-08 OpenAI's own client checks texts and pictures with the sandbox, for ₹0 and one request of the daily limit", async () => {
    const limited = await app.newKey({ daily: 2 })
    const client = new OpenAI({ apiKey: limited.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 })
    const texts = await client.moderations.create({ model: 'sandbox-moderation', input: ['a quiet day', 'a film about violence'] })
    expect(texts.results.map(({ flagged }) => flagged)).toEqual([false, true])
    const input = [
      { type: 'text' as const, text: 'look' },
      { type: 'image_url' as const, image_url: { url: 'https://pictures.example/violence.png' } },
    ]
    const parts = await client.moderations.create({ model: 'sandbox-moderation', input })
    expect(parts.results).toHaveLength(1)
    expect(parts.results[0]?.categories.violence).toBe(true)
    expect(parts.results[0]?.category_applied_input_types.violence).toEqual(['image'])
    expect(await usageRows(app, 2)).toMatchObject([
      { kind: 'moderation', model: 'sandbox-moderation', status: 200, costUinr: 0n, valueUinr: 0n },
      { kind: 'moderation', costUinr: 0n },
    ])
    await expect(client.moderations.create({ model: 'sandbox-moderation', input: 'more' })).rejects.toMatchObject({ status: 429, code: 'daily_limit_reached' })
  })

  test('CLOUD-08 the reply of a vendor is passed through with its own categories, and only the model has the name of the catalog', async () => {
    const ofOpenAi = {
      id: 'modr-1',
      model: 'omni-moderation-2024-09-26',
      results: [{ flagged: true, categories: { hate: true }, category_scores: { hate: 0.9 } }],
    }
    app.alpha.script({ body: ofOpenAi })
    const reply = await openai.moderations.create({ input: 'hello' })
    expect(reply).toEqual({ ...ofOpenAi, model: 'omni-moderation-latest' })
    expect([app.alpha.requests[0]?.path, app.alpha.requests[0]?.json]).toEqual(['/v1/moderations', { input: 'hello', model: 'omni-moderation-latest' }])
    const ofMistral = {
      id: 'm-1',
      model: 'mistral-moderation-latest',
      results: [{ categories: { pii: true }, category_scores: { pii: 0.7 } }],
      usage: usageOf(21),
    }
    app.beta.script({ body: ofMistral })
    expect((await moderate({ model: 'mistral-moderation-latest' })).json).toEqual(ofMistral)
    // 21 tokens at ₹9.6 a million are 201.6 millionths of a rupee.
    expect(await usageRows(app, 2)).toMatchObject([
      { provider: 'mistral', promptTokens: 21n, costUinr: 202n, estimated: false },
      { provider: 'openai', costUinr: 0n, estimated: true },
    ])
  })

  test('CLOUD-08 a call never moves to another vendor by itself, neither after a failure nor for a lower price', async () => {
    const fine = { body: { id: 'm', model: 'x', results: [{ categories: {} }] } }
    app.alpha.script(() => ({ status: 503, body: {} }))
    app.beta.script(() => fine)
    for (let n = 0; n < 3; n++) expect((await moderate({ model: 'two-vendors' })).status).toBe(502)
    expect([app.alpha.requests.length, app.beta.requests.length]).toEqual([3, 0])
    // The caller may choose another vendor.
    const chosen = await moderate({ model: 'two-vendors', provider: 'mistral' })
    expect([chosen.status, chosen.headers.get('x-br-provider')]).toEqual([200, 'mistral'])
    const chained = await moderate({ model: 'two-vendors', fallbacks: [{ model: 'two-vendors', provider: 'openai' }, { model: 'mistral-moderation-latest' }] })
    expect([chained.status, chained.json.model]).toEqual([200, 'mistral-moderation-latest'])
    expect(app.alpha.requests).toHaveLength(4)
  })

  test.each([
    ['an empty list', { input: [] }, '"input"'],
    ['a number', { input: 7 }, '"input"'],
    ['a text and a part', { input: ['a', { type: 'text', text: 'b' }] }, '"input[1]"'],
    ['a picture without an object', { input: [{ type: 'image_url', image_url: 'https://x.example' }] }, '"input[0]"'],
    ['a model without a name', { model: '' }, '"model"'],
  ])('a request to check %s is refused, and the error names the field', async (_what, more, named) => {
    const reply = await moderate(more)
    expect([reply.status, reply.json.error.code]).toEqual([400, 'bad_request'])
    expect(reply.json.error.message).toContain(named)
  })
})

const usageOf = (tokens: number) => ({ prompt_tokens: tokens, total_tokens: tokens })
