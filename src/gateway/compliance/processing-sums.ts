import type { ResidencyMix } from './dpia/dpia-shape.ts'
import { percentages } from './percentages.ts'
import type { ProcessingRow } from './queries.ts'

/** Figures that can be added to each other. */
export interface Sums {
  readonly requests: number
  readonly promptTokens: number
  readonly completionTokens: number
  /** Parts of `requests` by residency: `india`, `declared` and `unknown`. */
  readonly india: number
  readonly declared: number
  readonly unknown: number
}

export const none: Sums = { requests: 0, promptTokens: 0, completionTokens: 0, india: 0, declared: 0, unknown: 0 }

/** Returns the figures of a row. */
export function sumsOf(row: ProcessingRow): Sums {
  return {
    requests: Number(row.requests),
    promptTokens: Number(row.promptTokens),
    completionTokens: Number(row.completionTokens),
    india: Number(row.india),
    declared: Number(row.declared),
    unknown: Number(row.unknown),
  }
}

/** Returns the sum of two sets of figures. */
export function add(a: Sums, b: Sums): Sums {
  return {
    requests: a.requests + b.requests,
    promptTokens: a.promptTokens + b.promptTokens,
    completionTokens: a.completionTokens + b.completionTokens,
    india: a.india + b.india,
    declared: a.declared + b.declared,
    unknown: a.unknown + b.unknown,
  }
}

/** Returns the requests and tokens in the form of the API. */
export function countsOf({ requests, promptTokens, completionTokens }: Sums) {
  return { requests, prompt_tokens: promptTokens, completion_tokens: completionTokens, total_tokens: promptTokens + completionTokens }
}

/** Returns the shares of requests by residency. Requests whose place is unknown have a share of their own. */
export function mixOf({ requests, india, declared, unknown }: Sums): ResidencyMix {
  const counts = [india, requests - india - declared - unknown, unknown, declared]
  const pcts = percentages(counts)
  const share = (at: number) => ({ requests: counts[at] ?? 0, pct: pcts[at] ?? 0 })
  return { india: share(0), global: share(1), unknown: share(2), declared: share(3) }
}
