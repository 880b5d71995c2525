import { statement } from '../../../../platform/db/db.ts'

/** A null parameter leaves its value unchanged. */
export const upsertPeriodBudget = statement<
  [orgId: number, scope: string, scopeId: string, period: string, capUinr: bigint, strict: boolean | null, warnPercent: readonly number[] | null],
  { strict: boolean; warnPercent: readonly number[] }
>(
  'limits.upsert_period_budget',
  `insert into period_budgets as b (org_id, scope, scope_id, period, cap_uinr, strict, warn_percent)
   values ($1::int, $2::text, $3::text, $4::text, $5::bigint, coalesce($6::boolean, false), coalesce($7::int[], '{}'))
   on conflict (org_id, scope, scope_id, period) do update set cap_uinr = excluded.cap_uinr, strict = coalesce($6::boolean, b.strict),
     warn_percent = coalesce($7::int[], b.warn_percent)
   returning b.strict as "strict", b.warn_percent as "warnPercent"`,
)

export const deletePeriodBudget = statement<[orgId: number, scope: string, scopeId: string, period: string]>(
  'limits.delete_period_budget',
  `delete from period_budgets where org_id = $1::int and scope = $2::text and scope_id = $3::text and period = $4::text`,
)

/**
 * Finds budget counters that have more spent than the months of their scope. A budget counts from the moment at which it is set, so it may have less. The
 * months of a period are those that end after its first day.
 */
export const violationsOfPeriods = statement<[], { counterId: bigint; scope: string; spent: bigint; sum: bigint }>(
  'limits.violations_of_periods',
  `select c.id as "counterId", c.scope as "scope", c.spent as "spent", coalesce(s.sum, 0)::bigint as "sum"
   from counters c left join lateral (
     select sum(m.spent) as sum from counters m
     where m.org_id = c.org_id and m.scope = c.scope and m.scope_id = c.scope_id and m.metric = 'spend'
       and (c.ends_at is null or m.ends_at > c.ends_at - interval '32 days')) s on true
   where c.metric = 'budget' and c.spent > coalesce(s.sum, 0)`,
)
