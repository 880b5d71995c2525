import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type HubRequest, type ModelTraits, type Target, unknownTraits } from '../../../src/gateway/providers/dialect.ts'
import { abilitiesOf } from '../../../src/gateway/providers/dialects/anthropic/claude-version.ts'
import { geminiSchema } from '../../../src/gateway/providers/dialects/gemini/gemini-schema.ts'
import { readCallId, signedCallId } from '../../../src/gateway/providers/dialects/gemini/gemini-signature.ts'
import { dialectOf } from '../../../src/gateway/providers/dialects.ts'
import type { DialectId, Provider } from '../../../src/gateway/providers/provider.ts'
import type { ChatStreamEvent } from '../../../src/gateway/wire/chat/chat-stream.ts'
import { usageFromOpenAi } from '../../../src/gateway/wire/usage.ts'
import { GatewayError } from '../../../src/platform/errors.ts'
import { Secret } from '../../../src/platform/security/secret.ts'
import { propertyRuns } from '../../harness/property-runs.ts'

const provider = (dialect: DialectId, more: Partial<Provider> = {}): Provider => ({
  id: 'p',
  name: 'P',
  dialect,
  baseUrl: 'https://api.example.test/v1',
  auth: dialect === 'gemini' ? 'x-goog-api-key' : 'x-api-key',
  residency: 'global',
  byok: true,
  keyShape: null,
  quirks: [],
  platformKey: null,
  configured: true,
  ...more,
})
const target = (dialect: DialectId, upstreamModel: string, traits: Partial<ModelTraits> = {}, more: Partial<Provider> = {}): Target => ({
  provider: provider(dialect, more),
  upstreamModel,
  credential: new Secret('the-key'),
  forwarded: null,
  traits: { ...unknownTraits, reasoning: true, ...traits },
})
const hub = (body: Record<string, unknown>): HubRequest => ({ operation: 'chat', body, bytes: null, stream: body['stream'] === true, dropped: [] })
const user = { role: 'user', content: 'Hi' }
function written(dialect: DialectId, model: string, body: Record<string, unknown>, traits: Partial<ModelTraits> = {}, more: Partial<Provider> = {}) {
  const made = dialectOf(dialect).request(hub({ model, messages: [user], ...body }), target(dialect, model, traits, more))
  return { ...made, json: JSON.parse(String(made.body)) as Record<string, unknown> }
}

