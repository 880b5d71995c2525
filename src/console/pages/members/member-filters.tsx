import { Choice, SearchBox } from '../../ui/forms/list-filters.tsx'
import { type MemberFilterValues, memberRoles, memberSorts, memberStates } from './search.ts'
import { text } from './text.ts'

interface MemberFiltersProps {
  readonly value: MemberFilterValues
  /** The filters that change. Undefined takes one away. */
  readonly onChange: (changes: { [K in keyof MemberFilterValues]?: MemberFilterValues[K] | undefined }) => void
}

/** Search, state, role and order of the list. All of them are in the address, and the gateway applies them. */
export function MemberFilters({ value, onChange }: MemberFiltersProps) {
  return (
    <search className="list-filters">
      <SearchBox label={text.search} hint={text.searchHint} value={value.q ?? ''} onChange={q => onChange({ q: q === '' ? undefined : q })} />
      <Choice label={text.state} value={value.state ?? ''} onChange={chosen => onChange({ state: memberStates.find(state => state === chosen) })}>
        <option value="">{text.anyState}</option>
        {memberStates.map(state => (
          <option key={state} value={state}>
            {text.states[state]}
          </option>
        ))}
      </Choice>
      <Choice label={text.role} value={value.role ?? ''} onChange={chosen => onChange({ role: memberRoles.find(role => role === chosen) })}>
        <option value="">{text.anyRole}</option>
        {memberRoles.map(role => (
          <option key={role} value={role}>
            {text.roles[role]}
          </option>
        ))}
      </Choice>
      <Choice label={text.sort} value={value.sort ?? 'created'} onChange={chosen => onChange({ sort: memberSorts.find(sort => sort === chosen) })}>
        {memberSorts.map(sort => (
          <option key={sort} value={sort}>
            {text.sorts[sort]}
          </option>
        ))}
      </Choice>
    </search>
  )
}
