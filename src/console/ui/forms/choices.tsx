import { type ReactNode, useId } from 'react'

interface Option<T extends string> {
  readonly value: T
  readonly label: string
  readonly hint?: string
}

interface ChoiceProps<T extends string> {
  readonly label: string
  readonly value: T
  readonly options: readonly Option<T>[]
  readonly onChange: (value: T) => void
}

/** A choice between a few things that need a sentence each. */
export function RadioCards<T extends string>({ label, value, options, onChange }: ChoiceProps<T>) {
  const name = useId()
  return (
    <fieldset className="radio-cards">
      <legend>{label}</legend>
      {options.map(option => (
        <label key={option.value} className="radio-card">
          <input type="radio" name={name} value={option.value} checked={option.value === value} onChange={() => onChange(option.value)} />
          <span>
            <span className="radio-card-label">{option.label}</span>
            {option.hint && <span className="radio-card-hint">{option.hint}</span>}
          </span>
        </label>
      ))}
    </fieldset>
  )
}

/** A choice between two to four short words, in one line. */
export function Segmented<T extends string>({ label, value, options, onChange }: ChoiceProps<T>) {
  const name = useId()
  return (
    <fieldset className="segmented">
      <legend className="visually-hidden">{label}</legend>
      {options.map(option => (
        <label key={option.value}>
          <input
            type="radio"
            name={name}
            className="visually-hidden"
            value={option.value}
            checked={option.value === value}
            onChange={() => onChange(option.value)}
          />
          <span>{option.label}</span>
        </label>
      ))}
    </fieldset>
  )
}

/** A part of a form that most people leave closed. */
export function Fold({ title, hint, children }: { readonly title: string; readonly hint?: string; readonly children: ReactNode }) {
  return (
    <details className="fold">
      <summary>
        <span>{title}</span>
        {hint && <span className="fold-hint">{hint}</span>}
      </summary>
      <div className="fold-body">{children}</div>
    </details>
  )
}
