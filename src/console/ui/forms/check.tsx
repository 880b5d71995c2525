import { type ReactNode, useId } from 'react'
import './check.css'

interface CheckProps {
  readonly label: ReactNode
  readonly hint?: string
  readonly isChecked: boolean
  readonly onChange: (isChecked: boolean) => void
}

/** A choice of yes or no, with a sentence that says what yes means. */
export function Check({ label, hint, isChecked, onChange }: CheckProps) {
  const id = useId()
  return (
    <div className="check">
      <input
        type="checkbox"
        id={id}
        checked={isChecked}
        aria-describedby={hint ? `${id}-hint` : undefined}
        onChange={event => onChange(event.target.checked)}
      />
      <div>
        <label htmlFor={id}>{label}</label>
        {hint && (
          <p className="field-hint" id={`${id}-hint`}>
            {hint}
          </p>
        )}
      </div>
    </div>
  )
}
