/** Which fields of a request are sent to a provider on the platform key. On the caller's own key, all fields are sent. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import type { UpstreamServer } from '../../harness/upstream-server.ts'
import { usageRows } from '../../harness/usage-rows.ts'

const hello = [{ role: 'user', content: 'hello' }]
const own = { upstream_key: 'sk-my-own-key-0001' }

/** Fields that choose models, routes, stored files, retention or paid extras, and unknown fields. */
const chosen = {
  models: ['openai/gpt-5-pro'],
  preset: 'dear',
  transforms: ['middle-out'],
  plugins: [{ id: 'web' }],
  deferred: true,
  web_search_options: {},
  search_parameters: { mode: 'on' },
  modalities: ['text', 'audio'],
  audio: { voice: 'alloy', format: 'wav' },
  store: true,
  metadata: { team: 'blue' },
  prompt_cache_retention: '24h',
  service_tier: 'priority',
  extra_body: { google: { cached_content: 'cachedContents/1' } },
  brand_new: true,
}
/** Documented fields that cost nothing in addition to the tokens. */
const harmless = {
  temperature: 0.5,
  top_p: 0.9,
  seed: 7,
  stop: ['END'],
  user: 'u1',
  safety_identifier: 'sid',
  logit_bias: { 5: 1 },
  response_format: { type: 'json_object' },
  reasoning_effort: 'low',
  prompt_cache_key: 'pk',
  prediction: { type: 'content', content: 'x' },
  verbosity: 'low',
  service_tier: 'flex',
  modalities: ['text'],
  store: false,
  top_k: 40,
  chat_template_kwargs: { enable_thinking: false },
  tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }],
  tool_choice: 'auto',
  parallel_tool_calls: false,
}

