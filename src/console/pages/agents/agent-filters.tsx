import { Segmented } from '../../ui/forms/choices.tsx'
import { Choice, SearchBox } from '../../ui/forms/list-filters.tsx'
import { type AgentsSearch, agentSorts, nearEndPercent } from './search.ts'
import { text } from './text.ts'
import type { Agent } from './use-agents.ts'

type Filters = Omit<AgentsSearch, 'new'>
type State = 'all' | NonNullable<Filters['state']>

interface AgentFiltersProps {
  readonly value: Filters
  /** The filters that change. Undefined takes one away. */
  readonly onChange: (changes: { [K in keyof Filters]?: Filters[K] | undefined }) => void
  /** Agents on the page, for the names of an owner or a parent that the address names by id. */
  readonly agents: readonly Agent[]
  readonly total: number | null
}

/** Search, state, owner, family and order of the list. All of them are in the address, and the gateway applies them. */
export function AgentFilters({ value, onChange, agents, total }: AgentFiltersProps) {
  const otherOwner = value.owner !== undefined && value.owner !== 'me' ? value.owner : null
  const ownerName = agents.find(({ owner_uid: owner }) => String(owner) === otherOwner)?.owner_name ?? `member ${otherOwner}`
  const parent = value.parent !== undefined && value.parent !== 'none' ? value.parent : null
  const parentName = agents.find(({ id }) => String(id) === parent)?.name ?? `#${parent}`
  const isNearEnd = value.budget_used_percent !== undefined
  return (
    <search className="list-filters">
      <SearchBox label={text.search} hint={text.searchHint} value={value.q ?? ''} onChange={q => onChange({ q: q === '' ? undefined : q })} />
      <Segmented<State>
        label={text.state}
        value={value.state ?? 'all'}
        onChange={state => onChange({ state: state === 'all' ? undefined : state })}
        options={(['all', 'active', 'paused', 'revoked'] as const).map(state => ({ value: state, label: text.states[state] }))}
      />
      <Choice label={text.owner} value={value.owner ?? ''} onChange={owner => onChange({ owner: owner === '' ? undefined : owner })}>
        <option value="">{text.owners.any}</option>
        <option value="me">{text.owners.me}</option>
        {otherOwner !== null && <option value={otherOwner}>{text.owners.other(ownerName)}</option>}
      </Choice>
      <Choice label={text.family} value={value.parent ?? ''} onChange={chosen => onChange({ parent: chosen === '' ? undefined : chosen })}>
        <option value="">{text.families.any}</option>
        <option value="none">{text.families.none}</option>
        {parent !== null && <option value={parent}>{text.families.one(parentName)}</option>}
      </Choice>
      <Choice
        label={text.budgetUsed}
        value={String(value.budget_used_percent ?? '')}
        onChange={chosen => onChange(chosen === '' ? { budget_used_percent: undefined } : { budget_used_percent: nearEndPercent, sort: undefined })}
      >
        <option value="">{text.budgets.any}</option>
        <option value={nearEndPercent}>{text.budgets.nearEnd(nearEndPercent)}</option>
      </Choice>
      <Choice
        label={text.sort}
        value={isNearEnd ? 'spend' : (value.sort ?? 'created')}
        onChange={chosen => onChange({ sort: agentSorts.find(sort => sort === chosen) })}
      >
        {(isNearEnd ? (['spend'] as const) : agentSorts).map(sort => (
          <option key={sort} value={sort}>
            {text.sorts[sort]}
          </option>
        ))}
      </Choice>
      <p className="list-total" aria-live="polite">
        {total === null ? '' : text.total(total)}
      </p>
    </search>
  )
}
