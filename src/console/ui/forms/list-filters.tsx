/** The controls above a list that the gateway searches, filters and sorts. */
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Icon } from '../icon.tsx'
import './list-filters.css'

const typingMs = 250

interface SearchBoxProps {
  readonly label: string
  readonly hint: string
  readonly value: string
  readonly onChange: (text: string) => void
}

/** A field whose text goes into the address a moment after the last letter. A text that the address gets otherwise appears in the field. */
export function SearchBox({ label, hint, value, onChange }: SearchBoxProps) {
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
    <div className="list-search">
      <Icon name="search" />
      <input
        type="search"
        className="input"
        aria-label={label}
        placeholder={hint}
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

/** A menu of one filter or of the order. */
export function Choice({ label, value, onChange, children }: ChoiceProps) {
  return (
    <div className="select list-choice">
      <select className="input" aria-label={label} value={value} onChange={event => onChange(event.target.value)}>
        {children}
      </select>
      <Icon name="down" />
    </div>
  )
}
