import { statement } from '../../platform/db/db.ts'

/** One account. Inside the JSON lists, amounts are texts in micro-rupees, because JSON has no bigint, and times are Unix milliseconds. */
export interface OverviewRow {
  readonly balanceUinr: bigint
  readonly thresholdUinr: bigint | null
  readonly address: AddressJson | null
  readonly ledger: readonly LedgerJson[]
  readonly payments: readonly PaymentJson[]
  readonly usage: readonly UsageJson[]
}

export interface AddressJson {
  readonly name: string
  readonly line1: string
  readonly line2: string | null
  readonly city: string
  readonly state: string
  readonly state_code: string
  readonly pincode: string
  readonly country: string
}

export interface LedgerJson {
  readonly id: string
  readonly kind: 'credit' | 'debit' | 'adjust'
  readonly reason: 'usage' | 'topup' | 'promo' | 'grant' | 'correction' | 'refund' | 'chargeback'
  readonly uinr: string
  readonly ref: string
  readonly ms: number
}

export interface PaymentJson {
  readonly payment_id: string
  readonly order_id: string
  /** `settled`: the payment was flagged, and the operator decided without crediting it. */
  readonly status: 'captured' | 'failed' | 'flagged' | 'settled'
  readonly uinr: string
  readonly bonus: string
  readonly returned: string
  readonly currency: string
  readonly method: string | null
  readonly reason: string | null
  readonly promo_code: string | null
  readonly invoice_number: string | null
  readonly ms: number
  readonly captured_ms: number | null
}

export interface UsageJson {
  readonly day: string
  readonly requests: number
  readonly tokens: number
  readonly uinr: string
}

const msOf = (column: string): string => `(extract(epoch from ${column}) * 1000)::float8`

const debitDay = `(l.at at time zone 'Asia/Kolkata')::date`

/**
 * The query reads one range of the index on organisation and id, because no other index has this order. With a plain `org_id = … order by id`, the
 * planner may read the rows of all organisations in the order of their ids. That is slow for an organisation without recent rows. A debit belongs to
 * a call. It shows the request id of the call if the call is still stored. The call is recorded at most two days before or one day after the day of
 * the debit.
 */
const ledgerPage = `
  select l.id, l.kind, l.reason, l.amount_uinr, l.at, coalesce(l.ref, l.payment_id, u.request_id, l.event_id::text) as ref
  from (
    select * from ledger where org_id = any(array[$1::int]) and id < coalesce($2::bigint, 9223372036854775807)
    order by org_id desc, id desc limit $3::int) l
  left join lateral (
    select e.request_id from usage_events e
    where l.event_id is not null and e.id = l.event_id and e.day = any(array[${debitDay} - 2, ${debitDay} - 1, ${debitDay}, ${debitDay} + 1])
    limit 1) u on true`

const newestPayments = `
  select p.payment_id, p.order_id, case when p.status = 'flagged' and p.settled_at is not null then 'settled' else p.status end as status, p.amount_uinr, p.bonus_uinr, p.returned_uinr, p.currency, p.method, p.reason, p.promo_code, p.created_at, p.captured_at,
    i.number as invoice_number
  from payments p left join invoices i on i.payment_id = p.payment_id where p.org_id = $1::int order by p.created_at desc, p.payment_id desc limit $4::int`

const usageByDay = `
  select day, sum(requests)::bigint as requests, sum(prompt_tokens + completion_tokens)::bigint as tokens, sum(cost_uinr)::bigint as cost_uinr
  from usage_days where org_id = $1::int and day between $5::date and $6::date group by day`

/**
 * Reads a whole account in one statement, so that the returned balance is the sum of the returned ledger. Usage is oldest first. All other lists are
 * newest first.
 */
export const findOverview = statement<
  [orgId: number, beforeId: bigint | null, ledgerMax: number, paymentsMax: number, fromDay: string, toDay: string],
  OverviewRow
