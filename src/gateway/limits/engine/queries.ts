import { statement } from '../../../platform/db/db.ts'
import type { BudgetPeriod } from '../budgets/periods/period.ts'
import { type ZonesRow, zonesColumns } from '../budgets/periods/zone-queries.ts'
import type { Scope } from './counters/counter-state.ts'

/** A counter's row in the database. */
export interface CounterRow {
  readonly id: bigint
  readonly cap: bigint | null
  readonly strict: boolean
  readonly spent: bigint
  readonly leased: bigint
}

/**
 * The cap of the counter `c` together with an increase that has not ended. The database's clock decides, so that an increase ends in every process at the
 * same instant. Decision 0856 gives the reasons.
 */
export const capWithIncrease = (c: string): string => `(case when ${c}.extra_until > clock_timestamp() then ${c}.cap + ${c}.extra else ${c}.cap end)`

/** The increase of the counter `c`: 0 when it has none. */
export const increaseOf = (c: string): string => `(case when ${c}.extra_until > clock_timestamp() then ${c}.extra else 0 end)`

/** The end of the increase of the counter `c`. Null when it has none. */
export const increaseEndOf = (c: string): string => `(case when ${c}.extra_until > clock_timestamp() then ${c}.extra_until end)`

/** An increase as columns. */
export interface IncreaseRow {
  readonly extra: bigint
  readonly extraUntil: Date | null
}

// ---- processes and beats

export const insertProcess = statement<[bootId: string, journal: string], { id: bigint }>(
  'limits.insert_process',
  `with made as (insert into processes (boot_id, journal) values ($1::text, $2::text) returning id),
    beat as (insert into beats (process_id) select id from made)
   select id as "id" from made`,
)

export const beat = statement<[processId: bigint, aliveMs: bigint], { beating: number; live: number; nowMs: number; flushTo: bigint | null }>(
  'limits.beat',
  `with mine as (
     update beats set beat_at = clock_timestamp()
     where process_id = $1::bigint and exists (select 1 from processes where id = $1::bigint and state in ('live', 'closing'))
     returning 1)
   select (select count(*) from mine)::int as "beating",
     (select count(*) from processes p join beats b on b.process_id = p.id
       where p.state = 'live' and b.beat_at > clock_timestamp() - $2::bigint * interval '1 millisecond')::int as "live",
     (extract(epoch from clock_timestamp()) * 1000)::float8 as "nowMs",
     (select flush_to from beats where process_id = $1::bigint) as "flushTo"`,
)

export const setProcessState = statement<[id: bigint, from: readonly string[], to: string]>(
  'limits.set_process_state',
  `update processes set state = $3::text where id = $1::bigint and state = any($2::text[])`,
)

export const findProcess = statement<[id: bigint, silentMs: bigint], { state: string; bootId: string; journal: string; silent: boolean; flushTo: bigint }>(
  'limits.find_process',
  `select p.state as "state", p.boot_id as "bootId", p.journal as "journal", b.flush_to as "flushTo",
     b.beat_at < clock_timestamp() - $2::bigint * interval '1 millisecond' as "silent"
   from processes p join beats b on b.process_id = p.id where p.id = $1::bigint`,
)

/** Locks a process for adoption. Returns nothing when another adopter has locked it. */
export const lockProcessForAdoption = statement<[id: bigint], { state: string; flushTo: bigint }>(
  'limits.lock_process_for_adoption',
  `select p.state as "state", (select b.flush_to from beats b where b.process_id = p.id) as "flushTo"
   from processes p where p.id = $1::bigint and p.state <> 'closed' for update skip locked`,
)

// ---- counters

/** The period of the counter `c` as the table of budgets names it. */
const periodOf = (c: string): string =>
  `case when ${c}.period = 'ever' then 'ever' when ${c}.period ~ '^[0-9]{4}-W' then 'week' when ${c}.period ~ '^[0-9]{4}-[0-9]{2}-' then 'day' else 'month' end`

/** True when the monthly budget has the counter `c`: in a zone other than India's, the counter of India's month has no cap, and the reverse. */
const isOfMonth = (c: string): string =>
  `coalesce((select case when ${c}.ends_at <= z.month_until then z.month_zone else z.zone end from budget_zones z where z.org_id = ${c}.org_id), 'Asia/Kolkata')
     = coalesce(nullif(split_part(${c}.period, '@', 2), ''), 'Asia/Kolkata')`

