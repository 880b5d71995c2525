import { exactMoney, money, shortMoney } from '../format/numbers.ts'

/** An amount in rupees. The tooltip has all its digits. */
export function Money({ inr, isShort = false }: { readonly inr: number; readonly isShort?: boolean }) {
  return (
    <span className="tabular" title={exactMoney(inr)}>
      {isShort ? shortMoney(inr) : money(inr)}
    </span>
  )
}
