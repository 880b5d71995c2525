/** Statements on the counters of runs. They are rows of `counters` in the scope of their organisation, with the id `run/<number>` and no end. */
import { statement } from '../../../platform/db/db.ts'
import { capWithIncrease, increaseOf } from '../engine/queries.ts'

/** Makes the two counters of a run, which has used something already. */
export const insertRunCounters = statement<
  [orgId: number, scopeId: string, spent: bigint, calls: bigint, spendCap: bigint | null, callsCap: bigint | null, strict: boolean],
  { id: bigint; metric: string }
>(
  'limits.insert_run_counters',
  `insert into counters (org_id, scope, scope_id, metric, period, cap, strict, spent)
   values ($1::int, 'org', $2::text, 'run_calls', 'ever', $6::bigint, $7::boolean, $4::bigint),
     ($1::int, 'org', $2::text, 'run_spend', 'ever', $5::bigint, $7::boolean, $3::bigint)
   on conflict (org_id, scope, scope_id, metric, period) do update set cap = excluded.cap, strict = excluded.strict, spent = excluded.spent
   returning id as "id", metric as "metric"`,
)

/** Locks the counters of runs. They are locked before the rows of the runs, as a flush does it. */
export const lockRunCounters = statement<[orgIds: readonly number[], scopeIds: readonly string[]], { id: bigint }>(
  'limits.lock_run_counters',
  `with asked as materialized (select * from unnest($1::int[], $2::text[]) as a(org_id, scope_id))
   select c.id as "id" from counters c join asked a on a.org_id = c.org_id and a.scope_id = c.scope_id
   where c.scope = 'org' and c.metric in ('run_calls', 'run_spend') and c.period = 'ever' order by c.id for no key update of c`,
)

/** Sets the caps of a run, and its used amounts to those of its row. A mark fires again when the cap has moved away from it. */
export const setRunCounters = statement<
  [orgId: number, scopeId: string, spent: bigint, calls: bigint, spendCap: bigint | null, callsCap: bigint | null, strict: boolean],
  { id: bigint; metric: string }
>(
  'limits.set_run_counters',
  `update counters c set cap = n.cap, strict = $7::boolean, spent = n.spent,
     warned_at = case when n.cap is null or n.spent * 5 < (n.cap + ${increaseOf('c')}) * 4 then null else c.warned_at end,
     blocked_at = case when n.cap is null or n.spent < n.cap + ${increaseOf('c')} then null else c.blocked_at end
   from (values ('run_spend', $5::bigint, $3::bigint), ('run_calls', $6::bigint, $4::bigint)) as n(metric, cap, spent)
   where c.org_id = $1::int and c.scope = 'org' and c.scope_id = $2::text and c.metric = n.metric and c.period = 'ever'
   returning c.id as "id", c.metric as "metric"`,
)

export interface ChargedRunRow {
  readonly scopeId: string
  readonly metric: 'run_spend' | 'run_calls'
  readonly cap: bigint | null
  readonly spent: bigint
  /** True when the mark fires now. */
  readonly warns: boolean
  readonly blocks: boolean
}

/** Adds the used amounts of runs to their counters, and notes the marks of 80 and 100 percent that they reach. */
export const chargeRunCounters = statement<
  [orgIds: readonly number[], scopeIds: readonly string[], values: readonly bigint[], calls: readonly bigint[], at: Date],
  ChargedRunRow