/**
 * Makes missing counters, in the order of their natural key so that two first users cannot deadlock. Caps of spend and budget counters come from the
 * budgets, and other caps from the caller. No grant goes beyond a limit of tokens, so these counters are strict.
 */
export const ensureCounters = statement<
  [
    orgIds: readonly number[],
    scopes: readonly string[],
    scopeIds: readonly string[],
    metrics: readonly string[],
    periods: readonly string[],
    caps: readonly (bigint | null)[],
    endsAt: readonly (Date | null)[],
  ]
>(
  'limits.ensure_counters',
  `with ask as materialized (
     select * from unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::timestamptz[])
       as a(org_id, scope, scope_id, metric, period, cap, ends_at)),
   months as materialized (
     select b.org_id, b.scope, b.scope_id, b.cap_uinr, b.strict, b.warn_percent from budgets b
     join (select distinct org_id, scope, scope_id from ask where metric in ('spend', 'budget')) k using (org_id, scope, scope_id)
     order by b.org_id, b.scope, b.scope_id for share of b),
   others as materialized (
     select p.org_id, p.scope, p.scope_id, p.period, p.cap_uinr, p.strict, p.warn_percent from period_budgets p
     join (select distinct org_id, scope, scope_id from ask where metric = 'budget') k using (org_id, scope, scope_id)
     order by p.org_id, p.scope, p.scope_id, p.period for share of p)
   insert into counters (org_id, scope, scope_id, metric, period, cap, strict, warn_percent, ends_at)
   select a.org_id, a.scope, a.scope_id, a.metric, a.period,
     case when a.metric in ('spend', 'budget') then coalesce(m.cap_uinr, o.cap_uinr) else a.cap end, coalesce(m.strict, o.strict, a.metric = 'tpm'),
     coalesce(m.warn_percent, o.warn_percent, '{}'), a.ends_at
   from ask a
   left join months m on m.org_id = a.org_id and m.scope = a.scope and m.scope_id = a.scope_id and a.metric in ('spend', 'budget')
     and ${periodOf('a')} = 'month' and ${isOfMonth('a')}
   left join others o on o.org_id = a.org_id and o.scope = a.scope and o.scope_id = a.scope_id and a.metric = 'budget' and o.period = ${periodOf('a')}
   order by a.org_id, a.scope, a.scope_id, a.metric, a.period
   on conflict (org_id, scope, scope_id, metric, period) do nothing`,
)

/** Sets the cap of a rate, daily or running counter to the current limit of the caller's key or agent. */
export const setLimitCap = statement<[id: bigint, cap: bigint]>(
  'limits.set_limit_cap',
  `update counters set cap = $2::bigint where id = $1::bigint and metric in ('rpm', 'tpm', 'daily', 'running')`,
)

export const findCounters = statement<
  [orgIds: readonly number[], scopes: readonly string[], scopeIds: readonly string[], metrics: readonly string[], periods: readonly string[]],
  CounterRow & { place: number }
>(
  'limits.find_counters',
  `select a.place::int as "place", c.id as "id", c.cap as "cap", c.strict as "strict", c.spent as "spent", c.leased as "leased"
   from unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::text[]) with ordinality as a(org_id, scope, scope_id, metric, period, place)
   join counters c on c.org_id = a.org_id and c.scope = a.scope and c.scope_id = a.scope_id and c.metric = a.metric and c.period = a.period`,
)

/**
 * Leases money and rates; no other statement does. It grants every requested counter or none. A counter with anything left grants at least the
 * need, so that the last call is held in full. There are two exceptions: a strict counter that has less than the need grants nothing, and a
 * partial request gets what is left, never below zero. The result has no rows when the process is fenced.
 */
export const acquire = statement<
  [processId: bigint, ids: readonly bigint[], needs: readonly bigint[], wants: readonly bigint[], divisor: bigint, partial: boolean],
  CounterRow & IncreaseRow & { got: bigint; granted: boolean }
