import type { ActivitySearch } from '../activity/filters.ts'
import type { Group, Metric } from './metrics.ts'

/** The span and the filters, and what the chart and the table show. */
export type UsageSearch = ActivitySearch & {
  readonly metric?: Metric
  readonly group?: Group
  readonly unit?: 'day' | 'hour'
}
