import { type ComponentProps, type ReactNode, useId } from 'react'
import { Icon } from '../icon.tsx'

interface FieldFrame {
  readonly label: string
  /** One sentence below the field. */
  readonly hint?: ReactNode
  readonly error?: string | null | undefined
  readonly isOptional?: boolean
}

interface Described {
  readonly id: string
  readonly 'aria-describedby': string | undefined
  readonly 'aria-invalid': true | undefined
}

/** The label, hint and error of a control. `children` gets the attributes that tie them together. */
export function Field({ label, hint, error, isOptional = false, children }: FieldFrame & { children: (props: Described) => ReactNode }) {
  const id = useId()
  const described = [hint ? `${id}-hint` : '', error ? `${id}-error` : ''].filter(name => name !== '').join(' ')
  return (
    <div className="field">
      <label htmlFor={id}>
        {label}
        {isOptional && <span className="field-optional">Optional</span>}
      </label>
      {children({ id, 'aria-describedby': described === '' ? undefined : described, 'aria-invalid': error ? true : undefined })}
      {hint && (
        <p className="field-hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error && <FieldError id={`${id}-error`}>{error}</FieldError>}
    </div>
  )
}

/** The error of a field, with an icon, so that it is not known by colour alone. */
export function FieldError({ id, children }: { readonly id?: string; readonly children: ReactNode }) {
  return (
    <p className="field-error" id={id} role="alert">
      <Icon name="bad" size={14} />
      {children}
    </p>
  )
}

/** One line of text. */
export function TextField({ label, hint, error, isOptional, ...input }: FieldFrame & ComponentProps<'input'>) {
  return (
    <Field label={label} hint={hint} error={error} {...(isOptional === undefined ? {} : { isOptional })}>
      {described => <input type="text" autoComplete="off" spellCheck={false} {...input} {...described} className="input" />}
    </Field>
  )
}

/** Several lines of text. */
export function TextAreaField({ label, hint, error, ...area }: FieldFrame & ComponentProps<'textarea'>) {
  return (
    <Field label={label} hint={hint} error={error}>
      {described => <textarea autoComplete="off" spellCheck={false} {...area} {...described} className="input" />}
    </Field>
  )
}

/** A whole number. An empty field means that nothing was chosen. */
export function NumberField(props: FieldFrame & ComponentProps<'input'>) {
  return <TextField inputMode="numeric" pattern="[0-9]*" {...props} />
}

/** A choice of a few values, with the menu of the system. */
export function SelectField({ label, hint, error, children, ...select }: FieldFrame & ComponentProps<'select'>) {
  return (
    <Field label={label} hint={hint} error={error}>
      {described => (
        <div className="select">
          <select {...select} {...described} className="input">
            {children}
          </select>
          <Icon name="down" />
        </div>
      )}
    </Field>
  )
}
