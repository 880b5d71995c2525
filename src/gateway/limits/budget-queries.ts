import { statement } from '../../platform/db.ts'

/** Holds these budgets until the end of the transaction, in the order in which first users of a counter share them. What has none cannot be held. */
export const lockBudgets = statement<[orgId: number, scopes: readonly string[], scopeIds: readonly string[]], { scopeId: string }>(
  'limits.lock_budgets',
  `select b.scope_id as "scopeId" from budgets b
   where b.org_id = $1::int and (b.scope, b.scope_id) in (select * from unnest($2::text[], $3::text[]))
   order by b.org_id, b.scope, b.scope_id for update`,
)

/** What these scopes may spend in a month, those with a budget together. */
export const sumOfCaps = statement<[orgId: number, scope: string, scopeIds: readonly string[]], { capUinr: bigint }>(
  'limits.sum_of_caps',
  `select coalesce(sum(b.cap_uinr), 0)::bigint as "capUinr" from budgets b where b.org_id = $1::int and b.scope = $2::text and b.scope_id = any($3::text[])`,
)
