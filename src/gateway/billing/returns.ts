/**
 * Takes back money that a refund or a dispute returned to the payer. Reports come in any order, repeatedly, and even before the payment itself. For
 * each refund or dispute, the provider's last report counts. The gateway takes the sum of all returns of a payment, at most the credited amount. So
 * no order of reports takes money twice. Decision 0382 says why.
 */
import type { Tx } from '../../platform/db/db.ts'
import type { NewsItem } from '../../platform/db/db-control-log.ts'
import { GatewayError } from '../../platform/errors.ts'
import { balanceOf, creditIn } from '../limits/budgets/prepaid.ts'
import type { Mail } from '../mail/mail.ts'
import { receiptReaders } from './invoices/receipt-queries.ts'
import { rupeesOf } from './invoices/tax/indian-money.ts'
import { type OnDebited, rearmLowBalance } from './low-balance.ts'
import { lockOrder } from './payments/payment-queries.ts'
import { countMove, findReturns, listReturns, putReturn, setReturned } from './return-queries.ts'

export interface ReturnDeps {
  readonly mail: Pick<Mail, 'enqueue'>
  readonly onDebited: OnDebited
  /** Writes the line of the audit trail in the transaction of the return. `act` is takeBackPayment or giveBackPayment. */
  readonly onReturned: (tx: Tx, orgId: number, act: string, target: string) => Promise<void>
  readonly baseUrl: () => string
}

/** The provider's report about a refund or dispute. */
export interface ReportedReturn {
  readonly returnId: string
  readonly kind: 'refund' | 'dispute'
  readonly orderId: string
  readonly paymentId: string
  /** In micro-rupees, above zero. */
  readonly amountUinr: bigint
  /** True when the money has gone back. */
  readonly takes: boolean
  readonly event: string
  /** The time of the event by the provider's clock. */
  readonly toldAt: Date
  /** Of two events in the same second, the one with the higher rank counts. */
  readonly rank: number
}

export type ReturnOutcome =
  /** This gateway does not know the order. */
  | { readonly kind: 'unknown' }
  /** No money has moved: the report is a repetition, is older than another one, or is about a payment that is not credited. */
  | { readonly kind: 'noted'; readonly orgId: number }
  /** `movedUinr` is below zero when money was taken from the balance. */
  | { readonly kind: 'moved'; readonly orgId: number; readonly movedUinr: bigint; readonly balanceUinr: bigint }

/** Handles a report about a refund or dispute. The caller has checked a signature of the provider. */
export async function returnIn(deps: ReturnDeps, tx: Tx, reported: ReportedReturn, at: Date): Promise<{ outcome: ReturnOutcome; news: readonly NewsItem[] }> {
  const { returnId, kind, orderId, paymentId, amountUinr, takes, event, toldAt, rank } = reported
  const order = await tx.maybe(lockOrder, orderId)
  if (order === null) return { outcome: { kind: 'unknown' }, news: [] }
  const { orgId } = order
  const isNews = (await tx.maybe(putReturn, returnId, orgId, orderId, paymentId, kind, amountUinr, takes, event, toldAt, rank, at)) !== null
  const moved = isNews ? await settleReturns(deps, tx, { orgId, paymentId, returnId, at }) : null
  if (moved === null) return { outcome: { kind: 'noted', orgId }, news: [] }
  return { outcome: { kind: 'moved', orgId, movedUinr: moved.movedUinr, balanceUinr: moved.balanceUinr }, news: moved.news }
}

/** Takes back the money of returns that were reported before the payment was credited. Call it in the transaction of the credit. */
export async function returnsBeforeCredit(deps: ReturnDeps, tx: Tx, orgId: number, paymentId: string, at: Date): Promise<readonly NewsItem[]> {
  const last = (await tx.many(listReturns, paymentId)).at(-1)
  return last === undefined ? [] : ((await settleReturns(deps, tx, { orgId, paymentId, returnId: last.returnId, at }))?.news ?? [])
}

