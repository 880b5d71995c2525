import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { type CloudServer, chunkFrame, cloudKey, eventIn, eventsIn, exceptionFrame, startCloudServer, unknownOperation } from '../../harness/cloud-server.ts'
import { usageRows } from '../../harness/usage-rows.ts'

const price = (input = 10, output = 40) => ({ input_inr_per_mtok: input, output_inr_per_mtok: output, source: 'test', as_of: '2026-01-01' })
const hello = [{ role: 'user' as const, content: 'Hello there' }]
const profile = 'us.anthropic.claude-sonnet-4-5-20250929-v1:0'
const arn = 'arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3'
const tool = { name: 'weather', description: 'd', input_schema: { type: 'object' as const, properties: { city: { type: 'string' } } } }

let cloud: CloudServer
let app: TestApp
let claude: Anthropic
let openai: OpenAI

beforeAll(async () => {
  cloud = await startCloudServer()
  const vertex = (location: string) => `${cloud.url}/v1/projects/acme/locations/${location}`
  const model = (id: string, ...routes: object[]) => ({
    id,
    kind: 'chat',
    context_length: 200_000,
    max_output_tokens: 8192,
    tools: true,
    reasoning: true,
    modalities: ['text', 'image'],
    routes,
  })
  app = await startApp({
    env: Object.fromEntries(['BEDROCK', 'WIDER', 'MUMBAI', 'GVERTEX', 'DELHI'].map(name => [`${name}_API_KEY`, cloudKey])),
    operatorFile: ({ alpha, beta, indus }) => ({
      providers: [
        { id: 'alpha', base_url: alpha, residency: 'global', auth: 'api-key' },
        { id: 'beta', base_url: beta, residency: 'global' },
        { id: 'indus', base_url: indus, residency: 'india' },
        { id: 'bedrock', base_url: cloud.url, cloud: 'bedrock-invoke', residency: 'global' },
        { id: 'wider', base_url: cloud.url, cloud: 'bedrock-invoke', residency: 'global', fields: ['context_management'] },
        { id: 'mumbai', base_url: cloud.url, cloud: 'bedrock-invoke', residency: 'india' },
        { id: 'gvertex', base_url: vertex('us-east5'), cloud: 'vertex', residency: 'global' },
        { id: 'delhi', base_url: vertex('asia-south2'), cloud: 'vertex', residency: 'india' },
      ],
      models: [
        model('bedrock-claude', { provider: 'bedrock', upstream_model: profile, ...price() }, { provider: 'beta', ...price(20, 80) }),
        model('arn-claude', { provider: 'wider', upstream_model: arn, ...price() }),
        model('vertex-claude', { provider: 'gvertex', upstream_model: 'claude-sonnet-4-5@20250929', ...price() }),
        model('vertex-gemini', { provider: 'gvertex', dialect: 'gemini', upstream_model: 'gemini-2.5-flash', ...price() }),
        model('own-wider', { provider: 'wider', upstream_model: profile, byok_only: true, ...price() }),
        model('own-claude', { provider: 'bedrock', upstream_model: profile, byok_only: true, ...price() }),
        model('profiled', { provider: 'mumbai', upstream_model: 'global.anthropic.claude-sonnet-4-5-20250929-v1:0', ...price(1, 1) }),
        model(
          'resident',
          { provider: 'mumbai', upstream_model: 'apac.anthropic.claude-sonnet-4-20250514-v1:0', ...price(1, 1) },
          { provider: 'delhi', dialect: 'gemini', upstream_model: 'gemini-2.5-flash', ...price(30, 90) },
        ),
        model('azure-model', { provider: 'alpha', upstream_model: 'my-deployment', ...price() }, { provider: 'beta', ...price(20, 80) }),
      ],
    }),
  })
  claude = new Anthropic({ baseURL: app.baseUrl, apiKey: app.key, maxRetries: 0 })
  openai = new OpenAI({ baseURL: `${app.baseUrl}/v1`, apiKey: app.key, maxRetries: 0 })
})
afterAll(async () => {
  await app.stop()
  await cloud.close()
})
beforeEach(() => {
  for (const server of [app.alpha, app.beta, app.indus]) server.reset()
  cloud.requests.length = 0
  cloud.answer = null
  cloud.frames = null
})

