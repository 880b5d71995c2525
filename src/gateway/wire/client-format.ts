/** The port of the client formats. Each client format converts replies from the hub format to the format of one API. */
import type { ChatChunk, StreamFault } from './chat/chat-stream.ts'
import type { EventFrame } from './sse/repeated-events.ts'
import type { TokenUsage } from './usage.ts'

/** The API formats that clients use. A route whose dialect has the same name is relayed, not translated. */
export type WireFormat = 'openai' | 'anthropic' | 'openai-responses' | 'gemini'

/** The cost of a finished call, as the caller sees it. Amounts are in ₹. */
export interface Bill {
  readonly cost_inr: number
  readonly value_inr: number
  readonly provider: string
}

/** Everything that a writer knows about its call besides the reply. Writers are pure, so ids and times come from here. */
export interface ReplyContext {
  /** The catalog id of the model that runs. */
  readonly model: string
  /** The body that the client sent, in its own format, without router fields. */
  readonly request: Readonly<Record<string, unknown>>
  /** The estimated size of the prompt in tokens, for formats that report it before the provider does. */
  readonly promptTokens: number
  readonly nowSeconds: number
  /** Returns a new id with that prefix, such as `newId('msg_')`. */
  newId(prefix: string): string
  /** Returns the charge of the call for this usage. */
  bill(usage: TokenUsage): Bill
  /**
   * Corrects implausible numbers in a usage that the provider reported, given the number of characters of output. Left out: the reported usage is taken
   * unchanged.
   */
  believed?(told: TokenUsage, outputChars: number): TokenUsage
  /** Is called when a stream first names its model, and at each change of the name. Left out: the name has no effect. */
  named?(model: string): void
}

/** Writes one stream in a client's format. Each stream has its own writer. Every method returns the text to send, or '' for nothing. */
export interface StreamWriter {
  chunk(chunk: ChatChunk): string
  /**
   * Returns the bytes before and after the text with which `chunk` would write a chunk with only a text now. Null when it would write more. Left out: each chunk is
   * written differently.
   */
  textFrame?(): EventFrame | null
  /** Ends a stream that succeeded, with the final usage. */
  finish(usage: TokenUsage): string
  /** Ends a stream that failed or was cut, with exactly one terminal event. Nothing may be written after it. */
  fail(fault: StreamFault, usage: TokenUsage): string
  /** The text that keeps a silent stream open. */
  readonly keepAlive: string
  /** True: the writer keeps the whole output in memory, because its last event repeats all of it. */
  readonly keepsOutput?: boolean
}

/** One client format. It is pure. */
export interface ClientFormat {
  readonly id: WireFormat
  /** Converts a whole hub reply to this format. */
  whole(reply: Readonly<Record<string, unknown>>, usage: TokenUsage, context: ReplyContext): Record<string, unknown>
  writer(context: ReplyContext): StreamWriter
  /**
   * Ends a stream that was relayed in this same format and then failed or was cut. Returns the last frames, which a client reads as a failure. `events` is
   * the number of events that were already sent, for formats that number their events.
   */
  relayedEnd(fault: StreamFault, usage: TokenUsage, context: ReplyContext, events: number): string
  /** Adds the bill to the last events of a relayed stream that ended normally. Left out: the format has no place for a bill in a relay. */
  withBill?(events: Uint8Array, usage: TokenUsage, context: ReplyContext): Uint8Array
  readonly keepAlive: string
  /** Returns this format's name for a hub field that a provider cannot accept. Left out: the format is the hub format, so the names are equal. */
  nameOf?(hubField: string, request: Readonly<Record<string, unknown>>): string
  /** Converts an error of the shape `{error: {message, type, code}}` to this format. Left out: the format uses that shape itself. */
  errorBody?(body: Readonly<Record<string, unknown>>, status: number): Record<string, unknown>
}
