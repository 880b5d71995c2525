import { useEffect, useState } from 'react'
import { Icon } from '../../ui/icon.tsx'
import { text } from './text.ts'

/** The search by request id. The gateway searches, when the person presses Enter. */
export function SearchBox({ value, onSearch }: { readonly value: string; readonly onSearch: (id: string) => void }) {
  const [typed, setTyped] = useState(value)
  useEffect(() => setTyped(value), [value])
  return (
    <search className="call-search">
      <form
        onSubmit={event => {
          event.preventDefault()
          onSearch(typed.trim())
        }}
      >
        <Icon name="search" />
        <input
          className="input"
          type="search"
          enterKeyHint="search"
          autoComplete="off"
          spellCheck={false}
          maxLength={100}
          aria-label={text.search}
          title={text.searchHint}
          placeholder={text.search}
          value={typed}
          onChange={event => {
            setTyped(event.target.value)
            if (event.target.value === '') onSearch('')
          }}
        />
      </form>
    </search>
  )
}
