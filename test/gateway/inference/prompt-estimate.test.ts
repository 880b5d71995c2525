/** The estimate of a prompt counts every text that a provider receives, and has a bound where it can only guess. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Model, RoutePrice } from '../../../src/gateway/catalog/model.ts'
import { withoutNativeWithheld, withoutWithheld } from '../../../src/gateway/inference/attempt/withheld.ts'
import { holdOf } from '../../../src/gateway/inference/charge/estimate.ts'
import { chatKind } from '../../../src/gateway/inference/kinds/chat.ts'
import { embeddingsKind } from '../../../src/gateway/inference/kinds/embeddings.ts'
import type { Kind } from '../../../src/gateway/inference/kinds/kind.ts'
import { messagesKind } from '../../../src/gateway/inference/kinds/messages.ts'
import type { ParsedRequest } from '../../../src/gateway/inference/kinds/request.ts'
import { responsesKind } from '../../../src/gateway/inference/kinds/responses.ts'
import { promptTokensMost } from '../../../src/gateway/inference/prompt-most.ts'
import type { Attempt, Plan } from '../../../src/gateway/routing/plan.ts'
import { GatewayError } from '../../../src/platform/errors.ts'
import { propertyRuns } from '../../harness/property-runs.ts'

type Json = Record<string, unknown>

const picture = `data:image/png;base64,${'iVBORw0KGgo'.repeat(200)}`
const schema = { type: 'object', properties: { id: { type: 'string', description: 'which' }, call_id: { type: 'string' } } }

const chatBody: Json = {
  model: 'm',
  messages: [
    { role: 'system', content: 'be kind', name: 'boss' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'look', cache_control: { type: 'ephemeral' } },
        { type: 'image_url', image_url: { url: picture, detail: 'low' } },
        { type: 'image_url', image_url: 'https://example.com/a.png' },
        { type: 'input_audio', input_audio: { data: 'UklGRiQAAABXQVZF', format: 'wav' } },
        { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERi0', filename: 'a.pdf' } },
        { type: 'file', file: { file_url: 'https://example.com/a.pdf' } },
        { type: 'video_url', video_url: { url: 'https://example.com/a.mp4' } },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo' } },
      ],
    },
    {
      role: 'assistant',
      content: null,
      refusal: 'no',
      reasoning_content: 'hm',
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }],
      function_call: { name: 'f', arguments: '{}' },
    },
    { role: 'assistant', content: null, tool_calls: [], function_call: { name: 'f', arguments: '{}' } },
    { role: 'tool', tool_call_id: 'c1', content: 'done' },
  ],
  tools: [{ type: 'function', function: { name: 'f', description: 'does', parameters: schema } }],
  functions: [{ name: 'g', parameters: schema }],
  tool_choice: { type: 'function', function: { name: 'f' } },
  response_format: { type: 'json_schema', json_schema: { name: 'r', schema } },
  prediction: { type: 'content', content: 'as before' },
  stop: ['END'],
  user: 'u1',
  chat_template_kwargs: { mode: 'x' },
  stream_options: { include_usage: true },
  reasoning: { effort: 'low' },
}
const messagesBody: Json = {
  model: 'm',
  max_tokens: 10,
  system: [{ type: 'text', text: 'be kind', cache_control: { type: 'ephemeral' } }],
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'look', citations: [{ type: 'char_location', cited_text: 'said' }] },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo' } },
        { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } },
        { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'long ago' }, title: 't', context: 'c', citations: { enabled: true } },
        { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0' } },
        { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'part' }] } },
        { type: 'document', source: { type: 'url', url: 'https://example.com/a.pdf' } },
        { type: 'tool_result', tool_use_id: 'c1', content: [{ type: 'text', text: 'done' }], is_error: false },
        { type: 'search_result', source: 'https://example.com', title: 't', content: [{ type: 'text', text: 'found' }] },
      ],
    },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'hm', signature: 'sig' },
        { type: 'redacted_thinking', data: 'sealed' },
        { type: 'tool_use', id: 'c1', name: 'f', input: { a: 'b' } },
      ],
    },
    { role: 'user', content: 'go on' },
  ],
  tools: [{ name: 'f', description: 'does', input_schema: schema }],
  tool_choice: { type: 'tool', name: 'f' },
  output_config: { format: { type: 'json_schema', schema } },
  metadata: { user_id: 'u' },
  stop_sequences: ['END'],
}
const responsesBody: Json = {
  model: 'm',
  instructions: 'be kind',
  input: [
    {
      type: 'message',
      role: 'user',
      id: 'msg_1',
      content: [
        { type: 'input_text', text: 'look' },
        { type: 'input_image', image_url: picture, detail: 'low' },
        { type: 'input_file', file_data: 'data:application/pdf;base64,JVBERi0', filename: 'a.pdf' },
        { type: 'input_file', file_url: 'https://example.com/a.pdf' },
        { type: 'input_audio', input_audio: { data: 'UklGRiQAAABXQVZF', format: 'wav' } },
      ],
    },
    { type: 'reasoning', id: 'rs_1', encrypted_content: 'gAAAA', summary: [{ type: 'summary_text', text: 'hm' }] },
    { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'f', arguments: '{}' },
    { type: 'function_call_output', call_id: 'c1', output: 'done' },
    { type: 'function_call_output', call_id: 'c2', output: [{ type: 'input_text', text: 'done' }] },
    { role: 'assistant', content: [{ type: 'output_text', text: 'so', annotations: [{ type: 'url_citation', title: 't' }] }] },
  ],
  tools: [{ type: 'function', name: 'f', description: 'does', parameters: schema }],
  tool_choice: { type: 'function', name: 'f' },
  text: { format: { type: 'json_schema', name: 'r', schema } },
  metadata: { team: 'blue' },
  user: 'u1',
  reasoning: { effort: 'low' },
}
const embeddingsBody: Json = { model: 'm', input: ['one', 'two'], user: 'u1', input_type: 'query' }

const formats: readonly (readonly [string, Kind, Json])[] = [
  ['chat', chatKind, chatBody],
  ['messages', messagesKind, messagesBody],
  ['responses', responsesKind, responsesBody],
  ['embeddings', embeddingsKind, embeddingsBody],
]

/** A place for a text: in place of another text, as a new item or member, or as the name of a member. */
type Place = { readonly path: readonly (string | number)[]; readonly as: 'value' | 'member' | 'name' | 'item' }

