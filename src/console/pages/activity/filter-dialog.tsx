import { useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { Button } from '../../ui/forms/button.tsx'
import { SelectField } from '../../ui/forms/field.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { Dialog } from '../../ui/overlays/dialog.tsx'
import { type FilterName, type Filters, filterNames, readActivitySearch } from './filters.ts'
import type { OwnFilter, OwnValues } from './own-filter.ts'
import { activityText as text } from './text.ts'
import type { Choice } from './use-names.ts'

interface FilterDialogProps {
  readonly filters: Filters
  readonly choices: Readonly<Record<FilterName, readonly Choice[]>>
  readonly nameOf: (filter: FilterName) => string
  readonly isPending: boolean
  readonly error: unknown
  readonly own: readonly OwnFilter[]
  readonly onApply: (filters: Filters, own: OwnValues) => void
  readonly onClose: () => void
}

/** The form for all filters. A filter that is not among the choices of the span, such as an old key, stays until it is changed. */
export function FilterDialog({ filters, choices, nameOf, isPending, error, own, onApply, onClose }: FilterDialogProps) {
  const [values, setValues] = useState<Readonly<Record<string, string>>>(() =>
    Object.fromEntries([
      ...filterNames.map(name => [name, filters[name] === undefined ? '' : String(filters[name])]),
      ...own.map(({ name, value }) => [name, value ?? '']),
    ]),
  )
  const field = (name: string, label: string, options: readonly Choice[]) => (
    <SelectField key={name} label={label} value={values[name] ?? ''} onChange={event => setValues({ ...values, [name]: event.target.value })}>
      <option value="">{text.any}</option>
      {options.map(({ value, label: words }) => (
        <option key={value} value={value}>
          {words}
        </option>
      ))}
    </SelectField>
  )
  const optionsOf = (name: FilterName): readonly Choice[] => {
    const value = filters[name]
    if (value === undefined || choices[name].some(choice => choice.value === String(value))) return choices[name]
    return [{ value: String(value), label: nameOf(name) }, ...choices[name]]
  }
  return (
    <Dialog
      title={text.filters}
      onClose={onClose}
      onSubmit={() => onApply(readActivitySearch(values), Object.fromEntries(own.map(({ name }) => [name, values[name] === '' ? undefined : values[name]])))}
      actions={
        <>
          <Button onClick={() => setValues({})}>{text.clear}</Button>
          <Button look="primary" type="submit">
            {text.apply}
          </Button>
        </>
      }
    >
      {isPending ? (
        <Skeleton lines={5} height={36} />
      ) : (
        <div className="filter-fields">
          {filterNames.map(name => field(name, text.names[name], optionsOf(name)))}
          {own.map(({ name, label, options }) => field(name, label, options))}
        </div>
      )}
      {error ? <InlineError error={apiErrorOf(error)} /> : <p className="field-hint">{text.filtersHint}</p>}
    </Dialog>
  )
}
