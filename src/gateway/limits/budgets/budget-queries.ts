import { statement } from '../../../platform/db/db.ts'

/**
 * Locks these budgets until the end of the transaction, in the order in which first users of a counter share-lock them. A scope without a budget
 * has no row to lock.
 */
export const lockBudgets = statement<[orgId: number, scopes: readonly string[], scopeIds: readonly string[]], { scopeId: string }>(
  'limits.lock_budgets',
  `select b.scope_id as "scopeId" from budgets b
   where b.org_id = $1::int and (b.scope, b.scope_id) in (select * from unnest($2::text[], $3::text[]))
   order by b.org_id, b.scope, b.scope_id for update`,
)

/** Returns the sum of these scopes' monthly caps. Scopes without a budget count nothing. */
export const sumOfCaps = statement<[orgId: number, scope: string, scopeIds: readonly string[]], { capUinr: bigint }>(
  'limits.sum_of_caps',
  `select coalesce(sum(b.cap_uinr), 0)::bigint as "capUinr" from budgets b where b.org_id = $1::int and b.scope = $2::text and b.scope_id = any($3::text[])`,
)

/**
 * Returns the agents that have spent something in a period, most first, after a position. Only an index on agents serves it. `isChosen` is false for an
 * agent that has spent less than `usedPercent` of its monthly budget, and for an agent without a budget. With null, all are chosen.
 */
export const topAgents = statement<
  [orgId: number, period: string, beforeUinr: bigint, beforeScopeId: string, limit: number, usedPercent: number | null],
  { scopeId: string; spentUinr: bigint; isChosen: boolean }
>(
  'limits.top_agents',
  `with walked as (
     select c.org_id, c.scope_id, c.spent from counters c
     where c.org_id = $1::int and c.scope = 'agent' and c.metric = 'spend' and c.period = $2::text and c.spent > 0
       and (c.spent, c.scope_id collate "C") < ($3::bigint, $4::text)
     order by c.spent desc, c.scope_id collate "C" desc limit $5::int
   )
   select w.scope_id as "scopeId", w.spent as "spentUinr", ($6::int is null or exists (
     select 1 from budgets b where b.org_id = w.org_id and b.scope = 'agent' and b.scope_id = w.scope_id and w.spent::numeric * 100 >= b.cap_uinr::numeric * $6::int
   )) as "isChosen"
   from walked w order by w.spent desc, w.scope_id collate "C" desc`,
)

/** Finds agents whose active children together have a larger budget than the agent. */
export const violationsOfFamilies = statement<[], { orgId: number; parentId: number; cap: bigint; sum: bigint }>(
  'limits.violations_of_families',
  `select a.org_id as "orgId", a.parent_id as "parentId", p.cap_uinr as "cap", sum(b.cap_uinr)::bigint as "sum"
   from agents a
   join budgets b on b.org_id = a.org_id and b.scope = 'agent' and b.scope_id = a.id::text
   join budgets p on p.org_id = a.org_id and p.scope = 'agent' and p.scope_id = a.parent_id::text
   where a.status = 'active' group by a.org_id, a.parent_id, p.cap_uinr having sum(b.cap_uinr) > p.cap_uinr`,
)
