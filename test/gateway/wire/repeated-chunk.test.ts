/** Chunks that repeat an earlier one but for their text are read without a scan or a parser: that changes nothing of what is read. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { OpenAiStreamDecoder } from '../../../src/gateway/providers/dialects/openai/openai-decoder.ts'
import { ChatStreamTap } from '../../../src/gateway/wire/chat/chat-tap.ts'

const text = fc.oneof(
  { weight: 6, arbitrary: fc.string({ maxLength: 12, unit: 'grapheme' }) },
  { weight: 1, arbitrary: fc.constantFrom('', '"', '\\', '\n', '\\u0041', '"}}]}', 'data:x', '\u0001', '𝄞', '\ud800') },
)
const delta = fc.oneof(
  { weight: 8, arbitrary: fc.record({ content: text }) },
  fc.record({ reasoning: text }),
  fc.record({ reasoning_content: text }),
  fc.record({ content: text, reasoning: text }),
  fc.record({ role: fc.constant('assistant'), content: text }),
  fc.record({ content: fc.array(fc.record({ type: fc.constant('text'), text })) }),
  fc.record({ tool_calls: fc.constant([{ index: 0, id: 'c', function: { name: 'f', arguments: '{"content":"x"}' } }]) }),
)
const choice = fc.record(
  {
    index: fc.constantFrom(0, 0, 0, 1),
    delta,
    message: fc.record({ content: text }),
    finish_reason: fc.constantFrom(null, null, null, 'stop'),
    logprobs: fc.constantFrom(null, { content: [] }),
  },
  { requiredKeys: ['index', 'finish_reason'] },
)
const chunk = fc.record(
  {
    id: fc.constantFrom('chatcmpl-1', 'chatcmpl-1', 'chatcmpl-1', '2'),
    model: fc.constantFrom('m', 'm', 'm', 'other'),
    choices: fc.oneof({ weight: 6, arbitrary: fc.tuple(choice) }, fc.array(choice, { maxLength: 2 })),
    usage: fc.constantFrom(null, { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 }),
    error: fc.constantFrom(null, null, null, null, null, { message: 'no' }),
    content: text,
  },
  { requiredKeys: ['id', 'model', 'choices'] },
)
/** Plain pieces most of the time, as a provider sends them. */
const plain = fc
  .tuple(text, fc.constantFrom({}, {}, { role: 'assistant' }))
  .map(([content, role]) => ({ id: 'chatcmpl-1', model: 'm', choices: [{ index: 0, delta: { ...role, content }, finish_reason: null }] }))
const chunks = fc.array(fc.oneof({ weight: 4, arbitrary: plain }, chunk), { maxLength: 20 })

const eventOf = (value: unknown): Buffer => Buffer.from(`data: ${JSON.stringify(value)}\n\n`)

describe('chunks that differ from an earlier one only in their text', () => {
  test('are counted by the relay like the first chunk of a stream', () => {
    fc.assert(
      fc.property(chunks, values => {
        const together = new ChatStreamTap()
        let outputChars = 0
        for (const value of values) {
          const alone = new ChatStreamTap()
          alone.push(eventOf(value))
          together.push(eventOf(value))
          outputChars += alone.outputChars
          expect(together.outputChars).toBe(outputChars)
          expect(together.hasOddThinking).toBe(alone.hasOddThinking)
          if (alone.model !== null) expect(together.model).toBe(alone.model)
          if (alone.usage !== null) expect(together.usage).toEqual(alone.usage)
          if (alone.failed) expect(together.failed).toBe(true)
          if (together.failed) break
        }
      }),
    )
  })

  test('are decoded as if each was parsed', () => {
    fc.assert(
      fc.property(chunks, values => {
        const together = new OpenAiStreamDecoder()
        // A comment between two names of an event keeps every chunk from being recognised, and is no part of what is compared.
        const apart = new OpenAiStreamDecoder()
        const named = (value: unknown): Buffer => Buffer.concat([Buffer.from('event: chunk\n'), eventOf(value)])
        for (const value of values) expect(together.push(eventOf(value))).toEqual(apart.push(named(value)))
      }),
    )
  })

  test('are recognised, so that a stream of plain pieces is parsed only once', () => {
    const decoder = new OpenAiStreamDecoder()
    const parse = JSON.parse
    let parsed = 0
    JSON.parse = (...args: Parameters<typeof parse>) => {
      parsed++
      return parse(...args)
    }
    try {
      for (let index = 0; index < 50; index++)
        decoder.push(eventOf({ id: 'chatcmpl-1', model: 'm', choices: [{ index: 0, delta: { content: ` word ${index}` }, finish_reason: null }] }))
    } finally {
      JSON.parse = parse
    }
    expect(parsed).toBe(1)
  })
})