function placesOf(value: unknown, path: readonly (string | number)[] = []): Place[] {
  if (typeof value === 'string') return [{ path, as: 'value' }]
  if (Array.isArray(value)) return [{ path, as: 'item' }, ...value.flatMap((item, index) => placesOf(item, [...path, index]))]
  if (typeof value !== 'object' || value === null) return [{ path, as: 'value' }]
  return [{ path, as: 'member' }, { path, as: 'name' }, ...Object.entries(value).flatMap(([name, item]) => placesOf(item, [...path, name]))]
}

function withText(body: Json, { path, as }: Place, text: string): Json {
  const root = { body: structuredClone(body) }
  let at = root as Json
  let last: string | number = 'body'
  for (const step of path) {
    at = at[last] as Json
    last = step
  }
  if (as === 'value') at[last] = text
  else if (as === 'item') (at[last] as unknown[]).push(text)
  else (at[last] as Json)[as === 'member' ? 'beside' : text] = as === 'member' ? text : 1
  return root.body
}

const parsed = (kind: Kind, body: Json): ParsedRequest => kind.parse({ bytes: Buffer.from(JSON.stringify(body)), headers: {}, query: '' })

const free = {
  inputUinrPerMtok: 0n,
  outputUinrPerMtok: 0n,
  cachedInputUinrPerMtok: null,
  cacheWriteUinrPerMtok: null,
  uinrPerImage: 0n,
  source: 't',
  asOf: 't',
}
const attemptOf = (more: { dialect?: string; upstreamModel?: string; contextLength?: number; price?: Partial<RoutePrice> } = {}): Attempt =>
  ({
    route: {
      provider: { id: 'p', quirks: [] },
      dialect: more.dialect ?? 'openai',
      upstreamModel: more.upstreamModel ?? 'm',
      contextLength: more.contextLength ?? 200_000,
      price: { ...free, ...more.price },
    },
    model: { reasoning: false, maxOutputTokens: 1000, contextLength: null } as Partial<Model>,
    credential: null,
    byok: false,
  }) as unknown as Attempt

