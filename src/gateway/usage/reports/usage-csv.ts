/** Usage as CSV: a line for each day, model and provider. */
import { fail } from '../../../platform/errors.ts'
import { nextTurn } from '../../../platform/loop/next-turn.ts'
import { type DisplayRate, displayAmountOf } from '../../../platform/display-rate.ts'
import { inrTextOf } from '../../../platform/values/money.ts'
import { csvLine } from './csv.ts'
import type { TotalsRow } from './usage-totals.ts'

/** The media type of the CSV. */
export const csvType = 'text/csv; charset=utf-8'
/** Number of lines that are written before other work of the process gets its turn. */
const linesAtOnce = 1_000

type Line = TotalsRow & { readonly day: string; readonly hour?: number | null; readonly model: string; readonly provider: string }

/**
 * Returns the lines with a head. `hasHours` adds the column `hour`, and a rate the columns of the display currency after it. Amounts in rupees are exact. Throws
 * `bad_request` for more lines than `max`.
 */
export async function usageCsv(lines: readonly Line[], max: number, rate: DisplayRate | null, hasHours = false): Promise<string> {
  if (lines.length > max) throw fail('bad_request', { message: `This span has more than ${max} lines of CSV. Ask for fewer days.` })
  let text = csvLine([...columns, ...(hasHours ? ['hour'] : []), ...(rate === null ? [] : displayColumns)])
  for (let at = 0; at < lines.length; at += linesAtOnce) {
    for (const line of lines.slice(at, at + linesAtOnce))
      text += csvLine([line.day, line.model, line.provider, ...cellsOf(line), ...(hasHours ? [line.hour ?? 0] : []), ...displayCellsOf(line, rate)])
    await nextTurn()
  }
  return text
}

/** New columns are added at the end, so that programs which read by position continue to work. */
const columns = [
  ...['day', 'model', 'provider', 'requests', 'prompt_tokens', 'completion_tokens', 'cost_inr', 'value_inr'],
  ...['total_tokens', 'cost_uinr', 'cached_tokens', 'cache_write_tokens', 'errors'],
]

const displayColumns = ['cost_display', 'value_display', 'display_currency', 'display_rate', 'display_rate_as_of']

function displayCellsOf({ costUinr, valueUinr }: TotalsRow, rate: DisplayRate | null): string[] {
  if (rate === null) return []
  return [displayAmountOf(costUinr, rate), displayAmountOf(valueUinr, rate), rate.currency, rate.rate, rate.asOf]
}

function cellsOf(row: TotalsRow): (string | bigint)[] {
  return [
    ...[row.requests, row.promptTokens, row.completionTokens, inrTextOf(row.costUinr), inrTextOf(row.valueUinr)],
    ...[row.promptTokens + row.completionTokens, row.costUinr, row.cachedTokens, row.cacheWriteTokens, row.errors],
  ]
}
