/**
 * The gateway's own request fields: read here, taken out, never forwarded. `parseRouterFields` returns them checked; an unknown
 * value of a hard constraint is an error, never ignored.
 */
export type OptimizeMode = 'price' | 'latency' | 'uptime' | 'throughput' | 'quality' | 'auto'

export interface RouterFields {
  readonly optimize: OptimizeMode
  /** null = not given or nothing left to blend. */
  readonly weights: { readonly price: number; readonly latency: number; readonly uptime: number; readonly throughput: number } | null
  readonly best: boolean
  /** Pinned provider id, or null. */
  readonly provider: string | null
  readonly indiaOnly: boolean
  readonly exclude: readonly string[]
  /** Per-request provider key; the caller wraps it in a Secret. */
  readonly upstreamKey: string | null
  /** Steps of a per-request chain, or null. */
  readonly fallbacks: readonly { readonly model: string; readonly provider: string | null }[] | null
}