describe('requests in the messages format', () => {
  test('the abilities of a model are read from its id, and the catalog takes precedence', () => {
    const of = (id: string, traits: Partial<ModelTraits> = {}) => abilitiesOf(id, { ...unknownTraits, ...traits })
    expect(of('claude-3-5-sonnet-20241022')).toEqual({ adaptive: false, sampling: true, temperatureWithTopP: true, outputFormat: false })
    expect(of('claude-sonnet-4-20250514')).toEqual({ adaptive: false, sampling: true, temperatureWithTopP: true, outputFormat: false })
    expect(of('claude-opus-4-5-20251101')).toEqual({ adaptive: false, sampling: true, temperatureWithTopP: false, outputFormat: true })
    expect(of('anthropic/claude-opus-4.7')).toEqual({ adaptive: true, sampling: false, temperatureWithTopP: false, outputFormat: true })
    expect(of('claude-fable-5')).toEqual({ adaptive: true, sampling: false, temperatureWithTopP: false, outputFormat: true })
    expect(of('my-own')).toEqual({ adaptive: false, sampling: true, temperatureWithTopP: false, outputFormat: true })
    expect(of('my-own', { efforts: ['low', 'max'] }).adaptive).toBe(true)
    expect(of('claude-fable-5', { supportedParameters: ['temperature'] }).sampling).toBe(true)
  })

  test('a request without max_tokens gets the maximum of the model, or 4,096 if that is unknown', () => {
    expect(written('anthropic', 'claude-x', {}, { maxOutputTokens: 64_000 }).json['max_tokens']).toBe(64_000)
    expect(written('anthropic', 'claude-x', {}).json['max_tokens']).toBe(4096)
    expect(written('anthropic', 'claude-x', { max_tokens: 7 }, { maxOutputTokens: 64_000 }).json['max_tokens']).toBe(7)
  })

  test('sampling options that the newest models refuse are left out and reported as dropped', () => {
    const { json, dropped } = written('anthropic', 'claude-opus-4-7', { temperature: 0.5, top_p: 0.5, top_k: 3 })
    expect([json['temperature'], json['top_p'], json['top_k']]).toEqual([undefined, undefined, undefined])
    expect(dropped).toEqual(['temperature', 'top_p', 'top_k'])
    expect(written('anthropic', 'claude-opus-4-7', { temperature: 1 }).dropped).toEqual([])
  })

  test('thinking budgets are at least 1024 and below the limit, for any effort and limit', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('minimal', 'low', 'medium', 'high', 'xhigh', 'max'),
        fc.integer({ min: 1, max: 100_000 }),
        fc.boolean(),
        (effort, cap, alwaysThinks) => {
          const { json, dropped } = written('anthropic', 'claude-sonnet-4-5', { reasoning_effort: effort, max_tokens: cap }, { alwaysThinks })
          const thinking = json['thinking'] as { budget_tokens: number } | undefined
          expect(json['max_tokens']).toBe(cap)
          if (thinking === undefined) {
            expect([cap <= 1024, dropped]).toEqual([true, ['reasoning_effort']])
            return
          }
          expect(thinking.budget_tokens).toBeGreaterThanOrEqual(1024)
          expect(thinking.budget_tokens).toBeLessThan(cap)
        },
      ),
    )
  })

  test('models that think by levels get both the level and the form of the reply', () => {
    const schema = { type: 'object', properties: {} }
    const { json } = written('anthropic', 'claude-fable-5', { reasoning_effort: 'xhigh', response_format: { type: 'json_schema', json_schema: { schema } } })
    expect(json['thinking']).toEqual({ type: 'adaptive' })
    expect(json['output_config']).toEqual({ effort: 'xhigh', format: { type: 'json_schema', schema: { ...schema, additionalProperties: false } } })
  })

  test('a forced call excludes thinking, and for an older model a schema becomes a forced tool', () => {
    const forced = written('anthropic', 'claude-sonnet-4-5', {
      reasoning_effort: 'low',
      max_tokens: 4000,
      tools: [{ type: 'function', function: { name: 'f' } }],
      tool_choice: 'required',
    })
    expect([forced.json['thinking'], forced.dropped]).toEqual([undefined, ['reasoning_effort']])
    const older = written('anthropic', 'claude-3-5-sonnet', { response_format: { type: 'json_schema', json_schema: { schema: { type: 'object' } } } })
    expect(older.json['tool_choice']).toEqual({ type: 'tool', name: 'br_json_reply' })
  })

  test('calls with equal ids get unique ids, and each result belongs to the call before it', () => {
    const call = { id: 'functions.f:0', type: 'function', function: { name: 'f', arguments: '{}' } }
    const turn = [
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: call.id, content: 'done' },
    ]
    const { json } = written('anthropic', 'claude-x', { messages: [user, ...turn, ...turn] })
    const blocks = (json['messages'] as { content: Record<string, unknown>[] }[]).flatMap(({ content }) => content)
    expect(blocks.filter(({ type }) => type === 'tool_use').map(({ id }) => id)).toEqual(['functions_f_0', 'functions_f_0_2'])
    expect(blocks.filter(({ type }) => type === 'tool_result').map(block => block['tool_use_id'])).toEqual(['functions_f_0', 'functions_f_0_2'])
    // Tools from the history are declared, and the choice forbids calling them.
    expect([json['tools'], json['tool_choice']]).toEqual([[{ name: 'f', input_schema: { type: 'object' } }], { type: 'none' }])
  })

  test('the errors for an invalid image and an invalid file name its place in the request', () => {
    for (const part of [
      { type: 'image_url', image_url: { url: 'ftp://x' } },
      { type: 'image_url', image_url: {} },
      { type: 'file', file: {} },
      { type: 'file', file: { file_data: 'x' } },
    ])
      for (const dialect of ['anthropic', 'gemini'] as const)
        expect(() => written(dialect, 'm', { messages: [{ role: 'user', content: [part] }] })).toThrow('messages[0].content[0]')
  })
})

