import { statement } from '../../../platform/db/db.ts'

/** Makes the prepaid counter of an organisation if it does not exist, and locks it. */
export const lockPrepaid = statement<[orgId: number], { id: bigint }>(
  'limits.lock_prepaid',
  `insert into counters (org_id, scope, scope_id, metric, period, cap) values ($1::int, 'org', $1::int::text, 'prepaid', 'ever', 0)
   on conflict (org_id, scope, scope_id, metric, period) do update set cap = counters.cap
   returning id as "id"`,
)

/** Adds a row to the ledger unless the ledger already has the same credit or the same payment. */
export const insertLedgerRow = statement<[orgId: number, kind: string, amountUinr: bigint, reason: string, ref: string, paymentId: string | null, at: Date]>(
  'limits.insert_ledger_row',
  `insert into ledger (org_id, kind, amount_uinr, reason, ref, payment_id, at)
   values ($1::int, $2::text, $3::bigint, $4::text, $5::text, $6::text, $7::timestamptz)
   on conflict do nothing`,
)

const balance = `(cap - spent)::bigint as "balanceUinr"`
const prepaid = `org_id = $1::int and scope = 'org' and scope_id = $1::int::text and metric = 'prepaid' and period = 'ever'`

export const addCredit = statement<[orgId: number, amountUinr: bigint], { balanceUinr: bigint }>(
  'limits.add_credit',
  `update counters set cap = cap + $2::bigint where ${prepaid} returning ${balance}`,
)

/** A deduction counts as spent, so that the cap never falls below the leased amount. */
export const addDeduction = statement<[orgId: number, amountUinr: bigint], { balanceUinr: bigint }>(
  'limits.add_deduction',
  `update counters set spent = spent + $2::bigint where ${prepaid} returning ${balance}`,
)

export const findBalance = statement<[orgId: number], { balanceUinr: bigint }>('limits.find_balance', `select ${balance} from counters where ${prepaid}`)