const messages = (body: object = {}, headers: Record<string, string> = {}) =>
  app.call('POST', '/v1/messages', { model: 'bedrock-claude', max_tokens: 4000, messages: hello, ...body }, { headers })
const chat = (body: object = {}) => app.call('POST', '/v1/chat/completions', { model: 'bedrock-claude', max_tokens: 4000, messages: hello, ...body })
const textIn = (content: readonly { readonly type: string; readonly text?: string }[]): string => content.map(block => block.text ?? '').join('')
const newest = async () => (await usageRows(app))[0]

describe('Claude in clouds', () => {
  const paths = {
    'bedrock-claude': [`/model/${encodeURIComponent(profile)}/invoke`, `/model/${encodeURIComponent(profile)}/invoke-with-response-stream`],
    'vertex-claude': ['raw', 'streamRaw'].map(
      name => `/v1/projects/acme/locations/us-east5/publishers/anthropic/models/claude-sonnet-4-5@20250929:${name === 'raw' ? 'rawPredict' : `${name}Predict`}`,
    ),
  }
  for (const [model, [wholePath, streamPath]] of Object.entries(paths))
    test(`CLOUD-03 ${model} answers messages and chat calls, whole and streamed, and each is charged as reported`, async () => {
      const body = { model, max_tokens: 4000, messages: hello }
      const whole = await claude.messages.create(body)
      const said = textIn(whole.content as { type: string; text?: string }[])
      const rows = [await newest()]
      const streamed = await claude.messages.stream(body).finalMessage()
      rows.push(await newest())
      const chatted = await openai.chat.completions.create(body)
      rows.push(await newest())
      const chunks = await openai.chat.completions.stream({ ...body, stream_options: { include_usage: true } }).finalChatCompletion()
      rows.push(await newest())
      expect(said).toContain('simulated reply')
      expect(textIn(streamed.content as { type: string; text?: string }[])).toBe(said)
      expect([chatted.choices[0]?.message.content, chunks.choices[0]?.message.content]).toEqual([said, said])
      expect(cloud.requests.map(({ path }) => path)).toEqual([wholePath, streamPath, wholePath, streamPath])
      const { input_tokens: prompt, output_tokens: completion } = whole.usage
      for (const row of rows)
        expect(row).toMatchObject({ model, outcome: 'ok', estimated: false, promptTokens: BigInt(prompt), completionTokens: BigInt(completion) })
      expect(rows.map(row => row?.costUinr)).toEqual(rows.map(() => BigInt(prompt * 10 + completion * 40)))
      expect(streamed.usage.output_tokens).toBe(completion)
      expect(chunks.usage?.completion_tokens).toBe(completion)
      const isBedrock = model === 'bedrock-claude'
      for (const { json, headers } of cloud.requests) {
        expect(json).toMatchObject({ anthropic_version: isBedrock ? 'bedrock-2023-05-31' : 'vertex-2023-10-16', max_tokens: 4000 })
        expect(json).not.toHaveProperty('model')
        expect([headers['anthropic-version'], headers['x-api-key'], headers.authorization]).toEqual([undefined, undefined, `Bearer ${cloudKey}`])
      }
      expect(cloud.requests.map(({ json }) => json['stream'])).toEqual(isBedrock ? Array(4).fill(undefined) : [undefined, true, undefined, true])
    })

  test('CLOUD-03 a tool is called and answered through the frames, with the arguments that the model wrote', async () => {
    const asked = { role: 'user' as const, content: 'call weather {"city":"Pune"}' }
    const body = { model: 'bedrock-claude', max_tokens: 4000, tools: [tool] }
    const first = await claude.messages.stream({ ...body, messages: [asked] }).finalMessage()
    const call = first.content.find(block => block.type === 'tool_use')
    expect(call).toMatchObject({ name: 'weather', input: { city: 'Pune' } })
    const result = { type: 'tool_result' as const, tool_use_id: call?.id ?? '', content: '31 degrees' }
    const second = await claude.messages
      .stream({ ...body, messages: [asked, { role: 'assistant', content: first.content }, { role: 'user', content: [result] }] })
      .finalMessage()
    expect(textIn(second.content as { type: string; text?: string }[])).toContain('the tool answered')
    const { name, description, input_schema: parameters } = tool
    const chatted = await openai.chat.completions
      .stream({ model: 'bedrock-claude', messages: [asked], tools: [{ type: 'function', function: { name, description, parameters } }] })
      .finalChatCompletion()
    expect(chatted.choices[0]?.message.tool_calls?.[0]).toMatchObject({ function: { name: 'weather', arguments: '{"city":"Pune"}' } })
  })

  test('CLOUD-03 fields and betas that the cloud refuses are left out in pairs and named, and a pair of the row goes', async () => {
    const betas = 'claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,prompt-caching-scope-2026-01-05'
    const body = {
      system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral', scope: 'global' } }],
      metadata: { user_id: 'u' },
      context_management: { edits: [] },
      service_tier: 'auto',
    }
    const left = ['anthropic-beta.claude-code-20250219', 'anthropic-beta.prompt-caching-scope-2026-01-05', 'cache_control.scope', 'service_tier']
    const dropped = (reply: Awaited<ReturnType<typeof messages>>): string[] => (reply.headers.get('x-br-dropped-params') ?? '').split(',').sort()
    const plain = await messages(body, { 'anthropic-beta': betas })
    expect(plain.status, plain.text).toBe(200)
    expect(dropped(plain)).toEqual(['anthropic-beta.context-management-2025-06-27', 'context_management', ...left].sort())
    expect(cloud.requests[0]?.json).toEqual({
      max_tokens: 4000,
      messages: hello,
      system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
      metadata: { user_id: 'u' },
      anthropic_version: 'bedrock-2023-05-31',
      anthropic_beta: ['interleaved-thinking-2025-05-14'],
    })
    const listed = await messages({ ...body, model: 'arn-claude', stream: true }, { 'anthropic-beta': betas })
    expect(listed.status, listed.text).toBe(200)
    expect(dropped(listed)).toEqual([...left].sort())
    expect(cloud.requests[1]?.json).toMatchObject({
      context_management: { edits: [] },
      anthropic_beta: ['interleaved-thinking-2025-05-14', 'context-management-2025-06-27'],
    })
    const onVertex = await messages({ ...body, model: 'vertex-claude' }, { 'anthropic-beta': betas })
    expect([onVertex.status, cloud.requests[2]?.headers['anthropic-beta']]).toEqual([200, 'interleaved-thinking-2025-05-14'])
    const schema = { name: 'a', schema: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false } }
    const formed = await chat({ response_format: { type: 'json_schema', json_schema: schema }, service_tier: 'auto' })
    expect([formed.status, formed.headers.get('x-br-dropped-params')]).toEqual([200, 'service_tier'])
    expect(cloud.requests[3]?.json['tools']).toHaveLength(1)
  })

  test('CLOUD-03 case 2: a status of 200 with UnknownOperationException is a failure, and the next route serves', async () => {
    cloud.answer = () => ({ body: unknownOperation })
    for (const stream of [false, true])
      for (const call of [chat, messages]) {
        const reply = await call({ stream })
        expect([reply.status, reply.headers.get('x-br-provider')]).toEqual([200, 'beta'])
        expect(reply.text).toContain('upstream')
      }
    expect(cloud.requests).toHaveLength(4)
    expect(await usageRows(app, 4)).toMatchObject(Array(4).fill({ provider: 'beta', outcome: 'ok' }))
  })

  test('CLOUD-03 case 3: frames that come byte by byte give the same stream', async () => {
    const expected = eventsIn((await messages({ stream: true })).text)
    cloud.frames = frames => frames.flatMap(frame => [...frame].map(byte => Buffer.from([byte])))
    const cut = eventsIn((await messages({ stream: true })).text)
    const withoutIds = (events: readonly string[]) => events.slice(1)
    expect(withoutIds(cut)).toEqual(withoutIds(expected))
    expect(await newest()).toMatchObject({ outcome: 'ok', estimated: false })
  })

  test('CLOUD-03 case 3: a flipped bit is an error in the stream, and what came before it is charged', async () => {
    const flipped = (index: number) => (frames: readonly Buffer[]) => {
      const broken = Buffer.from(frames.at(index) ?? '')
      broken[60] = (broken[60] ?? 0) ^ 4
      return frames.map((frame, at) => (at === (index + frames.length) % frames.length ? broken : frame))
    }
    cloud.frames = flipped(-3)
    const native = await messages({ stream: true })
    expect(native.text).toMatch(/event: error\ndata: \{.*wrong checksum.*\}\n\n$/)
    expect(native.text).toContain('"text_delta"')
    expect(native.text).not.toContain('message_stop')
    const row = await newest()
    expect(row).toMatchObject({ provider: 'bedrock', outcome: 'upstream_broke', estimated: true })
    expect(Number(row?.completionTokens)).toBeGreaterThan(0)
    const hub = await chat({ stream: true })
    expect(hub.text).toContain('wrong checksum')
    expect(await newest()).toMatchObject({ provider: 'bedrock', outcome: 'upstream_broke', estimated: true })
    cloud.frames = flipped(0)
    const other = await chat({ stream: true })
    expect([other.status, other.headers.get('x-br-provider')]).toEqual([200, 'beta'])
  })

  test('CLOUD-03 case 4: a stream and a reply without usage are charged by an estimate that is marked as one', async () => {
    const withoutUsage = (frames: readonly Buffer[]) =>
      frames.map(frame => {
        const event = eventIn(frame) as { usage?: unknown; message?: { usage?: unknown } }
        delete event.usage
        delete event.message?.usage
        return chunkFrame(event)
      })
    cloud.frames = withoutUsage
    for (const call of [messages, chat]) {
      expect((await call({ stream: true })).status).toBe(200)
      const row = await newest()
      expect(row).toMatchObject({ provider: 'bedrock', outcome: 'ok', estimated: true })
      expect([Number(row?.promptTokens) > 0, Number(row?.completionTokens) > 0]).toEqual([true, true])
    }
    cloud.answer = () => ({ body: { id: 'm', type: 'message', role: 'assistant', content: [{ type: 'text', text: 'Hello.' }], stop_reason: 'end_turn' } })
    expect((await chat()).json.usage.completion_tokens).toBeGreaterThan(0)
    expect(await newest()).toMatchObject({ outcome: 'ok', estimated: true })
  })

  test('an exception before the first event leads to the next route, and one after it is an error in the stream', async () => {
    cloud.frames = () => [exceptionFrame('throttlingException', 'Too many requests.')]
    expect((await messages({ stream: true })).headers.get('x-br-provider')).toBe('beta')
    cloud.frames = frames => [...frames.slice(0, 4), exceptionFrame('modelStreamErrorException', `The model ${arn} broke.`)]
    const broken = await messages({ stream: true })
    const shown = `The model ${arn.replace('123456789012', '[…]')} broke.`
    expect([broken.headers.get('x-br-provider'), broken.text.includes(shown), broken.text.includes('123456789012')]).toEqual(['bedrock', true, false])
    expect(await newest()).toMatchObject({ outcome: 'upstream_broke' })
  })

  test('a failure of the id or of a quota leads to the next route, and a refusal of the request goes to the caller', async () => {
    const refusal = (status: number, name: string, message: string) => ({ status, headers: { 'x-amzn-errortype': name }, body: { message } })
    for (const failure of [
      refusal(400, 'ValidationException', "Invocation of model ID x with on-demand throughput isn't supported. Retry with an inference profile."),
      refusal(400, 'ServiceQuotaExceededException', 'Your request exceeds the quota.'),
      refusal(404, 'ResourceNotFoundException', 'Not found.'),
      refusal(424, 'ModelErrorException', 'The model failed.'),
      refusal(403, 'AccessDeniedException', "You don't have access to the model with the specified model ID."),
    ]) {
      cloud.answer = () => failure
      expect((await messages()).headers.get('x-br-provider'), failure.headers['x-amzn-errortype']).toBe('beta')
    }
    cloud.answer = () => refusal(400, 'ValidationException', 'max_tokens: 9 > 8 is not allowed.')
    const refused = await messages()
    expect([refused.status, refused.json.error.message]).toEqual([400, 'max_tokens: 9 > 8 is not allowed.'])
  })

  test('the key of an organisation is tested by a call without content, and its refusals have the form of the client', async () => {
    const cookie = await app.signIn()
    const save = (provider: string, key: string) => app.call('PUT', `/me/byok/${provider}`, { key }, { cookie })
    for (const provider of ['wider', 'delhi']) {
      expect((await save(provider, 'a-wrong-key-of-a-cloud')).json.error.code, provider).toBe('bad_key')
      expect(await save(provider, cloudKey), provider).toMatchObject({ status: 200 })
    }
    cloud.answer = () => ({ status: 400, headers: { 'x-amzn-errortype': 'ValidationException' }, body: { message: 'max_tokens: too many.' } })
    const refused = await messages({ model: 'own-wider' })
    expect([refused.status, refused.json.type, refused.json.error.message]).toEqual([400, 'error', 'max_tokens: too many.'])
    cloud.answer = null
    const streamed = await messages({ model: 'own-wider', stream: true })
    expect([streamed.headers.get('content-type'), (await newest())?.byok]).toEqual([expect.stringContaining('text/event-stream'), true])
    for (const provider of ['wider', 'delhi']) await app.call('DELETE', `/me/byok/${provider}`, undefined, { cookie })
  })

  test("a caller's own Anthropic credential never goes to a cloud, although it serves the same models", async () => {
    const reply = await app.call(
      'POST',
      '/v1/messages',
      { model: 'own-claude', max_tokens: 64, messages: hello },
      { token: null, headers: { 'x-br-api-key': app.key, authorization: 'Bearer sk-ant-oat01-own-subscription' } },
    )
    expect(reply.status).toBeGreaterThanOrEqual(400)
    expect(cloud.requests).toHaveLength(0)
  })

  test('tokens are counted by Vertex in its own way, and estimated for Bedrock, which is not called', async () => {
    const count = (model: string) => app.call('POST', '/v1/messages/count_tokens', { model, messages: hello })
    expect((await count('vertex-claude')).json).toEqual({ input_tokens: 7 })
    expect(cloud.requests[0]).toMatchObject({
      path: '/v1/projects/acme/locations/us-east5/publishers/anthropic/models/count-tokens:rawPredict',
      json: { model: 'claude-sonnet-4-5@20250929' },
    })
    expect((await count('bedrock-claude')).headers.get('x-br-estimate')).toBe('true')
    expect(cloud.requests).toHaveLength(1)
  })
})