/** Returns everything that may be sent to a provider on the platform key, relayed and translated. */
function sent(request: ParsedRequest, dialect: string): string {
  const attempt = attemptOf({ dialect })
  const native = JSON.stringify(withoutNativeWithheld(request.native, attempt).native.body)
  return request.native.format === 'openai' ? native + JSON.stringify(withoutWithheld(request.hub, attempt).body) : native
}

const bytes = 90_000
const texts: Readonly<Record<string, string>> = {
  words: 'many small words '.repeat(bytes / 17),
  devanagari: 'नमस्ते दुनिया '.repeat(bytes / 38),
  address: `https://example.com/${'a b/'.repeat(bytes / 4)}`,
  'plain data URL': `data:text/plain,${'a b '.repeat(bytes / 4)}`,
  'invalid picture': `data:image/png;base64,${'a b '.repeat(bytes / 4)}`,
  'data URL without a type': `data:;base64,${'a b '.repeat(bytes / 4)}`,
}
/** The assumed tokens of a medium, which a text may replace. */
const replacedTokens = 10_000

describe('the estimate of a prompt', () => {
  for (const [name, kind, body] of formats) {
    const places = placesOf(body).filter(({ path }) => path[0] !== 'model')
    const before = parsed(kind, body).promptTokens
    test(`${name}: a text at any of ${places.length} places counts, is refused, or is not sent`, () => {
      fc.assert(
        fc.property(fc.constantFrom(...places), fc.constantFrom(...Object.keys(texts)), (place, name) => {
          const text = texts[name] ?? ''
          let request: ParsedRequest
          try {
            request = parsed(kind, withText(body, place, text))
            if (!sent(request, request.native.format).includes(JSON.stringify(text).slice(1, -1))) return
          } catch (error) {
            if (!(error instanceof GatewayError)) throw error
            return
          }
          // Encrypted thinking counts half. Any other text counts one token for three bytes, minus the tokens that it replaced.
          const least = Math.floor(Buffer.byteLength(text) / 6) - replacedTokens
          expect(least).toBeGreaterThan(4000)
          expect(request.promptTokens - before >= least, `${JSON.stringify(place)} ${name}`).toBe(true)
        }),
        { numRuns: propertyRuns(800) },
      )
    })
  }

  test('names of members also count as text', () => {
    for (const [name, kind, body] of formats) {
      const long = withText(body, { path: [], as: 'name' }, 'many small words '.repeat(1000))
      expect(parsed(kind, long).promptTokens, name).toBeGreaterThan(parsed(kind, body).promptTokens + 5000)
    }
  })

  test('a text file counts by its bytes, in every kind of part', () => {
    const text = Buffer.from('many small words '.repeat(3000)).toString('base64')
    const url = `data:text/plain;base64,${text}`
    for (const part of [
      { type: 'image_url', image_url: { url } },
      { type: 'file', file: { file_data: url } },
    ])
      expect(parsed(chatKind, { model: 'm', messages: [{ role: 'user', content: [part] }] }).promptTokens).toBeGreaterThan(16_000)
    const source = { type: 'base64', media_type: 'text/plain', data: text }
    const document = { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: [{ type: 'document', source }] }] }
    expect(parsed(messagesKind, document).promptTokens).toBeGreaterThan(16_000)
  })

  test('digits of numbers that a double cannot represent count as tokens, in every position', () => {
    const digits = `[${Array.from({ length: 50 }, () => '7'.repeat(1000)).join(',')}]`
    for (const [name, kind, body] of formats)
      for (const more of [{ beside: 'D' }, { metadata: { of: ['D', 'D'] } }, { tools: [{ type: 'function', name: 'f', parameters: { default: 'D' } }] }]) {
        if (kind === embeddingsKind && 'tools' in more) continue
        const text = JSON.stringify({ ...body, ...more })
        const request = kind.parse({ bytes: Buffer.from(text.replaceAll('"D"', digits)), headers: {}, query: '' })
        const times = text.split('"D"').length - 1
        expect(request.promptTokens, `${name} ${JSON.stringify(more)}`).toBeGreaterThan(times * 48_000)
        // A provider may correctly leave all of them unread.
        expect(request.promptTokens - (request.promptUnreadTokens ?? 0)).toBeLessThan(parsed(kind, body).promptTokens + 2000)
      }
  })

  test('a text that begins like a data URL of a picture counts by its bytes', () => {
    const readable = `data:image/png;base64,${'many/small/words+'.repeat(5000)}`
    const least = readable.length / 3
    const chat = (message: Json): number => parsed(chatKind, { model: 'm', messages: [message] }).promptTokens
    const messages = (block: Json): number => parsed(messagesKind, { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: [block] }] }).promptTokens
    const responses = (item: Json): number => parsed(responsesKind, { model: 'm', input: [item] }).promptTokens
    expect(chat({ role: 'assistant', content: null, refusal: readable })).toBeGreaterThan(least)
    expect(chat({ role: 'user', content: 'x', name: readable })).toBeGreaterThan(least)
    expect(messages({ type: 'tool_use', id: 'c', name: 'f', input: { a: readable } })).toBeGreaterThan(least)
    expect(messages({ type: 'search_result', source: 's', title: 't', content: [{ type: 'text', text: readable }] })).toBeGreaterThan(least)
    const pair = { media_type: 'image/png', data: readable.slice(22) }
    expect(messages({ type: 'tool_use', id: 'c', name: 'f', input: pair })).toBeGreaterThan(least)
    expect(responses({ type: 'function_call_output', call_id: 'c', output: readable })).toBeGreaterThan(least)
    expect(responses({ type: 'custom_tool_call', call_id: 'c', name: 'f', input: readable })).toBeGreaterThan(least)
    // In the place of a picture it still counts as a picture.
    expect(responses({ role: 'user', content: [{ type: 'input_image', image_url: readable }] })).toBeLessThan(2000)
  })

  test('a translated request is not much longer than its estimate', () => {
    const inner = Array.from({ length: 400 }, (_, index) => ({ type: 'function', name: `f${index}` }))
    const request = parsed(responsesKind, {
      model: 'm',
      input: 'x',
      tools: [{ type: 'namespace', name: 'n', description: 'about '.repeat(400), tools: inner }],
    })
    expect(JSON.stringify(request.hub.body).length).toBeLessThan(request.promptTokens * 3 * 3)
    expect(JSON.stringify(request.hub.body)).toContain('(about about')
    const many = { type: 'namespace', name: 'n', tools: Array.from({ length: 2001 }, (_, index) => ({ type: 'function', name: `f${index}` })) }
    expect(() => parsed(responsesKind, { model: 'm', input: 'x', tools: [many] })).toThrow('offers 2001 tools')
    const loaded = { type: 'tool_search_output', call_id: 'c', tools: [many] }
    expect(() => parsed(responsesKind, { model: 'm', input: [loaded] })).toThrow('offers 2001 tools')
  })

  test('HARD-16 low prompt usage is plausible when the provider may leave a part of the prompt unread', () => {
    const long = 'many small words '.repeat(3000)
    const read = (kind: Kind, body: Json): number => {
      const { promptTokens, promptUnreadTokens } = parsed(kind, body)
      expect(promptTokens).toBeGreaterThan(17_000)
      return promptTokens - (promptUnreadTokens ?? 0)
    }
    const messages = [{ role: 'user', content: 'x' }]
    const inner = { description: long }
    const chatTools = { tools: [{ type: 'function', function: { name: 'f', ...inner } }] }
    expect(read(chatKind, { model: 'm', messages, response_format: inner })).toBeLessThan(100)
    expect(read(chatKind, { model: 'm', messages, ...chatTools, tool_choice: 'none' })).toBeLessThan(100)
    expect(read(chatKind, { model: 'm', messages, ...chatTools })).toBeGreaterThan(17_000)
    expect(read(chatKind, { model: 'm', messages: [{ role: 'user', content: [{ type: 'odd', odd: long }] }] })).toBeLessThan(100)
    const ofMessages = { model: 'm', max_tokens: 1, messages }
    expect(read(messagesKind, { ...ofMessages, output_config: inner })).toBeLessThan(100)
    expect(read(messagesKind, { ...ofMessages, tools: [{ name: 'f', ...inner }], tool_choice: { type: 'none' } })).toBeLessThan(100)
    expect(read(messagesKind, { ...ofMessages, messages: [{ role: 'user', content: [{ type: 'odd', odd: long }] }] })).toBeLessThan(100)
    const tool = { type: 'function', name: 'f', ...inner }
    expect(read(responsesKind, { model: 'm', input: 'x', tools: [tool], tool_choice: 'none' })).toBeLessThan(100)
    expect(read(responsesKind, { model: 'm', input: [{ role: 'user', content: [{ type: 'input_text', text: long }] }] })).toBeGreaterThan(17_000)
    expect(read(responsesKind, { model: 'm', input: [{ role: 'user', content: 'x', odd: long }] })).toBeLessThan(100)
  })

  test('settings of an ordinary call do not count as prompt', () => {
    const plain = { model: 'm', messages: [{ role: 'user', content: 'hello' }] }
    const settings = { user: 'u', stream_options: { include_usage: true }, stop: ['END'], prompt_cache_key: 'k'.repeat(64), temperature: 0.5 }
    expect(parsed(chatKind, { ...plain, ...settings }).promptTokens).toBe(parsed(chatKind, plain).promptTokens)
  })
})

