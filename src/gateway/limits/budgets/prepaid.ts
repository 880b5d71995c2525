/**
 * The prepaid balance of an organisation and its ledger. The balance is what the prepaid counter has left (cap - spent) and always
 * the sum of the ledger; both change in one transaction, so nobody ever sees one without the other. Decision 0324 says why.
 */
import type { Queryable, Tx } from '../../../platform/db/db.ts'
import type { NewsItem } from '../../../platform/db/db-control-log.ts'
import { capChanged } from './budgets.ts'
import { addCredit, addDeduction, findBalance, insertLedgerRow, lockPrepaid } from './prepaid-queries.ts'

/** Why money came or went, beside usage. */
export type CreditReason = 'topup' | 'promo' | 'grant' | 'correction' | 'refund' | 'chargeback'

/** What may take money away. */
const takers: readonly CreditReason[] = ['correction', 'refund', 'chargeback']

export interface Credit {
  readonly orgId: number
  /** Micro-rupees; below zero only for a correction and for money of a top-up that went back. Never 0. */
  readonly amountUinr: bigint
  readonly reason: CreditReason
  /** What it is about: a payment id, a promo code, the operator's word. The same reason and ref are credited once. */
  readonly ref: string
  /** The payment behind a top-up; no payment is credited twice. */
  readonly paymentId?: string
  readonly at: Date
}

export interface CreditOutcome {
  /** False: it was credited before, and nothing has changed. */
  readonly credited: boolean
  readonly balanceUinr: bigint
  /** For the control log of the caller, who appends and applies it: refusals that are remembered are out of date. */
  readonly news: readonly NewsItem[]
}

/** Adds money to the balance, or takes some away where the reason is one that may, once. */
export async function creditIn(tx: Tx, { orgId, amountUinr, reason, ref, paymentId, at }: Credit): Promise<CreditOutcome> {
  if (amountUinr === 0n || (amountUinr < 0n && !takers.includes(reason))) throw new RangeError('a credit is an amount above zero')
  // The counter first, everywhere: flushes take its lock before they write to the ledger.
  await tx.one(lockPrepaid, orgId)
  const added = await tx.exec(insertLedgerRow, orgId, takers.includes(reason) ? 'adjust' : 'credit', amountUinr, reason, ref, paymentId ?? null, at)
  if (added === 0) return { credited: false, balanceUinr: await balanceOf(tx, orgId), news: [] }
  const { balanceUinr } = await tx.one(amountUinr > 0n ? addCredit : addDeduction, orgId, amountUinr > 0n ? amountUinr : -amountUinr)
  return { credited: true, balanceUinr, news: [{ kind: capChanged, ref: `${orgId}:org:${orgId}` }] }
}

/** What is left; below zero when calls cost more than was there. 0 for an organisation that never had credit. */
export async function balanceOf(db: Queryable, orgId: number): Promise<bigint> {
  return (await db.maybe(findBalance, orgId))?.balanceUinr ?? 0n
}
