/** Converts sums of usage from database rows to replies. The sums are integers. Rupees are calculated only at the end. */
import { inrFromUinr } from '../../../platform/values/money.ts'

/** Sums of one row of a report. Money is in micro-rupees. */
export interface TotalsRow {
  readonly requests: bigint
  /** Number of calls whose outcome is neither `ok` nor `client_gone`. */
  readonly errors: bigint
  readonly promptTokens: bigint
  readonly completionTokens: bigint
  readonly valueUinr: bigint
  readonly costUinr: bigint
  /** Parts of the prompt tokens. */
  readonly cachedTokens: bigint
  readonly cacheWriteTokens: bigint
}

/** SQL that reads these sums from one of the tables of sums. */
export const sumColumns = `sum(requests)::bigint as "requests", sum(errors)::bigint as "errors", sum(prompt_tokens)::bigint as "promptTokens",
     sum(completion_tokens)::bigint as "completionTokens", sum(value_uinr)::bigint as "valueUinr", sum(cost_uinr)::bigint as "costUinr",
     sum(cached_tokens)::bigint as "cachedTokens", sum(cache_write_tokens)::bigint as "cacheWriteTokens"`

/** Sums of GET /v1/usage. Money is in rupees. `cost_uinr` is `cost_inr` as an exact integer in micro-rupees. */
export interface Totals {
  requests: number
  prompt_tokens: number
  completion_tokens: number
  total_tokens: number
  cost_inr: number
  value_inr: number
  cost_uinr: number
  /** Parts of `prompt_tokens`. */
  cached_tokens: number
  cache_write_tokens: number
}

export function totalsOf(row: TotalsRow): Totals {
  return {
    requests: Number(row.requests),
    prompt_tokens: Number(row.promptTokens),
    completion_tokens: Number(row.completionTokens),
    total_tokens: Number(row.promptTokens + row.completionTokens),
    cost_inr: inrFromUinr(row.costUinr),
    value_inr: inrFromUinr(row.valueUinr),
    cost_uinr: Number(row.costUinr),
    cached_tokens: Number(row.cachedTokens),
    cache_write_tokens: Number(row.cacheWriteTokens),
  }
}

/** Sums for the console. Money is in rupees. */
export interface Figures {
  requests: number
  errors: number
  prompt_tokens: number
  completion_tokens: number
  /** Prompt and completion tokens. */
  tokens: number
  cost_inr: number
  value_inr: number
}

export function figuresOf(row: TotalsRow): Figures {
  return {
    requests: Number(row.requests),
    errors: Number(row.errors),
    prompt_tokens: Number(row.promptTokens),
    completion_tokens: Number(row.completionTokens),
    tokens: Number(row.promptTokens + row.completionTokens),
    cost_inr: inrFromUinr(row.costUinr),
    value_inr: inrFromUinr(row.valueUinr),
  }
}

/** Returns `all` minus `part`, exactly. */
export function differenceOf(all: TotalsRow, part: TotalsRow): TotalsRow {
  return rowOf(name => all[name] - part[name])
}

/** Returns the exact sum of all rows. */
export function sumOf(rows: readonly TotalsRow[]): TotalsRow {
  return rowOf(name => rows.reduce((total, row) => total + row[name], 0n))
}

function rowOf(sum: (name: keyof TotalsRow) => bigint): TotalsRow {
  return {
    requests: sum('requests'),
    errors: sum('errors'),
    promptTokens: sum('promptTokens'),
    completionTokens: sum('completionTokens'),
    valueUinr: sum('valueUinr'),
    costUinr: sum('costUinr'),
    cachedTokens: sum('cachedTokens'),
    cacheWriteTokens: sum('cacheWriteTokens'),
  }
}