describe("fields on the platform's key", () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({
      dialects: true,
      operatorFile: urls => {
        const file = defaultOperatorFile(urls)
        const route = (provider: string) => ({ provider, input_inr_per_mtok: 10, output_inr_per_mtok: 40, source: 'test', as_of: '2026-01-01' })
        return {
          providers: [
            ...file.providers,
            { id: 'house', base_url: urls.alpha, auth: 'bearer', key_optional: true, forwards: 'all' },
            { id: 'listed', base_url: urls.alpha, auth: 'bearer', key_optional: true, fields: ['brand_new', 'service_tier', 'steps'] },
          ],
          models: [
            ...file.models,
            {
              id: 'dear-model',
              kind: 'chat',
              routes: [{ ...route('alpha'), upstream_model: 'dear-upstream', input_inr_per_mtok: 1000, output_inr_per_mtok: 4000 }],
            },
            { id: 'house-model', kind: 'chat', routes: [route('house')] },
            { id: 'listed-model', kind: 'chat', routes: [route('listed')] },
            { id: 'listed-embed', kind: 'embedding', routes: [route('alpha')] },
            { id: 'drawn', kind: 'image', inr_per_image: 2, routes: [{ ...route('alpha'), inr_per_image: 2 }] },
            { id: 'spoken', kind: 'speech', routes: [{ provider: 'alpha', inr_per_million_characters: 10, source: 'test', as_of: '2026-01-01' }] },
          ],
        }
      },
    })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.others.claude, app.others.resp]) upstream.reset()
  })
  const post = (path: string, body: object | string, headers: Record<string, string> = {}) =>
    app.call('POST', path, body, { headers: { 'content-type': 'application/json', ...headers } })
  const chat = (body: object) => post('/v1/chat/completions', { model: 'alpha-only', messages: hello, ...body })
  const sent = (upstream: UpstreamServer = app.alpha) => upstream.requests.at(-1)?.json ?? {}
  const named = (reply: { headers: Headers }) => (reply.headers.get('x-br-dropped-params') ?? '').split(',').filter(Boolean).toSorted()

  test('HARD-07 fields that choose models, routes, files, retention or paid extras are named as dropped, and documented fields are sent', async () => {
    for (const stream of [false, true]) {
      const reply = await chat({ ...chosen, stream })
      expect(reply.status, reply.text).toBe(200)
      expect(named(reply)).toEqual(Object.keys(chosen).toSorted())
      for (const name of Object.keys(chosen)) expect(sent(), name).not.toHaveProperty(name)
    }
    const plain = await chat(harmless)
    expect([plain.status, named(plain)]).toEqual([200, []])
    expect(sent()).toEqual({ model: 'alpha-upstream', messages: hello, ...harmless })
    const nulls = Object.fromEntries(Object.keys(chosen).map(name => [name, null]))
    expect(named(await chat(nulls))).toEqual([])
  })

  test("HARD-07 such fields are sent on the caller's own key, to a server of the operator, and if the catalog lists them", async () => {
    const fields = chosen
    expect(named(await chat({ ...fields, ...own }))).toEqual([])
    expect(sent()).toMatchObject(fields)
    expect(named(await chat({ ...fields, model: 'house-model' }))).toEqual([])
    expect(sent()).toMatchObject(fields)
    const listed = await chat({ ...fields, model: 'listed-model' })
    expect(named(listed)).toEqual(
      Object.keys(fields)
        .filter(name => name !== 'brand_new' && name !== 'service_tier')
        .toSorted(),
    )
    expect(sent()).toMatchObject({ brand_new: true, service_tier: 'priority' })
  })

  test('HARD-07 a stored file, a recording or a provider-run tool is refused in every place, but sent with an own key', async () => {
    const refused: readonly object[] = [
      { messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'file-1' } }] }] },
      {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'x' },
              { type: 'image_url', image_url: { url: 'x', file_id: 'file-1' } },
            ],
          },
        ],
      },
      { messages: [{ role: 'user', content: [{ type: 'input_file', file_id: 'file-1' }] }] },
      { messages: [...hello, { role: 'assistant', audio: { id: 'audio_1' } }, ...hello] },
      { messages: [...hello, { role: 'tool', tool_call_id: 'c', content: [{ type: 'tool_result', content: [{ type: 'image', source: { file_id: 'f' } }] }] }] },
      { tools: [{ type: 'web_search' }] },
      { tools: [{ type: 'code_interpreter', container: { type: 'auto' } }] },
      { tools: [{ type: 'mcp', connector_id: 'connector_gmail', server_label: 'g' }] },
      { tools: [{ google_search: {} }] },
    ]
    for (const body of refused) {
      const reply = await chat(body)
      expect([JSON.stringify(body), reply.status, reply.json.error?.code]).toEqual([JSON.stringify(body), 400, 'bad_request'])
    }
    expect(app.alpha.requests).toEqual([])
    for (const body of refused) expect((await chat({ ...body, ...own })).status, JSON.stringify(body)).toBe(200)
  })

  test('HARD-07 a field that occurs twice at any depth is sent once, with the checked value', async () => {
    const doubled = [
      `{"model":"same-id","messages":${JSON.stringify(hello)},"web_search_options":{},"web_search_options":null}`,
      `{"model":"same-id","messages":${JSON.stringify(hello)},"models":["dear"],"models":null}`,
      `{"model":"same-id","messages":${JSON.stringify(hello)},"tools":[{"type":"web_search","type":"function","function":{"name":"f","name":"g"}}]}`,
      `{"model":"same-id","messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file-1","file_id":null,"file_data":"data:,x"}}]}]}`,
      `{"model":"same-id","messages":${JSON.stringify(hello)},"pl\\u0075gins":[{}],"plugins":null}`,
    ]
    for (const text of doubled) {
      expect((await post('/v1/chat/completions', text)).status, text).toBe(200)
      expect(app.alpha.requests.at(-1)?.raw.toString(), text).toBe(JSON.stringify(JSON.parse(text)))
    }
    for (const [path, upstream, text] of [
      ['/v1/messages', app.others.claude, `{"model":"anthropic-upstream","max_tokens":9,"messages":[{"role":"user","role":"user","content":"hi"}]}`],
      ['/v1/responses', app.others.resp, `{"model":"responses-model","store":false,"input":[{"type":"message","role":"user","role":"user","content":"hi"}]}`],
    ] as const) {
      expect((await post(path, text.replace('anthropic-upstream', 'anthropic-model'))).status, text).toBe(200)
      expect(
        upstream.requests
          .at(-1)
          ?.raw.toString()
          .match(/"role"/g),
        text,
      ).toHaveLength(1)
    }
    // A body without duplicates is sent as it was written.
    const plain = `{ "model":"same-id",  "messages":[{"role":"user","content":"a: \\"b\\" {\\"c\\": 1}"}], "temperature":1.0 }`
    await post('/v1/chat/completions', plain)
    expect(app.alpha.requests.at(-1)?.raw.toString()).toBe(plain)
  })

  test('HARD-07 relayed responses and messages calls on the platform key also contain only documented fields', async () => {
    const response = await post('/v1/responses', {
      model: 'responses-model',
      input: 'hi',
      metadata: { a: 'b' },
      brand_new: 1,
      models: ['x'],
      service_tier: 'priority',
      prompt_cache_retention: '24h',
    })
    expect([response.status, named(response)]).toEqual([200, ['brand_new', 'models', 'prompt_cache_retention', 'service_tier']])
    expect(sent(app.others.resp)).toEqual({ model: 'responses-upstream', input: 'hi', metadata: { a: 'b' }, store: false })
    const claude = { model: 'anthropic-model', max_tokens: 9, messages: hello, thinking: { type: 'disabled' }, container: 'c1', brand_new: 1 }
    const betas = { 'anthropic-beta': 'interleaved-thinking-2025-05-14,context-1m-2025-08-07, files-api-2025-04-14' }
    const message = await post('/v1/messages', claude, betas)
    expect([message.status, named(message)]).toEqual([
      200,
      ['anthropic-beta.context-1m-2025-08-07', 'anthropic-beta.files-api-2025-04-14', 'brand_new', 'container'],
    ])
    expect(app.others.claude.requests.at(-1)?.headers['anthropic-beta']).toBe('interleaved-thinking-2025-05-14')
    expect(sent(app.others.claude)).not.toHaveProperty('container')
    const stored = await post('/v1/messages', {
      ...claude,
      messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'file', file_id: 'f' } }] }],
    })
    expect([stored.status, stored.json.error.type]).toEqual([400, 'invalid_request_error'])
    const mine = await post('/v1/messages', { ...claude, ...own }, betas)
    expect([mine.status, named(mine), app.others.claude.requests.at(-1)?.headers['anthropic-beta']]).toEqual([200, [], betas['anthropic-beta']])
  })

  test('HARD-07 undocumented fields of embeddings, speech and picture calls are also dropped', async () => {
    const vector = await post('/v1/embeddings', { model: 'test-embed', input: 'x', dimensions: 8, models: ['dear'], store: true })
    expect([vector.status, named(vector)]).toEqual([200, ['models', 'store']])
    expect(sent()).toEqual({ model: 'alpha-upstream', input: 'x', dimensions: 8 })
    app.alpha.script({ headers: { 'content-type': 'audio/mpeg' }, rawStream: ['ID3'] })
    await post('/v1/audio/speech', { model: 'spoken', input: 'hi', voice: 'alloy', clone_from: 'x' })
    expect(sent()).toEqual({ model: 'spoken', input: 'hi', voice: 'alloy' })
    const voice = await post('/v1/audio/speech', { model: 'spoken', input: 'hi', voice: { id: 'voice_1' } })
    expect([voice.status, voice.json.error.code]).toEqual([400, 'bad_request'])
    app.alpha.script({ body: { created: 1, data: [{ url: 'https://x.example/1.png' }] } })
    const picture = await post('/v1/images/generations', { model: 'drawn', prompt: 'a boat', background: 'opaque', loras: ['x'] })
    expect([picture.status, named(picture)]).toEqual([200, ['loras']])
    expect(sent()).toMatchObject({ background: 'opaque' })
  })

  test('HARD-07 a reply that names a more expensive model than requested is charged as that model, except on an own key', async () => {
    const usage = { prompt_tokens: 100, completion_tokens: 100, total_tokens: 200 }
    const whole = (model: string) => ({
      body: { id: 'x', object: 'chat.completion', model, choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }], usage },
    })
    const chunk = (model: string, more: object) => `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', model, ...more })}\n\n`
    const streamed = (model: string) => ({
      rawStream: [
        chunk(model, { choices: [{ index: 0, delta: { role: 'assistant', content: 'hi' }, finish_reason: null }] }),
        chunk(model, { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
        chunk(model, { choices: [], usage }),
        'data: [DONE]\n\n',
      ],
    })
    const charged = async (script: object, body: object = {}) => {
      app.alpha.script(script)
      const reply = await chat(body)
      expect(reply.status, reply.text).toBe(200)
      const [row] = await usageRows(app)
      return [row?.valueUinr, row?.costUinr]
    }
    const cheap = 100n * 10n + 100n * 40n
    const dear = 100n * 1000n + 100n * 4000n
    for (const [script, stream] of [
      [whole, false],
      [streamed, true],
    ] as const) {
      for (const same of ['alpha-upstream', 'alpha-only', 'vendor/alpha-upstream-2026-01-31', 'an-alias', 'test-model'])
        expect([same, await charged(script(same), { stream })]).toEqual([same, [cheap, cheap]])
      for (const other of ['dear-upstream', 'Vendor/dear-upstream-20260131', 'dear-model'])
        expect([other, await charged(script(other), { stream })]).toEqual([other, [dear, dear]])
      expect(await charged(script('dear-upstream'), { stream, ...own })).toEqual([cheap, 0n])
    }
    // The next call is charged for its own model.
    expect(await charged(whole('alpha-upstream'))).toEqual([cheap, cheap])
  })
})
