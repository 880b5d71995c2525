/** Tokens of one call, in the one shape that metering knows. */
export interface TokenUsage {
  readonly promptTokens: number
  readonly completionTokens: number
  readonly cachedTokens: number
  readonly reasoningTokens: number
}
