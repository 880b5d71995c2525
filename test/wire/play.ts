/** Reads upstream bytes and writes client text as the gateway does, but without sockets, charges and a clock. */
import { ChatRelayAdapter } from '../../src/gateway/inference/stream/chat-relay-adapter.ts'
import { RelayAdapter, type StreamAdapter, TranslatedAdapter } from '../../src/gateway/inference/stream/stream-adapter.ts'
import { dialectOf } from '../../src/gateway/providers/dialects.ts'
import type { DialectId } from '../../src/gateway/providers/provider.ts'
import { chatFormat } from '../../src/gateway/wire/chat/chat-format.ts'
import type { ClientFormat, ReplyContext, WireFormat } from '../../src/gateway/wire/client-format.ts'
import { geminiFormat } from '../../src/gateway/wire/gemini/format.ts'
import { messagesFormat } from '../../src/gateway/wire/messages/format.ts'
import { echoOf } from '../../src/gateway/wire/model-echo.ts'
import { responsesFormat } from '../../src/gateway/wire/responses/format.ts'
import { plainUsage } from '../../src/gateway/wire/usage.ts'
import { readChatReply, readChatStream } from './readers/chat.ts'
import { readGemini, readGeminiStream } from './readers/gemini.ts'
import type { Heard } from './readers/heard.ts'
import { readMessage, readMessagesStream } from './readers/messages.ts'
import { readResponse, readResponsesStream } from './readers/responses.ts'

/** A client of one format: the format that writes for it, and its readers. */
export interface Client {
  readonly format: ClientFormat
  stream(text: string): Heard
  whole(reply: Readonly<Record<string, unknown>>): Heard
}

export const clients: Readonly<Partial<Record<WireFormat, Client>>> = {
  openai: { format: chatFormat, stream: readChatStream, whole: readChatReply },
  anthropic: { format: messagesFormat, stream: readMessagesStream, whole: readMessage },
  gemini: { format: geminiFormat, stream: readGeminiStream, whole: readGemini },
  'openai-responses': { format: responsesFormat, stream: readResponsesStream, whole: readResponse },
}

/** The number of prompt tokens that the gateway estimates in these tests. */
export const promptEstimate = 21

/** Returns a context that gives the same ids every time. */
export function contextOf(): ReplyContext {
  let count = 0
  return {
    model: 'the-model',
    request: {
      ...{ model: 'the-model', messages: [], input: [], tools: [], max_tokens: 100 },
      ...{ contents: [], generationConfig: { thinkingConfig: { includeThoughts: true } } },
    },
    promptTokens: promptEstimate,
    nowSeconds: 1_700_000_000,
    newId: prefix => `${prefix}made${++count}`,
    bill: () => ({ cost_inr: 0, value_inr: 0, provider: 'test' }),
  }
}

/** Returns the stream adapter between a provider of that dialect and a client of that format. */
export function adapterOf(dialect: DialectId, format: ClientFormat): StreamAdapter {
  const context = contextOf()
  if (dialect !== format.id) return new TranslatedAdapter(dialectOf(dialect).decoder(), format.writer(context), context.promptTokens, false)
  if (dialect === 'openai') return new ChatRelayAdapter(format, context, { withholdsUsage: false, echo: echoOf(context.model) })
  return new RelayAdapter(dialectOf(dialect).tap(), format, context)
}

/** Returns what the client receives when an upstream stream arrives in these chunks and then ends. */
export function translateStream(dialect: DialectId, format: ClientFormat, chunks: Iterable<Uint8Array>): string {
  return run(adapterOf(dialect, format), chunks)
}

/** Returns the whole output of an adapter. When the stream breaks off, it includes the final error frames. */
export function run(adapter: StreamAdapter, chunks: Iterable<Uint8Array>): string {
  const said: Uint8Array[] = []
  // The bytes are copied, because the adapter may reuse its buffer after the call.
  const add = (bytes: Uint8Array | null): void => void (bytes === null || said.push(Buffer.from(bytes)))
  for (const chunk of chunks) {
    add(adapter.push(chunk))
    if (!adapter.finished && !adapter.failed) continue
    add(adapter.end().bytes)
    return Buffer.concat(said).toString('utf8')
  }
  const { bytes, complete } = adapter.end()
  add(bytes)
  if (!complete && !adapter.failed) add(adapter.fail({ message: 'The provider broke off.', type: 'api_error', code: 'upstream_stream_error' }))
  return Buffer.concat(said).toString('utf8')
}

/** Returns the client's whole reply. As in the gateway, usage that the provider did not report is estimated. */
export function translateReply(dialect: DialectId, format: ClientFormat, reply: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { reply: toHub, usageOf } = dialectOf(dialect)
  const usage = usageOf('chat', reply) ?? plainUsage(promptEstimate, 1)
  return JSON.parse(JSON.stringify(format.whole(toHub('chat', reply), usage, contextOf()))) as Record<string, unknown>
}

/** Returns the bytes in two parts, cut at that place. */
export const cutAt = (bytes: Buffer, place: number): readonly Uint8Array[] => [bytes.subarray(0, place), bytes.subarray(place)]
/** Returns the bytes one by one. */
export const oneByOne = (bytes: Buffer): readonly Uint8Array[] => Array.from(bytes, (_, index) => bytes.subarray(index, index + 1))
