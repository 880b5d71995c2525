import { ApiError, type Content, FunctionCallingConfigMode, type GenerateContentResponse, GoogleGenAI, Type } from '@google/genai'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { until } from '../../harness/until.ts'
import type { UpstreamScript, UpstreamServer } from '../../harness/upstream-server.ts'

interface Event {
  readonly kind: string
  readonly streamed: boolean
  readonly outcome: string
  readonly prompt_tokens: bigint
  readonly completion_tokens: bigint
  readonly value_uinr: bigint
}
const eventsOf = statement<[orgId: number], Event>(
  'test.gemini_events',
  `select kind, streamed, outcome, prompt_tokens, completion_tokens, value_uinr from usage_events where org_id = $1::int order by id desc limit 2`,
)

let app: TestApp
let client: GoogleGenAI
beforeAll(async () => {
  app = await startApp({ dialects: true, env: { SANDBOX: 'on' } })
  client = clientOf(app.key)
})
afterAll(() => app.stop())
afterEach(() => {
  for (const server of [app.alpha, app.beta, app.others.gem, app.others.claude, app.others.resp]) server.reset()
})

const clientOf = (apiKey: string): GoogleGenAI => new GoogleGenAI({ apiKey, httpOptions: { baseUrl: app.baseUrl } })
const bodyAt = (server: UpstreamServer): Record<string, unknown> => server.requests.at(-1)?.json ?? {}
const hello = { contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] }
const post = (path: string, body: object, options: Parameters<TestApp['call']>[3] = {}) => app.call('POST', `/v1beta/models/${path}`, body, options)

async function streamed(given: Parameters<GoogleGenAI['models']['generateContentStream']>[0], by = client): Promise<GenerateContentResponse[]> {
  const chunks: GenerateContentResponse[] = []
  for await (const chunk of await by.models.generateContentStream(given)) chunks.push(chunk)
  return chunks
}

const charged = async (): Promise<readonly Event[]> => {
  await app.gateway.app.limits.flushNow()
  return app.db.many(eventsOf, app.orgId)
}

async function refusal(
  work: Promise<unknown>,
): Promise<{ status: number; body: { error: { code: number; status: string; message: string; details: unknown[] } } }> {
  const error = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof ApiError)) throw new Error(`no ApiError: ${String(error)}`)
  return { status: error.status, body: JSON.parse(error.message.replace(/^got status: \w+\. /, '')) }
}

