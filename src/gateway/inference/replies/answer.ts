/** The possible results of one attempt. */
import type { HeldReply } from '../../../platform/outbound/held-replies.ts'
import type { UpstreamBody } from '../../../platform/outbound/upstream-body.ts'
import type { Failure } from '../../providers/dialect.ts'
import type { Attempt } from '../../routing/plan.ts'
import type { StreamFault } from '../../wire/chat/chat-stream.ts'
import type { TokenUsage } from '../../wire/usage.ts'
import type { StreamAdapter } from '../stream/stream-adapter.ts'

/** A reply that was read to its end. */
export interface WholeAnswer {
  readonly kind: 'whole'
  readonly attempt: Attempt
  /** The x-br-* headers of this attempt, and the content-type when the body is not JSON. */
  readonly headers: Readonly<Record<string, string>>
  readonly usage: TokenUsage
  /** True when the provider reported no usage that can be metered, so that `usage` is the gateway's estimate. */
  readonly estimated: boolean
  /** The body for the client. It is written before the call is charged, because a reply that cannot be written for the client is not an answer. */
  readonly body: Uint8Array
}

/** A stream with its first chunk read. */
export interface StreamAnswer {
  readonly kind: 'stream'
  readonly attempt: Attempt
  readonly headers: Readonly<Record<string, string>>
  /** The output of the first chunk for the client. Null when it has none, and after the relay has taken it, because it may be long. */
  first: Uint8Array | null
  readonly rest: AsyncIterator<Uint8Array>
  readonly body: UpstreamBody
  readonly adapter: StreamAdapter
  /** The room in memory for the data that the adapter keeps. */
  readonly held: HeldReply
}

/** A reply that is relayed byte for byte while it comes, such as spoken audio or a streamed transcript. */
export interface BytesAnswer {
  readonly kind: 'bytes'
  readonly attempt: Attempt
  /** The x-br-* headers and the content-type. */
  readonly headers: Readonly<Record<string, string>>
  /** The first chunk. Null after the relay has taken it, because it may be long. */
  first: Uint8Array | null
  readonly rest: AsyncIterator<Uint8Array>
  readonly body: UpstreamBody
  readonly reading: BytesReading
  /** The room in memory for the data that the reading keeps. */
  readonly held: HeldReply
}

/** Reads the usage in bytes that are relayed. */
export interface BytesReading {
  push(chunk: Uint8Array): void
  /** The number of bytes that are kept of an event that is not complete. */
  readonly heldBytes: number
  /** Returns the reported usage, or the usage of the hold when none was reported. */
  usage(): TokenUsage
  /** False when the usage is an estimate. */
  readonly exact: boolean
  /** True when the bytes so far are a complete reply. */
  readonly complete: boolean
  /** Returns bytes that report the break to the client. Null when the format has no such bytes; the connection to the client is then broken off too. */
  fail(fault: StreamFault): Uint8Array | null
}

/** A refusal by the provider because of the request itself. The caller gets it unchanged. */
export interface ClientError {
  readonly kind: 'client-error'
  readonly attempt: Attempt
  readonly status: number
  readonly bytes: Buffer
  /**
   * The headers of a refusal that is relayed byte for byte to a caller who speaks the provider's format. Absent when the refusal is written in
   * the caller's format.
   */
  readonly relayed?: Readonly<Record<string, string>>
}

/** The attempt failed; another attempt may succeed. */
export interface Failed {
  readonly kind: 'failed'
  readonly attempt: Attempt
  readonly failure: Failure
  /** The provider's message without credentials, for the caller. */
  readonly message: string
  /** What the provider made before it failed, and bills; left out: nothing, or it does not say. */
  readonly made?: TokenUsage
  /** A refusal of the request that the caller gets when this was the last route. It says more than the gateway's own error. */
  readonly refusal?: ClientError
  /** The refusal for a caller with a credential of its own, sent when no other route serves. */
  readonly relayed?: ClientError
}

/** The result of an attempt. `replyHeaders` are the provider's headers, which routing reads. */
export type Performed = { readonly answer: WholeAnswer | StreamAnswer | BytesAnswer; readonly replyHeaders: ReplyHeaders } | ClientError | Failed
export type ReplyHeaders = Readonly<Record<string, string | string[] | undefined>>

/** Returns the first chunk of a reply, and drops the reference to it: the answer lives as long as its relay. */
export function takeFirst(answer: StreamAnswer | BytesAnswer): Uint8Array | null {
  const { first } = answer
  answer.first = null
  return first
}
