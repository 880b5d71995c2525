import { describe, expect, test } from 'vitest'
import { parseChat } from '../../../src/gateway/wire/chat/chat.ts'
import { parseEmbeddings } from '../../../src/gateway/wire/embeddings.ts'
import { imageTokens } from '../../../src/gateway/wire/prompt-size.ts'
import { headerValue } from '../../../src/gateway/wire/response-headers.ts'
import { usageFromOpenAi, usageOfEmbeddings } from '../../../src/gateway/wire/usage.ts'

const user = { role: 'user', content: 'hello' }
const chat = (more: Record<string, unknown> = {}): ReturnType<typeof parseChat> => parseChat({ model: 'm', messages: [user], ...more })

describe('a chat request', () => {
  test('is read with its defaults', () => {
    expect(chat()).toEqual({
      model: 'm',
      stream: false,
      maxTokens: null,
      answerMaxTokens: null,
      answers: 1,
      includeUsage: undefined,
      promptTokensEstimate: 2 + 4,
      hasTools: false,
      hasImages: false,
    })
  })

  test.each([
    ['model', { model: undefined }],
    ['model', { model: '' }],
    ['messages', { messages: undefined }],
    ['messages', { messages: [] }],
    ['messages', { messages: 'hi' }],
    ['messages[0]', { messages: ['hi'] }],
    ['messages[1].role', { messages: [user, { content: 'x' }] }],
    ['messages[0].content', { messages: [{ role: 'user' }] }],
    ['messages[0].content', { messages: [{ role: 'assistant', content: null }] }],
    ['messages[0].content', { messages: [{ role: 'assistant', content: null, tool_calls: [] }] }],
    ['messages[0].content[0]', { messages: [{ role: 'user', content: ['x'] }] }],
    ['max_tokens', { max_tokens: 0 }],
    ['max_tokens', { max_tokens: -1 }],
    ['max_tokens', { max_tokens: 1.5 }],
    ['max_tokens', { max_tokens: '5' }],
    ['max_completion_tokens', { max_completion_tokens: 0 }],
    ['stream', { stream: 'yes' }],
    ['stream_options', { stream_options: true }],
    ['stream_options.include_usage', { stream_options: { include_usage: 1 } }],
    ['n', { n: 0 }],
    ['tools', { tools: {} }],
  ])('with an invalid %s is refused with the name of the field: %j', (name, more) => {
    expect(() => chat(more)).toThrow(expect.objectContaining({ code: 'bad_request', message: expect.stringContaining(`"${name}"`) }))
  })

  test('an assistant turn that called a tool needs no content', () => {
    const calls = { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }] }
    expect(() => chat({ messages: [user, calls, { role: 'tool', tool_call_id: 'c', content: '1' }] })).not.toThrow()
  })

  test('takes the lower of both caps, for each of n answers', () => {
    expect(chat({ max_tokens: 10, max_completion_tokens: 7, n: 3 })).toMatchObject({ answerMaxTokens: 7, maxTokens: 21 })
    expect(chat({ max_tokens: null, max_completion_tokens: 7 })).toMatchObject({ maxTokens: 7 })
  })

  test('counts text by UTF-8 bytes and images by a table, and finds tools', () => {
    const parts = [
      { type: 'text', text: 'नम' },
      { type: 'image_url', image_url: { url: 'data:', detail: 'low' } },
      { type: 'image_url', image_url: { url: 'data:' } },
    ]
    expect(chat({ messages: [{ role: 'user', content: parts }] })).toMatchObject({
      hasImages: true,
      promptTokensEstimate: 2 + 4 + imageTokens.low + imageTokens.high,
    })
    expect(chat({ tools: [{ type: 'function' }] }).hasTools).toBe(true)
  })

  test('counts every text that a provider may read as prompt, under any name', () => {
    const long = 'x'.repeat(30_000)
    const least = 10_000
    for (const more of [
      { functions: [{ name: 'f', description: long }] },
      { response_format: { type: 'json_schema', json_schema: { schema: { description: long } } } },
      { tools: [{ type: 'function', function: { name: 'f', description: long } }] },
      { messages: [{ role: 'user', content: [{ type: 'input_text', input_text: long }] }] },
    ])
      expect(chat(more).promptTokensEstimate, JSON.stringify(more).slice(0, 40)).toBeGreaterThanOrEqual(least)
    const video = { type: 'video_url', video_url: { url: `data:video/mp4;base64,${long}` } }
    expect(chat({ messages: [{ role: 'user', content: [video] }] }).promptTokensEstimate).toBeLessThan(2100)
  })
})

describe('an embeddings request', () => {
  test('takes a string or an array of strings', () => {
    const none = { promptUnreadTokens: 0, promptDigitTokens: 0 }
    expect(parseEmbeddings({ model: 'm', input: 'abcd' })).toEqual({ model: 'm', inputs: 1, promptTokensEstimate: 2, ...none })
    expect(parseEmbeddings({ model: 'm', input: ['abc', 'abc'], dimensions: 8 })).toEqual({
      model: 'm',
      inputs: 2,
      promptTokensEstimate: 2,
      ...none,
    })
  })
  test.each([[undefined], [null], [[]], [[1]], [['a', null]], [{}]])('refuses the input %j', input => {
    expect(() => parseEmbeddings({ model: 'm', input })).toThrow(expect.objectContaining({ code: 'bad_request' }))
  })
})

describe('a usage block', () => {
  test('is read with its details, which never exceed their whole', () => {
    expect(
      usageFromOpenAi({
        prompt_tokens: 10,
        completion_tokens: 4,
        prompt_tokens_details: { cached_tokens: 99 },
        completion_tokens_details: { reasoning_tokens: 3 },
      }),
    ).toEqual({ promptTokens: 10, completionTokens: 4, cachedTokens: 10, cacheWriteTokens: 0, reasoningTokens: 3 })
    // Reasoning beside the completion, as the total says.
    expect(usageFromOpenAi({ prompt_tokens: 32, completion_tokens: 9, total_tokens: 135, completion_tokens_details: { reasoning_tokens: 94 } })).toMatchObject({
      promptTokens: 32,
      completionTokens: 103,
      reasoningTokens: 94,
    })
    expect(
      usageFromOpenAi({ prompt_tokens: 32, completion_tokens: 103, total_tokens: 135, completion_tokens_details: { reasoning_tokens: 94 } }),
    ).toMatchObject({ promptTokens: 32, completionTokens: 103, reasoningTokens: 94 })
    expect(usageOfEmbeddings({ prompt_tokens: 10 })).toMatchObject({ promptTokens: 10, completionTokens: 0 })
  })
  test.each([
    [null],
    [[]],
    [{}],
    [{ prompt_tokens: -1 }],
    [{ prompt_tokens: '3' }],
    [{ prompt_tokens: 3 }],
    [{ prompt_tokens: 3, completion_tokens: Number.NaN }],
  ])('%j gives null', usage => {
    expect(usageFromOpenAi(usage)).toBeNull()
  })
})

test('a header value is printable ASCII on one line, of bounded length', () => {
  expect(headerValue('a\r\nb é 😀')).toBe('a??b ? ?')
  expect(headerValue('x'.repeat(9999))).toHaveLength(512)
})
