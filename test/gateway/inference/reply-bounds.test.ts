/** Bounds of the parts of a reply that are kept for a client of another format, counted as they will be written. */
import { describe, expect, test } from 'vitest'
import { ReplyBounds } from '../../../src/gateway/inference/replies/reply-bounds.ts'
import { reasoningEdits } from '../../../src/gateway/wire/chat/chat-reasoning.ts'

const exceeded = (isOwn: boolean, ...deltas: object[]): string | null => {
  const bounds = new ReplyBounds(isOwn)
  for (const delta of deltas) bounds.add(delta)
  return bounds.exceeded?.message ?? null
}

describe('the bounds of one reply', () => {
  const mib = 1024 * 1024
  test.each([
    ['plain text', { content: 'a'.repeat(mib + 1) }],
    ['control characters', { content: '\u0001'.repeat(mib / 5) }],
    ['quotes in thinking', { reasoning: '"'.repeat(mib / 2 + 1) }],
    ['a refusal', { refusal: 'a'.repeat(mib + 1) }],
    ['signed thinking', { thinking_blocks: [{ type: 'thinking', thinking: 'a'.repeat(mib) }] }],
  ])('HARD-03 from an own server, at most a million characters of %s are kept, counted as JSON', (_name, delta) => {
    expect(exceeded(true, delta)).toContain('over 1048576 characters')
    expect(exceeded(false, delta)).toBeNull()
  })

  test('HARD-03 the arguments of calls have at most four million characters as JSON, from every server', () => {
    const call = (count: number) => ({ tool_calls: [{ index: 0, function: { name: 'f', arguments: '\\'.repeat(count) } }] })
    for (const isOwn of [true, false]) {
      expect(exceeded(isOwn, call(2 * mib + 1))).toContain('over 4194304 characters of tool calls')
      expect(exceeded(isOwn, call(mib))).toBeNull()
    }
  })

  test('HARD-03 a normal reply of 100,000 tokens is within the bounds', () => {
    expect(exceeded(true, ...Array.from({ length: 100_000 }, () => ({ content: ' "so"\n' })))).toBeNull()
  })
})

describe('thinking in another member', () => {
  const line = (count: number): Buffer =>
    Buffer.from(JSON.stringify({ choices: Array.from({ length: count }, (_, index) => ({ index, delta: { reasoning: 'x' } })) }))

  test('HARD-03 a chunk with very many choices is relayed unchanged', () => {
    for (const [count, edits] of [
      [1, 1],
      [128, 128],
      [129, 0],
      [24_000, 0],
    ] as const) {
      const bytes = line(count)
      expect(reasoningEdits(bytes, 0, bytes.length)).toHaveLength(edits)
    }
  })
})