>(
  'limits.acquire',
  `with me as materialized (select id from processes where id = $1::bigint and state = 'live' for share),
   ask as materialized (select * from unnest($2::bigint[], $3::bigint[], $4::bigint[]) as a(counter_id, need, want)),
   locked as materialized (
     select c.id, ${capWithIncrease('c')} as cap, ${increaseOf('c')} as extra, ${increaseEndOf('c')} as extra_until, c.strict, c.spent, c.leased
     from counters c where c.id = any($2::bigint[]) and exists (select 1 from me) order by c.id for no key update),
   room as materialized (select l.*, l.cap - l.spent - l.leased as avail, a.need, a.want from locked l join ask a on a.counter_id = l.id),
   plan as materialized (
     select r.*, case
       when r.cap is null then greatest(r.need, r.want)
       when r.avail >= r.need then greatest(r.need, least(r.want, r.avail / $5::bigint))
       when $6::boolean then greatest(r.avail, 0)
       when r.avail > 0 and not r.strict and r.need > 0 then r.need
       else 0 end as got
     from room r),
   verdict as materialized (select count(*) = cardinality($2::bigint[]) and bool_and(got > 0) as granted from plan),
   took as (update counters c set leased = c.leased + p.got from plan p, verdict v where v.granted and c.id = p.id),
   put as (
     insert into leases (process_id, counter_id, amount) select $1::bigint, p.id, p.got from plan p, verdict v where v.granted
     on conflict (process_id, counter_id) do update set amount = leases.amount + excluded.amount)
   select p.id as "id", p.cap as "cap", p.strict as "strict", p.spent as "spent", p.leased as "leased", p.extra as "extra", p.extra_until as "extraUntil",
     p.got as "got", v.granted as "granted"
   from plan p, verdict v order by p.id`,
)

/** Finds the evidence of a refusal: the counter, and the part of it that is leased by processes that may be dead. */
export const findEvidence = statement<[ids: readonly bigint[], silentMs: bigint], CounterRow & { inDoubt: bigint }>(
  'limits.find_evidence',
  `select c.id as "id", ${capWithIncrease('c')} as "cap", c.strict as "strict", c.spent as "spent", c.leased as "leased",
     coalesce((select sum(l.amount) from leases l join processes p on p.id = l.process_id join beats b on b.process_id = p.id
       where l.counter_id = c.id
         and (p.state = 'lost' or b.beat_at < clock_timestamp() - $2::bigint * interval '1 millisecond')), 0)::bigint as "inDoubt"
   from counters c where c.id = any($1::bigint[])`,
)

export const findOwnLeases = statement<[processId: bigint, ids: readonly bigint[]], { counterId: bigint; amount: bigint }>(
  'limits.find_own_leases',
  `select l.counter_id as "counterId", l.amount as "amount" from leases l where l.process_id = $1::bigint and l.counter_id = any($2::bigint[])`,
)

/**
 * Deletes ended counters. A locked row, for example of an adopter that reads an old journal, is left to the next sweep, so that this statement
 * never waits for a lock.
 */
export const deleteEndedCounters = statement<[minuteCut: Date, dayCut: Date, budgetCut: Date]>(
  'limits.delete_ended_counters',
  `with ended as materialized (
     select id from counters where (metric in ('rpm', 'tpm') and ends_at < $1::timestamptz) or (metric = 'daily' and ends_at < $2::timestamptz)
       or (metric = 'budget' and ends_at < $3::timestamptz and leased = 0)
     order by id for update skip locked)
   delete from counters c using ended e where c.id = e.id`,
)

/**
 * Gives back the units of concurrent calls of processes that have been silent for longer than they may serve. A unit is not money: the process
 * has ended its calls, and its later records are limited to what it still leases.
 */
export const returnSilentRunning = statement<[silentMs: bigint]>(
  'limits.return_silent_running',
  `with silent as materialized (
     select l.process_id, l.counter_id, l.amount from leases l
     join counters c on c.id = l.counter_id and c.metric = 'running' join beats b on b.process_id = l.process_id
     where l.amount > 0 and b.beat_at < clock_timestamp() - $1::bigint * interval '1 millisecond'),
   locked as materialized (
     select c.id from counters c where c.id in (select s.counter_id from silent s) order by c.id for no key update),
   gone as (
     update leases l set amount = 0 from silent s join locked k on k.id = s.counter_id
     where l.process_id = s.process_id and l.counter_id = s.counter_id and l.amount = s.amount
     returning l.counter_id, s.amount)
   update counters c set leased = c.leased - g.amount
   from (select counter_id, sum(amount)::bigint as amount from gone group by counter_id) g where c.id = g.counter_id`,
)

