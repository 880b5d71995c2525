import { percent, shortMoney, withDisplay } from '../format/numbers.ts'

interface BudgetBarProps {
  readonly capInr: number | null
  readonly spentInr: number
  /** Reserved by running calls. */
  readonly heldInr?: number
  /** Of calls whose end is not known yet. */
  readonly inDoubtInr?: number
  /** False: only the bar, for a table that has the figures beside it. */
  readonly hasFigures?: boolean
}

const warnShare = 0.8

/** A budget as a bar: spent, held by running calls, in doubt, and what is left. A scope without a budget shows what it spent. */
export function BudgetBar({ capInr, spentInr, heldInr = 0, inDoubtInr = 0, hasFigures = true }: BudgetBarProps) {
  if (capInr === null)
    return (
      <div className="budget">
        <p className="budget-figures">
          <span className="tabular">{withDisplay(shortMoney(spentInr), spentInr)}</span> <span className="quiet">spent · no limit</span>
        </p>
      </div>
    )
  const share = capInr === 0 ? 1 : spentInr / capInr
  const used = capInr === 0 ? 1 : (spentInr + heldInr + inDoubtInr) / capInr
  const tone = share >= 1 ? 'bad' : used >= warnShare ? 'warn' : 'calm'
  const width = (inr: number): { inlineSize: string } => ({ inlineSize: `${Math.min(100, capInr === 0 ? 100 : (inr / capInr) * 100)}%` })
  const left = Math.max(0, capInr - spentInr - heldInr - inDoubtInr)
  const parts = [
    `${shortMoney(spentInr)} spent`,
    ...(heldInr > 0 ? [`${shortMoney(heldInr)} held`] : []),
    ...(inDoubtInr > 0 ? [`${shortMoney(inDoubtInr)} in doubt`] : []),
    `${shortMoney(left)} left`,
  ]
  const words = `${parts.join(', ')} of ${shortMoney(capInr)}`
  return (
    <div className="budget">
      <div className={`budget-bar budget-${tone}`} role="img" aria-label={words} title={words}>
        <span className="budget-spent" style={width(spentInr)} />
        <span className="budget-held" style={width(heldInr)} />
        <span className="budget-doubt" style={width(inDoubtInr)} />
      </div>
      {hasFigures && (
        <p className="budget-figures">
          <span className="tabular">{withDisplay(shortMoney(spentInr), spentInr)}</span>{' '}
          <span className="quiet">of {withDisplay(shortMoney(capInr), capInr)}</span>
          <span className={`budget-share budget-share-${tone}`}>{percent(share)}</span>
        </p>
      )}
    </div>
  )
}
