import { useQuery } from '@tanstack/react-query'
import { apiQuery } from '../../api/queries.ts'
import { type FilterName, type Filters, filterNames } from './filters.ts'
import type { Span } from './span.ts'
import { activityText } from './text.ts'

/** One value that a filter can have. */
export interface Choice {
  readonly value: string
  readonly label: string
}

const idNames = ['key_id', 'agent_id', 'uid', 'workspace_id'] as const

/**
 * Returns what there is to filter by in the span, and a function that names the value of a filter. Both come from one report of the span without filters. It is
 * read only when a name is needed.
 */
export function useNames(span: Span, filters: Filters, isChoosing: boolean) {
  const needsNames = isChoosing || idNames.some(name => filters[name] !== undefined)
  const report = useQuery({ ...apiQuery('activity', { query: span }), enabled: needsNames })
  const workspaces = useQuery({ ...apiQuery('listWorkspaces', { query: { limit: 100 } }), enabled: isChoosing || filters.workspace_id !== undefined })
  const { data } = report
  const providers = new Set(data?.model_providers.flatMap(one => one.providers.map(({ provider }) => provider)))
  const choices: Readonly<Record<FilterName, readonly Choice[]>> = {
    model: (data?.models ?? []).map(plain),
    provider: [...providers].sort().map(plain),
    key_id: (data?.keys ?? []).map(key => (key.key_id === null ? { value: 'none', label: activityText.noKey } : named(key.key_id, key.name, 'key_id'))),
    agent_id: (data?.by_agent ?? []).flatMap(({ agent_id: id, name }) => (id === null ? [] : [named(id, name, 'agent_id')])),
    uid: (data?.by_member ?? []).flatMap(({ uid, name, email }) => (uid === null ? [] : [named(uid, name ?? email, 'uid')])),
    workspace_id: (workspaces.data?.workspaces ?? []).map(({ id, name }) => named(id, name, 'workspace_id')),
  }
  const nameOf = (filter: FilterName): string => {
    const value = String(filters[filter])
    const label = choices[filter].find(choice => choice.value === value)?.label
    if (label !== undefined) return label
    if (filter === 'model' || filter === 'provider') return value
    return value === 'none' ? activityText.noKey : `${activityText.unnamed[filter]} ${value}`
  }
  return { choices, nameOf, active: filterNames.filter(name => filters[name] !== undefined), isPending: needsNames && report.isPending, error: report.error }
}

const plain = (value: string): Choice => ({ value, label: value })
const named = (id: number, name: string | null, filter: (typeof idNames)[number]): Choice => ({
  value: String(id),
  label: name ?? `${activityText.unnamed[filter]} ${id}`,
})
