import type { Secret } from '../../platform/security/secret.ts'
import type { ChatStreamDecoder } from '../wire/chat/chat-stream.ts'
import type { WireFormat } from '../wire/client-format.ts'
import type { TokenUsage } from '../wire/usage.ts'
import type { Provider } from './provider.ts'

/** The facts about a model that a dialect needs to write a request. */
export interface ModelTraits {
  readonly maxOutputTokens: number | null
  readonly supportedParameters: readonly string[]
  /** True when a part of the completion is reasoning. */
  readonly reasoning: boolean
  /** The values of `reasoning_effort` that the model accepts, from the lowest to the highest. The list is empty when they are unknown. */
  readonly efforts: readonly string[]
  /** True when the model cannot answer without reasoning. */
  readonly alwaysThinks: boolean
}

/** The assumed traits of a model that the catalog does not describe. */
export const unknownTraits: ModelTraits = { maxOutputTokens: null, supportedParameters: [], reasoning: false, efforts: [], alwaysThinks: false }

/** A credential that the caller forwards for this call. It is sent only to the provider that issued it. */
export interface Forwarded {
  readonly authorization: Secret | null
  readonly xApiKey: Secret | null
}

/** The provider, model and credential of one attempt. */
export interface Target {
  readonly provider: Provider
  readonly upstreamModel: string
  /** Null for providers with auth 'none', and when `forwarded` is sent instead. */
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

/** A request in the hub format: OpenAI chat or embeddings, without the fields that only the router reads. Unknown fields are kept. */
export interface HubRequest {
  readonly operation: 'chat' | 'embeddings'
  /** The parsed body without router fields. It is never changed. */
  readonly body: Readonly<Record<string, unknown>>
  /** The client's bytes, if no router field had to be removed. They are sent unchanged if the target needs no other change. */
  readonly bytes: Buffer | null
  readonly stream: boolean
  /** Fields of the client's own format that the hub format cannot carry. */
  readonly dropped: readonly string[]
  /** True when the request was translated from another format. It may then have fields that only the hub format has. */
  readonly translated?: true
}

/** A request in the client's own format, for a provider that uses the same format. */
export interface NativeRequest {
  readonly format: WireFormat
  /** The parsed body without router fields. It is never changed. */
  readonly body: Readonly<Record<string, unknown>>
  /** The client's bytes, if no router field had to be removed. */
  readonly bytes: Buffer | null
  readonly stream: boolean
  /** Headers of the format that are sent with the request, such as versions and betas. Names are in lower case. */
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
  /** Fields of the hub request that this dialect cannot express. The reply names them to the caller. */
  readonly dropped: readonly string[]
}

/** Why a provider's reply is not a success. */
export type Failure =
  /** 400, 404, 422 and refused content. The request itself is wrong. The reply goes to the caller unchanged, and no other route is tried. */
  | { readonly kind: 'client'; readonly status: number }
  /**
   * 405, 410, 413, 415, 451 and similar statuses. This route does not accept the request, so other routes are tried. If no route serves the request,
   * the caller gets the last refusal of this kind.
   */
  | { readonly kind: 'declined'; readonly status: number }
  | { readonly kind: 'rate-limited'; readonly status: number; readonly retryAfterSeconds: number | null }
  | { readonly kind: 'billing'; readonly status: number }
  /** 401, 403: the provider refused the credential. */
  | { readonly kind: 'credential'; readonly status: number }
  /** 5xx, 408, connection errors, timeouts. */
  | { readonly kind: 'transient'; readonly status: number | null }

/** What the gateway has read from a relayed stream so far. The values are updated while the bytes pass, so reading them costs nothing. */
export interface StreamTap {
  /** Adds one chunk of bytes as it arrived. */
  push(chunk: Uint8Array): void
  /** Ends the bytes, for formats without an end mark. Left out: the format has one. */
  end?(): void
  /** The usage that the provider reported. Null before a report. */
  readonly usage: TokenUsage | null
  /** The usage of the prompt, if the format reports it at the beginning. */
  readonly partial?: TokenUsage | null
  /** Number of characters of content, reasoning and tool arguments so far, for estimates during the stream. */
  readonly outputChars: number
  /** The value of `outputChars` at the last report of usage. No report includes later output. */
  readonly usageChars: number
  /** The model that the stream named last. Null when it named none. */
  readonly model: string | null
  /** True when an event with content has passed. Comments, pings and errors do not count. */
  readonly begun: boolean
  /** True when the format's end mark ([DONE] or message_stop) has passed. */
  readonly finished: boolean
  /** True when an error frame has passed. */
  readonly failed: boolean
  /** The provider's error text, unchanged. Null when there was no error, or the error had no text. */
  readonly fault: string | null
  /** True when the whole event that ends the stream has arrived, after success or failure. Later bytes are not read. */
  readonly over: boolean
  /** True when the bytes so far end exactly at the end of an event. */
  readonly atBoundary: boolean
  /** The offset in the last pushed chunk at which the last complete event ends. 0 when no event ends in that chunk. */
  readonly wholeBytes: number
  /** Number of bytes of an incomplete line. */
  readonly heldBytes: number
  /** The number of events that have passed. 0 for formats without numbered events. */
  readonly events: number
}

/** One wire format of providers. It is pure: it uses no clock and no network. Decision 0181 gives the reasons. */
export interface Dialect {
  /**
   * Returns the HTTP request for the target, with model id and credential. A request for a stream asks for usage if the provider can report it.
   * Throws `bad_request` for a request that the format cannot express.
   */
  request(request: HubRequest, target: Target): UpstreamRequest
  /**
   * Returns the HTTP request for a request in this dialect's own client format, with as few changes as possible. Null when no client uses the format.
   * Requests in the hub format use `request`.
   */
  readonly relay: ((request: NativeRequest, target: Target) => UpstreamRequest) | null
  /**
   * Returns the HTTP request that asks for the number of tokens of a request in this dialect's own client format. Left out when the format has no
   * such call.
   */
  readonly count?: (request: NativeRequest, target: Target) => UpstreamRequest
  /** Returns whether the provider has that call. Left out: every provider has it. */
  readonly mayCount?: (provider: Provider) => boolean
  /** Converts a whole JSON reply to the hub format. Returns the same object if the reply already has that format. */
  reply(operation: HubRequest['operation'], reply: Readonly<Record<string, unknown>>): Record<string, unknown>
  /** Returns false if a whole JSON reply contains no answer, even with a status of success. */
  answers(operation: HubRequest['operation'], reply: Readonly<Record<string, unknown>>): boolean
  /** Returns the usage of a whole JSON reply, or null if the provider sent none. */
  usageOf(operation: HubRequest['operation'], reply: unknown): TokenUsage | null
  /** Classifies a non-2xx reply. */
  failure(status: number, headers: Readonly<Record<string, string | string[] | undefined>>, bodyText: string): Failure
  /**
   * Returns a decoder that reads a stream into the hub format. `eventMaxBytes` is the maximum size of an event. The default is the limit for
   * providers that the operator chose.
   */
  decoder(eventMaxBytes?: number): ChatStreamDecoder
  /** Returns a tap that reads a stream while its bytes are relayed unchanged. */
  tap(): StreamTap
}
