/** Sums of usage of several organisations, for the operator. They come from the sums by day, so their cost does not grow with the number of calls. */
import { type Db, statement } from '../../../platform/db/db.ts'

/** What an organisation did in a span of Indian days. */
export interface OrgTotals {
  readonly calls: number
  readonly errors: number
  /** What the calls count in budgets, in micro-rupees. */
  readonly valueUinr: bigint
  /** What was charged for the calls, in micro-rupees. */
  readonly costUinr: bigint
}

const totalsOfOrgs = statement<
  [orgIds: readonly number[], from: string, to: string],
  { orgId: number; calls: bigint; errors: bigint; valueUinr: bigint; costUinr: bigint }
>(
  'usage.totals_of_orgs',
  `select org_id as "orgId", sum(requests)::bigint as "calls", sum(errors)::bigint as "errors", sum(value_uinr)::bigint as "valueUinr",
     sum(cost_uinr)::bigint as "costUinr"
   from usage_days where org_id = any($1::int[]) and day between $2::date and $3::date group by org_id`,
)

/** Returns the sums of the organisations that made calls from the day `from` to the day `to`, both included. */
export async function totalsByOrg(db: Db, orgIds: readonly number[], from: string, to: string): Promise<ReadonlyMap<number, OrgTotals>> {
  const rows = orgIds.length === 0 ? [] : await db.many(totalsOfOrgs, orgIds, from, to)
  return new Map(rows.map(({ orgId, calls, errors, valueUinr, costUinr }) => [orgId, { calls: Number(calls), errors: Number(errors), valueUinr, costUinr }]))
}