describe('requests to Gemini', () => {
  test('requests have the URL of the API, its own header for keys, and a separate path for streams', () => {
    const layer = { baseUrl: 'https://g.example.test/v1beta/openai', auth: 'bearer' } as const
    const whole = written('gemini', 'gemini-2.5-flash', {}, {}, layer)
    expect([whole.url, whole.headers['x-goog-api-key'], whole.headers['authorization']]).toEqual([
      'https://g.example.test/v1beta/models/gemini-2.5-flash:generateContent',
      'the-key',
      undefined,
    ])
    expect(written('gemini', 'models/g', { stream: true }, {}, layer).url).toBe('https://g.example.test/v1beta/models/g:streamGenerateContent?alt=sse')
  })

  test('newer generations think by level, and calls by other models get a mark. Older generations think by budget', () => {
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }
    const messages = [user, { role: 'assistant', content: null, tool_calls: [call] }, { role: 'tool', tool_call_id: 'c', content: 'done' }]
    const newer = written('gemini', 'gemini-3-pro', { messages, reasoning_effort: 'max' }).json
    expect(newer['generationConfig']).toEqual({ thinkingConfig: { thinkingLevel: 'high', includeThoughts: true } })
    expect(JSON.stringify(newer)).toContain('"thoughtSignature":"skip_thought_signature_validator"')
    const older = written('gemini', 'gemini-2.5-pro', { messages, reasoning_effort: 'none' }).json
    expect(older['generationConfig']).toEqual({ thinkingConfig: { thinkingBudget: 0 } })
    expect(JSON.stringify(older)).not.toContain('thoughtSignature')
    expect(written('gemini', 'gemini-2.0', { reasoning_effort: 'low' }, { reasoning: false, supportedParameters: ['max_tokens'] }).dropped).toEqual([
      'reasoning_effort',
    ])
  })

  test('a schema that refers to itself is cut', () => {
    const dropped = new Set<string>()
    const schema = { $ref: '#/$defs/node', $defs: { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' }, n: { enum: [1, 2] } } } } }
    const text = JSON.stringify(geminiSchema(schema, 'tools.parameters', dropped))
    expect(text).not.toContain('$ref')
    expect(text).toContain('One of: 1, 2.')
    expect([...dropped]).toEqual(['tools.parameters.$ref'])
  })

  test('a property of a schema may have any name, also that of the prototype', () => {
    const dropped = new Set<string>()
    const schema = JSON.parse('{"type":"object","__proto__":{"type":"array"},"properties":{"__proto__":{"type":["string","null"],"format":"uri","oneOf":[]}}}')
    expect(JSON.stringify(geminiSchema(schema, 'tools.parameters', dropped))).toBe(
      '{"type":"object","properties":{"__proto__":{"type":"string","nullable":true,"anyOf":[]}}}',
    )
    expect([...dropped]).toEqual(['tools.parameters.format', 'tools.parameters.__proto__'])
  })

  test('references are replaced up to a size that depends on the schema, and a schema without references stays complete', () => {
    const address = { type: 'object', properties: { street: { type: 'string', description: 'with the number of the house' } } }
    const shared = { type: 'object', properties: { from: { $ref: '#/$defs/a' }, to: { $ref: '#/$defs/a' } }, $defs: { a: address } }
    const told = new Set<string>()
    expect(geminiSchema(shared, 'tools.parameters', told)).toEqual({ type: 'object', properties: { from: address, to: address } })
    expect(told.size).toBe(0)
    const dropped = new Set<string>()
    const node = {
      type: 'object',
      description: 'said again '.repeat(200),
      properties: Object.fromEntries(Array.from({ length: 8 }, (_, index) => [`p${index}`, { $ref: '#/$defs/n' }])),
    }
    const growing = { $ref: '#/$defs/n', $defs: { n: node } }
    const written = JSON.stringify(geminiSchema(growing, 'tools.parameters', dropped))
    expect(written.length).toBeLessThan(JSON.stringify(growing).length * 3 + 8192)
    expect(written).toContain('said again')
    expect([...dropped]).toEqual(['tools.parameters.$ref'])
  })

  test('a signature is stored in the id of a call and read back unchanged', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z0-9_]{1,30}$/), fc.string(), (id, signature) => {
        const signed = signedCallId(id, signature.toWellFormed())
        expect(signed).toMatch(/^[a-zA-Z0-9_-]+$/)
        expect(readCallId(signed)).toEqual({ id, thoughtSignature: signature.toWellFormed() })
      }),
    )
    expect(readCallId('call_plain')).toEqual({ id: 'call_plain', thoughtSignature: null })
  })
})