interface Moved {
  readonly movedUinr: bigint
  readonly balanceUinr: bigint
  readonly news: readonly NewsItem[]
}

/** Adjusts the balance to the returns of a payment. Returns null when the balance is already correct. The new row of the ledger names `returnId`. */
async function settleReturns(
  deps: ReturnDeps,
  tx: Tx,
  { orgId, paymentId, returnId, at }: { orgId: number; paymentId: string; returnId: string; at: Date },
): Promise<Moved | null> {
  const payment = await tx.maybe(findReturns, orgId, paymentId)
  if (payment === null) return null
  const { amountUinr, bonusUinr, returnedUinr, returnedBonusUinr, goneUinr } = payment
  const gone = goneUinr < amountUinr ? goneUinr : amountUinr
  const goneBonus = shareOf(bonusUinr, gone, amountUinr)
  const movedUinr = returnedUinr + returnedBonusUinr - gone - goneBonus
  if (gone !== returnedUinr || goneBonus !== returnedBonusUinr) await tx.exec(setReturned, orgId, paymentId, gone, goneBonus)
  if (movedUinr === 0n) return null
  const { moves, kind } = await tx.one(countMove, returnId)
  const reason = kind === 'refund' ? 'refund' : 'chargeback'
  const { credited, balanceUinr, news } = await creditIn(tx, { orgId, amountUinr: movedUinr, reason, ref: refOf(paymentId, returnId, moves), at })
  if (!credited) throw new Error('a movement of a return is in the ledger already')
  if (movedUinr < 0n) await deps.onDebited(tx, [{ orgId, balanceUinr }])
  else await rearmLowBalance(tx, orgId, balanceUinr)
  await deps.onReturned(tx, orgId, movedUinr < 0n ? 'takeBackPayment' : 'giveBackPayment', `payment=${paymentId} ${kind}=${returnId}`)
  await notify(deps, tx, { orgId, paymentId, returnId, kind, movedUinr, moves })
  return { movedUinr, balanceUinr: await balanceOf(tx, orgId), news }
}

/** Returns the part of the bonus that belongs to a part of its payment, rounded half up. The whole payment has the whole bonus. */
function shareOf(bonusUinr: bigint, partUinr: bigint, amountUinr: bigint): bigint {
  return amountUinr === 0n ? 0n : (2n * bonusUinr * partUinr + amountUinr) / (2n * amountUinr)
}

/** Returns the ref of a movement in the ledger. */
const refOf = (paymentId: string, returnId: string, moves: number): string => `${paymentId} ${returnId}${moves === 1 ? '' : ` ${moves}`}`

interface Movement {
  readonly orgId: number
  readonly paymentId: string
  readonly returnId: string
  readonly kind: 'refund' | 'dispute'
  readonly movedUinr: bigint
  readonly moves: number
}

const uinrPerPaisa = 10_000n

/** Sends a mail to the recipients of receipts. An invalid address does not stop the return. */
async function notify({ mail, baseUrl }: ReturnDeps, tx: Tx, { orgId, paymentId, returnId, kind, movedUinr, moves }: Movement): Promise<void> {
  const isTaken = movedUinr < 0n
  const amount = rupeesOf((isTaken ? -movedUinr : movedUinr) / uinrPerPaisa)
  for (const { email, orgName, reader } of await tx.many(receiptReaders, orgId)) {
    const letter = {
      orgId,
      to: email,
      template: 'payment_returned',
      data: { orgName, amount, paymentId, returnId, kind, direction: isTaken ? 'taken' : 'given', link: `${baseUrl()}/auth?return_to=%2Fme%2Fbilling` },
      onceKey: `return:${returnId}:${moves}:${reader}`,
    } as const
    await mail.enqueue(tx, letter).catch((error: unknown) => {
      if (!(error instanceof GatewayError && error.errorName === 'bad_email')) throw error
    })
  }
}
