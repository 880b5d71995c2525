import { statement } from '../../../platform/db/db.ts'

interface SumsRow {
  readonly orgId: number
  readonly spend: bigint
  readonly errors: bigint
  readonly tokens: bigint
}

/** A call that the client gave up does not count as an error. */
const sums = `coalesce(sum(value_uinr), 0)::bigint as "spend", count(*) filter (where outcome not in ('ok', 'client_gone')) as "errors",
     coalesce(sum(prompt_tokens + completion_tokens), 0)::bigint as "tokens"`

/**
 * Returns the organisations that reach a floor in the span, and those in `openOrgs`. Ids begin with the time, and the primary key is (day, id). The
 * statement therefore reads only rows of the span.
 */
export const sumLastHour = statement<
  [days: readonly string[], fromId: string, toId: string, spendFloor: bigint, errorsFloor: bigint, tokensFloor: bigint, openOrgs: readonly number[]],
  SumsRow
>(
  'usage.sum_last_hour',
  `select * from (
     select org_id as "orgId", ${sums} from usage_events
     where day = any($1::date[]) and id >= $2::uuid and id < $3::uuid group by org_id) hour
   where "spend" >= $4::bigint or "errors" >= $5::bigint or "tokens" >= $6::bigint or "orgId" = any($7::int[]) order by 1`,
)

/** Returns the start of the latest hour that already has sums. Returns null when there is none. */
export const lastSummedHour = statement<[], { hour: Date | null }>('usage.last_summed_hour', 'select max(hour) as "hour" from usage_hours')

/** Computes the sums of whole hours. An hour that already has sums keeps them. */
export const sumUpHours = statement<[days: readonly string[], fromId: string, toId: string]>(
  'usage.sum_up_hours',
  `insert into usage_hours (org_id, hour, spend_uinr, errors, tokens)
   select "orgId", "hour", "spend", "errors", "tokens" from (
     select org_id as "orgId", date_trunc('hour', at, 'UTC') as "hour", ${sums} from usage_events
     where day = any($1::date[]) and id >= $2::uuid and id < $3::uuid group by 1, 2) summed
   on conflict (org_id, hour) do nothing`,
)

export const deleteOldHours = statement<[before: Date]>('usage.delete_old_hours', 'delete from usage_hours where hour < $1::timestamptz')

/** Returns the sums over whole hours for each organisation, and the first hour with usage. */
export const sumBaseline = statement<[orgIds: readonly number[], from: Date, to: Date], SumsRow & { firstHour: Date }>(
  'usage.sum_baseline',
  `select u.org_id as "orgId", min(u.hour) as "firstHour", sum(u.spend_uinr)::bigint as "spend", sum(u.errors)::bigint as "errors", sum(u.tokens)::bigint as "tokens"
   from unnest($1::int[]) as asked (org_id) join usage_hours u on u.org_id = asked.org_id
   where u.hour >= $2::timestamptz and u.hour < $3::timestamptz group by u.org_id`,
)

/** Returns the organisations among the given ones that have usage before a day. */
export const usedBefore = statement<[orgIds: readonly number[], day: string], { orgId: number }>(
  'usage.used_before',
  `select asked.org_id as "orgId" from unnest($1::int[]) as asked (org_id)
   where exists (select 1 from usage_events e where e.org_id = asked.org_id and e.day < $2::date)`,
)

export const listAnomalies = statement<[], { orgId: number; metric: 'spend' | 'errors' | 'tokens' }>(
  'usage.list_anomalies',
  'select org_id as "orgId", metric from usage_anomalies order by 1, 2',
)

/** Inserts the anomaly. Returns 1 when it is new, otherwise 0. */
export const beginAnomaly = statement<[orgId: number, metric: string, since: Date]>(
  'usage.begin_anomaly',
  `insert into usage_anomalies (org_id, metric, since) values ($1::int, $2::text, $3::timestamptz) on conflict (org_id, metric) do nothing`,
)

export const endAnomaly = statement<[orgId: number, metric: string]>(
  'usage.end_anomaly',
  'delete from usage_anomalies where org_id = $1::int and metric = $2::text',
)
