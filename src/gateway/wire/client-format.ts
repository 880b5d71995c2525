/** How the clients of one API read replies that were made in the hub format. */
import type { ChatChunk, StreamFault } from './chat/chat-stream.ts'
import type { TokenUsage } from './usage.ts'

/** The API formats that clients speak. A route whose dialect has the same name is relayed, not translated. */
export type WireFormat = 'openai' | 'anthropic' | 'openai-responses'

/** What a finished call comes to, for the caller. Amounts in ₹. */
export interface Bill {
  readonly cost_inr: number
  readonly value_inr: number
  readonly provider: string
}

/** What a writer knows of its call beside the reply. Ids and times come from here: writers are pure. */
export interface ReplyContext {
  /** The model that runs. */
  readonly model: string
  /** The body that the client sent, in its own format, without router fields. */
  readonly request: Readonly<Record<string, unknown>>
  /** Estimate of the prompt, for formats that state it before the provider does. */
  readonly promptTokens: number
  readonly nowSeconds: number
  /** A new id with that prefix: `newId('msg_')`. */
  newId(prefix: string): string
  /** What the call would be charged with this usage. */
  bill(usage: TokenUsage): Bill
  /** How much of a reported usage is believed after this many characters of output; left out: all of it. */
  believed?(told: TokenUsage, outputChars: number): TokenUsage
  /** A stream names its model: called at the first name and at each change of it. Left out: the name changes nothing. */
  named?(model: string): void
}

/** Writes one stream in a client's format. One per stream; every method returns the text to send, '' for nothing. */
export interface StreamWriter {
  chunk(chunk: ChatChunk): string
  /** The good end, with the final usage. */
  finish(usage: TokenUsage): string
  /** The end of a stream that broke or was cut: exactly one terminal event, and nothing after it. */
  fail(fault: StreamFault, usage: TokenUsage): string
  /** What keeps a silent stream alive. */
  readonly keepAlive: string
  /** True: what it writes it keeps, because its last event repeats all of it. */
  readonly keepsOutput?: boolean
}

/** One client format. Pure. */
export interface ClientFormat {
  readonly id: WireFormat
  /** A whole hub reply in this format. */
  whole(reply: Readonly<Record<string, unknown>>, usage: TokenUsage, context: ReplyContext): Record<string, unknown>
  writer(context: ReplyContext): StreamWriter
  /**
   * The end of a stream that was relayed in this very format and broke or was cut: the frames that a client takes for a failure.
   * `events` is how many events have gone out, for formats that number them.
   */
  relayedEnd(fault: StreamFault, usage: TokenUsage, context: ReplyContext, events: number): string
  /** The last events of a relayed stream that ended as it should, with its bill; left out: the format has no place for one in a relay. */
  withBill?(events: Uint8Array, usage: TokenUsage, context: ReplyContext): Uint8Array
  readonly keepAlive: string
  /** What the format calls a hub field that a provider has no place for, where it calls it something else; left out: it is the hub format. */
  nameOf?(hubField: string, request: Readonly<Record<string, unknown>>): string
  /** An error of the shape `{error: {message, type, code}}` in this format; left out: it is the format. */
  errorBody?(body: Readonly<Record<string, unknown>>, status: number): Record<string, unknown>
}