test('CLOUD-04 Gemini on Vertex is called with project, location and bearer, and answers like Gemini itself', async () => {
  const body = { model: 'vertex-gemini', messages: hello }
  const whole = await openai.chat.completions.create(body)
  const first = await newest()
  const streamed = await openai.chat.completions.stream({ ...body, stream_options: { include_usage: true } }).finalChatCompletion()
  expect(whole.choices[0]?.message.content).toContain('simulated reply')
  expect(streamed.choices[0]?.message.content).toBe(whole.choices[0]?.message.content)
  expect(first).toMatchObject({ provider: 'gvertex', estimated: false, completionTokens: BigInt(whole.usage?.completion_tokens ?? 0) })
  expect(await newest()).toMatchObject({ provider: 'gvertex', estimated: false, completionTokens: first?.completionTokens })
  const path = '/v1/projects/acme/locations/us-east5/publishers/google/models/gemini-2.5-flash'
  expect(cloud.requests.map(request => request.path)).toEqual([`${path}:generateContent`, `${path}:streamGenerateContent?alt=sse`])
  for (const { headers } of cloud.requests) expect([headers.authorization, headers['x-goog-api-key']]).toEqual([`Bearer ${cloudKey}`, undefined])
  const native = await claude.messages
    .stream({ model: 'vertex-gemini', max_tokens: 4000, tools: [tool], messages: [{ role: 'user', content: 'call weather {}' }] })
    .finalMessage()
  expect(native.content.some(block => block.type === 'tool_use')).toBe(true)
})