describe('the SDK of Google', () => {
  test.each(['openai-model', 'anthropic-model', 'gemini-model', 'responses-model'])(
    'CLOUD-05: %s answers whole and streamed, and both cost the same',
    async model => {
      const whole = await client.models.generateContent({ model, contents: 'Hello' })
      expect(whole.text).toBe('Hello from the test upstream')
      expect(whole.candidates?.[0]).toMatchObject({ finishReason: 'STOP', content: { role: 'model' } })
      expect(whole.usageMetadata).toMatchObject({ promptTokenCount: 12, candidatesTokenCount: 5, totalTokenCount: 17 })

      const chunks = await streamed({ model, contents: 'Hello' })
      expect(chunks.map(chunk => chunk.text ?? '').join('')).toBe('Hello from the test upstream')
      expect(chunks.at(-1)).toMatchObject({ candidates: [{ finishReason: 'STOP' }], usageMetadata: { promptTokenCount: 12, totalTokenCount: 17 } })
      expect(chunks.slice(0, -1).every(chunk => chunk.candidates?.[0]?.finishReason === undefined)).toBe(true)

      const [last, before] = await charged()
      expect([last?.kind, last?.streamed, before?.kind, before?.streamed]).toEqual(['gemini', true, 'gemini', false])
      expect([last?.value_uinr, last?.prompt_tokens, last?.completion_tokens]).toEqual([before?.value_uinr, 12n, 5n])
      expect(last?.value_uinr).toBe(12n * 10n + 5n * 40n)
    },
  )

  const declaration = {
    name: 'weather',
    description: 'of a city',
    parameters: { type: Type.OBJECT, properties: { city: { type: Type.STRING }, days: { type: Type.INTEGER, nullable: true } }, required: ['city'] },
  }
  const called: UpstreamScript = {
    body: {
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: null,
            reasoning_content: 'It asks for weather.',
            tool_calls: [
              { id: 'call_a', type: 'function', function: { name: 'weather', arguments: '{"city":"Pune"}' } },
              { id: 'call_b', type: 'function', function: { name: 'weather', arguments: '{"city":"Goa"}' } },
            ],
          },
          finish_reason: 'tool_calls',
        },
      ],
      usage: {
        prompt_tokens: 30,
        completion_tokens: 9,
        total_tokens: 39,
        completion_tokens_details: { reasoning_tokens: 4 },
        prompt_tokens_details: { cached_tokens: 10 },
      },
    },
  }

  test.each([{ stream: false }, { stream: true }])(
    'CLOUD-05: calls functions of a model elsewhere and gives the results back, with its thinking (stream: $stream)',
    async ({ stream }) => {
      app.alpha.script([called, {}])
      const config = {
        tools: [{ functionDeclarations: [declaration] }],
        toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY } },
        systemInstruction: 'Be brief.',
        thinkingConfig: { includeThoughts: true, thinkingBudget: 5000 },
        temperature: 0.2,
        stopSequences: ['END'],
        maxOutputTokens: 900,
      }
      const asked = { model: 'openai-model', contents: [{ role: 'user', parts: [{ text: 'Weather?' }] }] as Content[], config }
      const replies = stream ? await streamed(asked) : [await client.models.generateContent(asked)]
      const parts = replies.flatMap(reply => reply.candidates?.[0]?.content?.parts ?? [])
      expect(parts.filter(part => part.thought)).toEqual([{ text: 'It asks for weather.', thought: true }])
      const calls = parts.filter(part => part.functionCall !== undefined)
      expect(calls.map(part => part.functionCall)).toEqual([
        { id: 'call_a', name: 'weather', args: { city: 'Pune' } },
        { id: 'call_b', name: 'weather', args: { city: 'Goa' } },
      ])
      expect(calls[0]?.thoughtSignature).toMatch(/^[A-Za-z0-9+/]+=*$/)
      expect(replies.at(-1)?.usageMetadata).toMatchObject({
        promptTokenCount: 30,
        cachedContentTokenCount: 10,
        candidatesTokenCount: 5,
        thoughtsTokenCount: 4,
        totalTokenCount: 39,
      })
      expect(bodyAt(app.alpha)).toMatchObject({
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'Weather?' },
        ],
        tools: [
          {
            type: 'function',
            function: {
              name: 'weather',
              description: 'of a city',
              parameters: { type: 'object', properties: { city: { type: 'string' }, days: { type: ['integer', 'null'] } }, required: ['city'] },
            },
          },
        ],
        tool_choice: { type: 'function', function: { name: 'weather' } },
        temperature: 0.2,
        stop: ['END'],
        max_tokens: 900,
        reasoning_effort: 'medium',
      })

      const results: Content = {
        role: 'user',
        parts: [
          { functionResponse: { id: 'call_b', name: 'weather', response: { error: 'no data' } } },
          { functionResponse: { id: 'call_a', name: 'weather', response: { output: 'sunny' } } },
          { text: 'Go on.' },
        ],
      }
      await client.models.generateContent({ ...asked, contents: [...asked.contents, { role: 'model', parts }, results] })
      expect(bodyAt(app.alpha)['messages']).toEqual([
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Weather?' },
        expect.objectContaining({
          role: 'assistant',
          content: null,
          tool_calls: [expect.objectContaining({ id: 'call_a' }), expect.objectContaining({ id: 'call_b' })],
        }),
        { role: 'tool', tool_call_id: 'call_b', content: '{"error":"no data"}' },
        { role: 'tool', tool_call_id: 'call_a', content: 'sunny' },
        { role: 'user', content: 'Go on.' },
      ])
    },
  )

  test('signed thinking of Claude comes back to it byte for byte, and Gemini never sees it', async () => {
    const content = [
      { type: 'thinking', thinking: 'deep', signature: 'c2lnbmVk' },
      { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Pune' } },
    ]
    app.others.claude.script([
      { body: { id: 'm', type: 'message', role: 'assistant', model: 'x', content, stop_reason: 'tool_use', usage: { input_tokens: 3, output_tokens: 4 } } },
      {},
    ])
    const asked = {
      model: 'anthropic-model',
      contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] as Content[],
      config: { tools: [{ functionDeclarations: [declaration] }], thinkingConfig: { thinkingBudget: 2000 } },
    }
    const first = await client.models.generateContent(asked)
    const parts = first.candidates?.[0]?.content?.parts ?? []
    expect(parts).toEqual([{ functionCall: { id: 'toolu_1', name: 'weather', args: { city: 'Pune' } }, thoughtSignature: expect.any(String) }])
    const contents = [
      ...asked.contents,
      { role: 'model', parts },
      { role: 'user', parts: [{ functionResponse: { id: 'toolu_1', name: 'weather', response: { output: 'sunny' } } }] },
    ]
    // Some clients write bytes in the other alphabet of base64.
    const rewritten = JSON.parse(
      JSON.stringify(contents).replace(
        /"thoughtSignature":"([^"]+)"/,
        (_all, text: string) => `"thoughtSignature":"${text.replaceAll('+', '-').replaceAll('/', '_')}"`,
      ),
    )
    await client.models.generateContent({ ...asked, contents: rewritten })
    expect(bodyAt(app.others.claude)['messages']).toMatchObject([
      {},
      { role: 'assistant', content },
      { content: [{ type: 'tool_result', tool_use_id: 'toolu_1' }] },
    ])

    const { headers } = await post('gemini-model:generateContent', { contents })
    expect(headers.get('x-br-dropped-params')).toBe('contents.parts.thoughtSignature')
    expect(JSON.stringify(bodyAt(app.others.gem))).not.toContain('thoughtSignature')
  })

  test('CLOUD-05 embeds one text and several, counts tokens, and lists models', async () => {
    const vectors = {
      data: [
        { object: 'embedding', index: 1, embedding: [0.25, -1e-7] },
        { object: 'embedding', index: 0, embedding: [1, 2] },
      ],
      usage: { prompt_tokens: 6, total_tokens: 6 },
    }
    app.alpha.script({ body: vectors })
    const many = await client.models.embedContent({
      model: 'test-embed',
      contents: ['a', 'b'],
      config: { outputDimensionality: 2, taskType: 'RETRIEVAL_QUERY' },
    })
    expect(many.embeddings?.map(({ values }) => values)).toEqual([
      [1, 2],
      [0.25, -1e-7],
    ])
    expect(bodyAt(app.alpha)).toEqual({ model: 'alpha-upstream', input: ['a', 'b'], dimensions: 2 })
    app.alpha.script({ body: { data: [{ index: 0, embedding: [3] }], usage: { prompt_tokens: 2, total_tokens: 2 } } })
    const one = await post('test-embed:embedContent', { content: { parts: [{ text: 'a' }] }, taskType: 'RETRIEVAL_QUERY' })
    expect([one.json, one.headers.get('x-br-dropped-params')]).toEqual([{ embedding: { values: [3] }, usageMetadata: { promptTokenCount: 2 } }, 'taskType'])
    expect((await charged()).map(({ kind }) => kind)).toEqual(['embeddings', 'embeddings'])

    app.others.gem.script({ body: { totalTokens: 77 } })
    expect((await client.models.countTokens({ model: 'gemini-model', contents: 'Hello' })).totalTokens).toBe(77)
    expect(app.others.gem.requests.at(-1)?.path).toBe('/v1/models/gemini-upstream:countTokens')
    const estimate = await post('openai-model:countTokens', { generateContentRequest: { model: 'models/openai-model', ...hello } })
    expect([estimate.json.totalTokens > 0, estimate.headers.get('x-br-estimate')]).toEqual([true, 'true'])

    const names: string[] = []
    for await (const model of await client.models.list({ config: { pageSize: 4 } })) names.push(model.name ?? '')
    expect(names).toEqual(expect.arrayContaining(['models/openai-model', 'models/test-embed']))
    expect(new Set(names).size).toBe(names.length)
    expect(names.length).toBeGreaterThan(4)
    expect(await client.models.get({ model: 'openai-model' })).toMatchObject({ name: 'models/openai-model', inputTokenLimit: 200_000 })
  })

  test('errors have the envelope of Google, with the code of the gateway as the reason', async () => {
    const unknown = await refusal(client.models.generateContent({ model: 'no-such', contents: 'Hello' }))
    expect(unknown).toMatchObject({
      status: 404,
      body: { error: { code: 404, status: 'NOT_FOUND', details: [{ reason: 'model_not_found', domain: 'brigade' }] } },
    })
    const wrongKey = await refusal(clientOf('br-wrong').models.generateContent({ model: 'openai-model', contents: 'Hello' }))
    expect(wrongKey).toMatchObject({ status: 401, body: { error: { status: 'UNAUTHENTICATED', details: [{ reason: 'invalid_api_key' }] } } })
    app.alpha.script({ status: 400, body: { error: { message: 'bad temperature', type: 'invalid_request_error', code: 'temperature' } } })
    const upstream = await refusal(client.models.generateContent({ model: 'openai-model', contents: 'Hello' }))
    expect(upstream).toMatchObject({
      status: 400,
      body: { error: { message: 'bad temperature', status: 'INVALID_ARGUMENT', details: [{ reason: 'temperature' }] } },
    })
    app.others.gem.script({ status: 400, body: { error: { code: 400, message: 'odd', status: 'FAILED_PRECONDITION', details: [{ '@type': 'x' }] } } })
    const relayed = await refusal(client.models.generateContent({ model: 'gemini-model', contents: 'Hello' }))
    expect(relayed.body.error).toEqual({ code: 400, message: 'odd', status: 'FAILED_PRECONDITION', details: [{ '@type': 'x' }] })
  })

  test('a spent budget is 429 with a wait that ends retries, and a stream that it cuts ends with the error', async () => {
    const agent = await app.newAgent('gemini spent')
    await app.setBudget('agent', agent.id, 0.000001)
    const first = clientOf(agent.token).models.generateContent({ model: 'openai-model', contents: 'Hello' })
    expect((await first).text).toBe('Hello from the test upstream')
    const spent = await refusal(clientOf(agent.token).models.generateContent({ model: 'openai-model', contents: 'Hello' }))
    // The wait is the time until the next period of the budget.
    const retryDelay = expect.stringMatching(/^\d+s$/)
    expect(spent).toMatchObject({
      status: 429,
      body: { error: { status: 'RESOURCE_EXHAUSTED', details: [{ reason: 'agent_budget_exceeded' }, { retryDelay }] } },
    })
    for (const model of ['openai-model', 'gemini-model']) {
      const poor = await app.newAgent(`gemini cut ${model}`)
      await app.setBudget('agent', poor.id, 0.4)
      const server = model === 'gemini-model' ? app.others.gem : app.alpha
      server.script({ chunks: Array.from({ length: 1500 }, () => 'x'.repeat(99)), chunkIntervalMs: 1 })
      const cut = await refusal(streamed({ model, contents: 'Hello' }, clientOf(poor.token)))
      expect(cut).toMatchObject({ status: 402, body: { error: { details: [{ reason: 'agent_budget_exceeded' }] } } })
      // The gateway reads the rest of the stream for its usage before it charges the call.
      await until(async () => (await charged())[0]?.outcome === 'cut', 'the cut call is charged')
      server.reset()
    }
  })
})

