import { type ReactNode, useState } from 'react'
import { Button } from '../../ui/forms/button.tsx'
import { Icon } from '../../ui/icon.tsx'
import './activity.css'
import { FilterDialog } from './filter-dialog.tsx'
import { type ActivitySearch, filtersOf, spanSearchOf, without } from './filters.ts'
import type { OwnFilter, OwnValues } from './own-filter.ts'
import { RangeMenu } from './range-menu.tsx'
import { spanOf } from './span.ts'
import { activityText as text } from './text.ts'
import { useNames } from './use-names.ts'

interface FilterBarProps {
  readonly search: ActivitySearch
  readonly today: string
  /** Receives the span and all shared filters, and those filters of the page that changed. */
  readonly onChange: (search: ActivitySearch, own: OwnValues) => void
  readonly own?: readonly OwnFilter[]
  /** More parts of the bar. */
  readonly children?: ReactNode
}

/** The span and the filters of a page of activity. Each filter is a chip that can be removed. */
export function FilterBar({ search, today, onChange, own = [], children }: FilterBarProps) {
  const [isOpen, setOpen] = useState(false)
  const filters = filtersOf(search)
  const { choices, nameOf, active, isPending, error } = useNames(spanOf(search, today), filters, isOpen)
  const ownActive = own.filter(({ value }) => value !== undefined)
  const isFiltered = active.length + ownActive.length > 0
  return (
    <div className="filter-bar">
      <div className="filter-tools">
        <RangeMenu value={spanSearchOf(search)} today={today} onChange={span => onChange({ ...filters, ...span }, {})} />
        <Button icon="filter" onClick={() => setOpen(true)}>
          {text.filter}
        </Button>
        {children}
      </div>
      {isFiltered && (
        <ul className="filter-chips" aria-label={text.filters}>
          {active.map(name => (
            <Chip
              key={name}
              label={text.names[name]}
              value={nameOf(name)}
              onRemove={() => onChange({ ...without(filters, name), ...spanSearchOf(search) }, {})}
            />
          ))}
          {ownActive.map(({ name, label, value, options }) => (
            <Chip
              key={name}
              label={label}
              value={options.find(option => option.value === value)?.label ?? String(value)}
              onRemove={() => onChange({ ...filters, ...spanSearchOf(search) }, { [name]: undefined })}
            />
          ))}
          <li>
            <Button size="sm" look="ghost" onClick={() => onChange(spanSearchOf(search), Object.fromEntries(own.map(({ name }) => [name, undefined])))}>
              {text.clear}
            </Button>
          </li>
        </ul>
      )}
      {isOpen && (
        <FilterDialog
          filters={filters}
          choices={choices}
          isPending={isPending}
          error={error}
          nameOf={nameOf}
          own={own}
          onClose={() => setOpen(false)}
          onApply={(next, values) => {
            setOpen(false)
            onChange({ ...spanSearchOf(search), ...next }, values)
          }}
        />
      )}
    </div>
  )
}

function Chip({ label, value, onRemove }: { readonly label: string; readonly value: string; readonly onRemove: () => void }) {
  return (
    <li className="filter-chip">
      <span className="quiet">{label}</span>
      <span className="filter-value" title={value}>
        {value}
      </span>
      <button type="button" aria-label={text.remove(`${label} ${value}`)} title={text.remove(`${label} ${value}`)} onClick={onRemove}>
        <Icon name="close" size={12} />
      </button>
    </li>
  )
}
