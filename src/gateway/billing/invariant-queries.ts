/** Finds contradictions among payments, invoices and promo codes. Each statement reads the whole database and returns what is wrong. */
import { statement } from '../../platform/db/db.ts'

/**
 * Finds violations of two rules: a captured payment has one credit of its amount, one invoice over this amount, and one paid order; nothing else
 * credits a top-up.
 */
export const violationsOfCaptures = statement<
  [],
  { paymentId: string; ledger: bigint; invoices: number; invoicedUinr: bigint; paid: boolean; amountUinr: bigint }
>(
  'billing.violations_of_captures',
  `select p.payment_id as "paymentId", p.amount_uinr as "amountUinr", coalesce(l.amount, 0)::bigint as "ledger",
          coalesce(i.count, 0)::int as "invoices", coalesce(i.total, 0)::bigint as "invoicedUinr", o.status = 'paid' as "paid"
   from payments p join payment_orders o on o.order_id = p.order_id
   left join lateral (select sum(amount_uinr) as amount from ledger where payment_id = p.payment_id and reason = 'topup' and org_id = p.org_id) l on true
   left join lateral (select count(*) as count, sum(total_paise) * 10000 as total from invoices where payment_id = p.payment_id and org_id = p.org_id) i on true
   where p.status = 'captured'
     and (coalesce(l.amount, 0) <> p.amount_uinr or i.count <> 1 or coalesce(i.total, 0) <> p.amount_uinr or o.status <> 'paid' or o.org_id <> p.org_id)`,
)

/** Finds credits and invoices of payments that were not captured, and paid orders without a captured payment. */
export const violationsOfUncaptured = statement<[], { what: string; ref: string }>(
  'billing.violations_of_uncaptured',
  `select 'credit' as "what", l.payment_id as "ref" from ledger l left join payments p on p.payment_id = l.payment_id and p.status = 'captured'
   where l.reason = 'topup' and p.payment_id is null
   union all
   select 'invoice', i.number from invoices i left join payments p on p.payment_id = i.payment_id and p.status = 'captured' where p.payment_id is null
   union all
   select 'paid order', o.order_id from payment_orders o left join payments p on p.order_id = o.order_id and p.status = 'captured'
   where o.status = 'paid' and p.payment_id is null`,
)

/** Finds violations of this rule: a series has each number from 1 to its last number exactly once. */
export const violationsOfSeries = statement<[], { series: string; last: number; count: number; highest: number }>(
  'billing.violations_of_series',
  `select s.series as "series", s.last as "last", count(i.number)::int as "count", coalesce(max(i.seq), 0)::int as "highest"
   from invoice_series s left join invoices i on i.series = s.series group by s.series, s.last
   having count(i.number) <> s.last or coalesce(max(i.seq), 0) <> s.last`,
)

/** Finds violations of this rule: the counter of a promo code is the number of its redemptions. */
export const violationsOfPromos = statement<[], { code: string; counted: number; found: number }>(
  'billing.violations_of_promos',
  `select c.code as "code", c.redemptions as "counted", count(r.org_id)::int as "found"
   from promo_codes c left join promo_redemptions r on r.code = c.code group by c.code, c.redemptions having count(r.org_id) <> c.redemptions`,
)

/** Finds violations of this rule: a redemption has one credit of the bonus of its payment, and every credit of a bonus has a redemption. */
export const violationsOfBonuses = statement<[], { orgId: number; code: string; credited: bigint | null; bonus: bigint | null }>(
  'billing.violations_of_bonuses',
  `select coalesce(l.org_id, r.org_id) as "orgId", coalesce(l.ref, r.code) as "code", l.amount_uinr as "credited", r.bonus_uinr as "bonus"
   from (select org_id, ref, amount_uinr from ledger where reason = 'promo') l
   full join (select r.org_id, r.code, p.bonus_uinr from promo_redemptions r left join payments p on p.payment_id = r.payment_id and p.status = 'captured') r
     on r.org_id = l.org_id and r.code = l.ref
   where l.amount_uinr is distinct from r.bonus_uinr`,
)

/**
 * Finds violations of two rules. The returned amount of a captured payment is the sum of its returns, and at most the whole payment. The returned
 * amount and the returned bonus together are the amount that the ledger has taken back.
 */
export const violationsOfReturns = statement<[], { paymentId: string; goneUinr: bigint; returnedUinr: bigint; takenUinr: bigint }>(
  'billing.violations_of_returns',
  `select coalesce(p.payment_id, l.payment_id, r.payment_id) as "paymentId", coalesce(r.gone, 0)::bigint as "goneUinr",
          coalesce(p.returned_uinr + p.returned_bonus_uinr, 0)::bigint as "returnedUinr", coalesce(-l.amount, 0)::bigint as "takenUinr"
   from (select * from payments where status = 'captured') p
   full join (select split_part(ref, ' ', 1) as payment_id, sum(amount_uinr) as amount from ledger where reason in ('refund', 'chargeback') group by 1) l
     on l.payment_id = p.payment_id
   left join (select payment_id, sum(amount_uinr) as gone from payment_returns where takes group by payment_id) r on r.payment_id = p.payment_id
   where coalesce(-l.amount, 0) <> coalesce(p.returned_uinr + p.returned_bonus_uinr, 0)
      or (p.payment_id is not null and (p.returned_uinr <> least(p.amount_uinr, coalesce(r.gone, 0)) or p.returned_bonus_uinr > p.bonus_uinr))`,
)
