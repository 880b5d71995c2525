import { useId } from 'react'
import { readAmount } from '../format/numbers.ts'
import { FieldError } from './field.tsx'

/** What a person chose for a limit in rupees. Text is kept as it was typed, so that nothing is lost while the page reads again. */
export interface MoneyChoice {
  readonly kind: 'none' | 'amount'
  readonly text: string
}

/** Returns the choice for a limit that the gateway reports. Null is no limit. */
export const choiceOf = (inr: number | null): MoneyChoice => (inr === null ? { kind: 'none', text: '' } : { kind: 'amount', text: String(inr) })

/** Returns the limit of a choice: null for no limit. Undefined when the text is not an amount. */
export function limitOf(choice: MoneyChoice): number | null | undefined {
  if (choice.kind === 'none') return null
  const read = readAmount(choice.text)
  return read.ok ? read.inr : undefined
}

interface MoneyFieldProps {
  readonly label: string
  readonly hint?: string
  readonly value: MoneyChoice
  readonly onChange: (value: MoneyChoice) => void
  /** The words for no limit, when the effective default is something else. */
  readonly noneLabel?: string
}

/** A limit in rupees. No limit is a choice of its own, so an empty field can never lift a limit. */
export function MoneyField({ label, hint, value, onChange, noneLabel = 'No limit' }: MoneyFieldProps) {
  const id = useId()
  const read = value.kind === 'amount' && value.text !== '' ? readAmount(value.text) : null
  const error = read !== null && !read.ok ? read.why : null
  return (
    <fieldset className="money-field">
      <legend>{label}</legend>
      <div className="money-row">
        <label className="radio-line">
          <input type="radio" name={id} checked={value.kind === 'none'} onChange={() => onChange({ ...value, kind: 'none' })} />
          {noneLabel}
        </label>
        <label className="radio-line">
          <input type="radio" name={id} checked={value.kind === 'amount'} onChange={() => onChange({ ...value, kind: 'amount' })} />
          <span className="visually-hidden">{label}: an amount</span>
          <span className="money-input">
            <span aria-hidden="true">₹</span>
            <input
              className="input tabular"
              inputMode="decimal"
              autoComplete="off"
              aria-label={`${label} in rupees`}
              aria-invalid={error ? true : undefined}
              aria-describedby={error ? `${id}-error` : undefined}
              placeholder="500"
              value={value.text}
              onChange={event => onChange({ kind: 'amount', text: event.target.value })}
              onFocus={() => value.kind !== 'amount' && value.text !== '' && onChange({ ...value, kind: 'amount' })}
            />
          </span>
        </label>
      </div>
      {hint && <p className="field-hint">{hint}</p>}
      {error && <FieldError id={`${id}-error`}>{error}</FieldError>}
    </fieldset>
  )
}