// ---- flush

export const shareProcess = statement<[id: bigint, states: readonly string[]], { state: string }>(
  'limits.share_process',
  `select state as "state" from processes where id = $1::bigint and state = any($2::text[]) for share`,
)

export const advanceFlush = statement<[processId: bigint, from: bigint, to: bigint]>(
  'limits.advance_flush',
  `update beats set flush_to = $3::bigint, beat_at = clock_timestamp() where process_id = $1::bigint and flush_to = $2::bigint`,
)

export const findFlushTo = statement<[processId: bigint], { flushTo: bigint }>(
  'limits.find_flush_to',
  `select flush_to as "flushTo" from beats where process_id = $1::bigint`,
)

export interface LockedCounterRow extends CounterRow {
  readonly orgId: number
  readonly scope: Scope
  readonly scopeId: string
  readonly metric: string
  readonly period: string
  /** Null when the counter never ends. */
  readonly endsAt: Date | null
  readonly warned: boolean
  readonly blocked: boolean
  /** The marks of the budget besides 80 and 100 percent, and those of them that have fired. */
  readonly warnPercent: readonly number[]
  readonly warnedPercent: readonly number[]
}

export const lockCounters = statement<[ids: readonly bigint[]], LockedCounterRow>(
  'limits.lock_counters',
  `select c.id as "id", ${capWithIncrease('c')} as "cap", c.strict as "strict", c.spent as "spent", c.leased as "leased", c.org_id as "orgId", c.scope as "scope",
     c.scope_id as "scopeId", c.metric as "metric", c.period as "period", c.ends_at as "endsAt", c.warned_at is not null as "warned",
     c.blocked_at is not null as "blocked", c.warn_percent as "warnPercent", c.warned_percent as "warnedPercent"
   from counters c where c.id = any($1::bigint[]) order by c.id for no key update`,
)

/** Adds the spend and gives back the released amounts, never more than the lease. It runs under the row locks of `lockCounters`. */
export const settleCounters = statement<
  [
    processId: bigint,
    ids: readonly bigint[],
    spent: readonly bigint[],
    released: readonly bigint[],
    warned: readonly boolean[],
    blocked: readonly boolean[],
    at: Date,
    /** The marks of `warn_percent` that fire, each list as text such as `{50,60}`. */
    marked: readonly string[],
  ]
>(
  'limits.settle_counters',
  `with delta as materialized (
     select * from unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::boolean[], $6::boolean[], $8::text[])
       as d(counter_id, spent, released, warned, blocked, marked)),
   back as materialized (
     select l.counter_id, least(l.amount, d.released) as amount from leases l join delta d on d.counter_id = l.counter_id
     where l.process_id = $1::bigint and d.released > 0),
   given as (
     update leases l set amount = l.amount - b.amount from back b where l.process_id = $1::bigint and l.counter_id = b.counter_id)
   update counters c set spent = greatest(c.spent + d.spent, 0), leased = c.leased - coalesce(b.amount, 0),
     warned_at = case when d.warned then coalesce(c.warned_at, $7::timestamptz) else c.warned_at end,
     blocked_at = case when d.blocked then coalesce(c.blocked_at, $7::timestamptz) else c.blocked_at end,
     warned_percent = c.warned_percent || d.marked::int[]
   from delta d left join back b on b.counter_id = d.counter_id where c.id = d.counter_id`,
)

export const insertDebits = statement<[orgIds: readonly number[], eventIds: readonly string[], amounts: readonly bigint[], at: Date]>(
  'limits.insert_debits',
  `insert into ledger (org_id, kind, amount_uinr, event_id, at)
   select d.org_id, 'debit', -d.amount, d.event_id, $4::timestamptz from unnest($1::int[], $2::uuid[], $3::bigint[]) as d(org_id, event_id, amount)
   on conflict (event_id) do nothing`,
)

