/** What an organisation used in a span of IST days: in total, by model, by agent, by day. */
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import { fail } from '../../platform/errors.ts'
import { istDay, startOfIstDayMs } from '../../platform/ist-time.ts'
import { inrFromUinr } from '../../platform/money.ts'
import { csvLine } from './csv.ts'
import { sumByAgent, sumByDay, sumByModel, type TotalsRow } from './queries.ts'

/** Sums as the wire has them. Money in ₹; `cost_uinr` is the exact integer of `cost_inr` in micro-rupees. */
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

export interface UsageReport {
  from: string
  to: string
  totals: Totals
  by_model: (Totals & { model: string })[]
  /** `id` and `name` of a registered agent, `label` of a header that names none, all null for calls without an agent. */
  by_agent: (Totals & { id: number | null; name: string | null; label: string | null })[]
}

export interface UsageReportsOptions {
  readonly db: Db
  readonly clock: Clock
  /** Brings what this process has settled into the database. */
  readonly flushNow: () => Promise<void>
  readonly agentNames: (orgId: number, agentIds: readonly number[]) => Promise<ReadonlyMap<number, string>>
}

/** A span of IST days, both ends inclusive. */
export interface DaySpan {
  readonly from: string
  readonly to: string
}

/** Reports of usage. */
export class UsageReports {
  readonly #options: UsageReportsOptions

  constructor(options: UsageReportsOptions) {
    this.#options = options
  }

  /** The span that a caller asked for. Absent ends: the IST month of `to` until today. Throws `bad_request`. */
  span(from: string | undefined, to: string | undefined): DaySpan {
    const last = to ?? istDay(this.#options.clock.nowMs())
    const first = from ?? `${last.slice(0, 7)}-01`
    for (const day of [first, last])
      if (startOfIstDayMs(day) === null) throw fail('bad_request', { message: `"${day.slice(0, 40)}" is no calendar day; write YYYY-MM-DD.` })
    if (first > last) throw fail('bad_request', { message: '"from" lies after "to".' })
    return { from: first, to: last }
  }

  /** Totals, by model and by agent. What this process served before the call is in it. */
  async report(orgId: number, span: DaySpan): Promise<UsageReport> {
    const { db, agentNames } = this.#options
    await this.#options.flushNow()
    const models = await db.many(sumByModel, orgId, span.from, span.to)
    const agents = await db.many(sumByAgent, orgId, span.from, span.to)
    const ids = agents.flatMap(row => (row.agentId === null ? [] : [row.agentId]))
    const names = ids.length === 0 ? new Map<number, string>() : await agentNames(orgId, ids)
    return {
      ...span,
      totals: totalsOf(sumOf(models)),
      by_model: models.map(row => ({ model: row.model, ...totalsOf(row) })),
      by_agent: agents.map(row => ({
        id: row.agentId,
        name: row.agentId === null ? null : (names.get(row.agentId) ?? null),
        label: row.agentLabel,
        ...totalsOf(row),
      })),
    }
  }

  /** The same usage by IST day, oldest first; days without any are left out. */
  async days(orgId: number, span: DaySpan): Promise<(Totals & { day: string })[]> {
    await this.#options.flushNow()
    const rows = await this.#options.db.many(sumByDay, orgId, span.from, span.to)
    const days = [...new Set(rows.map(({ day }) => day))]
    return days.map(day => ({ day, ...totalsOf(sumOf(rows.filter(row => row.day === day))) }))
  }

  /** The same usage as CSV: one line a day, model and provider. */
  async csv(orgId: number, span: DaySpan): Promise<string> {
    await this.#options.flushNow()
    const rows = await this.#options.db.many(sumByDay, orgId, span.from, span.to)
    return csvHead + rows.map(row => csvLine([row.day, row.model, row.provider, ...Object.values(totalsOf(row))])).join('')
  }
}

const tokenColumns = ['prompt_tokens', 'completion_tokens', 'total_tokens']
/** Columns that came later stand at the end, so that whoever reads by place goes on reading right. */
const csvHead = csvLine(['day', 'model', 'provider', 'requests', ...tokenColumns, 'cost_inr', 'value_inr', 'cost_uinr', 'cached_tokens', 'cache_write_tokens'])

function totalsOf(row: TotalsRow): Totals {
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

function sumOf(rows: readonly TotalsRow[]): TotalsRow {
  const sum = (name: keyof TotalsRow): bigint => rows.reduce((total, row) => total + row[name], 0n)
  return {
    requests: sum('requests'),
    promptTokens: sum('promptTokens'),
    completionTokens: sum('completionTokens'),
    valueUinr: sum('valueUinr'),
    costUinr: sum('costUinr'),
    cachedTokens: sum('cachedTokens'),
    cacheWriteTokens: sum('cacheWriteTokens'),
  }
}
