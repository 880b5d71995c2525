import { displayMoney, exactMoney, money, shortMoney } from '../format/numbers.ts'

/** An amount in rupees, and in the display currency of the organisation beside it. The tooltip has all digits of the rupees. */
export function Money({ inr, isShort = false }: { readonly inr: number; readonly isShort?: boolean }) {
  const beside = displayMoney(inr)
  return (
    <span className="tabular" title={exactMoney(inr)}>
      {isShort ? shortMoney(inr) : money(inr)}
      {beside !== null && <span className="quiet"> · {beside}</span>}
    </span>
  )
}