/** Locks the counters that a dead process still leases. The leases go back only after its journal was replayed to the end. */
export const lockLeasedCounters = statement<[processId: bigint], { id: bigint }>(
  'limits.lock_leased_counters',
  `select c.id as "id" from counters c where c.id in (select l.counter_id from leases l where l.process_id = $1::bigint) order by c.id for no key update`,
)
export const returnAllLeases = statement<[processId: bigint]>(
  'limits.return_all_leases',
  `with gone as (delete from leases where process_id = $1::bigint returning counter_id, amount)
   update counters c set leased = c.leased - g.amount from gone g where c.id = g.counter_id`,
)

// ---- budgets

/** A budget of a scope, or the time zone of an organisation's budgets, or both. */
export interface BudgetRow extends ZonesRow {
  readonly orgId: number
  readonly scope: string
  readonly scopeId: string
  /** Null in a row that has only the zone. */
  readonly period: BudgetPeriod | null
  readonly capUinr: bigint | null
  readonly strict: boolean | null
}

export const findBudgets = statement<[orgIds: readonly number[], scopes: readonly string[], scopeIds: readonly string[]], BudgetRow>(
  'limits.find_budgets',
  `select a.org_id as "orgId", a.scope as "scope", a.scope_id as "scopeId", b.period as "period", b.cap_uinr as "capUinr", b.strict as "strict", ${zonesColumns}
   from unnest($1::int[], $2::text[], $3::text[]) as a(org_id, scope, scope_id)
   left join budget_zones z on z.org_id = a.org_id and a.scope = 'org'
   left join lateral (
     select 'month' as period, m.cap_uinr, m.strict from budgets m where m.org_id = a.org_id and m.scope = a.scope and m.scope_id = a.scope_id
     union all
     select p.period, p.cap_uinr, p.strict from period_budgets p where p.org_id = a.org_id and p.scope = a.scope and p.scope_id = a.scope_id
   ) b on true
   where b.period is not null or z.zone is not null`,
)

/** A null parameter leaves its value unchanged. */
export const upsertBudget = statement<
  [orgId: number, scope: string, scopeId: string, capUinr: bigint, strict: boolean | null, warnPercent: readonly number[] | null],
  { strict: boolean; warnPercent: readonly number[] }
>(
  'limits.upsert_budget',
  `insert into budgets as b (org_id, scope, scope_id, cap_uinr, strict, warn_percent)
   values ($1::int, $2::text, $3::text, $4::bigint, coalesce($5::boolean, false), coalesce($6::int[], '{}'))
   on conflict (org_id, scope, scope_id) do update set cap_uinr = excluded.cap_uinr, strict = coalesce($5::boolean, b.strict),
     warn_percent = coalesce($6::int[], b.warn_percent)
   returning b.strict as "strict", b.warn_percent as "warnPercent"`,
)

export const deleteBudget = statement<[orgId: number, scope: string, scopeId: string]>(
  'limits.delete_budget',
  `delete from budgets where org_id = $1::int and scope = $2::text and scope_id = $3::text`,
)

/** Locks the running counters of a scope that a budget of this period has. */
export const lockRunningSpend = statement<
  [orgId: number, scope: string, scopeId: string, period: BudgetPeriod, now: Date],
  Pick<LockedCounterRow, 'id' | 'period' | 'spent' | 'endsAt' | 'warned' | 'blocked' | 'warnPercent' | 'warnedPercent'> & Pick<IncreaseRow, 'extra'>
>(
  'limits.lock_running_spend',
  `select c.id as "id", c.period as "period", c.spent as "spent", c.ends_at as "endsAt", c.warned_at is not null as "warned",
     c.blocked_at is not null as "blocked", c.warn_percent as "warnPercent", c.warned_percent as "warnedPercent", ${increaseOf('c')} as "extra"
   from counters c
   where c.org_id = $1::int and c.scope = $2::text and c.scope_id = $3::text and (c.metric = 'spend' or c.metric = 'budget')
     and (c.ends_at is null or c.ends_at > $5::timestamptz) and ${periodOf('c')} = $4::text and ($4::text <> 'month' or ${isOfMonth('c')})
   order by c.id for no key update`,
)

export const setCap = statement<
  [
    id: bigint,
    cap: bigint | null,
    strict: boolean,
    warned: boolean,
    blocked: boolean,
    at: Date,
    warnPercent: readonly number[],
    /** The marks of `warnPercent` that fire. */
    marked: readonly number[],
  ]
