import { statement } from '../../platform/db.ts'

export interface LowRow {
  readonly orgId: number
  readonly balanceUinr: bigint
  readonly thresholdUinr: bigint
  /** The last mail is long enough ago: this crossing is mailed too. */
  readonly mailDue: boolean
}

/**
 * Marks those of the given organisations whose balance is below their threshold and who are armed, and answers them. Of two flushes
 * that see the same crossing one marks the row: the other waits for its lock and then finds it marked.
 */
export const markLow = statement<[orgIds: readonly number[], balances: readonly bigint[], at: Date, mailedBefore: Date], LowRow>(
  'billing.mark_low',
  `with low as (
     select a.org_id, a.low_balance_threshold_uinr, f.balance, a.low_mailed_at is null or a.low_mailed_at <= $4::timestamptz as mail_due
     from unnest($1::int[], $2::bigint[]) as f(org_id, balance) join billing_accounts a on a.org_id = f.org_id
     where a.low_since is null and f.balance < a.low_balance_threshold_uinr
     order by a.org_id for no key update of a)
   update billing_accounts a set low_since = $3::timestamptz, low_mailed_at = case when low.mail_due then $3::timestamptz else a.low_mailed_at end
   from low where a.org_id = low.org_id
   returning a.org_id as "orgId", low.balance as "balanceUinr", low.low_balance_threshold_uinr as "thresholdUinr",
     low.mail_due as "mailDue"`,
)

export const armAgain = statement<[orgId: number, balanceUinr: bigint]>(
  'billing.arm_again',
  `update billing_accounts set low_since = null
   where org_id = $1::int and low_since is not null and (low_balance_threshold_uinr is null or $2::bigint >= low_balance_threshold_uinr)`,
)
