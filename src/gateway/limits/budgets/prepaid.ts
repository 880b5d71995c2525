/**
 * The prepaid balance of an organisation and its ledger. The balance is the rest of the prepaid counter (cap - spent) and always the sum of the
 * ledger. Both change in one transaction, so a reader never sees one change without the other. Decision 0324 gives the reasons.
 */
import type { Queryable, Tx } from '../../../platform/db/db.ts'
import type { NewsItem } from '../../../platform/db/db-control-log.ts'
import { capChanged } from './budgets.ts'
import { addCredit, addDeduction, findBalance, insertLedgerRow, lockPrepaid } from './prepaid-queries.ts'

/** The reason for a change of the balance other than usage. */
export type CreditReason = 'topup' | 'promo' | 'grant' | 'correction' | 'refund' | 'chargeback'

/** The reasons that may reduce the balance. */
const takers: readonly CreditReason[] = ['correction', 'refund', 'chargeback']

export interface Credit {
  readonly orgId: number
  /** Micro-rupees, never 0. It is below zero only for a correction and for money of a top-up that went back. */
  readonly amountUinr: bigint
  readonly reason: CreditReason
  /** The subject of the credit: a payment id, a promo code, or the operator's text. The same reason and ref are credited once. */
  readonly ref: string
  /** The payment of a top-up. A payment is never credited twice. */
  readonly paymentId?: string
  readonly at: Date
}

export interface CreditOutcome {
  /** False when the same credit was made before, so that nothing has changed. */
  readonly credited: boolean
  readonly balanceUinr: bigint
  /** The news for the control log. The caller appends and applies them, because remembered refusals are out of date. */
  readonly news: readonly NewsItem[]
}

/** Adds money to the balance once. For the reasons in `takers` the amount may be negative and reduce the balance. */
export async function creditIn(tx: Tx, { orgId, amountUinr, reason, ref, paymentId, at }: Credit): Promise<CreditOutcome> {
  if (amountUinr === 0n || (amountUinr < 0n && !takers.includes(reason))) throw new RangeError('a credit is an amount above zero')
  // The counter is always locked first, because flushes lock it before they write to the ledger.
  await tx.one(lockPrepaid, orgId)
  const added = await tx.exec(insertLedgerRow, orgId, takers.includes(reason) ? 'adjust' : 'credit', amountUinr, reason, ref, paymentId ?? null, at)
  if (added === 0) return { credited: false, balanceUinr: await balanceOf(tx, orgId), news: [] }
  const { balanceUinr } = await tx.one(amountUinr > 0n ? addCredit : addDeduction, orgId, amountUinr > 0n ? amountUinr : -amountUinr)
  return { credited: true, balanceUinr, news: [{ kind: capChanged, ref: `${orgId}:org:${orgId}` }] }
}

/** Returns the balance in micro-rupees. It is below zero when calls cost more than the balance, and 0 for an organisation that never had credit. */
export async function balanceOf(db: Queryable, orgId: number): Promise<bigint> {
  return (await db.maybe(findBalance, orgId))?.balanceUinr ?? 0n
}
