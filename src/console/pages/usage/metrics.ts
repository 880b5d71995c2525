import { count, money, shortCount, shortMoney } from '../../ui/format/numbers.ts'
import { latencyText } from '../activity/latency.ts'

/** What the page counts. */
export const metrics = ['value', 'cost', 'calls', 'tokens', 'errors', 'p95'] as const
export type Metric = (typeof metrics)[number]
/** A metric of which sums exist. A percentile of several rows cannot be added up. */
export type SumMetric = Exclude<Metric, 'p95'>

/** What the table below the chart lists. */
export const groups = ['model', 'provider', 'agent', 'key', 'member'] as const
export type Group = (typeof groups)[number]

/** The figures that each row of a report has. Some lists of the gateway do not count failures. */
export interface Figures {
  readonly requests: number
  readonly errors?: number
  readonly tokens: number
  readonly cost_inr: number
  readonly value_inr: number
}

/** Returns the figure of a row. Null when the row has none. */
export function figureOf(metric: SumMetric, row: Figures): number | null {
  if (metric === 'value') return row.value_inr
  if (metric === 'cost') return row.cost_inr
  if (metric === 'calls') return row.requests
  return metric === 'tokens' ? row.tokens : (row.errors ?? null)
}

/** A number of things has no fourths on its axis. */
const wholeAxis = (value: number): string => (Number.isInteger(value) ? shortCount(value) : '')
const rupees = { format: money, formatShort: shortMoney, formatAxis: shortMoney }
const things = { format: count, formatShort: shortCount, formatAxis: wholeAxis }
const duration = { format: latencyText, formatShort: latencyText, formatAxis: latencyText }

/** How the figures of a metric are written: in full, in a card, and beside the chart. */
export const formats: Readonly<Record<Metric, typeof rupees>> = { value: rupees, cost: rupees, calls: things, tokens: things, errors: things, p95: duration }
