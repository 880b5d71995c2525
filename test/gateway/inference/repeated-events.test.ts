/** Events that repeat an earlier one but for their text are passed on or translated as a whole: that changes no byte and no count. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ChatRelayAdapter } from '../../../src/gateway/inference/stream/chat-relay-adapter.ts'
import { type StreamAdapter, TranslatedAdapter } from '../../../src/gateway/inference/stream/stream-adapter.ts'
import { dialectOf } from '../../../src/gateway/providers/dialects.ts'
import { chatFormat } from '../../../src/gateway/wire/chat/chat-format.ts'
import type { ReplyContext } from '../../../src/gateway/wire/client-format.ts'
import { messagesFormat } from '../../../src/gateway/wire/messages/format.ts'
import { echoOf } from '../../../src/gateway/wire/model-echo.ts'
import { responsesFormat } from '../../../src/gateway/wire/responses/format.ts'
import { propertyRuns } from '../../harness/property-runs.ts'

const bill = { cost_inr: 0.5, value_inr: 0.5, provider: 'alpha' }

/** An adapter, and the models that it names. */
function made(make: (context: ReplyContext) => StreamAdapter): { readonly adapter: StreamAdapter; readonly named: string[] } {
  const named: string[] = []
  const context: ReplyContext = {
    model: 'catalog-id',
    request: {},
    promptTokens: 9,
    nowSeconds: 77,
    newId: prefix => `${prefix}made`,
    bill: () => bill,
    named: model => void named.push(model),
  }
  return { adapter: make(context), named }
}

const adapters: readonly [string, (context: ReplyContext) => StreamAdapter][] = [
  ['relayed', context => new ChatRelayAdapter(chatFormat, context, { withholdsUsage: false, echo: null })],
  ['relayed under another model', context => new ChatRelayAdapter(chatFormat, context, { withholdsUsage: false, echo: echoOf('catalog-id') })],
  ['translated to messages', context => new TranslatedAdapter(dialectOf('openai').decoder(), messagesFormat.writer(context), 9, false, context)],
  ['translated to responses', context => new TranslatedAdapter(dialectOf('openai').decoder(), responsesFormat.writer(context), 9, false, context)],
]

const text = fc.oneof(
  { weight: 6, arbitrary: fc.string({ maxLength: 12, unit: 'grapheme' }) },
  { weight: 2, arbitrary: fc.constantFrom('', '"', '\\', '\n', '\u0001', '\u2028', '𝄞', 'नमस्ते', '\ud800', 'data: x', '"}}]}') },
)
const delta = fc.oneof(
  { weight: 12, arbitrary: fc.record({ content: text }) },
  fc.record({ reasoning: text }),
  fc.record({ reasoning_content: text }),
  fc.record({ refusal: text }),
  fc.record({ role: fc.constant('assistant'), content: text }),
  fc.record({ tool_calls: fc.constantFrom([{ index: 0, id: 'c', function: { name: 'f', arguments: '' } }], [{ index: 0, function: { arguments: '{}' } }]) }),
)
const plain = (content: object): object => ({ id: 'c1', model: 'm', choices: [{ index: 0, delta: content, finish_reason: null }] })
const event = fc.oneof(
  { weight: 12, arbitrary: delta.map(plain) },
  { weight: 1, arbitrary: delta.map(each => ({ ...plain(each), model: 'other' })) },
  { weight: 1, arbitrary: fc.constantFrom(': alive', 'event: odd', { id: 'c1', choices: [] }) },
)
const ending = fc.constantFrom(
  [],
  ['[DONE]'],
  [{ id: 'c1', model: 'm', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }, '[DONE]'],
  [{ id: 'c1', model: 'm', choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } }, '[DONE]'],
  [{ error: { message: 'no' } }],
)
const lineOf = (value: object | string): string =>
  typeof value === 'string' ? (value.startsWith('[') ? `data: ${value}` : value) : `data: ${JSON.stringify(value)}`

/** What comes out of an adapter when the bytes come in these pieces, and all that it counts. */
function outcome(make: (context: ReplyContext) => StreamAdapter, pieces: readonly Uint8Array[]) {
  const { adapter, named } = made(make)
  const out: Uint8Array[] = []
  for (const piece of pieces) {
    const bytes = adapter.push(piece)
    if (bytes !== null) out.push(Buffer.from(bytes))
  }
  const { outputChars, atBoundary, reported } = adapter
  const { bytes, complete } = adapter.end()
  if (bytes !== null) out.push(bytes)
  const { finished, failed, fault } = adapter
  return { text: Buffer.concat(out).toString('latin1'), outputChars, atBoundary, reported, complete, finished, failed, fault, named, usage: adapter.usage() }
}

describe('events that repeat an earlier one but for their text', () => {
  test.each(adapters)('%s: whole chunks give what single bytes give', (_name, make) => {
    fc.assert(
      fc.property(
        fc.array(event, { maxLength: 25 }),
        ending,
        fc.array(fc.nat(3000), { maxLength: 4 }),
        fc.constantFrom('\n', '\n', '\r\n'),
        (events, end, cuts, line) => {
          const bytes = Buffer.from([...events, ...end].map(value => lineOf(value) + line + line).join(''))
          const places = [...new Set([0, ...cuts.map(cut => cut % (bytes.length + 1)), bytes.length])].sort((a, b) => a - b)
          const pieces = places.slice(1).map((place, index) => bytes.subarray(places[index], place))
          const single = [...bytes].map(byte => Uint8Array.of(byte))
          expect(outcome(make, pieces)).toEqual(outcome(make, single))
        },
      ),
      { numRuns: propertyRuns(300) },
    )
  })

  test.each(adapters)('%s: a text that is not UTF-8 is read as it is event by event', (_name, make) => {
    const around = JSON.stringify(plain({ content: '|' })).split('|')
    const eventOf = (said: Buffer): Buffer => Buffer.concat([Buffer.from(`data: ${around[0]}`), said, Buffer.from(`${around[1]}\n\n`)])
    const events = [Buffer.from('a'), Buffer.from('b'), Buffer.from([0xff]), Buffer.from([0xe0, 0xa4]), Buffer.from('c')].map(eventOf)
    expect(outcome(make, [Buffer.concat(events)])).toEqual(outcome(make, events))
  })
})
