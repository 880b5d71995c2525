/** Reports the usage of an organisation in a span of IST days: in total, by model, by agent and by day. */

import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import type { Flushable } from '../../../platform/flushable.ts'
import type { DisplayRate } from '../../../platform/display-rate.ts'
import { labelsMax, modelsMax, otherLabels, otherModels } from '../events/bounded-names.ts'
import { usageCsv } from './usage-csv.ts'
import { type StatementRow, sumByDayAndProvider, sumStatement } from './usage-queries.ts'
import { type DaySpan, monthSpan } from './usage-span.ts'
import { differenceOf, sumOf, type Totals, type TotalsRow, totalsOf } from './usage-totals.ts'

/** Maximum number of lines of one CSV reply. 20 models at two providers have 14,600 lines a year. */
const linesMax = 50_000

export interface UsageReport {
  from: string
  to: string
  totals: Totals
  /** After a thousand models, all other models share one row, `(others)`. */
  by_model: (Totals & { model: string })[]
  /**
   * A row for a registered agent has `id` and `name`. A row for a header that names no agent has `label`. All three are null for calls without an
   * agent. After a thousand labels, all other labels share one row, `(others)`.
   */
  by_agent: (Totals & { id: number | null; name: string | null; label: string | null })[]
  /** Oldest first. Days without usage are absent. */
  by_day: (Totals & { day: string })[]
}

export interface UsageReportsOptions {
  readonly db: Db
  readonly clock: Clock
  /** Writes the records that this process has settled to the database. */
  readonly journal: Flushable
  readonly agentNames: (orgId: number, agentIds: readonly number[]) => Promise<ReadonlyMap<number, string>>
  /** Returns the rate of the organisation's display currency. Null or absent: amounts are in rupees only. */
  readonly displayRateOf?: (orgId: number) => Promise<DisplayRate | null>
}

/** Reports of usage. */
export class UsageReports {
  readonly #options: UsageReportsOptions

  constructor(options: UsageReportsOptions) {
    this.#options = options
  }

  /** Returns the requested span. The default is the IST month of `to`, until today. Throws `bad_request`. */
  span(from: string | undefined, to: string | undefined): DaySpan {
    return monthSpan(from, to, this.#options.clock.nowMs())
  }

  /**
   * Returns the totals, and the lists by model, by agent and by day. Each list adds up to the totals. All calls that this process has settled are
   * included.
   */
  async report(orgId: number, span: DaySpan): Promise<UsageReport> {
    const { db, agentNames } = this.#options
    await this.#options.journal.flushNow()
    const rows = await db.many(sumStatement, orgId, span.from, span.to, Math.max(labelsMax, modelsMax) + 1)
    const days = partOf(rows, 'day')
    const total = sumOf(days)
    const models = withOtherModels(partOf(rows, 'model'), total)
    const agents = withOthers(partOf(rows, 'agent'), total)
    const ids = agents.flatMap(row => (row.agentId === null ? [] : [row.agentId]))
    const names = ids.length === 0 ? new Map<number, string>() : await agentNames(orgId, ids)
    return {
      from: span.from,
      to: span.to,
      totals: totalsOf(total),
      by_model: models.map(row => ({ model: row.model ?? '', ...totalsOf(row) })),
      by_agent: agents.map(row => ({
        id: row.agentId,
        name: row.agentId === null ? null : (names.get(row.agentId) ?? null),
        label: row.agentLabel,
        ...totalsOf(row),
      })),
      by_day: days.map(row => ({ day: row.day ?? '', ...totalsOf(row) })),
    }
  }

  /**
   * Returns the same usage as CSV: one line for each day, model and provider. Amounts in rupees are exact. Throws `bad_request` for a span with more lines
   * than one reply may have.
   */
  async csv(orgId: number, span: DaySpan): Promise<string> {
    const { db, journal, displayRateOf } = this.#options
    await journal.flushNow()
    return usageCsv(await db.many(sumByDayAndProvider, orgId, span.from, span.to, linesMax + 1), linesMax, (await displayRateOf?.(orgId)) ?? null)
  }
}

const partOf = (rows: readonly StatementRow[], part: StatementRow['part']): readonly StatementRow[] => rows.filter(row => row.part === part)

type AgentRow = Pick<StatementRow, 'agentId' | 'agentLabel'> & TotalsRow

type ModelRow = Pick<StatementRow, 'model'> & TotalsRow

/** Adds a row `otherModels` at the end when there are more models than are listed. The row contains the difference to the total. */
function withOtherModels(rows: readonly StatementRow[], total: TotalsRow): readonly ModelRow[] {
  if (rows.length <= modelsMax) return rows
  const listed = rows.filter(row => row.model !== otherModels).slice(0, modelsMax)
  return [...listed, { model: otherModels, ...differenceOf(total, sumOf(listed)) }]
}

/** Adds a row `otherLabels` at the end when there are more labels than are listed. The row contains the difference to the total. */
function withOthers(rows: readonly StatementRow[], total: TotalsRow): readonly AgentRow[] {
  const labels = rows.filter(row => row.agentLabel !== null)
  if (labels.length <= labelsMax) return rows
  const shown = new Set(labels.filter(row => row.agentLabel !== otherLabels).slice(0, labelsMax))
  const listed = rows.filter(row => row.agentLabel === null || shown.has(row))
  const rest = differenceOf(total, sumOf(listed))
  return [...listed, { agentId: null, agentLabel: otherLabels, ...rest }]
}