describe('regions', () => {
  test('CLOUD-06 case 7: a profile of several regions is never dialed under india_only, although its provider is in India', async () => {
    const refused = await chat({ model: 'profiled', data_policy: 'india_only' })
    expect([refused.status, refused.json.error.code]).toEqual([422, 'no_route'])
    expect(refused.json.error.message).toContain('No India-resident route')
    expect(cloud.requests).toHaveLength(0)
    const resident = await chat({ model: 'resident', data_policy: 'india_only' })
    expect([resident.status, resident.headers.get('x-br-provider')]).toEqual([200, 'delhi'])
    expect((await chat({ model: 'resident' })).headers.get('x-br-provider')).toBe('mumbai')
    const previewed = async (body: object) => {
      const { candidates } = (await app.call('POST', '/me/route/preview', { model: 'resident', messages: hello, ...body })).json
      return candidates.flatMap(({ provider, eligible }: { provider: string; eligible: boolean }) => (eligible ? [provider] : []))
    }
    expect([await previewed({}), await previewed({ data_policy: 'india_only' })]).toEqual([['mumbai', 'delhi'], ['delhi']])
  })

  test('CLOUD-06 a profile that a caller names by its own id is not dialed under india_only either, nor is an id of dots', async () => {
    const own = { upstream_key: cloudKey, max_tokens: 64 }
    const profiled = await chat({ ...own, model: `mumbai/${profile}`, data_policy: 'india_only' })
    expect([profiled.status, cloud.requests.length]).toEqual([422, 0])
    expect((await chat({ ...own, model: `mumbai/${profile}` })).status).toBe(200)
    const local = await chat({ ...own, model: 'mumbai/anthropic.claude-3-haiku-20240307-v1:0', data_policy: 'india_only' })
    expect(local.status, local.text).toBe(200)
    const dots = await chat({ ...own, model: 'mumbai/..' })
    expect([dots.status, dots.json.error.code, cloud.requests.length]).toEqual([400, 'bad_request', 2])
  })

  test('CLOUD-06 case 1: an ARN goes as one encoded part of the path, and the reply has the id of the catalog', async () => {
    const reply = await chat({ model: 'arn-claude' })
    expect([reply.status, reply.json.model]).toEqual([200, 'arn-claude'])
    expect(cloud.requests[0]?.path).toBe('/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Aapplication-inference-profile%2Fa1b2c3/invoke')
  })
})

