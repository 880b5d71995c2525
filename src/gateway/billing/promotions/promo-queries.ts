import { statement } from '../../../platform/db/db.ts'

/** The terms and the use of a code. */
export interface PromoTerms {
  readonly bonusUinr: bigint
  /** Minimum top-up for the bonus. */
  readonly topupMinUinr: bigint
  readonly redemptionsMax: number | null
  readonly redemptions: number
  readonly expiresAt: Date | null
  readonly endedAt: Date | null
}

/** The terms, and whether the requesting organisation has redeemed the code. */
export interface AskedPromo extends PromoTerms {
  readonly redeemed: boolean
}

/** Columns of PromoTerms in promo_codes. */
export const promoTerms = `bonus_uinr as "bonusUinr", topup_min_uinr as "topupMinUinr", redemptions_max as "redemptionsMax", redemptions,
  expires_at as "expiresAt", ended_at as "endedAt"`

export const findPromo = statement<[orgId: number, code: string], AskedPromo>(
  'billing.find_promo',
  `select ${promoTerms}, exists (select 1 from promo_redemptions r where r.org_id = $1::int and r.code = p.code) as "redeemed"
   from promo_codes p where p.code = $2::text`,
)

/** Locks a code, so that captures of all organisations with this code run one after the other. */
export const lockPromo = statement<[code: string], { code: string }>(
  'billing.lock_promo',
  `select code from promo_codes where code = $1::text for no key update`,
)

/** Returns no row when the organisation has redeemed the code before. */
export const insertRedemption = statement<[orgId: number, code: string, paymentId: string, at: Date]>(
  'billing.insert_redemption',
  `insert into promo_redemptions (org_id, code, payment_id, at) values ($1::int, $2::text, $3::text, $4::timestamptz) on conflict do nothing`,
)

export const countRedemption = statement<[code: string]>(
  'billing.count_redemption',
  `update promo_codes set redemptions = redemptions + 1 where code = $1::text`,
)
