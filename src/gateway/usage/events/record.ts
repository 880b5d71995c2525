/** The record of one metered call. No field can contain text of a user or of a model. */
export type Outcome =
  | 'ok'
  /** Every tried route failed, or the provider refused the request. */
  | 'failed'
  /** The client closed the connection before the end. */
  | 'client_gone'
  /** The provider broke off the reply after the first byte. */
  | 'upstream_broke'
  /** The gateway ended the call because of a budget, a revocation or a drain. */
  | 'cut'
  /** The process died. The outcome is written later, from the journal. */
  | 'interrupted'

/** The provider of calls that the cache answers. No operator can give a provider this id. */
export const cacheProviderId = 'br:cache'

export type UsageKind =
  | 'chat'
  | 'messages'
  | 'responses'
  | 'gemini'
  | 'embeddings'
  | 'image'
  | 'transcription'
  | 'speech'
  | 'rerank'
  | 'moderation'
  | 'tool'
  | 'batch'

/** The run of a call. */
export interface RunOfCall {
  /** As the caller names it. */
  readonly runId: string
  /** The agent that the run belongs to: the agent at the top of the family. Null when the run belongs to the key. */
  readonly runAgentId: number | null
  /** The sub-agent that makes the call, as its client names it. Absent: the main agent, or nobody says. */
  readonly runSubagent?: string
}

/** The fields of a run are absent when the call names none. */
export interface UsageEvent extends Partial<RunOfCall> {
  /** A UUIDv7. Its time is the time of admission. */
  readonly id: string
  /** Time of the admission, in Unix milliseconds. It decides the IST day and month of the call. */
  readonly atMs: number
  readonly requestId: string
  readonly orgId: number
  readonly userId: number | null
  readonly keyId: number | null
  readonly workspaceId: number | null
  /** The registered agent that is charged. */
  readonly agentId: number | null
  /** The label in `x-br-agent-id`, when it names no registered agent. */
  readonly agentLabel: string | null
  readonly kind: UsageKind
  /** The model that served the call. For a tool of an MCP server its public name. */
  readonly model: string
  /** The provider that served the call: `byoe:<slug>` for an own server, `mcp:<slug>` for an MCP server. */
  readonly provider: string
  /**
   * The least restricted place to which the call was sent. `declared` means that the organisation says that its own server is in India. The gateway
   * cannot check that.
   */
  readonly residency: 'india' | 'declared' | 'unknown' | 'global'
  readonly streamed: boolean
  readonly byok: boolean
  /** The HTTP status that the client saw. 200 for a stream that began. */
  readonly status: number
  readonly outcome: Outcome
  readonly promptTokens: number
  readonly completionTokens: number
  /** Part of `promptTokens` that the provider read from its cache. */
  readonly cachedTokens: number
  /** Part of `promptTokens` that the provider wrote to its cache. */
  readonly cacheWriteTokens: number
  /** Part of `completionTokens` that was hidden reasoning. */
  readonly reasoningTokens: number
  /** Number of delivered images. */
  readonly images: number
  /** Seconds of audio input. */
  readonly audioSeconds: number
  /** Number of spoken characters. */
  readonly characters: number
  /** The billed searches of a ranking. Absent for other calls. */
  readonly searches?: number
  /** True when the provider sent no usage and the gateway estimated the tokens. */
  readonly estimated: boolean
  readonly valueUinr: bigint
  readonly costUinr: bigint
  /** What the call would have been worth without the reply cache. Absent for calls that a provider served. Such a call costs nothing. */
  readonly savedUinr?: bigint
  readonly latencyMs: number
  readonly firstByteMs: number | null
  /** The attempts that failed before the call ended (`tried-routes.ts`). Absent when none failed. */
  readonly tried?: string
  /** True for a further call of an image panel, which its run counts as one call. */
  readonly runPart?: true
  /** The tags of the call: a JSON object of strings (`run-tags.ts`). Absent: none. */
  readonly tags?: string
  /** True when the call holds an idempotency key. This event then ends the key's reservation. */
  readonly idempotent?: true
}
