import { type KeyboardEvent, type ReactNode, useId } from 'react'

interface TabsProps {
  readonly label: string
  readonly value: string
  readonly onChange: (id: string) => void
  readonly tabs: readonly { readonly id: string; readonly label: string }[]
  /** The content of the chosen tab. */
  readonly children: ReactNode
}

/** Tabs with the keys of their pattern: arrows, Home and End choose a tab. */
export function Tabs({ label, value, onChange, tabs, children }: TabsProps) {
  const base = useId()
  const onKeyDown = (event: KeyboardEvent): void => {
    const at = tabs.findIndex(({ id }) => id === value)
    const target = { ArrowRight: tabs[at + 1] ?? tabs[0], ArrowLeft: tabs[at - 1] ?? tabs.at(-1), Home: tabs[0], End: tabs.at(-1) }[event.key]
    if (target === undefined) return
    event.preventDefault()
    onChange(target.id)
    document.getElementById(`${base}-${target.id}`)?.focus()
  }
  return (
    <div className="tabs">
      <div role="tablist" aria-label={label} className="tab-list">
        {tabs.map(tab => (
          <button
            key={tab.id}
            id={`${base}-${tab.id}`}
            type="button"
            role="tab"
            aria-selected={tab.id === value}
            aria-controls={`${base}-panel`}
            tabIndex={tab.id === value ? 0 : -1}
            className="tab"
            onClick={() => onChange(tab.id)}
            onKeyDown={onKeyDown}
          >
            {tab.label}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${base}-panel`} aria-labelledby={`${base}-${value}`}>
        {children}
      </div>
    </div>
  )
}
