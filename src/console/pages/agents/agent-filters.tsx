import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Segmented } from '../../ui/forms/choices.tsx'
import { Icon } from '../../ui/icon.tsx'
import { type AgentsSearch, agentSorts } from './search.ts'
import { text } from './text.ts'
import type { Agent } from './use-agents.ts'

const typingMs = 250
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
  return (
    <search className="agent-filters">
      <SearchBox value={value.q ?? ''} onChange={q => onChange({ q: q === '' ? undefined : q })} />
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
      <Choice label={text.sort} value={value.sort ?? 'created'} onChange={chosen => onChange({ sort: agentSorts.find(sort => sort === chosen) })}>
        {agentSorts.map(sort => (
          <option key={sort} value={sort}>
            {text.sorts[sort]}
          </option>
        ))}
      </Choice>
      <p className="agent-total" aria-live="polite">
        {total === null ? '' : text.total(total)}
      </p>
    </search>
  )
}

/** A field whose text goes into the address a moment after the last letter. A text that the address gets otherwise appears in the field. */
function SearchBox({ value, onChange }: { readonly value: string; readonly onChange: (text: string) => void }) {
  const [typed, setTyped] = useState(value)
  const sent = useRef(value)
  useEffect(() => {
    if (value === sent.current) return
    sent.current = value
    setTyped(value)
  }, [value])
  useEffect(() => {
    const next = typed.trim()
    if (next === sent.current) return
    const timer = setTimeout(() => {
      sent.current = next
      onChange(next)
    }, typingMs)
    return () => clearTimeout(timer)
  }, [typed, onChange])
  return (
    <div className="agent-search">
      <Icon name="search" />
      <input
        type="search"
        className="input"
        aria-label={text.search}
        placeholder={text.searchHint}
        autoComplete="off"
        spellCheck={false}
        maxLength={100}
        value={typed}
        onChange={event => setTyped(event.target.value)}
      />
    </div>
  )
}

interface ChoiceProps {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly children: ReactNode
}

function Choice({ label, value, onChange, children }: ChoiceProps) {
  return (
    <div className="select agent-choice">
      <select className="input" aria-label={label} value={value} onChange={event => onChange(event.target.value)}>
        {children}
      </select>
      <Icon name="down" />
    </div>
  )
}
