/** What one attempt comes to. */
import type { HeldReply } from '../../../platform/outbound/held-replies.ts'
import type { UpstreamBody } from '../../../platform/outbound/upstream-body.ts'
import type { Failure } from '../../providers/dialect.ts'
import type { Attempt } from '../../routing/plan.ts'
import type { StreamFault } from '../../wire/chat/chat-stream.ts'
import type { TokenUsage } from '../../wire/usage.ts'
import type { StreamAdapter } from '../stream/stream-adapter.ts'

/** A reply that is all here. */
export interface WholeAnswer {
  readonly kind: 'whole'
  readonly attempt: Attempt
  /** x-br-* headers of this attempt, and the content-type where it is not JSON. */
  readonly headers: Readonly<Record<string, string>>
  readonly usage: TokenUsage
  /** True: the provider reported nothing worth metering, so `usage` was counted here. */
  readonly estimated: boolean
  /** The body for the client. Made before the call is charged: what cannot be written for it is no answer. */
  readonly body: Uint8Array
}

/** A stream whose first chunk is here. */
export interface StreamAnswer {
  readonly kind: 'stream'
  readonly attempt: Attempt
  readonly headers: Readonly<Record<string, string>>
  /** What the first chunk has become for the client. */
  readonly first: Uint8Array | null
  readonly rest: AsyncIterator<Uint8Array>
  readonly body: UpstreamBody
  readonly adapter: StreamAdapter
  /** The room for what the adapter keeps. */
  readonly held: HeldReply
}

/** A reply that is passed on byte for byte as it comes: spoken audio, a transcript on its way. */
export interface BytesAnswer {
  readonly kind: 'bytes'
  readonly attempt: Attempt
  /** x-br-* headers and the content-type. */
  readonly headers: Readonly<Record<string, string>>
  readonly first: Uint8Array
  readonly rest: AsyncIterator<Uint8Array>
  readonly body: UpstreamBody
  readonly reading: BytesReading
}

/** Reads along with bytes that are passed on. */
export interface BytesReading {
  push(chunk: Uint8Array): void
  /** As reported, or as held for. */
  usage(): TokenUsage
  /** False: the usage is an estimate. */
  readonly exact: boolean
  /** The bytes so far are all that was to come. */
  readonly complete: boolean
  /** What says in these bytes that they broke off; null: nothing can, so the connection is broken off too. */
  fail(fault: StreamFault): Uint8Array | null
}

/** The provider says that the request itself is at fault: goes to the caller as it is. */
export interface ClientError {
  readonly kind: 'client-error'
  readonly attempt: Attempt
  readonly status: number
  readonly bytes: Buffer
  /** Headers of a refusal that goes byte for byte to a caller who speaks the provider's format; left out: it gets the caller's shape. */
  readonly relayed?: Readonly<Record<string, string>>
}

/** The attempt failed; another one may do. */
export interface Failed {
  readonly kind: 'failed'
  readonly attempt: Attempt
  readonly failure: Failure
  /** What the provider said, for the caller; credentials taken out. */
  readonly message: string
  /** What the provider made before it failed, and bills; left out: nothing, or it does not say. */
  readonly made?: TokenUsage
  /** What the caller gets when this was the last route: a refusal of the request that says more than our own error. */
  readonly refusal?: ClientError
  /** The refusal as a caller on a credential of its own gets it when no other route serves. */
  readonly relayed?: ClientError
}

/** `headers` of the reply itself, for routing's averages. */
export type Performed = { readonly answer: WholeAnswer | StreamAnswer | BytesAnswer; readonly replyHeaders: ReplyHeaders } | ClientError | Failed
export type ReplyHeaders = Readonly<Record<string, string | string[] | undefined>>
