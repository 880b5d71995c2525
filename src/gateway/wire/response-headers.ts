/** Every reply header that the gateway itself defines. */
export const brHeader = {
  provider: 'x-br-provider',
  autoPreset: 'x-br-auto-preset',
  autoModel: 'x-br-auto-model',
  autoReason: 'x-br-auto-reason',
  sticky: 'x-br-sticky',
  route: 'x-br-route',
  routeCapability: 'x-br-route-capability',
  routeModel: 'x-br-route-model',
  routeReason: 'x-br-route-reason',
  imageOptimized: 'x-br-image-optimized',
  reasoningCapAdvisory: 'x-br-reasoning-cap-advisory',
  sangam: 'x-br-sangam',
  droppedParams: 'x-br-dropped-params',
  estimate: 'x-br-estimate',
  cache: 'x-br-cache',
  cacheReason: 'x-br-cache-reason',
  cacheSavedInr: 'x-br-cache-saved-inr',
  costInr: 'x-br-cost-inr',
  latencyMs: 'x-br-latency-ms',
  budgetRemainingInr: 'x-br-budget-remaining-inr',
  runId: 'x-br-run-id',
  runCostInr: 'x-br-run-cost-inr',
  runRemainingInr: 'x-br-run-remaining-inr',
  runCallsRemaining: 'x-br-run-calls-remaining',
} as const

/** The headers in which clients of OpenAI read their limits of requests. */
export const openaiRateHeader = {
  limit: 'x-ratelimit-limit-requests',
  remaining: 'x-ratelimit-remaining-requests',
  reset: 'x-ratelimit-reset-requests',
} as const

/** The headers in which clients of OpenAI read their limits of tokens. */
export const openaiTokenHeader = {
  limit: 'x-ratelimit-limit-tokens',
  remaining: 'x-ratelimit-remaining-tokens',
  reset: 'x-ratelimit-reset-tokens',
} as const

/** The headers in which clients of Anthropic read their limits of requests. */
export const anthropicRateHeader = {
  limit: 'anthropic-ratelimit-requests-limit',
  remaining: 'anthropic-ratelimit-requests-remaining',
  reset: 'anthropic-ratelimit-requests-reset',
} as const

/** The headers in which clients of Anthropic read their limits of tokens. */
export const anthropicTokenHeader = {
  limit: 'anthropic-ratelimit-tokens-limit',
  remaining: 'anthropic-ratelimit-tokens-remaining',
  reset: 'anthropic-ratelimit-tokens-reset',
} as const

/** The structured fields of draft-ietf-httpapi-ratelimit-headers. */
export const rateFieldHeader = { policy: 'ratelimit-policy', state: 'ratelimit' } as const

/** Maximum length of a header value that the gateway sends. A longer value is cut. */
export const headerValueMaxChars = 512

/** Returns the value as printable ASCII on one line. Every other character becomes `?`, so that the value cannot break a header and node accepts it. */
export function headerValue(value: string): string {
  const text = value.length > headerValueMaxChars ? value.slice(0, headerValueMaxChars) : value
  return /^[\x20-\x7e]*$/.test(text) ? text : text.replace(/[^\x20-\x7e]/gu, '?')
}
