import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ChatStreamTap } from '../../../src/gateway/wire/chat/chat-tap.ts'
import { spokenBytes } from '../../../src/gateway/wire/output-chars.ts'
import { propertyRuns } from '../../harness/property-runs.ts'

const frame = (value: unknown, end = '\n\n'): string => `data: ${JSON.stringify(value)}${end}`
const delta = (fields: Record<string, unknown>, more: Record<string, unknown> = {}): unknown => ({
  id: 'c',
  choices: [{ index: 0, delta: fields, finish_reason: null }],
  ...more,
})
const usage = {
  prompt_tokens: 9,
  completion_tokens: 4,
  total_tokens: 13,
  prompt_tokens_details: { cached_tokens: 2 },
  completion_tokens_details: { reasoning_tokens: 1 },
}
const done = 'data: [DONE]\n\n'

function fed(...chunks: (string | Uint8Array)[]): ChatStreamTap {
  const tap = new ChatStreamTap()
  for (const chunk of chunks) tap.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)
  return tap
}

function state(tap: ChatStreamTap): unknown {
  return { usage: tap.usage, outputChars: tap.outputChars, finished: tap.finished, failed: tap.failed, atBoundary: tap.atBoundary }
}

/** Cuts the bytes at the given places. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [...new Set(places.map(place => place % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...at].map((from, index) => bytes.subarray(from, at[index] ?? bytes.length)).filter(part => part.length > 0)
}

describe('the tap of an OpenAI stream', () => {
  test('reads usage, output length and the end of an ordinary stream', () => {
    const tap = fed(
      frame(delta({ role: 'assistant', content: '' })),
      frame(delta({ content: 'नमस्ते' }, { usage: null })),
      frame(delta({ content: ' 😀"\\' })),
      frame({ choices: [], usage }),
      done,
    )
    expect(state(tap)).toEqual({
      usage: { promptTokens: 9, completionTokens: 4, cachedTokens: 2, cacheWriteTokens: 0, reasoningTokens: 1 },
      outputChars: Buffer.byteLength('नमस्ते') + Buffer.byteLength(' 😀"\\'),
      finished: true,
      failed: false,
      atBoundary: true,
    })
  })

  test('counts reasoning and names and arguments of tools, but not ids or log probabilities', () => {
    const call = { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'find', arguments: '{"a":1}' } }] }
    const tap = fed(
      frame(delta({ reasoning_content: 'abc' })),
      frame(delta(call)),
      frame({ choices: [{ delta: { content: 'xy' }, logprobs: { content: [{ token: 'xy', bytes: [1] }] } }] }),
    )
    // The digit counts as three.
    expect(tap.outputChars).toBe(3 + 4 + 9 + 2)
  })

  test('HARD-03 the tap keeps only facts about the chunk with usage, not the chunk itself', () => {
    const kept = (more: object): unknown => fed(frame({ choices: [], usage, z: Array(1000).fill({}), ...more })).usageChunk
    expect(kept({})).toEqual({ isLast: true, isUsageOnly: true, takesBill: true })
    expect(kept({ x_br: {} })).toEqual({ isLast: true, isUsageOnly: true, takesBill: false })
    expect(kept({ choices: [{ index: 0, delta: {} }] })).toEqual({ isLast: false, isUsageOnly: false, takesBill: true })
  })

  test('takes text that looks like a usage block, an error or an end mark for text', () => {
    const tap = fed(frame(delta({ content: '{"usage":{"prompt_tokens":1},"error":{"a":1}} data: [DONE]\n\n' })))
    expect([tap.usage, tap.failed, tap.finished]).toEqual([null, false, false])
  })

  test('sees an error frame and an error event, and no failure in error:null', () => {
    expect(fed(frame({ error: { message: 'x' } })).failed).toBe(true)
    expect(fed('data: {"error":"overloaded"}\n\n').failed).toBe(true)
    expect(fed('event: error\ndata: {}\n\n').failed).toBe(true)
    expect(fed(frame(delta({ content: 'a' }, { error: null }))).failed).toBe(false)
    expect(fed(frame({ choices: [], x: { y: { error: 'nested', finish_reason: 'error' } } })).failed).toBe(false)
  })

  test('sees a choice that failed, and begins only with a choice or usage', () => {
    expect(fed(frame({ choices: [{ delta: {}, error: { message: 'nested' } }] }))).toMatchObject({
      failed: true,
      choiceError: { message: 'nested' },
      begun: false,
    })
    expect(fed(frame(delta({}, { error: null }))).failed).toBe(false)
    expect(fed(frame({ choices: [{ delta: { content: 'lost' }, finish_reason: 'error' }] }))).toMatchObject({ failed: true, outputChars: 0 })
    expect(fed(frame({ choices: [{ delta: { error: 'said', finish_reason: 'error' }, finish_reason: 'errors' }] })).failed).toBe(false)
    expect(fed(': comment\n\ndata: [DONE]\n\n')).toMatchObject({ begun: false, finished: true })
  })

  test('finds usage under x_groq and in the first choice', () => {
    expect(fed(frame({ choices: [], x_groq: { usage } })).usage?.completionTokens).toBe(4)
    expect(fed(frame({ choices: [{ delta: {}, usage }] })).usage?.completionTokens).toBe(4)
  })

  test('is at a boundary only between events', () => {
    const tap = fed()
    const at: boolean[] = [tap.atBoundary]
    for (const part of ['data: {}', '\r', '\n', '\r', '\n', ': comment\n', '\n']) {
      tap.push(Buffer.from(part))
      at.push(tap.atBoundary)
    }
    expect(at).toEqual([true, false, false, false, false, true, false, true])
  })

  test('does not throw for bytes that are not JSON', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            fc.uint8Array({ maxLength: 60 }),
            fc.constantFrom('data: {"content":"', '"usage":{', '\\u', '"', '\n\n').map(text => Buffer.from(text)),
          ),
        ),
        chunks => {
          expect(() => fed(...chunks)).not.toThrow()
        },
      ),
    )
  })

  test('gives the same result for any chunking of the same bytes, with LF and CRLF', () => {
    const content = fc.string({ unit: 'binary', maxLength: 40 })
    const event = fc.oneof(
      content.map(text => delta({ content: text }, { usage: null })),
      content.map(text => delta({ tool_calls: [{ index: 0, function: { arguments: text } }] })),
      fc.constant({ choices: [], usage }),
    )
    fc.assert(
      fc.property(
        fc.array(event, { maxLength: 6 }),
        fc.constantFrom('\n\n', '\r\n\r\n'),
        fc.boolean(),
        fc.array(fc.nat(4000), { maxLength: 30 }),
        (events, end, ends, places) => {
          const bytes = Buffer.from(events.map(value => frame(value, end)).join('') + (ends ? `data: [DONE]${end}` : ': open'))
          const whole = state(fed(bytes))
          expect(state(fed(...cut(bytes, places)))).toEqual(whole)
          const chars = events.reduce((sum: number, value) => sum + outputOf(value), 0)
          expect(whole).toMatchObject({ outputChars: chars, finished: ends, atBoundary: ends })
        },
      ),
      { numRuns: propertyRuns(300) },
    )
  })
})

function outputOf(value: unknown): number {
  const fields = (value as { choices: { delta?: { content?: string; tool_calls?: { function: { arguments: string } }[] } }[] }).choices[0]?.delta
  return spokenBytes(fields?.content ?? fields?.tool_calls?.[0]?.function.arguments ?? '')
}