>(
  'limits.set_cap',
  `update counters set cap = $2::bigint, strict = $3::boolean, warn_percent = $7::int[], warned_percent = warned_percent || $8::int[],
     warned_at = case when $4::boolean then coalesce(warned_at, $6::timestamptz) else warned_at end,
     blocked_at = case when $5::boolean then coalesce(blocked_at, $6::timestamptz) else blocked_at end
   where id = $1::bigint`,
)

/** The budget of a scope, and the counter of its running period. */
export interface SpendRow extends IncreaseRow {
  readonly place: number
  readonly counterId: bigint | null
  readonly capUinr: bigint | null
  readonly strict: boolean
  readonly warnPercent: readonly number[]
  readonly spent: bigint
  readonly leased: bigint
  readonly inDoubt: bigint
}

const spendColumns = `a.place::int as "place", c.id as "counterId", b.cap_uinr as "capUinr", coalesce(b.strict, false) as "strict",
     coalesce(b.warn_percent, '{}') as "warnPercent", coalesce(c.spent, 0)::bigint as "spent", coalesce(c.leased, 0)::bigint as "leased",
     ${increaseOf('c')}::bigint as "extra", ${increaseEndOf('c')} as "extraUntil",
     coalesce((select sum(l.amount) from leases l join processes p on p.id = l.process_id join beats t on t.process_id = p.id
       where l.counter_id = c.id
         and (p.state = 'lost' or t.beat_at < clock_timestamp() - $5::bigint * interval '1 millisecond')), 0)::bigint as "inDoubt"`

/**
 * Reads the monthly budgets of scopes. A budget in another time zone than India's has a counter of its own. The spend of a scope without a budget is that of
 * India's month.
 */
export const listSpend = statement<
  [orgId: number, scopes: readonly string[], scopeIds: readonly string[], month: string, silentMs: bigint, budgetMonth: string],
  SpendRow
>(
  'limits.list_spend',
  `select ${spendColumns}
   from unnest($2::text[], $3::text[]) with ordinality as a(scope, scope_id, place)
   left join budgets b on b.org_id = $1::int and b.scope = a.scope and b.scope_id = a.scope_id
   left join counters c on c.org_id = $1::int and c.scope = a.scope and c.scope_id = a.scope_id
     and c.metric = case when b.cap_uinr is null or $6::text = $4::text then 'spend' else 'budget' end
     and c.period = case when b.cap_uinr is null then $4::text else $6::text end
   order by a.place`,
)

/** Reads the budgets of a day, a week and of all time of scopes. `names` are the running periods of `periods`. */
export const listPeriodSpend = statement<
  [orgId: number, scopes: readonly string[], scopeIds: readonly string[], periods: readonly string[], silentMs: bigint, names: readonly string[]],
  SpendRow & { period: BudgetPeriod }
>(
  'limits.list_period_spend',
  `select ${spendColumns}, b.period as "period"
   from unnest($2::text[], $3::text[]) with ordinality as a(scope, scope_id, place)
   join period_budgets b on b.org_id = $1::int and b.scope = a.scope and b.scope_id = a.scope_id
   join unnest($4::text[], $6::text[]) as n(period, name) on n.period = b.period
   left join counters c on c.org_id = $1::int and c.scope = a.scope and c.scope_id = a.scope_id and c.metric = 'budget' and c.period = n.name
   order by a.place, array_position('{ever,month,week,day}'::text[], b.period)`,
)

// ---- invariants

export const violationsOfLeases = statement<[], { counterId: bigint; leased: bigint; sum: bigint }>(
  'limits.violations_of_leases',
  `with held as (select counter_id, amount from leases union all select counter_id, amount from lasting_holds)
   select c.id as "counterId", c.leased as "leased", coalesce(sum(l.amount), 0)::bigint as "sum"
   from counters c left join held l on l.counter_id = c.id group by c.id, c.leased having c.leased <> coalesce(sum(l.amount), 0)`,
)

/**
 * Compares the spend counters of key, member, workspace, agent and org with the events of their month. Ancestor agents count their descendants
 * too, so an agent's counter is at least the sum of its own events. Months with days whose events have been deleted are left out.
 */
