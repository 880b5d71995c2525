import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ChatRelayAdapter } from '../../../src/gateway/inference/stream/chat-relay-adapter.ts'
import { RelayAdapter } from '../../../src/gateway/inference/stream/stream-adapter.ts'
import { dialectOf } from '../../../src/gateway/providers/dialects.ts'
import { chatFormat } from '../../../src/gateway/wire/chat/chat-format.ts'
import type { ReplyContext } from '../../../src/gateway/wire/client-format.ts'
import { messagesFormat } from '../../../src/gateway/wire/messages/format.ts'
import { echoOf } from '../../../src/gateway/wire/model-echo.ts'
import { propertyRuns } from '../../harness/property-runs.ts'

const bill = { cost_inr: 0.5, value_inr: 0.5, provider: 'alpha' }
const context: ReplyContext = { model: 'catalog-id', request: {}, promptTokens: 9, nowSeconds: 77, newId: prefix => `${prefix}made`, bill: () => bill }
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
const said = (text: string, more: object = {}): object => ({
  id: 'c1',
  created: 5,
  model: 'theirs',
  choices: [{ index: 0, delta: { content: text }, finish_reason: null }],
  ...more,
})
const finished = (more: object = {}): object => ({ id: 'c1', model: 'theirs', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], ...more })
const usageOnly = { id: 'c1', model: 'theirs', choices: [], usage }
const done = 'data: [DONE]'

interface Options {
  readonly withholdsUsage?: boolean
  readonly echo?: boolean
}

function adapterOf({ withholdsUsage = false, echo = false }: Options = {}): ChatRelayAdapter {
  return new ChatRelayAdapter(chatFormat, context, { withholdsUsage, echo: echo ? echoOf('catalog-id') : null })
}

/** Returns the whole output for bytes that arrive in these pieces. */
function relayed(pieces: readonly Uint8Array[], options: Options = {}): { text: string; adapter: ChatRelayAdapter; complete: boolean } {
  const adapter = adapterOf(options)
  const out: Uint8Array[] = []
  for (const piece of pieces) {
    const bytes = adapter.push(piece)
    if (bytes !== null) out.push(Buffer.from(bytes))
  }
  const { bytes, complete } = adapter.end()
  if (bytes !== null) out.push(bytes)
  return { text: Buffer.concat(out).toString('utf8'), adapter, complete }
}

const streamOf = (values: readonly (object | string)[], end = '\n'): string =>
  values.map(value => `${typeof value === 'string' ? value : `data: ${JSON.stringify(value)}`}${end}${end}`).join('')
const whole = (text: string, options?: Options): string => relayed([Buffer.from(text)], options).text
/** Returns the relayed output of a stream. Checks that it is the same for a cut at every byte and for single bytes. */
function anyCut(text: string, options?: Options): string {
  const bytes = Buffer.from(text)
  const expected = whole(text, options)
  for (let at = 1; at < bytes.length; at++) expect(relayed([bytes.subarray(0, at), bytes.subarray(at)], options).text, `cut at ${at}`).toBe(expected)
  expect(
    relayed(
      [...bytes].map(byte => Uint8Array.of(byte)),
      options,
    ).text,
  ).toBe(expected)
  return expected
}
const billed = (value: object): object => ({ ...value, x_br: bill })

