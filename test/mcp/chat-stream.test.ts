import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ChatAnswer, readChatStream } from '../../src/mcp/tools/chat/chat-stream.ts'
import { propertyRuns } from '../harness/property-runs.ts'

const frame = (value: object): string => `data: ${JSON.stringify(value)}\n\n`

async function answerOf(bytes: Uint8Array, cuts: readonly number[]): Promise<ChatAnswer> {
  const places = [...new Set([0, ...cuts.map(cut => cut % (bytes.length + 1)), bytes.length])].sort((a, b) => a - b)
  const answer = new ChatAnswer()
  const chunks = (async function* () {
    for (const [index, place] of places.entries()) if (index > 0) yield bytes.subarray(places[index - 1], place)
  })()
  expect(await readChatStream(chunks, answer, new AbortController().signal, () => undefined)).toBe('whole')
  return answer
}

describe('chat stream', () => {
  test('the answer does not depend on how the bytes are split', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 5 }), fc.array(fc.nat(2000), { maxLength: 10 }), async (texts, cuts) => {
        const bytes = Buffer.from(
          [
            ...texts.map(content => frame({ model: 'm', choices: [{ delta: { content } }] })),
            frame({ choices: [{ delta: {}, finish_reason: 'stop' }] }),
            'data: [DONE]\n\n',
          ].join(''),
        )
        const answer = await answerOf(bytes, cuts)
        expect([answer.text, answer.finishReason]).toEqual([texts.join(''), 'stop'])
      }),
      { numRuns: propertyRuns(100) },
    )
  })

  test('a whole completion gives the same answer as a stream', () => {
    const answer = new ChatAnswer()
    answer.add(
      JSON.stringify({
        model: 'm',
        choices: [{ index: 0, message: { role: 'assistant', content: 'yes', reasoning_content: 'hm' }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
      }),
    )
    expect(answer).toMatchObject({ text: 'yes', reasoning: 'hm', model: 'm', finishReason: 'stop', usage: { total_tokens: 3 }, broken: null })
  })

  test('a frame that is not a chat chunk is ignored', () => {
    const answer = new ChatAnswer()
    for (const text of ['not json', '[]', '{"choices":"none"}', 'null']) answer.add(text)
    expect(answer.text).toBe('')
  })

  test("an abort ends a read that hangs and calls the iterator's return", async () => {
    const stop = new AbortController()
    let returned = false
    const chunks: AsyncIterable<Uint8Array> = {
      [Symbol.asyncIterator]: () => ({
        next: () => new Promise(() => undefined),
        return: () => {
          returned = true
          return Promise.resolve({ done: true, value: undefined })
        },
      }),
    }
    const reading = readChatStream(chunks, new ChatAnswer(), stop.signal, () => undefined)
    stop.abort()
    expect(await reading).toBe('aborted')
    expect(returned).toBe(true)
  })

  test('HARD-03 the reader of a stream keeps no chunk after reading it, however long the stream is', async () => {
    setFlagsFromString('--expose_gc')
    const collect = runInNewContext('gc') as () => void
    const given: WeakRef<Uint8Array>[] = []
    let kept = -1
    const chunks = (async function* () {
      for (let count = 0; count < 50; count++) {
        const chunk = Buffer.from(frame({ choices: [{ delta: {} }] }))
        given.push(new WeakRef(chunk))
        yield chunk
      }
      await nextTurn()
      collect()
      kept = given.filter(chunk => chunk.deref() !== undefined).length
    })()
    expect(await readChatStream(chunks, new ChatAnswer(), new AbortController().signal, () => undefined)).toBe('whole')
    // The iterator may still hold the last chunks.
    expect(kept).toBeLessThan(5)
  })
})
