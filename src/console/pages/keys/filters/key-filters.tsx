import { Choice, SearchBox } from '../../../ui/forms/list-filters.tsx'
import { stateWords, text } from '../text.ts'
import { type KeyFilterValues, keySorts, keyStates } from './search.ts'

interface KeyFiltersProps {
  readonly value: KeyFilterValues
  /** The filters that change. Undefined takes one away. */
  readonly onChange: (changes: { [K in keyof KeyFilterValues]?: KeyFilterValues[K] | undefined }) => void
  readonly nameOf: (uid: number) => string
}

/** Search, state, owner and order of the list. All of them are in the address, and the gateway applies them. */
export function KeyFilters({ value, onChange, nameOf }: KeyFiltersProps) {
  const other = value.owner !== undefined && value.owner !== 'me' ? value.owner : null
  return (
    <search className="list-filters">
      <SearchBox label={text.search} hint={text.searchHint} value={value.q ?? ''} onChange={q => onChange({ q: q === '' ? undefined : q })} />
      <Choice label={text.state} value={value.state ?? ''} onChange={chosen => onChange({ state: keyStates.find(state => state === chosen) })}>
        <option value="">{text.anyState}</option>
        {keyStates.map(state => (
          <option key={state} value={state}>
            {stateWords[state].name}
          </option>
        ))}
      </Choice>
      <Choice label={text.owner} value={value.owner ?? ''} onChange={owner => onChange({ owner: owner === '' ? undefined : owner })}>
        <option value="">{text.owners.any}</option>
        <option value="me">{text.owners.me}</option>
        {other !== null && <option value={other}>{text.owners.other(nameOf(Number(other)))}</option>}
      </Choice>
      <Choice label={text.sort} value={value.sort ?? 'created'} onChange={chosen => onChange({ sort: keySorts.find(sort => sort === chosen) })}>
        {keySorts.map(sort => (
          <option key={sort} value={sort}>
            {text.sorts[sort]}
          </option>
        ))}
      </Choice>
    </search>
  )
}
