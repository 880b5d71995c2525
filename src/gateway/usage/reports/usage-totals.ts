/** Sums of usage as rows have them and as the wire has them. Inside they are integers; rupees are made of them at the end. */
import { inrFromUinr } from '../../../platform/values/money.ts'

/** Sums of one row of a report. Money in micro-rupees. */
export interface TotalsRow {
  readonly requests: bigint
  /** Calls that did not end well and that the client had not given up. */
  readonly errors: bigint
  readonly promptTokens: bigint
  readonly completionTokens: bigint
  readonly valueUinr: bigint
  readonly costUinr: bigint
  /** Parts of the prompt. */
  readonly cachedTokens: bigint
  readonly cacheWriteTokens: bigint
}

/** The same, for text of statements: sums over rows of a table of sums. */
export const sumColumns = `sum(requests)::bigint as "requests", sum(errors)::bigint as "errors", sum(prompt_tokens)::bigint as "promptTokens",
     sum(completion_tokens)::bigint as "completionTokens", sum(value_uinr)::bigint as "valueUinr", sum(cost_uinr)::bigint as "costUinr",
     sum(cached_tokens)::bigint as "cachedTokens", sum(cache_write_tokens)::bigint as "cacheWriteTokens"`

/** Sums of the statement GET /v1/usage. Money in ₹; `cost_uinr` is the exact integer of `cost_inr` in micro-rupees. */
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

/** Sums of the console. Money in ₹. */
export interface Figures {
  requests: number
  errors: number
  prompt_tokens: number
  completion_tokens: number
  /** Prompt and completion. */
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

/** What is left of `all` without `part`, exactly. */
export function differenceOf(all: TotalsRow, part: TotalsRow): TotalsRow {
  return rowOf(name => all[name] - part[name])
}

/** All rows together, exactly. */
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
