import { useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { Icon } from '../../../ui/icon.tsx'
import { labelOf, type Places } from '../places.ts'
import { searchText } from '../search/text.ts'
import type { MemorySearch } from '../search-params.ts'

interface SearchBoxProps {
  readonly places: Places
  readonly search: MemorySearch
  /** The folder that the page shows, with its slash. Empty at the top. */
  readonly folder: string
}

/** The field that searches the text of all objects, or of those below a folder. The address has what it searches for. */
export function SearchBox({ places, search, folder }: SearchBoxProps) {
  const navigate = useNavigate()
  const [typed, setTyped] = useState(search.q ?? '')
  const [isRegex, setRegex] = useState(search.regex ?? false)
  const [isCase, setCase] = useState(search.case ?? false)
  const [within, setWithin] = useState(search.in ?? '')
  useEffect(() => setTyped(search.q ?? ''), [search.q])
  const choices = [...new Set([folder, search.in ?? '', within])].filter(prefix => prefix !== '')
  const run = (): void => {
    const q = typed.trim()
    if (q === '') return
    const how = { ...(isRegex ? { regex: true as const } : {}), ...(isCase ? { case: true as const } : {}), ...(within === '' ? {} : { in: within }) }
    void navigate({ to: '/memory/$', params: { _splat: '' }, search: { q, ...how } })
  }
  return (
    <search>
      <form
        className="memory-search"
        onSubmit={event => {
          event.preventDefault()
          run()
        }}
      >
        <div className="input memory-search-field">
          <Icon name="search" />
          <input
            type="search"
            id="memory-search"
            aria-label={searchText.label}
            placeholder={searchText.placeholder}
            autoComplete="off"
            spellCheck={false}
            maxLength={500}
            value={typed}
            onChange={event => setTyped(event.target.value)}
          />
          <Toggle text="Aa" label={searchText.isCase} isOn={isCase} onChange={setCase} />
          <Toggle text=".*" label={searchText.isRegex} isOn={isRegex} onChange={setRegex} />
        </div>
        {choices.length > 0 && (
          <div className="select memory-search-in">
            <select className="input" aria-label={searchText.within} value={within} onChange={event => setWithin(event.target.value)}>
              <option value="">{searchText.everywhere}</option>
              {choices.map(prefix => (
                <option key={prefix} value={prefix}>
                  {searchText.inFolder(labelOf(places, prefix.slice(0, -1)) ?? prefix)}
                </option>
              ))}
            </select>
            <Icon name="down" />
          </div>
        )}
      </form>
    </search>
  )
}

interface ToggleProps {
  readonly text: string
  readonly label: string
  readonly isOn: boolean
  readonly onChange: (isOn: boolean) => void
}

function Toggle({ text, label, isOn, onChange }: ToggleProps) {
  return (
    <button type="button" className="memory-toggle" aria-pressed={isOn} aria-label={label} title={label} onClick={() => onChange(!isOn)}>
      {text}
    </button>
  )
}
