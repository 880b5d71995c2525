import { Icon } from '../../ui/icon.tsx'
import { type Outcome, outcomes } from './text.ts'

/** How a call ended, as an icon and a word. */
export function OutcomeWord({ outcome }: { readonly outcome: Outcome }) {
  const { icon, tone, word, means } = outcomes[outcome]
  return (
    <span className={`outcome outcome-${tone}`} title={means}>
      <Icon name={icon} size={14} />
      {word}
    </span>
  )
}
