import { addDays } from '../../ui/format/dates.ts'
import { type ActivitySearch, filtersOf } from '../activity/filters.ts'
import { lengthOf, type Span, spanOf } from '../activity/span.ts'
import type { Group, Metric } from './metrics.ts'

/** The span and the filters, and what the chart and the table show. */
export type UsageSearch = ActivitySearch & {
  readonly metric?: Metric
  readonly group?: Group
  readonly unit?: 'day' | 'hour'
}

/** Sums by hour exist for these days, and for spans of this length. */
const hourSpanDaysMax = 3
const hourDaysKept = 32

/** Returns whether the gateway can report a span by hour. */
export const mayBeHours = (span: Span, today: string): boolean => lengthOf(span) <= hourSpanDaysMax && span.from > addDays(today, -hourDaysKept)

/** Returns what to ask for. A span that can have hours has them when the address asks for them, and a single day has them without asking. */
export function queryOf(search: UsageSearch, today: string) {
  const span = spanOf(search, today)
  const isByHour = mayBeHours(span, today) && (search.unit ?? (lengthOf(span) === 1 ? 'hour' : 'day')) === 'hour'
  return { ...span, ...filtersOf(search), ...(isByHour ? { group: 'hour' as const } : {}) }
}