>(
  'limits.charge_run_counters',
  `with added as materialized (
     select a.org_id, a.scope_id, m.metric, case m.metric when 'run_spend' then a.value else a.calls end as amount
     from unnest($1::int[], $2::text[], $3::bigint[], $4::bigint[]) as a(org_id, scope_id, value, calls)
     cross join (values ('run_spend'), ('run_calls')) as m(metric)),
   locked as materialized (
     select c.id, a.amount, ${capWithIncrease('c')} as cap, c.spent + a.amount as now_spent, c.warned_at is not null as warned, c.blocked_at is not null as blocked
     from counters c join added a on a.org_id = c.org_id and a.scope_id = c.scope_id and a.metric = c.metric
     where c.scope = 'org' and c.period = 'ever' order by c.id for no key update of c)
   update counters c set spent = c.spent + l.amount,
     warned_at = case when l.cap > 0 and l.now_spent * 5 >= l.cap * 4 then coalesce(c.warned_at, $5::timestamptz) else c.warned_at end,
     blocked_at = case when l.cap > 0 and l.now_spent >= l.cap then coalesce(c.blocked_at, $5::timestamptz) else c.blocked_at end
   from locked l where c.id = l.id
   returning c.scope_id as "scopeId", c.metric as "metric", l.cap as "cap", c.spent as "spent",
     coalesce(not l.warned and l.cap > 0 and l.now_spent * 5 >= l.cap * 4, false) as "warns",
     coalesce(not l.blocked and l.cap > 0 and l.now_spent >= l.cap, false) as "blocks"`,
)

/** Deletes the counters of runs that no process leases and that have no increase. Returns the ids of their scopes. */
export const deleteRunCounters = statement<[orgIds: readonly number[], scopeIds: readonly string[]], { scopeId: string }>(
  'limits.delete_run_counters',
  `with asked as materialized (select * from unnest($1::int[], $2::text[]) as a(org_id, scope_id)),
   locked as materialized (
     select c.id, c.scope_id, c.leased, ${increaseOf('c')} as extra from counters c join asked a on a.org_id = c.org_id and a.scope_id = c.scope_id
     where c.scope = 'org' and c.metric in ('run_calls', 'run_spend') order by c.id for no key update of c),
   free as (select scope_id from locked group by scope_id having bool_and(leased = 0 and extra = 0)),
   gone as (delete from counters c using locked l, free f where c.id = l.id and f.scope_id = l.scope_id returning c.scope_id)
   select distinct scope_id as "scopeId" from gone`,
)

/** Compares the counters of runs with the rows of the runs. */
export const violationsOfRunCounters = statement<
  [],
  { number: bigint; calls: bigint; countedCalls: bigint | null; value: bigint; countedValue: bigint | null }
>(
  'limits.violations_of_run_counters',
  `select r.number as "number", r.calls as "calls", c.spent as "countedCalls", r.value_uinr as "value", s.spent as "countedValue"
   from runs r
   left join counters c on c.org_id = r.org_id and c.scope = 'org' and c.scope_id = 'run/' || r.number and c.metric = 'run_calls' and c.period = 'ever'
   left join counters s on s.org_id = r.org_id and s.scope = 'org' and s.scope_id = 'run/' || r.number and s.metric = 'run_spend' and s.period = 'ever'
   where r.capped and (c.spent is distinct from r.calls or s.spent is distinct from r.value_uinr)`,
)

/**
 * Compares the sums of runs with their events. Runs that began before the oldest kept event are left out, and so are organisations that had too many runs
 * on a day, because the calls of such runs are added up in another row.
 */
export const violationsOfRunSums = statement<[], { number: bigint; calls: bigint; events: bigint; value: bigint; sum: bigint }>(
  'limits.violations_of_run_sums',
  `with kept as (select coalesce((select kept_from from usage_retention), '-infinity'::date) as kept_from),
   totals as (
     select e.org_id, case when e.run_agent_id is null then 'key' else 'agent' end as owner_kind, coalesce(e.run_agent_id, e.key_id, 0) as owner_id, e.run_id,
       count(*) filter (where e.run_part is not true) as events, sum(e.value_uinr)::bigint as total
     from usage_events e where e.run_id is not null group by 1, 2, 3, 4)
   select r.number as "number", r.calls as "calls", coalesce(t.events, 0)::bigint as "events", r.value_uinr as "value", coalesce(t.total, 0)::bigint as "sum"
   from runs r
   left join totals t on t.org_id = r.org_id and t.owner_kind = r.owner_kind and t.owner_id = r.owner_id and t.run_id = r.run_id
   where r.owner_kind <> 'others' and (r.first_at at time zone 'Asia/Kolkata')::date >= (select kept_from from kept)
     and not exists (select 1 from runs o where o.org_id = r.org_id and o.owner_kind = 'others')
     and (r.calls <> coalesce(t.events, 0) or r.value_uinr <> coalesce(t.total, 0))`,
)