describe('failures', () => {
  const kind = (dialect: DialectId, status: number, body: unknown): unknown => dialectOf(dialect).failure(status, {}, JSON.stringify(body)).kind
  const claude = (status: number, type: string, message = '') => kind('anthropic', status, { type: 'error', error: { type, message } })
  const gemini = (code: number, status: string, message = '') => kind('gemini', code, { error: { code, status, message } })

  test('failures of the messages format are classified by status, error type and message', () => {
    expect(claude(529, 'overloaded_error')).toBe('transient')
    expect(claude(400, 'overloaded_error')).toBe('transient')
    expect(claude(429, 'rate_limit_error')).toBe('rate-limited')
    expect(claude(401, 'authentication_error')).toBe('credential')
    expect(claude(403, 'permission_error')).toBe('credential')
    expect(claude(402, 'billing_error')).toBe('billing')
    expect(claude(400, 'invalid_request_error', 'Your credit balance is too low to access the API.')).toBe('billing')
    expect(claude(400, 'invalid_request_error', 'max_tokens: required')).toBe('client')
    expect(claude(404, 'not_found_error')).toBe('client')
    expect(claude(413, 'request_too_large')).toBe('declined')
  })

  test('failures of Gemini are classified, although its rate limits mention quotas', () => {
    expect(gemini(429, 'RESOURCE_EXHAUSTED', 'You exceeded your current quota, please check your plan and billing details.')).toBe('rate-limited')
    expect(gemini(429, 'RESOURCE_EXHAUSTED', 'Your prepayment credits are depleted.')).toBe('billing')
    expect(gemini(400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.')).toBe('credential')
    expect(gemini(400, 'INVALID_ARGUMENT', 'Unknown name')).toBe('client')
    expect(gemini(503, 'UNAVAILABLE')).toBe('transient')
    const waits = dialectOf('gemini').failure(429, {}, '{"error":{"details":[{"@type":"RetryInfo","retryDelay":"37s"}]}}')
    expect(waits).toMatchObject({ kind: 'rate-limited', retryAfterSeconds: 37 })
  })
})

describe('any request at all', () => {
  const json = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<unknown>
  const id = fc.constantFrom('a', 'b', 'c--sig--eA', '')
  const part = fc.oneof(
    json,
    fc.record({
      type: fc.constantFrom('text', 'image_url', 'file', 'input_audio', 'refusal', 'x'),
      text: json,
      image_url: json,
      file: json,
      cache_control: json,
    }),
    fc.record({ type: fc.constant('text'), text: fc.string() }),
  )
  const message = fc.record(
    {
      role: fc.constantFrom('system', 'developer', 'user', 'assistant', 'tool', 'function'),
      content: fc.oneof(fc.string(), fc.array(part, { maxLength: 3 }), fc.constant(null), json),
      tool_call_id: id,
      tool_calls: fc.oneof(
        json,
        fc.array(fc.record({ id, type: fc.constant('function'), function: fc.record({ name: fc.string(), arguments: fc.oneof(fc.string(), json) }) }), {
          maxLength: 3,
        }),
      ),
      thinking_blocks: fc.oneof(
        json,
        fc.array(fc.record({ type: fc.constantFrom('thinking', 'redacted_thinking'), thinking: json, signature: json, data: json }), { maxLength: 2 }),
      ),
      refusal: json,
    },
    { requiredKeys: ['role'] },
  )
  const names = [
    'tools',
    'tool_choice',
    'response_format',
    'stop',
    'temperature',
    'top_p',
    'max_tokens',
    'n',
    'user',
    'service_tier',
    'thinking',
    'parallel_tool_calls',
    'x',
  ]
  const body = fc.record({
    messages: fc.array(message, { maxLength: 6 }),
    reasoning_effort: fc.constantFrom(undefined, 'none', 'low', 'max'),
    more: fc.dictionary(fc.constantFrom(...names), json, { maxKeys: 5 }),
  })

  for (const [dialect, model] of [
    ['anthropic', 'claude-sonnet-4-5'],
    ['anthropic', 'claude-fable-5'],
    ['gemini', 'gemini-2.5-pro'],
    ['gemini', 'gemini-3-pro'],
  ] as const)
    test(`${model}: any request is translated or refused with bad_request. Turns alternate, and every result comes after its call`, () => {
      fc.assert(
        fc.property(body, ({ messages, reasoning_effort, more }) => {
          const before = JSON.stringify([messages, more])
          try {
            const { json: sent } = written(dialect, model, { ...more, messages, reasoning_effort })
            const turns = (sent['messages'] ?? sent['contents']) as { role: string; content?: Record<string, unknown>[] }[]
            expect(turns[0]?.role).toBe('user')
            for (const [index, { role, content = [] }] of turns.entries()) {
              if (index > 0) expect(role).not.toBe(turns[index - 1]?.role)
              const made = (turns[index - 1]?.content ?? []).filter(block => block['type'] === 'tool_use').map(block => block['id'])
              const answered = content.filter(block => block['type'] === 'tool_result').map(block => block['tool_use_id'])
              expect([...answered].sort()).toEqual([...made].sort())
            }
          } catch (error) {
            if (!(error instanceof GatewayError)) throw error
            expect(error.errorName).toBe('bad_request')
          }
          expect(JSON.stringify([messages, more])).toBe(before)
        }),
        { numRuns: propertyRuns(300) },
      )
    })
})

describe('streams', () => {
  const named = (events: readonly Record<string, unknown>[]): string =>
    events.map(event => `event: ${event['type']}\r\ndata: ${JSON.stringify(event)}\r\n\r\n`).join('')
  const claude = named([
    { type: 'message_start', message: { usage: { input_tokens: 4, cache_read_input_tokens: 10, cache_creation_input_tokens: 6, output_tokens: 1 } } },
    { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'नमस्ते 🙏' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'sig' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'ping' },
    { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'Hi\u2028there' } },
    { type: 'content_block_stop', index: 1 },
    { type: 'content_block_start', index: 2, content_block: { type: 'tool_use', id: 't', name: 'f', input: {} } },
    { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '{"a":' } },
    { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '1}' } },
    { type: 'content_block_stop', index: 2 },
    { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 9, output_tokens_details: { thinking_tokens: 3 } } },
    { type: 'message_stop' },
  ])
  const chunk = (parts: unknown[], finishReason?: string): string =>
    `data: ${JSON.stringify({ candidates: [{ content: { role: 'model', parts }, finishReason, index: 0 }], usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 4, thoughtsTokenCount: 2 }, responseId: 'r' })}\r\n\r\n`
  const gemini =
    chunk([{ text: 'सोच', thought: true }]) +
    chunk([{ text: 'Hi 🙏' }]) +
    chunk([{ functionCall: { name: 'f', args: { a: 1 } }, thoughtSignature: 's+/=' }, { functionCall: { name: 'g' } }]) +
    chunk([{ text: '' }], 'STOP')

  function read(dialect: DialectId, pieces: readonly Uint8Array[]): ChatStreamEvent[] {
    const decoder = dialectOf(dialect).decoder()
    return [...pieces.flatMap(piece => decoder.push(piece)), ...decoder.end()]
  }
  const streams = [
    ['anthropic', claude],
    ['gemini', gemini],
  ] as const

  for (const [dialect, text] of streams) {
    const bytes = Buffer.from(text)
    test(`${dialect}: the events are the same for every split of the bytes`, () => {
      const whole = read(dialect, [bytes])
      expect(whole.length).toBeGreaterThan(3)
      for (let at = 1; at < bytes.length; at++) expect(read(dialect, [bytes.subarray(0, at), bytes.subarray(at)])).toEqual(whole)
      expect(
        read(
          dialect,
          [...bytes].map(byte => Uint8Array.of(byte)),
        ),
      ).toEqual(whole)
    })

    test(`${dialect}: garbage, broken events and events in any order are read without an exception`, () => {
      const events = text.split('\r\n\r\n')
      fc.assert(
        fc.property(
          fc.array(
            fc.oneof(
              fc.constantFrom(...events),
              fc.string(),
              fc.jsonValue().map(value => `data: ${JSON.stringify(value)}`),
            ),
            { maxLength: 20 },
          ),
          parts => {
            expect(Array.isArray(read(dialect, [Buffer.from(parts.join('\n\n'))]))).toBe(true)
          },
        ),
        { numRuns: propertyRuns(300) },
      )
    })
  }

  test('a messages stream gives usage, signed thinking and an end', () => {
    const events = read('anthropic', [Buffer.from(claude)])
    const chunks = events.flatMap(event => (event.kind === 'chunk' ? [event.chunk] : []))
    expect(events.at(-1)).toEqual({ kind: 'done' })
    expect(events.some(({ kind }) => kind === 'alive')).toBe(true)
    const usages = chunks.map(({ usage }) => usageFromOpenAi(usage)).filter(usage => usage !== null)
    expect(usages.at(-1)).toEqual({ promptTokens: 20, completionTokens: 9, cachedTokens: 10, cacheWriteTokens: 6, reasoningTokens: 3 })
    expect(JSON.stringify(chunks)).toContain('"thinking_blocks":[{"type":"thinking","thinking":"नमस्ते 🙏","signature":"sig"}]')
  })

  test('an error in either format is reported with the provider’s message and type', () => {
    const fault = (dialect: DialectId, text: string): unknown => read(dialect, [Buffer.from(text)]).find(({ kind }) => kind === 'error')
    expect(fault('anthropic', 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n')).toEqual({
      kind: 'error',
      fault: { message: 'Overloaded', type: 'overloaded_error', code: null },
    })
    expect(fault('gemini', 'data: [{"error":{"code":429,"message":"Slow down","status":"RESOURCE_EXHAUSTED"}}]\n\n')).toEqual({
      kind: 'error',
      fault: { message: 'Slow down', type: 'rate_limit_error', code: 'RESOURCE_EXHAUSTED' },
    })
  })
})
