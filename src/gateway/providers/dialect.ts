import type { Secret } from '../../platform/secret.ts'
import type { TokenUsage } from '../wire/usage.ts'
import type { Provider } from './provider.ts'

/** Whom one attempt dials. */
export interface Target {
  readonly provider: Provider
  readonly upstreamModel: string
  /** null for providers with auth 'none'. */
  readonly credential: Secret | null
}

/** The hub format: an OpenAI chat or embeddings request with the router-only fields taken out. Unknown fields stay. */
export interface HubRequest {
  readonly operation: 'chat' | 'embeddings'
  /** The parsed body without router fields. Never mutated. */
  readonly body: Readonly<Record<string, unknown>>
  /** The bytes as the client sent them, when no router field had to be taken out: they go on as they are where nothing else must change. */
  readonly bytes: Buffer | null
  readonly stream: boolean
}

export interface UpstreamRequest {
  readonly method: 'POST'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | string
}

/** Why an upstream reply is not a success. */
export type Failure =
  /** 400, 404, 422: the request itself is at fault; goes to the caller as it is and stops the chain. */
  | { readonly kind: 'client'; readonly status: number }
  | { readonly kind: 'rate-limited'; readonly status: number; readonly retryAfterSeconds: number | null }
  | { readonly kind: 'billing'; readonly status: number }
  /** 401, 403 on our credential. */
  | { readonly kind: 'credential'; readonly status: number }
  /** 5xx, 408, connection errors, timeouts. */
  | { readonly kind: 'transient'; readonly status: number | null }

/** What the tap of a byte relay learned from a stream so far. Filled while the bytes go by; reading is free. */
export interface StreamTap {
  /** Feed one chunk of bytes exactly as it came. */
  push(chunk: Uint8Array): void
  /** Usage as the provider reported it, when it has. */
  readonly usage: TokenUsage | null
  /** Characters of content, reasoning and tool arguments seen so far, for estimates while streaming. */
  readonly outputChars: number
  /** The stream's own end mark ([DONE] or message_stop) has gone by. */
  readonly finished: boolean
  /** An error frame went by. */
  readonly failed: boolean
  /** The bytes pushed so far end exactly at an event boundary. */
  readonly atBoundary: boolean
}

/** One upstream wire format. Pure: no clock, no network. */
export interface Dialect {
  /** The HTTP request for the target: model id and credential set, usage asked for on streams where the provider can. */
  request(request: HubRequest, target: Target): UpstreamRequest
  /** Usage of a whole JSON reply, or null when the provider sent none. */
  usageOf(operation: HubRequest['operation'], reply: unknown): TokenUsage | null
  /** Classifies a non-2xx reply. */
  failure(status: number, headers: Readonly<Record<string, string | string[] | undefined>>, bodyText: string): Failure
  tap(): StreamTap
}
