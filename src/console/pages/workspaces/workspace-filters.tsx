import { Choice, SearchBox } from '../../ui/forms/list-filters.tsx'
import { type WorkspaceFilterValues, workspaceSorts, workspaceStates } from './search.ts'
import { text } from './text.ts'

interface WorkspaceFiltersProps {
  readonly value: WorkspaceFilterValues
  /** The filters that change. Undefined takes one away. */
  readonly onChange: (changes: { [K in keyof WorkspaceFilterValues]?: WorkspaceFilterValues[K] | undefined }) => void
}

/** Search, state and order of the list. All of them are in the address, and the gateway applies them. */
export function WorkspaceFilters({ value, onChange }: WorkspaceFiltersProps) {
  return (
    <search className="list-filters">
      <SearchBox label={text.search} hint={text.searchHint} value={value.q ?? ''} onChange={q => onChange({ q: q === '' ? undefined : q })} />
      <Choice label={text.state} value={value.state ?? ''} onChange={chosen => onChange({ state: workspaceStates.find(state => state === chosen) })}>
        <option value="">{text.anyState}</option>
        {workspaceStates.map(state => (
          <option key={state} value={state}>
            {text.states[state]}
          </option>
        ))}
      </Choice>
      <Choice label={text.sort} value={value.sort ?? 'created'} onChange={chosen => onChange({ sort: workspaceSorts.find(sort => sort === chosen) })}>
        {workspaceSorts.map(sort => (
          <option key={sort} value={sort}>
            {text.sorts[sort]}
          </option>
        ))}
      </Choice>
    </search>
  )
}