export const violationsOfSpend = statement<[], { counterId: bigint; scope: string; spent: bigint; sum: bigint }>(
  'limits.violations_of_spend',
  `with totals as (
     select e.org_id, to_char(e.day, 'YYYY-MM') as period, s.scope, s.scope_id, sum(e.value_uinr)::bigint as total
     from usage_events e
     cross join lateral (values ('org', e.org_id::text), ('key', e.key_id::text), ('member', e.user_id::text), ('workspace', e.workspace_id::text), ('agent', e.agent_id::text)) as s(scope, scope_id)
     where s.scope_id is not null group by 1, 2, 3, 4)
   select coalesce(c.id, 0)::bigint as "counterId", coalesce(c.scope, t.scope) as "scope", coalesce(c.spent, 0)::bigint as "spent", coalesce(t.total, 0)::bigint as "sum"
   from (select * from counters where metric = 'spend' and scope <> 'team') c
   full join totals t on t.org_id = c.org_id and t.scope = c.scope and t.scope_id = c.scope_id and t.period = c.period
   where coalesce(c.period, t.period)
       >= coalesce((select to_char(date_trunc('month', kept_from - interval '1 day') + interval '1 month', 'YYYY-MM') from usage_retention), '')
     and ((coalesce(c.scope, t.scope) = 'agent' and coalesce(c.spent, 0) < coalesce(t.total, 0))
      or (coalesce(c.scope, t.scope) <> 'agent' and coalesce(c.spent, 0) <> coalesce(t.total, 0)))`,
)

export const violationsOfPrepaid = statement<[], { orgId: number; balance: bigint; sum: bigint }>(
  'limits.violations_of_prepaid',
  `select coalesce(c.org_id, l.org_id) as "orgId", coalesce(c.cap - c.spent, 0)::bigint as "balance", coalesce(l.sum, 0)::bigint as "sum"
   from (select org_id, cap, spent from counters where metric = 'prepaid' and scope = 'org') c
   full join (select org_id, sum(amount_uinr) as sum from ledger group by org_id) l on l.org_id = c.org_id
   where coalesce(c.cap - c.spent, 0) <> coalesce(l.sum, 0)`,
)

export const violationsOfCrossings = statement<[], { orgId: number; type: string; scope: string; scopeId: string; count: number }>(
  'limits.violations_of_crossings',
  `select e.org_id as "orgId", e.type as "type", e.data->>'scope' as "scope", e.data->>'scope_id' as "scopeId", count(*)::int as "count"
   from webhook_events e where e.type in ('budget.warn', 'budget.block')
   group by e.org_id, e.type, e.data->>'scope', e.data->>'scope_id', e.data->>'threshold', coalesce(e.data->>'period', 'month'),
     case when e.data ? 'resets_at' then e.data->>'resets_at' else to_char(to_timestamp(e.created) at time zone 'Asia/Kolkata', 'YYYY-MM') end
   having count(*) > 1`,
)

/** Corrects the cap of a running counter that differs from the budget. A budget may be set while its counter is being made. */
export const syncCaps = statement<[ids: readonly bigint[]]>(
  'limits.sync_caps',
  `update counters c set cap = w.cap_uinr, strict = coalesce(w.strict, false), warn_percent = coalesce(w.warn_percent, '{}')
   from (select k.id, coalesce(b.cap_uinr, p.cap_uinr) as cap_uinr, coalesce(b.strict, p.strict) as strict, coalesce(b.warn_percent, p.warn_percent) as warn_percent
         from counters k
         left join budgets b on b.org_id = k.org_id and b.scope = k.scope and b.scope_id = k.scope_id and ${periodOf('k')} = 'month' and ${isOfMonth('k')}
         left join period_budgets p on p.org_id = k.org_id and p.scope = k.scope and p.scope_id = k.scope_id and p.period = ${periodOf('k')}
         where k.id = any($1::bigint[]) and k.metric in ('spend', 'budget')) w
   where c.id = w.id and (c.cap is distinct from w.cap_uinr or c.strict is distinct from coalesce(w.strict, false)
     or c.warn_percent is distinct from coalesce(w.warn_percent, '{}'))`,
)

/** NOTIFY inside a transaction or alone. */
export const notify = statement<[channel: string, payload: string]>('limits.notify', `select pg_notify($1::text, $2::text)`)
