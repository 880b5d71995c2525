import type { HubRequest } from '../../providers/dialect.ts'
import type { UsageKind } from '../../usage/record.ts'
import type { RouterFields } from '../../wire/router-fields.ts'
import type { TokenUsage } from '../../wire/usage.ts'

/** An inference request as the pipeline works on it, whatever API it came by. */
export interface ParsedRequest {
  readonly modelId: string
  readonly fields: RouterFields
  readonly hub: HubRequest
  /** The caller's ceiling on output tokens, reasoning included; null = none. */
  readonly maxTokens: number | null
  /** Estimate, for holds and context windows. */
  readonly promptTokens: number
  /** What a preset's pick must be able to do. */
  readonly needs: { readonly tools: boolean; readonly vision: boolean }
  /** The caller said include_usage: false: the usage chunk is metered and kept back. */
  readonly withholdUsage: boolean
}

/** The client side of one inference API. Pure. */
export interface Kind {
  readonly usageKind: UsageKind
  /** What a model must be to serve it. */
  readonly modelKind: 'chat' | 'embedding'
  /** True when replies have output tokens to hold money for. */
  readonly hasOutput: boolean
  /** Checks and splits the body. Throws `bad_request` or `bad_steps`. */
  parse(bytes: Buffer): ParsedRequest
  /** Completes a whole reply where the provider left something out; null = pass the bytes as they came. */
  complete(reply: Record<string, unknown>, usage: TokenUsage): Record<string, unknown> | null
}
