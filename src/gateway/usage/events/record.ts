/** One metered call. Content-free by type: nothing here can carry what a user or a model said. */
export type Outcome =
  | 'ok'
  /** Every dialed route failed, or the upstream refused the request. */
  | 'failed'
  /** The client went away before the end. */
  | 'client_gone'
  /** The upstream broke off after the first byte. */
  | 'upstream_broke'
  /** The gateway ended it: budget, revoke, drain. */
  | 'cut'
  /** The process died; written by the janitor from the journal. */
  | 'interrupted'

export type UsageKind = 'chat' | 'messages' | 'responses' | 'embeddings' | 'image' | 'transcription' | 'speech'

export interface UsageEvent {
  /** UUIDv7; its time is the admission. */
  readonly id: string
  /** Admission, Unix ms: the IST day and month that the call belongs to. */
  readonly atMs: number
  readonly requestId: string
  readonly orgId: number
  readonly userId: number | null
  readonly keyId: number | null
  readonly workspaceId: number | null
  /** Registered agent that is charged. */
  readonly agentId: number | null
  /** Label of `x-br-agent-id` that names no registered agent. */
  readonly agentLabel: string | null
  readonly kind: UsageKind
  readonly model: string
  readonly provider: string
  /** The farthest place that it was sent to. declared: in India, as the organisation says of its own server; nobody else vouches for it. */
  readonly residency: 'india' | 'declared' | 'unknown' | 'global'
  readonly streamed: boolean
  readonly byok: boolean
  /** HTTP status the client saw (200 for a stream that began). */
  readonly status: number
  readonly outcome: Outcome
  readonly promptTokens: number
  readonly completionTokens: number
  /** Part of promptTokens that the provider read from its cache. */
  readonly cachedTokens: number
  /** Part of promptTokens that the provider wrote to its cache. */
  readonly cacheWriteTokens: number
  /** Part of completionTokens that was hidden reasoning. */
  readonly reasoningTokens: number
  /** Images that were delivered. */
  readonly images: number
  /** Seconds of audio input. */
  readonly audioSeconds: number
  /** Characters that were spoken. */
  readonly characters: number
  /** True when the provider sent no usage and tokens were estimated here. */
  readonly estimated: boolean
  readonly valueUinr: bigint
  readonly costUinr: bigint
  readonly latencyMs: number
  readonly firstByteMs: number | null
  /** The call holds an idempotency key, which this event ends. */
  readonly idempotent?: true
}