describe('the relay of a chat stream', () => {
  test('relays every byte unchanged, and adds only the bill to the last usage', () => {
    const text = streamOf([said('नमस्ते "usage":{}'), ': comment', 'event: x\nid: 7\nretry: 1', said('b', { usage: null }), finished(), usageOnly, done])
    expect(anyCut(text)).toBe(text.replace(JSON.stringify(usageOnly), JSON.stringify(billed(usageOnly))))
    const spaced = 'data:{ "choices" : [],  "usage":{"prompt_tokens":3.0,"completion_tokens":2} }\r\n\r\ndata: [DONE]\r\n\r\n'
    expect(anyCut(spaced)).toBe(spaced.replace('2} }', `2} ,"x_br":${JSON.stringify(bill)}}`))
  })

  test('sends the same buffer when there is nothing to change', () => {
    const bytes = Buffer.from(streamOf([said('a'), said('b')]))
    expect(adapterOf().push(bytes)).toBe(bytes)
  })

  test('adds the bill only to the last of several usages, even if it is in the chunk with the finish reason', () => {
    const running = [said('a', { usage }), said('b', { usage })]
    expect(anyCut(streamOf([...running, finished({ usage }), done]))).toBe(streamOf([...running, billed(finished({ usage })), done]))
    expect(anyCut(streamOf([...running, finished({ usage }), usageOnly, done]))).toBe(streamOf([...running, finished({ usage }), billed(usageOnly), done]))
    const elsewhere = { choices: [], x_groq: { usage } }
    const text = whole(streamOf([said('a'), elsewhere, done]))
    expect(JSON.parse(text.split('\n\n')[1]?.slice(6) ?? '')).toMatchObject({ ...elsewhere, usage, x_br: bill })
  })

  test('replaces a bill that the provider has sent', () => {
    const text = anyCut(streamOf([said('a'), { ...usageOnly, x_br: { cost_inr: 9 } }, done]))
    expect(text).toBe(streamOf([said('a'), billed(usageOnly), done]))
  })

  test('adds an estimate before the end mark when there is no usage, with the id and model of the stream', () => {
    const text = anyCut(streamOf([said('abcdef'), finished(), done]))
    const [, , added, end] = text.trimEnd().split('\n\n')
    expect(end).toBe(done)
    expect(JSON.parse(added?.slice(6) ?? '')).toMatchObject({
      id: 'c1',
      created: 5,
      model: 'theirs',
      object: 'chat.completion.chunk',
      choices: [],
      usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11, estimated: true },
      x_br: bill,
    })
    expect(anyCut(streamOf([said('abcdef'), done]), { withholdsUsage: true })).toBe(streamOf([said('abcdef'), done]))
  })

  test('removes only the usage-only event for include_usage: false', () => {
    const before = [said('é "usage":{}', { usage: null }), finished({ usage }), ': x']
    expect(anyCut(streamOf([...before, usageOnly, done]), { withholdsUsage: true })).toBe(streamOf([...before, done]))
    expect(anyCut(streamOf([...before, usageOnly, done], '\r\n'), { withholdsUsage: true })).toBe(streamOf([...before, done], '\r\n'))
    const error = { error: { message: 'x' }, usage }
    expect(whole(streamOf([said('a'), error]), { withholdsUsage: true })).toBe(streamOf([said('a'), error, done]))
  })

  test('replaces the model name by the catalog id, and changes the same text nowhere else', () => {
    const inner = said('{"model":"theirs"}', { system: { model: 'theirs' } })
    const text = streamOf([inner, { choices: [] }, { model: null, choices: [] }, usageOnly, done])
    const expected = streamOf([
      { ...inner, model: 'catalog-id' },
      { choices: [] },
      { model: null, choices: [] },
      billed({ ...usageOnly, model: 'catalog-id' }),
      done,
    ])
    expect(anyCut(text, { echo: true })).toBe(expected)
  })

  test('never sends a partial chunk: when a stream breaks inside a chunk, the output ends at an event', () => {
    const open = 'data: {"choices":[{"delta":{"content":"never fin'
    const { text, complete } = relayed([Buffer.from(streamOf([said('a')]) + open)])
    expect([text, complete]).toEqual([streamOf([said('a')]), false])
    const adapter = adapterOf()
    adapter.push(Buffer.from(streamOf([said('a')]) + open))
    expect(adapter.atBoundary).toBe(true)
    const frames = Buffer.from(adapter.fail({ message: 'm', type: null, code: 'budget_exceeded' })).toString()
    expect(frames.startsWith('data: {"error"')).toBe(true)
    expect(frames.endsWith('data: [DONE]\n\n')).toBe(true)
  })

  test('does not send an incomplete error of the provider, and treats the stream as broken', () => {
    const begun = streamOf([said('Hi')])
    for (const half of ['data: {"error":{"message":"overloa', 'data: {"error":{"message":"overloaded"}', 'dat']) {
      const { text, adapter, complete } = relayed([Buffer.from(begun + half)])
      expect([text.trimEnd(), adapter.failed, complete], half).toEqual([begun.trimEnd(), false, false])
    }
  })

  test('keeps usage that it holds back when the stream is cut afterwards', () => {
    const adapter = adapterOf()
    const before = adapter.push(Buffer.from(streamOf([said('a'), finished({ usage })])))
    expect(Buffer.from(before ?? []).toString()).toBe(streamOf([said('a')]))
    expect(Buffer.from(adapter.fail({ message: 'm', type: null, code: null })).toString()).toContain(streamOf([finished({ usage })]))
  })

  test('adds the output that follows the last reported usage of a stream that is cut', () => {
    const running = { ...said('Hello'), usage: { prompt_tokens: 9, completion_tokens: 1, total_tokens: 10 } }
    const adapter = adapterOf()
    adapter.push(Buffer.from(streamOf([running, said('x'.repeat(300))])))
    expect([adapter.reported, adapter.usage().promptTokens, adapter.usage().completionTokens]).toEqual([false, 9, 102])
    adapter.push(Buffer.from(streamOf([finished({ usage: { prompt_tokens: 9, completion_tokens: 70, total_tokens: 79 } })])))
    expect([adapter.reported, adapter.usage().completionTokens]).toEqual([true, 70])
  })

  test('relays an extremely long line in parts without buffering it', () => {
    const adapter = adapterOf()
    const part = Buffer.from('x'.repeat(1024 * 1024))
    let inBytes = 0
    let outBytes = 0
    const push = (bytes: Buffer): void => {
      inBytes += bytes.length
      outBytes += adapter.push(bytes)?.length ?? 0
    }
    push(Buffer.from(`${streamOf([said('a')])}data: {"a":"`))
    for (let count = 0; count < 20; count++) {
      push(part)
      expect(inBytes - outBytes).toBeLessThan(10 * 1024 * 1024)
    }
    expect(adapter.atBoundary).toBe(false)
    push(Buffer.from('"}\n\n'))
    expect([outBytes, adapter.atBoundary]).toEqual([inBytes, true])
  })

  test('HARD-03 comments after the usage are kept up to a bound, and the stream ends normally', () => {
    const comment = Buffer.from(`: ${'x'.repeat(60_000)}\n\n`)
    const adapter = adapterOf()
    adapter.push(Buffer.from(streamOf([said('a'), finished(), usageOnly])))
    for (let count = 0; count < 5000; count++) expect(adapter.push(comment)).toBe(null)
    const end = Buffer.from(adapter.push(Buffer.from(`: short\n\n${streamOf([done])}`)) ?? []).toString()
    expect(end.length).toBeLessThan(128 * 1024)
    expect(end.startsWith(streamOf([billed(usageOnly)]))).toBe(true)
    expect(end.endsWith(`: short\n\n${streamOf([done])}`)).toBe(true)
    expect([adapter.finished, adapter.atBoundary]).toEqual([true, true])
  })

  test('HARD-03 an event that arrives byte by byte uses little more memory than its length, also in a relay', () => {
    const adapter = new RelayAdapter(dialectOf('anthropic').tap(), messagesFormat, context)
    const bytes = 1_000_000
    adapter.push(Buffer.from('event: message_start\ndata: {"type":"message_start","message":{"usage":{}}}\n\nevent: ping\ndata: {"type":"ping","x":"'))
    const before = process.memoryUsage()
    for (let count = 0; count < bytes; count++) adapter.push(Uint8Array.of(120))
    const after = process.memoryUsage()
    // With an object for each byte the number is about 250 MB. It includes garbage that is not collected yet.
    expect(after.heapUsed - before.heapUsed + after.arrayBuffers - before.arrayBuffers).toBeLessThan(120_000_000)
    expect(adapter.push(Buffer.from('"}\n\n'))?.length).toBeGreaterThan(bytes)
  })

  test('gives the same output for any division of a stream into chunks', () => {
    const event = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 30 }).map(text => `data: ${JSON.stringify(said(text))}`),
      fc.constantFrom(JSON.stringify(usageOnly), JSON.stringify(finished({ usage })), JSON.stringify(finished())).map(text => `data: ${text}`),
      fc.constantFrom(': ping', 'event: a', 'data: not json', 'id: 1\ndata: {"choices":[],"usage":{"prompt_tokens":1}}', ''),
    )
    fc.assert(
      fc.property(
        fc.array(event, { maxLength: 8 }),
        fc.constantFrom('\n\n', '\r\n\r\n'),
        fc.boolean(),
        fc.record({ withholdsUsage: fc.boolean(), echo: fc.boolean() }),
        fc.array(fc.nat(3000), { maxLength: 20 }),
        (events, end, ends, options, places) => {
          const bytes = Buffer.from(events.map(text => text + end).join('') + (ends ? `data: [DONE]${end}` : ''))
          const at = [...new Set(places.map(place => place % (bytes.length + 1)))].sort((a, b) => a - b)
          const pieces = [0, ...at].map((from, index) => bytes.subarray(from, at[index] ?? bytes.length)).filter(piece => piece.length > 0)
          const one = relayed([bytes], options)
          const many = relayed(pieces, options)
          expect(many.text).toBe(one.text)
          expect([many.adapter.usage(), many.adapter.finished, many.complete]).toEqual([one.adapter.usage(), one.adapter.finished, one.complete])
        },
      ),
      { numRuns: propertyRuns(500) },
    )
  })
})