>(
  'billing.find_overview',
  `select
     coalesce((select c.cap - c.spent from counters c
       where c.org_id = $1::int and c.scope = 'org' and c.scope_id = $1::int::text and c.metric = 'prepaid' and c.period = 'ever'), 0)::bigint as "balanceUinr",
     (select a.low_balance_threshold_uinr from billing_accounts a where a.org_id = $1::int) as "thresholdUinr",
     (select jsonb_build_object('name', a.name, 'line1', a.line1, 'line2', a.line2, 'city', a.city, 'state', a.state, 'state_code', a.state_code,
        'pincode', a.pincode, 'country', a.country) from billing_addresses a where a.org_id = $1::int) as "address",
     (select coalesce(jsonb_agg(jsonb_build_object('id', l.id::text, 'kind', l.kind, 'reason', l.reason, 'uinr', l.amount_uinr::text, 'ref', l.ref,
        'ms', ${msOf('l.at')}) order by l.id desc), '[]') from (${ledgerPage}) l) as "ledger",
     (select coalesce(jsonb_agg(jsonb_build_object('payment_id', p.payment_id, 'order_id', p.order_id, 'status', p.status, 'uinr', p.amount_uinr::text,
        'bonus', p.bonus_uinr::text, 'returned', p.returned_uinr::text, 'currency', p.currency, 'method', p.method, 'reason', p.reason, 'promo_code', p.promo_code,
        'invoice_number', p.invoice_number, 'ms', ${msOf('p.created_at')}, 'captured_ms', ${msOf('p.captured_at')})
        order by p.created_at desc, p.payment_id desc), '[]') from (${newestPayments}) p) as "payments",
     (select coalesce(jsonb_agg(jsonb_build_object('day', u.day::text, 'requests', u.requests, 'tokens', u.tokens, 'uinr', u.cost_uinr::text)
        order by u.day), '[]') from (${usageByDay}) u) as "usage"`,
)

export const saveAddress = statement<
  [orgId: number, name: string, line1: string, line2: string | null, city: string, state: string, stateCode: string, pincode: string, country: string, at: Date]
>(
  'billing.save_address',
  `insert into billing_addresses (org_id, name, line1, line2, city, state, state_code, pincode, country, updated_at)
   values ($1::int, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::text, $9::text, $10::timestamptz)
   on conflict (org_id) do update set name = excluded.name, line1 = excluded.line1, line2 = excluded.line2, city = excluded.city, state = excluded.state,
     state_code = excluded.state_code, pincode = excluded.pincode, country = excluded.country, updated_at = excluded.updated_at`,
)

/** Saves the threshold. A changed threshold arms the warning again. The same threshold does not. */
export const saveThreshold = statement<[orgId: number, thresholdUinr: bigint | null, at: Date]>(
  'billing.save_threshold',
  `insert into billing_accounts as a (org_id, low_balance_threshold_uinr, updated_at) values ($1::int, $2::bigint, $3::timestamptz)
   on conflict (org_id) do update set updated_at = excluded.updated_at, low_balance_threshold_uinr = excluded.low_balance_threshold_uinr,
     low_since = case when a.low_balance_threshold_uinr is distinct from excluded.low_balance_threshold_uinr then null else a.low_since end`,
)

export interface ProfileRow {
  readonly legalName: string | null
  readonly billingEmail: string | null
  readonly gstin: string | null
  readonly addressStateCode: string | null
}

export const findBillingProfile = statement<[orgId: number], ProfileRow>(
  'billing.find_profile',
  `select b.legal_name as "legalName", b.billing_email as "billingEmail", b.gstin as "gstin", a.state_code as "addressStateCode"
   from orgs o left join billing_accounts b on b.org_id = o.id left join billing_addresses a on a.org_id = o.id
   where o.id = $1::int and (b.org_id is null or b.org_id = $1::int)`,
)

/** The flag before each value says whether the statement sets the value or leaves it unchanged. */
export const saveBillingProfile = statement<
  [
    orgId: number,
    setsLegalName: boolean,
    legalName: string | null,
    setsBillingEmail: boolean,
    billingEmail: string | null,
    setsGstin: boolean,
    gstin: string | null,
    at: Date,
  ]
>(
  'billing.save_profile',
  `insert into billing_accounts as b (org_id, legal_name, billing_email, gstin, updated_at) values ($1::int, $3::text, $5::text, $7::text, $8::timestamptz)
   on conflict (org_id) do update set updated_at = excluded.updated_at,
     legal_name = case when $2::boolean then excluded.legal_name else b.legal_name end,
     billing_email = case when $4::boolean then excluded.billing_email else b.billing_email end,
     gstin = case when $6::boolean then excluded.gstin else b.gstin end`,
)
