/**
 * Promo codes. A code gives a bonus on top of a top-up, once for each organisation. The gateway checks a code when it makes an order and redeems the
 * code when the order is paid.
 */
import type { Queryable, Tx } from '../../../platform/db/db.ts'
import type { NewsItem } from '../../../platform/db/db-control-log.ts'
import { fail, type GatewayError } from '../../../platform/errors.ts'
import { inrTextOf } from '../../../platform/values/money.ts'
import { creditIn } from '../../limits/budgets/prepaid.ts'
import { type AskedPromo, countRedemption, findPromo, insertRedemption, lockPromo } from './promo-queries.ts'

/** The reasons why a code gives no bonus, as the API returns them. */
export type PromoRefusal = 'promo_unknown' | 'promo_ended' | 'promo_expired' | 'promo_used_up' | 'promo_redeemed' | 'promo_topup_too_small'

export interface PromoOffer {
  readonly code: string
  readonly bonusUinr: bigint
  /** 0 when a top-up of any amount is enough. */
  readonly topupMinUinr: bigint
}

export interface PromoCheck {
  readonly orgId: number
  /** The code as the person typed it. */
  readonly code: string
  /** The amount of the top-up. Null while the amount is not known. */
  readonly topupUinr: bigint | null
  readonly at: Date
}

export interface Redemption extends PromoCheck {
  readonly topupUinr: bigint
  readonly paymentId: string
}

export type Redeemed =
  | { readonly refusal: null; readonly bonusUinr: bigint; readonly balanceUinr: bigint; readonly news: readonly NewsItem[] }
  | { readonly refusal: PromoRefusal }

const codeShape = /^[A-Z0-9][A-Z0-9-]{2,31}$/

/** Returns what the code is worth to the organisation now. It does not redeem the code. Throws `promo_invalid` or `promo_redeemed`. */
export async function checkPromo(db: Queryable, { orgId, code: typed, topupUinr, at }: PromoCheck): Promise<PromoOffer> {
  const code = typed.trim().toUpperCase()
  const terms = codeShape.test(code) ? await db.maybe(findPromo, orgId, code) : null
  if (terms === null) throw refused('promo_unknown')
  const refusal = refusalOf(terms, topupUinr, at)
  if (refusal !== null) throw refused(refusal, terms)
  return { code, bonusUinr: terms.bonusUinr, topupMinUinr: terms.topupMinUinr }
}

/** Credits the bonus and counts the redemption, in the same transaction that credits the top-up. Otherwise returns why there is no bonus. */
export async function redeemIn(tx: Tx, { orgId, code, topupUinr, paymentId, at }: Redemption): Promise<Redeemed> {
  await tx.maybe(lockPromo, code)
  // A separate statement reads the terms after the lock, so it sees what the previous capture committed.
  const terms = await tx.maybe(findPromo, orgId, code)
  if (terms === null) return { refusal: 'promo_unknown' }
  const refusal = refusalOf(terms, topupUinr, at)
  if (refusal !== null) return { refusal }
  if ((await tx.exec(insertRedemption, orgId, code, paymentId, at)) === 0) return { refusal: 'promo_redeemed' }
  await tx.exec(countRedemption, code)
  const { credited, balanceUinr, news } = await creditIn(tx, { orgId, amountUinr: terms.bonusUinr, reason: 'promo', ref: code, at })
  if (!credited) throw new Error('a promo bonus is in the ledger without its redemption')
  return { refusal: null, bonusUinr: terms.bonusUinr, balanceUinr, news }
}

/**
 * Returns the reason why a code gives no bonus, or null. The function is pure. When the organisation has redeemed the code, the reason is always
 * `promo_redeemed`, even if the terms have changed since.
 */
export function refusalOf(terms: AskedPromo, topupUinr: bigint | null, at: Date): PromoRefusal | null {
  if (terms.redeemed) return 'promo_redeemed'
  if (terms.endedAt !== null) return 'promo_ended'
  if (terms.expiresAt !== null && terms.expiresAt <= at) return 'promo_expired'
  if (terms.redemptionsMax !== null && terms.redemptions >= terms.redemptionsMax) return 'promo_used_up'
  if (topupUinr !== null && topupUinr < terms.topupMinUinr) return 'promo_topup_too_small'
  return null
}

function refused(refusal: PromoRefusal, terms?: AskedPromo): GatewayError {
  switch (refusal) {
    case 'promo_redeemed':
      return fail('promo_redeemed')
    case 'promo_ended':
    case 'promo_expired':
      return fail('promo_invalid', { message: 'This promo code has expired. Leave it out or use another.' })
    case 'promo_used_up':
      return fail('promo_invalid', { message: 'This promo code has been redeemed as often as it can be. Leave it out or use another.' })
    case 'promo_topup_too_small':
      return fail('promo_invalid', { message: `This promo code needs a top-up of at least ₹${inrTextOf(terms?.topupMinUinr ?? 0n)}.` })
    case 'promo_unknown':
      return fail('promo_invalid', { message: 'There is no such promo code. Look at how it is written, or leave it out.' })
  }
}
