import type { Secret } from '../../platform/security/secret.ts'
import type { ChatStreamDecoder } from '../wire/chat/chat-stream.ts'
import type { WireFormat } from '../wire/client-format.ts'
import type { TokenUsage } from '../wire/usage.ts'
import type { Provider } from './provider.ts'

/** What a dialect must know of the model that it writes a request for. */
export interface ModelTraits {
  readonly maxOutputTokens: number | null
  readonly supportedParameters: readonly string[]
  /** True: part of the completion is reasoning. */
  readonly reasoning: boolean
  /** Values of `reasoning_effort` that the model takes, from the least to the most; empty = not known. */
  readonly efforts: readonly string[]
  /** True: it cannot answer without reasoning. */
  readonly alwaysThinks: boolean
}

/** What is taken for true of a model that nobody has described. */
export const unknownTraits: ModelTraits = { maxOutputTokens: null, supportedParameters: [], reasoning: false, efforts: [], alwaysThinks: false }

/** A credential that the caller forwards for this one call. It goes to the provider that it is for and nowhere else. */
export interface Forwarded {
  readonly authorization: Secret | null
  readonly xApiKey: Secret | null
}

/** Whom one attempt dials. */
export interface Target {
  readonly provider: Provider
  readonly upstreamModel: string
  /** null for providers with auth 'none', and when `forwarded` is sent. */
  readonly credential: Secret | null
  readonly forwarded: Forwarded | null
  readonly traits: ModelTraits
}

/** A request in the hub format: OpenAI chat or embeddings with the router-only fields taken out. Unknown fields stay. */
export interface HubRequest {
  readonly operation: 'chat' | 'embeddings'
  /** The parsed body without router fields. Never mutated. */
  readonly body: Readonly<Record<string, unknown>>
  /** The bytes as the client sent them, when no router field had to be taken out: they go on as they are where nothing else must change. */
  readonly bytes: Buffer | null
  readonly stream: boolean
  /** Fields of the client's own format that the hub format cannot carry. */
  readonly dropped: readonly string[]
  /** True: made from another format, so it may hold what only the hub format knows. */
  readonly translated?: true
}

/** A request in the client's own format, for a provider that speaks it too. */
export interface NativeRequest {
  readonly format: WireFormat
  /** The parsed body without router fields. Never mutated. */
  readonly body: Readonly<Record<string, unknown>>
  /** The bytes as they came, when no router field had to be taken out. */
  readonly bytes: Buffer | null
  readonly stream: boolean
  /** Headers of the format that go on with it (versions, betas). Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** Query text without the `?`. */
  readonly query: string
}

export interface UpstreamRequest {
  readonly method: 'POST'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | string
  /** Fields of the hub request that this dialect cannot carry; they are named to the caller. */
  readonly dropped: readonly string[]
}

/** Why an upstream reply is not a success. */
export type Failure =
  /** 400, 404, 422, and refused content: the request itself is at fault; goes to the caller as it is and stops the chain. */
  | { readonly kind: 'client'; readonly status: number }
  /** 405, 410, 413, 415, 451 and similar statuses: this route does not accept the request. The last refusal goes to the caller when no route serves. */
  | { readonly kind: 'declined'; readonly status: number }
  | { readonly kind: 'rate-limited'; readonly status: number; readonly retryAfterSeconds: number | null }
  | { readonly kind: 'billing'; readonly status: number }
  /** 401, 403: the credential was refused. */
  | { readonly kind: 'credential'; readonly status: number }
  /** 5xx, 408, connection errors, timeouts. */
  | { readonly kind: 'transient'; readonly status: number | null }

/** What the tap of a byte relay has learned from a stream so far. It is filled while the bytes pass; reading it is free. */
export interface StreamTap {
  /** Feed one chunk of bytes exactly as it came. */
  push(chunk: Uint8Array): void
  /** Usage as the provider reported it, when it has. */
  readonly usage: TokenUsage | null
  /** The prompt's usage before that, when the format reports it at the beginning. */
  readonly partial?: TokenUsage | null
  /** Characters of content, reasoning and tool arguments seen so far, for estimates while streaming. */
  readonly outputChars: number
  /** `outputChars` when it reported last: what came since is in none of its figures. */
  readonly usageChars: number
  /** The model that it has named last; null: none. */
  readonly model: string | null
  /** An event has gone by that says something. Comments, pings and errors do not. */
  readonly begun: boolean
  /** The stream's own end mark ([DONE] or message_stop) has gone by. */
  readonly finished: boolean
  /** An error frame went by. */
  readonly failed: boolean
  /** The error as it came; null: none has, or without words. */
  readonly fault: string | null
  /** The whole event that ends the stream is here, successful or not; later bytes are not read. */
  readonly over: boolean
  /** The bytes pushed so far end exactly at an event boundary. */
  readonly atBoundary: boolean
  /** Where in the chunk that was pushed last the last whole event ends; 0 = none ends in it. */
  readonly wholeBytes: number
  /** Bytes of a line that is not whole yet. */
  readonly heldBytes: number
  /** Events that have gone by; 0 for formats that do not number theirs. */
  readonly events: number
}

/** One upstream wire format. Pure: no clock, no network. Decision 0181 says why. */
export interface Dialect {
  /** The HTTP request for the target: model id and credential set, usage asked for on streams where the provider can. Throws `bad_request` for what cannot be said at all. */
  request(request: HubRequest, target: Target): UpstreamRequest
  /** The same for a request in this dialect's own client format, with as few changes as can be; null: no client speaks it. The hub format itself goes through `request`. */
  readonly relay: ((request: NativeRequest, target: Target) => UpstreamRequest) | null
  /** Asks how many tokens a request in this dialect's own client format has; left out: the format has no such call. */
  readonly count?: (request: NativeRequest, target: Target) => UpstreamRequest
  /** A whole JSON reply in the hub format; the very same object when it is in it. */
  reply(operation: HubRequest['operation'], reply: Readonly<Record<string, unknown>>): Record<string, unknown>
  /** False: a whole JSON reply has no answer in it, whatever its status says. */
  answers(operation: HubRequest['operation'], reply: Readonly<Record<string, unknown>>): boolean
  /** Usage of a whole JSON reply, or null when the provider sent none. */
  usageOf(operation: HubRequest['operation'], reply: unknown): TokenUsage | null
  /** Classifies a non-2xx reply. */
  failure(status: number, headers: Readonly<Record<string, string | string[] | undefined>>, bodyText: string): Failure
  /** Reads a stream into the hub format. `eventMaxBytes`: its longest event; left out: that of providers that the operator has chosen. */
  decoder(eventMaxBytes?: number): ChatStreamDecoder
  /** Reads along with a stream that is relayed byte for byte. */
  tap(): StreamTap
}
