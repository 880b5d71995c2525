import type { FilterName } from './filters.ts'
import type { RangeName } from './span.ts'

/** Texts that the pages of activity share. */
export const activityText = {
  range: 'Span of days',
  ranges: {
    today: 'Today',
    '7d': 'Last 7 days',
    '30d': 'Last 30 days',
    month: 'This month',
    'last-month': 'Last month',
    '90d': 'Last 90 days',
  } satisfies Record<RangeName, string>,
  custom: 'Other days…',
  customTitle: 'Other days',
  from: 'First day',
  to: 'Last day',
  customHint: 'Days are those of India. They end at midnight India time, 18:30 UTC. Both days are included; a span has at most 366 days.',
  wrongSpan: 'The last day must not be before the first, and a span has at most 366 days.',
  show: 'Show',
  cancel: 'Cancel',
  indianDays: 'India days',
  filter: 'Filter',
  filters: 'Filters',
  filtersHint: 'The lists have what was used in the span: the agents and people with the highest value, and up to 1,000 keys.',
  apply: 'Apply',
  clear: 'Clear filters',
  any: 'Any',
  names: { model: 'Model', provider: 'Provider', key_id: 'Key', agent_id: 'Agent', uid: 'Person', workspace_id: 'Workspace' } satisfies Record<
    FilterName,
    string
  >,
  noKey: 'No key',
  unnamed: { key_id: 'Key', agent_id: 'Agent', uid: 'Person', workspace_id: 'Workspace' },
  remove: (label: string): string => `Remove the filter ${label}`,
} as const
