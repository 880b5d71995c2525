import type { ReactNode } from 'react'

interface FactsProps {
  /** Label and value of each fact. */
  readonly facts: readonly (readonly [label: string, value: ReactNode])[]
  readonly className?: string
}

/** Facts of one object, each with its label. */
export function Facts({ facts, className = 'facts' }: FactsProps) {
  return (
    <dl className={className}>
      {facts.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}
