/** The operator's statements about manual credits and promo codes. */
import { statement } from '../../../platform/db/db.ts'
import { type PromoTerms, promoTerms } from '../promotions/promo-queries.ts'

export interface LedgerRow {
  readonly id: bigint
  readonly reason: string
  readonly amountUinr: bigint
  readonly balanceAfterUinr: bigint
  readonly ref: string | null
  readonly at: Date
}

/** The newest rows of the ledger of an organisation. The balance after each row is computed backwards from the present balance in the same statement. */
export const listLatestEntries = statement<[orgId: number, limit: number], LedgerRow>(
  'billing.list_latest_entries',
  `with latest as (
     select id, reason, amount_uinr, coalesce(ref, payment_id, event_id::text) as ref, at from ledger where org_id = $1::int order by id desc limit $2::int),
   balance as (
     select coalesce(sum(cap - spent), 0) as now from counters
     where org_id = $1::int and scope = 'org' and scope_id = $1::int::text and metric = 'prepaid' and period = 'ever')
   select l.id, l.reason, l.amount_uinr as "amountUinr", l.ref, l.at,
          (b.now - coalesce(sum(l.amount_uinr) over (order by l.id desc rows between unbounded preceding and 1 preceding), 0))::bigint as "balanceAfterUinr"
   from latest l cross join balance b order by l.id desc`,
)

/** Finds an earlier credit by its reason and ref. */
export const findEntry = statement<[orgId: number, reason: string, ref: string], { amountUinr: bigint; at: Date }>(
  'billing.find_entry',
  `select amount_uinr as "amountUinr", at from ledger where org_id = $1::int and reason = $2::text and ref = $3::text`,
)

export interface PromoRow extends PromoTerms {
  readonly code: string
  readonly createdAt: Date
}

const promoColumns = `code, ${promoTerms}, created_at as "createdAt"`

/** Returns no row when a code of that name exists or existed, because codes are never reused. */
export const insertPromo = statement<
  [code: string, bonusUinr: bigint, topupMinUinr: bigint, redemptionsMax: number | null, expiresAt: Date | null, at: Date],
  PromoRow
>(
  'billing.insert_promo',
  `insert into promo_codes (code, bonus_uinr, topup_min_uinr, redemptions_max, expires_at, created_at)
   values ($1::text, $2::bigint, $3::bigint, $4::int, $5::timestamptz, $6::timestamptz)
   on conflict (code) do nothing returning ${promoColumns}`,
)

export const listPromos = statement<[], PromoRow>('billing.list_promos', `select ${promoColumns} from promo_codes order by created_at desc, code`)

/** Ends a code. A code that has already ended keeps its time of end. Returns no row when there is no such code. */
export const endPromo = statement<[code: string, at: Date], PromoRow>(
  'billing.end_promo',
  `update promo_codes set ended_at = coalesce(ended_at, $2::timestamptz) where code = $1::text returning ${promoColumns}`,
)