describe('a route of Google', () => {
  test('gets the request byte for byte, and its stream passes through unchanged with the exact usage', async () => {
    const usage = {
      promptTokenCount: 40,
      cachedContentTokenCount: 8,
      toolUsePromptTokenCount: 2,
      candidatesTokenCount: 6,
      thoughtsTokenCount: 5,
      totalTokenCount: 53,
    }
    const events = [
      { candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'Th', thought: true }] } }], usageMetadata: { promptTokenCount: 40 } },
      { candidates: [{ index: 0, content: { role: 'model', parts: [{ functionCall: { name: 'f', args: { n: 1 } }, thoughtSignature: 'Zm9v' }] } }] },
      { candidates: [{ index: 0, content: { role: 'model', parts: [{ text: '' }] }, finishReason: 'STOP' }], usageMetadata: usage },
      { usageMetadata: usage, unknownField: 1 },
    ].map(event => `data: ${JSON.stringify(event)}\r\n\r\n`)
    const body =
      '{"contents" : [{"role":"user","parts":[{"text":"Hi","thoughtSignature":"YWJj"}]}],\n "safetySettings":[], "generation_config":{"seed":12345678901234567890}}'
    app.others.gem.script({ rawStream: [Buffer.from(events.join('')).subarray(0, 100), Buffer.from(events.join('')).subarray(100)] })
    const reply = await app.call('POST', '/v1beta/models/gemini-model:streamGenerateContent?alt=sse', body)
    expect(reply.text).toBe(events.join(''))
    const sent = app.others.gem.requests.at(-1)
    expect([sent?.raw.toString(), sent?.path, sent?.headers['x-api-key']]).toEqual([
      body,
      '/v1/models/gemini-upstream:streamGenerateContent?alt=sse',
      'gem-platform-secret',
    ])
    const [event] = await charged()
    expect([event?.prompt_tokens, event?.completion_tokens]).toEqual([42n, 11n])
  })

  test('the form without alt=sse is one JSON array, relayed and translated, also when the stream fails', async () => {
    for (const [model, server] of [
      ['gemini-model', app.others.gem],
      ['openai-model', app.alpha],
    ] as const) {
      const { json, headers } = await post(`${model}:streamGenerateContent`, hello)
      expect(headers.get('content-type')).toMatch(/^application\/json/)
      expect(json.flatMap((chunk: GenerateContentResponse) => chunk.candidates?.[0]?.content?.parts?.map(({ text }) => text)).join('')).toBe(
        'Hello from the test upstream',
      )
      server.script({ errorFrameAfterChunks: 2 })
      const failed = await post(`${model}:streamGenerateContent`, hello)
      expect(failed.json.at(-1)).toMatchObject({ error: { code: 500, message: 'scripted failure' } })
    }
  })

  test('a stream that breaks off ends with an error and no reason of an end, and another route serves before the first byte', async () => {
    app.others.gem.script({ breakAfterChunks: 2 })
    const broken = await refusal(streamed({ model: 'gemini-model', contents: 'Hello' }))
    expect(broken).toMatchObject({ status: 500, body: { error: { details: [{ reason: 'upstream_stream_error' }] } } })
    app.alpha.script({ status: 503, body: {} })
    const served = await post('test-model:streamGenerateContent?alt=sse', hello)
    expect([served.status, served.headers.get('x-br-provider')]).toEqual([200, 'beta'])
  })

  test("tools that Google runs, pictures as answers and stored content are for the caller's own key, and other providers do not get them", async () => {
    const refused = async (model: string, more: object): Promise<string> => {
      const { status, json } = await post(`${model}:generateContent`, { ...hello, ...more })
      return `${status} ${json.error.message.split(' ').slice(0, 5).join(' ')}`
    }
    expect(await refused('gemini-model', { tools: [{ googleSearch: {} }] })).toBe('400 The tool "googleSearch" would be')
    expect(await refused('gemini-model', { tools: [{ url_context: {} }] })).toBe('400 The tool "url_context" would be')
    expect(await refused('gemini-model', { generationConfig: { responseModalities: ['IMAGE'] } })).toContain('responseModalities')
    expect(await refused('gemini-model', { cachedContent: 'cachedContents/1' })).toContain('"cachedContent" names something')
    const file = { contents: [{ parts: [{ fileData: { fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/abc' } }] }] }
    expect(await refused('gemini-model', file)).toContain('fileUri" names something')
    expect(await refused('openai-model', { tools: [{ codeExecution: {} }] })).toBe('400 "tools[0].codeExecution" is a tool that')
    expect([...app.others.gem.requests, ...app.alpha.requests]).toEqual([])
  })
})

describe('a field under both of its names', () => {
  const at: Record<string, (fields: string) => string> = {
    body: fields => `{"contents":[{"parts":[{"text":"Hi"}]}],${fields}}`,
    config: fields => `{"contents":[{"parts":[{"text":"Hi"}]}],"generationConfig":{${fields}}}`,
    thinking: fields => `{"contents":[{"parts":[{"text":"Hi"}]}],"generation_config":{"thinking_config":{${fields}}}}`,
    calling: fields => `{"contents":[{"parts":[{"text":"Hi"}]}],"toolConfig":{"functionCallingConfig":{${fields}}}}`,
    tool: fields => `{"contents":[{"parts":[{"text":"Hi"}]}],"tools":[{${fields}}]}`,
    part: fields => `{"contents":[{"parts":[{${fields}}]}]}`,
    file: fields => `{"contents":[{"parts":[{"file_data":{${fields}}}]}]}`,
    inline: fields => `{"contents":[{"parts":[{"inlineData":{"data":"AAAA",${fields}}}]}]}`,
    result: fields => `{"contents":[{"parts":[{"functionResponse":{"name":"f","response":{},"parts":[{"fileData":{${fields}}}]}}]}]}`,
    system: fields => `{"contents":[{"parts":[{"text":"Hi"}]}],"systemInstruction":{"parts":[{${fields}}]}}`,
  }
  const own = '"https://generativelanguage.googleapis.com/v1beta/files/abc"'
  const pairs: [place: string, camel: string, snake: string, first: string, second: string][] = [
    ['body', 'generationConfig', 'generation_config', '{}', '{"maxOutputTokens":65536}'],
    ['body', 'systemInstruction', 'system_instruction', '{"parts":[{"text":"a"}]}', '{"parts":[{"text":"b"}]}'],
    ['body', 'toolConfig', 'tool_config', '{}', '{"functionCallingConfig":{}}'],
    ['body', 'safetySettings', 'safety_settings', '[]', '[{}]'],
    ['config', 'maxOutputTokens', 'max_output_tokens', '10', '65536'],
    ['config', 'candidateCount', 'candidate_count', '1', '8'],
    ['config', 'responseModalities', 'response_modalities', '["TEXT"]', '["IMAGE"]'],
    ['config', 'unknownSetting', 'unknown_setting', '1', '2'],
    ['thinking', 'thinkingBudget', 'thinking_budget', '0', '30000'],
    ['calling', 'allowedFunctionNames', 'allowed_function_names', '[]', '["f"]'],
    ['tool', 'functionDeclarations', 'function_declarations', '[]', '[{"name":"f"}]'],
    ['part', 'fileData', 'file_data', '{"fileUri":"https://a.example/x"}', `{"fileUri":${own}}`],
    ['part', 'functionResponse', 'function_response', '{"name":"f","response":{}}', '{"name":"g","response":{}}'],
    ['part', 'inlineData', 'inline_data', '{"mimeType":"text/plain","data":""}', '{"mimeType":"image/png","data":"AAAA"}'],
    ['file', 'fileUri', 'file_uri', '"https://a.example/x"', own],
    ['inline', 'mimeType', 'mime_type', '"text/plain"', '"image/png"'],
    ['result', 'fileUri', 'file_uri', '"https://a.example/x"', own],
    ['system', 'thoughtSignature', 'thought_signature', '"YQ=="', '"Yg=="'],
  ]
  const ask = (body: string, model = 'gemini-model:generateContent') => app.call('POST', `/v1beta/models/${model}`, body)

  test.each(pairs)('%s: a request with %s and %s is refused, and with a null beside the value it goes on without the null', async (place, ...names) => {
    const [camel, snake, first, second] = names
    const make = at[place] ?? String
    const message = `"${camel}" and "${snake}" are two names of one field. Send only one of them.`
    for (const [one, other] of [
      [first, second],
      [second, first],
    ])
      for (const fields of [`"${camel}":${one},"${snake}":${other}`, `"${snake.replace('_', '\\u005f')}":${one},"${camel}":${other}`]) {
        const { status, json } = await ask(make(fields))
        expect([status, json.error.message, json.error.details[0].reason]).toEqual([400, message, 'bad_request'])
      }
    expect(app.others.gem.requests).toEqual([])
    // The first value is harmless everywhere.
    const calls = [`"${camel}":null,"${snake}":${first}`, `"${camel}":${first},"${snake}":null`, `"${snake}":null,"${camel}":${first}`]
    for (const [index, fields] of calls.entries()) {
      expect((await ask(make(fields))).status).toBe(200)
      expect(bodyAt(app.others.gem)).toEqual(JSON.parse(make(`"${index === 0 ? snake : camel}":${first}`)))
    }
  })

  test('is refused in each operation and on each route, but names in data and schemas of the client are free', async () => {
    const both = '"generationConfig":{"topP":1,"top_p":0.5}'
    for (const path of ['openai-model:generateContent', 'openai-model:streamGenerateContent', 'gemini-model:countTokens'])
      expect((await ask(at['body']?.(both) ?? '', path)).status).toBe(400)
    const count = `{"generateContentRequest":{"model":"models/gemini-model","contents":[{"parts":[{"text":"Hi"}]}],${both}}}`
    expect((await ask(count, 'gemini-model:countTokens')).status).toBe(400)
    const embed = '{"content":{"parts":[{"text":"a"}]},"outputDimensionality":2,"output_dimensionality":3}'
    expect((await ask(embed, 'test-embed:embedContent')).json.error.message).toContain('two names of one field')
    const two = { a_b: 1, aB: 2 }
    const body = {
      contents: [
        { role: 'user', parts: [{ text: 'Hi' }] },
        { role: 'model', parts: [{ functionCall: { name: 'f', args: two } }] },
        { role: 'user', parts: [{ functionResponse: { name: 'f', response: two } }] },
      ],
      tools: [{ functionDeclarations: [{ name: 'f', parameters: { type: 'OBJECT', properties: { a_b: {}, aB: {} } } }] }],
      generationConfig: { responseMimeType: 'application/json', response_schema: { type: 'OBJECT', properties: { to_string: {}, a_b: {}, aB: {} } } },
    }
    expect((await ask(JSON.stringify(body))).status).toBe(200)
    expect(app.others.gem.requests.at(-1)?.raw.toString()).toBe(JSON.stringify(body))
  })

  test('never hides the limit of the answer: a cap of the key binds, and is sent once', async () => {
    const { key, keyId } = await app.newKey()
    expect((await app.call('PATCH', `/me/keys/${keyId}`, { max_output_tokens: 50 }, { cookie: await app.signIn() })).status).toBe(200)
    const config = '"generationConfig":{"maxOutputTokens":null,"max_output_tokens":65536}'
    const refused = await app.call('POST', '/v1beta/models/gemini-model:generateContent', at['body']?.(config), { token: key })
    expect(refused.json.error.details[0].reason).toBe('call_cap_exceeded')
    const open = at['body']?.('"generationConfig":null,"generation_config":{"topP":1}')
    expect((await app.call('POST', '/v1beta/models/gemini-model:generateContent', open, { token: key })).status).toBe(200)
    expect(app.others.gem.requests.map(({ json }) => json)).toEqual([
      { contents: [{ parts: [{ text: 'Hi' }] }], generation_config: { topP: 1, maxOutputTokens: 50 } },
    ])
  })
})

test('the key is taken from x-goog-api-key, a bearer, x-br-api-key and the query, and a key in the query is written nowhere', async () => {
  const { key } = await app.newKey({ name: 'in the query' })
  const ways: [string, Record<string, string>][] = [
    ['', { 'x-goog-api-key': key }],
    ['', { authorization: `Bearer ${key}` }],
    ['', { 'x-br-api-key': key, 'x-goog-api-key': 'AIza-something-else' }],
    [`?key=${key}`, {}],
  ]
  for (const [query, headers] of ways) expect((await post(`gemini-model:generateContent${query}`, hello, { token: null, headers })).status).toBe(200)
  for (const query of [`?key=${key}`, `?key=${key.slice(0, -4)}0000`]) await app.call('GET', `/v1beta/models${query}`, undefined, { token: null })
  expect((await post(`gemini-model:nothing?key=${key}`, hello, { token: null })).status).toBeGreaterThan(399)
  expect(app.others.gem.requests.map(({ path, headers }) => path + JSON.stringify(headers)).join('')).not.toContain(key)
  expect(app.logLines.join('')).not.toContain(key)
  expect(await app.dump()).not.toContain(key)
})
