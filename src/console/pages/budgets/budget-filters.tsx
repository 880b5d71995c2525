import { Choice, SearchBox } from '../../ui/forms/list-filters.tsx'
import { type BudgetFilterValues, budgetScopes, budgetStates } from './search.ts'
import { stateWords, text } from './text.ts'

interface BudgetFiltersProps {
  readonly value: BudgetFilterValues
  /** The filters that change. Undefined takes one away. */
  readonly onChange: (changes: { [K in keyof BudgetFilterValues]?: BudgetFilterValues[K] | undefined }) => void
}

/** Search, state and scope of the list. All of them are in the address, and the gateway applies them. */
export function BudgetFilters({ value, onChange }: BudgetFiltersProps) {
  return (
    <search className="list-filters">
      <SearchBox label={text.search} hint={text.searchHint} value={value.q ?? ''} onChange={q => onChange({ q: q === '' ? undefined : q })} />
      <Choice label={text.state} value={value.state ?? ''} onChange={chosen => onChange({ state: budgetStates.find(state => state === chosen) })}>
        <option value="">{text.anyState}</option>
        {budgetStates.map(state => (
          <option key={state} value={state}>
            {stateWords[state].name}
          </option>
        ))}
      </Choice>
      <Choice label={text.scope} value={value.scope ?? ''} onChange={chosen => onChange({ scope: budgetScopes.find(scope => scope === chosen) })}>
        <option value="">{text.anyScope}</option>
        {budgetScopes.map(scope => (
          <option key={scope} value={scope}>
            {text.scopesMany[scope]}
          </option>
        ))}
      </Choice>
    </search>
  )
}