describe('what a strict budget holds for media', () => {
  const user = (...content: readonly object[]): ParsedRequest => parsed(chatKind, { model: 'm', max_tokens: 10, messages: [{ role: 'user', content }] })
  const image = { type: 'image_url', image_url: { url: picture } }

  test('the hold for a picture follows the rule of its provider', () => {
    const request = user(image, image)
    expect(promptTokensMost(request, attemptOf({ dialect: 'anthropic' }))).toBeGreaterThanOrEqual(2 * 4784)
    expect(promptTokensMost(request, attemptOf({ dialect: 'anthropic' }))).toBeLessThan(11_000)
    expect(promptTokensMost(request, attemptOf({ upstreamModel: 'gpt-4o-mini-2024-07-18' }))).toBeGreaterThanOrEqual(2 * 48_169)
    expect(promptTokensMost(request, attemptOf({ contextLength: 9000 }))).toBe(9000)
    // The address may lead to a video.
    const linked = user({ type: 'image_url', image_url: { url: 'https://example.com/a' } })
    expect(promptTokensMost(linked, attemptOf({ dialect: 'gemini' }))).toBe(200_000)
    expect(promptTokensMost(linked, attemptOf({ dialect: 'anthropic' }))).toBeLessThan(6000)
  })

  test('the hold for sound depends on its bytes, and the hold for a file or linked content on the context window', () => {
    const sound = user({ type: 'input_audio', input_audio: { data: 'A'.repeat(400_000), format: 'mp3' } })
    // 300,000 bytes at 500 bytes a second, and 32 tokens a second.
    expect(promptTokensMost(sound, attemptOf())).toBeGreaterThanOrEqual(600 * 32)
    expect(promptTokensMost(sound, attemptOf())).toBeLessThan(25_000)
    for (const part of [
      { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERi0' } },
      { type: 'file', file: { file_url: 'https://example.com/x' } },
      { type: 'image_url', image_url: { url: 'https://example.com/x.pdf' } },
      { type: 'video_url', video_url: { url: 'https://www.youtube.com/watch?v=1' } },
    ])
      expect(promptTokensMost(user(part), attemptOf()), JSON.stringify(part)).toBe(200_000)
  })

  test('the worst case includes the maximum for media, and other holds use the estimate', () => {
    const plan = { attempts: [attemptOf({ price: { inputUinrPerMtok: 1_000_000n } })] } as unknown as Plan
    const withImage = user(image)
    expect(holdOf(chatKind, withImage, plan)).toMatchObject({ needUinr: BigInt(withImage.promptTokens) })
    expect(holdOf(chatKind, withImage, plan).worstUinr).toBe(BigInt(promptTokensMost(withImage, attemptOf())))
    expect(holdOf(chatKind, withImage, plan).debitUinr).toBe(holdOf(chatKind, withImage, plan).worstUinr)
    const text = user({ type: 'text', text: 'hello' })
    expect(holdOf(chatKind, text, plan).worstUinr).toBe(holdOf(chatKind, text, plan).needUinr)
  })
})
