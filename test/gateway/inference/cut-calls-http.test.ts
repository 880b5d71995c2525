/** Arguments of tool calls that a provider cuts into very small pieces. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'

const messages = [{ role: 'user', content: 'hello' }]
const paths = {
  '/v1/messages': { messages, max_tokens: 5000 },
  '/v1/responses': { input: 'hello' },
} as const
const all = Object.keys(paths) as (keyof typeof paths)[]
const event = (delta: object, finish_reason: string | null = null): string => `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`
const call = (more: object): string => event({ tool_calls: [more] })
const end = `${event({}, 'tool_calls')}data: [DONE]\n\n`
const text = JSON.stringify({ a: 'x'.repeat(12_000), b: ['नमस्ते', '"\\'] })
const begin = (index: number): string => call({ index, id: `call_${index}`, type: 'function', function: { name: 'f', arguments: '' } })
const cut = (index: number): string => [...text].map(letter => call({ index, function: { arguments: letter } })).join('')

describe('finely cut calls of tools', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp()
  })
  afterAll(() => app.stop())
  beforeEach(() => app.alpha.reset())

  /** The pieces of arguments in a reply, by call. */
  function piecesOf(reply: string): string[][] {
    const calls: string[][] = []
    for (const line of reply.split('\n')) {
      if (!line.startsWith('data: {')) continue
      const { type, index, output_index: item, delta } = JSON.parse(line.slice(6))
      const piece = type === 'content_block_delta' ? delta.partial_json : type === 'response.function_call_arguments.delta' ? delta : undefined
      const at = index ?? item
      if (typeof piece === 'string' && piece !== '') calls[at] = [...(calls[at] ?? []), piece]
    }
    return calls.filter(pieces => pieces !== undefined)
  }

  test.each(all)('HARD-03 letters of arguments that come together are written together, and the arguments stay the same: %s', async path => {
    app.alpha.script([{ rawStream: [begin(0) + cut(0) + begin(1) + cut(1) + end] }])
    const reply = await app.call('POST', path, { model: 'test-model', provider: 'alpha', stream: true, ...paths[path] })
    expect(reply.status).toBe(200)
    const calls = piecesOf(reply.text)
    expect(calls.map(pieces => pieces.join(''))).toEqual([text, text])
    // Without the joining there are 12,000 pieces for each call.
    for (const pieces of calls) expect(pieces.length).toBeLessThan(1_000)
  })

  test.each(all)('pieces of a few calls of ordinary size keep their number: %s', async path => {
    const pieces = Array.from({ length: 30 }, (_, index) => call({ index: 0, function: { arguments: index === 0 ? '{"a":"' : index === 29 ? '"}' : 'word' } }))
    app.alpha.script([{ rawStream: [begin(0) + pieces.join('') + end] }])
    const reply = await app.call('POST', path, { model: 'test-model', provider: 'alpha', stream: true, ...paths[path] })
    expect(piecesOf(reply.text)[0]?.length).toBe(30)
  })
})