describe('Azure', () => {
  const event = (value: unknown): string => `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`
  const filters = { hate: { filtered: false, severity: 'safe' } }
  const first = event({ choices: [], created: 0, id: '', model: '', object: '', prompt_filter_results: [{ prompt_index: 0, content_filter_results: filters }] })
  const limit = event({ error: { code: '429', message: 'Requests have exceeded the rate limit.' } })
  const said = (content: string, finish: string | null = null) =>
    event({
      id: 'c',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'gpt',
      choices: [{ index: 0, delta: { content }, finish_reason: finish, content_filter_results: filters }],
    })
  const azure = async () => await chat({ model: 'azure-model', stream: true })

  test('CLOUD-06 case 8: the empty first chunk does not begin the stream, so a 429 after it leads to the next route', async () => {
    app.alpha.script({ rawStream: [first, limit] })
    const reply = await azure()
    expect([reply.status, reply.headers.get('x-br-provider')]).toEqual([200, 'beta'])
    expect(app.alpha.requests[0]?.headers['api-key']).toBe('alpha-platform-secret')
  })

  test('CLOUD-06 case 8: a 429 after content is an error frame of that stream, without failover, and the content is charged', async () => {
    app.alpha.script({ rawStream: [first, said('Hello'), said(' there'), limit] })
    const reply = await azure()
    expect([reply.headers.get('x-br-provider'), app.beta.requests.length]).toEqual(['alpha', 0])
    expect(reply.text).toContain('exceeded the rate limit')
    expect(reply.text).toContain('content_filter_results')
    expect(await newest()).toMatchObject({ provider: 'alpha', outcome: 'upstream_broke' })
  })

  test('CLOUD-06 content filter fields pass whole and streamed, also to messages, and a filter is the fault of the request', async () => {
    app.alpha.script({ rawStream: [first, said('Hello'), said('', 'stop'), 'data: [DONE]\n\n'] })
    const streamed = await azure()
    expect(streamed.text).toContain('prompt_filter_results')
    expect(streamed.text).toContain('"content_filter_results":{"hate"')
    app.alpha.script({ rawStream: [first, said('Hello'), said('', 'stop'), 'data: [DONE]\n\n'] })
    const native = await messages({ model: 'azure-model', stream: true })
    expect([native.text.includes('"text":"Hello"'), native.text.includes('message_stop')]).toEqual([true, true])
    const filtered = {
      error: { message: 'The response was filtered.', code: 'content_filter', status: 400, innererror: { code: 'ResponsibleAIPolicyViolation' } },
    }
    app.alpha.script({ status: 400, body: filtered })
    const refused = await azure()
    expect([refused.status, refused.json.error.code, app.beta.requests.length]).toEqual([400, 'content_filter', 0])
  })
})
