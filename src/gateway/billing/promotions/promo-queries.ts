import { statement } from '../../../platform/db/db.ts'

/** What a code gives, to whom, and until when. */
export interface PromoTerms {
  readonly bonusUinr: bigint
  /** Least top-up that the bonus comes with. */
  readonly topupMinUinr: bigint
  readonly redemptionsMax: number | null
  readonly redemptions: number
  readonly expiresAt: Date | null
  readonly endedAt: Date | null
}

/** The terms, and whether the organisation that asks has redeemed the code. */
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

/** Captures of all organisations that bring the same code go one after the other from here. */
export const lockPromo = statement<[code: string], { code: string }>(
  'billing.lock_promo',
  `select code from promo_codes where code = $1::text for no key update`,
)

/** No row when the organisation has redeemed the code before. */
export const insertRedemption = statement<[orgId: number, code: string, paymentId: string, at: Date]>(
  'billing.insert_redemption',
  `insert into promo_redemptions (org_id, code, payment_id, at) values ($1::int, $2::text, $3::text, $4::timestamptz) on conflict do nothing`,
)

export const countRedemption = statement<[code: string]>(
  'billing.count_redemption',
  `update promo_codes set redemptions = redemptions + 1 where code = $1::text`,
)
