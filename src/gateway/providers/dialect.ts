import type { Secret } from '../../platform/security/secret.ts'
import type { ChatStreamDecoder } from '../wire/chat/chat-stream.ts'
import type { WireFormat } from '../wire/client-format.ts'
import type { TokenUsage } from '../wire/usage.ts'
import type { Provider } from './provider.ts'

/** The facts about a model that a dialect needs to write a request for it. */
export interface ModelTraits {
  readonly maxOutputTokens: number | null
  readonly supportedParameters: readonly string[]
  /** True: part of the completion is reasoning. */
  readonly reasoning: boolean
  /** The values of `reasoning_effort` that the model accepts, from the least to the most; empty: not known. */
  readonly efforts: readonly string[]
  /** True: the model cannot answer without reasoning. */
  readonly alwaysThinks: boolean
}

/** The assumed traits of a model that no catalog row describes. */
export const unknownTraits: ModelTraits = { maxOutputTokens: null, supportedParameters: [], reasoning: false, efforts: [], alwaysThinks: false }

/** A credential that the caller forwards for this one call. It is sent only to the provider that it is for. */
export interface Forwarded {
  readonly authorization: Secret | null
  readonly xApiKey: Secret | null
}

/** The provider, model and credential that one attempt uses. */
export interface Target {
  readonly provider: Provider
  readonly upstreamModel: string
  /** null for providers with auth 'none', and if `forwarded` is sent. */
  readonly credential: Secret | null
  readonly forwarded: Forwarded | null
  readonly traits: ModelTraits
  /** True: a dialect may return `unwritten` in place of a body, because the body is heavy. */
  readonly writesLater?: boolean
}

/** A body that is not written as JSON yet. */
export interface UnwrittenJson {
  readonly value: unknown
  /** Returns JSON of a part of the value as the provider must get it. */
  mend(json: string): string
}

/** A request in the hub format: OpenAI chat or embeddings without the router-only fields. Unknown fields stay. */
export interface HubRequest {
  readonly operation: 'chat' | 'embeddings'
  /** The parsed body without router fields. Never mutated. */
  readonly body: Readonly<Record<string, unknown>>
  /** The client's bytes, if no router field had to be removed. They are sent on unchanged if nothing else must change. */
  readonly bytes: Buffer | null
  readonly stream: boolean
  /** Fields of the client's own format that the hub format cannot carry. */
  readonly dropped: readonly string[]
  /** True: the request was translated from another format, so it may have fields that only the hub format knows. */
  readonly translated?: true
}

/** A request in the client's own format, for a provider that uses the same format. */
export interface NativeRequest {
  readonly format: WireFormat
  /** The parsed body without router fields. Never mutated. */
  readonly body: Readonly<Record<string, unknown>>
  /** The client's bytes, if no router field had to be removed. */
  readonly bytes: Buffer | null
  readonly stream: boolean
  /** Headers of the format that are sent on with the request (versions, betas). Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** The query text without the `?`. */
  readonly query: string
}

/** An HTTP request to a provider. */
export interface UpstreamRequest {
  readonly method: 'POST'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | string
  /** The body, for a target that writes later. `body` is then empty. Left out: `body` is the body. */
  readonly unwritten?: UnwrittenJson
  /** Fields of the hub request that this dialect cannot carry. The reply names them to the caller. */
  readonly dropped: readonly string[]
}

/** The reason why an upstream reply is not a success. */
export type Failure =
  /** 400, 404, 422, and refused content. The request itself is at fault. The reply is sent to the caller unchanged, and the chain stops. */
  | { readonly kind: 'client'; readonly status: number }
  /**
   * 405, 410, 413, 415, 451 and similar statuses. This route does not accept the request. The caller gets the last such refusal if no route serves the request.
   */
  | { readonly kind: 'declined'; readonly status: number }
  | { readonly kind: 'rate-limited'; readonly status: number; readonly retryAfterSeconds: number | null }
  | { readonly kind: 'billing'; readonly status: number }
  /** 401, 403: the provider refused the credential. */
  | { readonly kind: 'credential'; readonly status: number }
  /** 5xx, 408, connection errors, timeouts. */
  | { readonly kind: 'transient'; readonly status: number | null }

/** The facts that the tap of a byte relay has read from a stream so far. They are updated while the bytes pass, so reading them costs nothing. */
export interface StreamTap {
  /** Adds one chunk of bytes exactly as it came. */
  push(chunk: Uint8Array): void
  /** The usage that the provider reported; null: none yet. */
  readonly usage: TokenUsage | null
  /** The prompt's usage, if the format reports it at the beginning. */
  readonly partial?: TokenUsage | null
  /** Characters of content, reasoning and tool arguments so far, for estimates while streaming. */
  readonly outputChars: number
  /** The value of `outputChars` at the last report of usage. Later output is in none of its numbers. */
  readonly usageChars: number
  /** The model that the stream named last; null: none. */
  readonly model: string | null
  /** True: an event with content has passed. Comments, pings and errors do not count. */
  readonly begun: boolean
  /** True: the stream's own end mark ([DONE] or message_stop) has passed. */
  readonly finished: boolean
  /** True: an error frame has passed. */
  readonly failed: boolean
  /** The error as it came; null: there was no error, or it had no text. */
  readonly fault: string | null
  /** True: the whole event that ends the stream has arrived, successful or not. Later bytes are not read. */
  readonly over: boolean
  /** True: the bytes so far end exactly at an event boundary. */
  readonly atBoundary: boolean
  /** The offset in the last pushed chunk at which its last complete event ends; 0: no event ends in it. */
  readonly wholeBytes: number
  /** Bytes of a line that is not complete yet. */
  readonly heldBytes: number
  /** The number of events that have passed; 0 for formats that do not number theirs. */
  readonly events: number
}

/** One upstream wire format. It is pure: no clock, no network. Decision 0181 gives the reasons. */
export interface Dialect {
  /**
   * Returns the HTTP request for the target, with model id and credential set. On streams it asks for usage if the provider can report it. Throws `bad_request`
   * for a request that the format cannot express.
   */
  request(request: HubRequest, target: Target): UpstreamRequest
  /**
   * Returns the HTTP request for a request in this dialect's own client format, with as few changes as possible. null: no client uses the format. Requests in
   * the hub format use `request`.
   */
  readonly relay: ((request: NativeRequest, target: Target) => UpstreamRequest) | null
  /** Asks for the number of tokens of a request in this dialect's own client format. Left out: the format has no such call. */
  readonly count?: (request: NativeRequest, target: Target) => UpstreamRequest
  /** Converts a whole JSON reply to the hub format. Returns the same object if it has that format already. */
  reply(operation: HubRequest['operation'], reply: Readonly<Record<string, unknown>>): Record<string, unknown>
  /** Returns false if a whole JSON reply contains no answer, whatever its status is. */
  answers(operation: HubRequest['operation'], reply: Readonly<Record<string, unknown>>): boolean
  /** Returns the usage of a whole JSON reply, or null if the provider sent none. */
  usageOf(operation: HubRequest['operation'], reply: unknown): TokenUsage | null
  /** Classifies a non-2xx reply. */
  failure(status: number, headers: Readonly<Record<string, string | string[] | undefined>>, bodyText: string): Failure
  /**
   * Returns a decoder that reads a stream into the hub format. `eventMaxBytes` is the longest event. Left out: the limit for providers that the operator chose.
   */
  decoder(eventMaxBytes?: number): ChatStreamDecoder
  /** Returns a tap that reads a stream while its bytes are relayed unchanged. */
  tap(): StreamTap
}
