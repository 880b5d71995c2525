import { useQuery } from '@tanstack/react-query'
import { type KeyboardEvent, useId, useRef, useState } from 'react'
import { Icon } from '../icon.tsx'
import { Field } from './field.tsx'

export interface ComboOption {
  readonly value: string
  readonly label: string
  /** A few quiet words beside the label. */
  readonly hint?: string
}

interface ComboboxProps {
  readonly label: string
  readonly hint?: string
  readonly placeholder?: string
  /** The chosen options. */
  readonly value: readonly ComboOption[]
  readonly onChange: (value: readonly ComboOption[]) => void
  /** True: several options can be chosen. Default: one. */
  readonly isMultiple?: boolean
  /** Asks the gateway for the options that fit the text. It returns one page, and never all there are. */
  readonly search: (text: string, signal: AbortSignal) => Promise<readonly ComboOption[]>
  /** A name for what is searched, for the cache. */
  readonly name: string
}

/** A field that finds options while a person types. The gateway searches, so that the field works with any number of options. */
export function Combobox({ label, hint, placeholder, value, onChange, isMultiple = false, search, name }: ComboboxProps) {
  const listId = useId()
  const input = useRef<HTMLInputElement>(null)
  const [text, setText] = useState('')
  const [isOpen, setOpen] = useState(false)
  const [active, setActive] = useState(0)
  const found = useQuery({
    queryKey: ['combobox', name, text],
    queryFn: ({ signal }) => search(text, signal),
    enabled: isOpen,
    placeholderData: before => before,
  })
  const options = (found.data ?? []).filter(option => !value.some(chosen => chosen.value === option.value))
  const choose = (option: ComboOption): void => {
    onChange(isMultiple ? [...value, option] : [option])
    setText('')
    setActive(0)
    if (!isMultiple) setOpen(false)
  }
  const remove = (option: ComboOption): void => {
    onChange(value.filter(chosen => chosen.value !== option.value))
    input.current?.focus()
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const last = value.at(-1)
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault()
      if (!isOpen) setOpen(true)
      else if (options.length > 0) setActive((active + (event.key === 'ArrowDown' ? 1 : options.length - 1)) % options.length)
    } else if (event.key === 'Enter' && isOpen) {
      event.preventDefault()
      const option = options[active]
      if (option) choose(option)
    } else if (event.key === 'Escape' && isOpen) {
      event.preventDefault()
      event.stopPropagation()
      setOpen(false)
    } else if (event.key === 'Backspace' && text === '' && last) remove(last)
  }
  return (
    <Field label={label} hint={hint}>
      {described => (
        <div className="combobox">
          <div className="input combobox-box">
            {value.map(option => (
              <span key={option.value} className="chip">
                {option.label}
                <button type="button" aria-label={`Remove ${option.label}`} onClick={() => remove(option)}>
                  <Icon name="close" size={12} />
                </button>
              </span>
            ))}
            <input
              {...described}
              ref={input}
              role="combobox"
              aria-expanded={isOpen}
              aria-controls={listId}
              aria-autocomplete="list"
              aria-activedescendant={isOpen && options[active] ? `${listId}-${active}` : undefined}
              autoComplete="off"
              spellCheck={false}
              placeholder={value.length === 0 ? placeholder : undefined}
              value={text}
              onChange={event => {
                setText(event.target.value)
                setActive(0)
                setOpen(true)
              }}
              onFocus={() => setOpen(true)}
              onBlur={() => setOpen(false)}
              onKeyDown={onKeyDown}
            />
          </div>
          <div className="combobox-list" id={listId} role="listbox" aria-label={label} hidden={!isOpen}>
            {options.map((option, index) => (
              // biome-ignore lint/a11y/useKeyWithClickEvents: the input has the keys of the list.
              // biome-ignore lint/a11y/useFocusableInteractive: focus stays in the input, which names the active option.
              <div
                key={option.value}
                id={`${listId}-${index}`}
                role="option"
                aria-selected={index === active}
                ref={element => {
                  // The keys reach options below the part of the list that is in sight.
                  if (isOpen && index === active) element?.scrollIntoView({ block: 'nearest' })
                }}
                onMouseDown={event => event.preventDefault()}
                onClick={() => choose(option)}
              >
                <span>{option.label}</span>
                {option.hint && <span className="quiet">{option.hint}</span>}
              </div>
            ))}
            {options.length === 0 && <p className="combobox-none">{found.isPending ? 'Searching…' : found.isError ? found.error.message : 'Nothing fits.'}</p>}
          </div>
        </div>
      )}
    </Field>
  )
}
