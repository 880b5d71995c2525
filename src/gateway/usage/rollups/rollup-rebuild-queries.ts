/**
 * Statements that compute the sums of a day again from its events, and that compare sums with events. They cover all organisations and serve the
 * operator.
 */
import { statement } from '../../../platform/db/db.ts'
import { labelsMax, modelsMax, otherLabels, otherModels } from '../events/bounded-names.ts'
import { bucketSql, failedSql, hourSql, servedSql } from '../events/event-sql.ts'

/** Waits for running flushes, and makes new flushes wait until the transaction ends. */
export const lockSums = statement<[], { isLocked: boolean }>('usage.lock_sums', 'select pg_advisory_xact_lock(3, 20) is not null as "isLocked"')

const eventSums = `count(*), count(*) filter (where ${failedSql}), sum(prompt_tokens), sum(completion_tokens), sum(cached_tokens), sum(cache_write_tokens),
     sum(value_uinr), sum(cost_uinr)`
/** Excludes organisations' own servers and tools. */
const onOurs = "provider not like 'byoe:%' and provider <> 'br:cache' and kind <> 'tool'"
const columns = 'requests, errors, prompt_tokens, completion_tokens, cached_tokens, cache_write_tokens, value_uinr, cost_uinr'

const callerColumns = 'user_id, workspace_id, agent_id, model, provider, byok'
const callerValues = 'coalesce(user_id, 0), coalesce(workspace_id, 0), coalesce(agent_id, 0), summed, provider, byok'

/** Returns SQL for the Monday of the week of a day. */
const weekOf = (day: string): string => `${day} - (extract(isodow from ${day})::int - 1)`

/** The CTE `events`: the events of a day. `summed` is the model in the sums. The models with most calls keep their names. */
const boundedEvents = `with kept as (
         select org_id, model from (
           select org_id, model, row_number() over (partition by org_id order by count(*) desc, model) as place from usage_events where day = $1::date group by 1, 2) as ranked
         where place <= ${modelsMax}),
       events as (
         select e.*, coalesce(kept.model, '${otherModels}') as summed from usage_events e left join kept on kept.org_id = e.org_id and kept.model = e.model
         where e.day = $1::date)`
/** The model in the sums of all organisations, as `publicModel` returns it. */
const publicName = `case when byok and starts_with(summed, provider || '/') then '${otherModels}' else summed end`

/** The statements that delete and insert the sums of one day, in the order in which they run. */
export const rebuildDay = [
  statement<[day: string]>('usage.clear_days', 'delete from usage_days where day = $1::date'),
  statement<[day: string]>('usage.clear_key_days', 'delete from usage_days_by_key where day = $1::date'),
  statement<[day: string]>('usage.clear_key_model_days', 'delete from usage_days_by_key_model where day = $1::date'),
  statement<[day: string]>('usage.clear_key_weeks', `delete from usage_weeks_by_key where week = ${weekOf('$1::date')}`),
  statement<[day: string]>('usage.clear_agent_days', 'delete from usage_days_by_agent where day = $1::date'),
  statement<[day: string]>('usage.clear_caller_days', 'delete from usage_days_by_caller where day = $1::date'),
  statement<[day: string]>('usage.clear_member_days', 'delete from usage_days_by_member where day = $1::date'),
  statement<[day: string]>('usage.clear_caller_hours', 'delete from usage_hours_by_caller where day = $1::date'),
  statement<[day: string]>('usage.clear_day_latencies', 'delete from usage_day_latencies where day = $1::date'),
  statement<[day: string]>('usage.clear_hour_latencies', 'delete from usage_hour_latencies where day = $1::date'),
  statement<[day: string]>('usage.clear_model_days', 'delete from model_days where day = $1::date'),
  statement<[day: string]>('usage.clear_model_latencies', 'delete from model_latencies where day = $1::date'),
  statement<[day: string]>(
    'usage.sum_up_days',
    `insert into usage_days (org_id, day, model, provider, residency, byok, ${columns})
     ${boundedEvents} select org_id, day, summed, provider, residency, byok, ${eventSums} from events group by 1, 2, 3, 4, 5, 6`,
  ),
  statement<[day: string]>(
    'usage.sum_up_key_days',
    `insert into usage_days_by_key (org_id, day, key_id, ${columns})
     select org_id, day, coalesce(key_id, 0), ${eventSums} from usage_events where day = $1::date group by 1, 2, 3`,
  ),
  statement<[day: string]>(
    'usage.sum_up_key_model_days',
    `insert into usage_days_by_key_model (org_id, key_id, day, model, provider, byok, ${columns})
     ${boundedEvents} select org_id, coalesce(key_id, 0), day, summed, provider, byok, ${eventSums} from events group by 1, 2, 3, 4, 5, 6`,
  ),
  // Weeks are computed from days and not from events, because events of the first days of a week may have been deleted.
  statement<[day: string]>(
    'usage.sum_up_key_weeks',
    `insert into usage_weeks_by_key (org_id, model, week, key_id, ${columns})
     select org_id, model, ${weekOf('$1::date')}, key_id, ${columns
       .split(', ')
       .map(name => `sum(${name})`)
       .join(', ')}
     from (select org_id, model, key_id, ${columns} from usage_days_by_key_model where model <> '' and day between ${weekOf('$1::date')} and ${weekOf('$1::date')} + 6
           union all
           select org_id, '', key_id, ${columns} from usage_days_by_key where day between ${weekOf('$1::date')} and ${weekOf('$1::date')} + 6) as days
     group by 1, 2, 4`,
  ),
  statement<[day: string]>(
    'usage.sum_up_agent_days',
    `insert into usage_days_by_agent (org_id, day, agent_id, agent_label, residency, ${columns})
     with labelled as materialized (
         select *, case when agent_id is null then coalesce(agent_label, '') else '' end as label from usage_events where day = $1::date),
       kept as (
         select org_id, label from (
           select org_id, label, row_number() over (partition by org_id order by count(*) desc, label) as place from labelled where label <> '' group by 1, 2) as ranked
         where place <= ${labelsMax})
     select org_id, day, coalesce(agent_id, 0), case when label = '' or kept.label is not null then label else '${otherLabels}' end, residency, ${eventSums}
     from labelled left join kept using (org_id, label) group by 1, 2, 3, 4, 5`,
  ),
  statement<[day: string]>(
    'usage.sum_up_caller_days',
    `insert into usage_days_by_caller (org_id, day, ${callerColumns}, ${columns})
     ${boundedEvents} select org_id, day, ${callerValues}, ${eventSums} from events group by 1, 2, 3, 4, 5, 6, 7, 8`,
  ),
  statement<[day: string]>(
    'usage.sum_up_member_days',
    `insert into usage_days_by_member (org_id, day, user_id, ${columns})
     select org_id, day, coalesce(user_id, 0), ${eventSums} from usage_events where day = $1::date group by 1, 2, 3`,
  ),
  statement<[day: string]>(
    'usage.sum_up_day_latencies',
    `insert into usage_day_latencies (org_id, day, model, provider, bucket, requests)
     ${boundedEvents} select org_id, day, coalesce(summed, ''), coalesce(provider, ''), bucket, count(*)
     from (select *, ${bucketSql} as bucket from events where ${servedSql}) served group by org_id, day, bucket, cube (summed, provider)`,
  ),
  statement<[day: string]>(
    'usage.sum_up_model_days',
    `insert into model_days (day, model, shard, requests, tokens, succeeded, failed, written_tokens, written_ms)
     ${boundedEvents} select day, ${publicName}, 0, count(*), sum(prompt_tokens + completion_tokens), count(*) filter (where ${servedSql}),
       count(*) filter (where outcome = 'upstream_broke' or (outcome = 'failed' and status >= 500 and not byok)),
       coalesce(sum(completion_tokens) filter (where ${servedSql} and completion_tokens > 0), 0),
       coalesce(sum(latency_ms) filter (where ${servedSql} and completion_tokens > 0), 0)
     from events where ${onOurs} group by 1, 2`,
  ),
  statement<[day: string]>(
    'usage.sum_up_model_latencies',
    `insert into model_latencies (day, model, bucket, shard, requests)
     ${boundedEvents} select day, ${publicName}, ${bucketSql}, 0, count(*)
     from events where ${onOurs} and ${servedSql} group by 1, 2, 3`,
  ),
] as const

/** The statements that insert the sums by hour of one day. They run after `rebuildDay`, if the sums by hour of the day are still kept. */
export const rebuildHours = [
  statement<[day: string]>(
    'usage.sum_up_caller_hours',
    `insert into usage_hours_by_caller (org_id, day, hour, ${callerColumns}, ${columns})
     ${boundedEvents} select org_id, day, ${hourSql}, ${callerValues}, ${eventSums} from events group by 1, 2, 3, 4, 5, 6, 7, 8, 9`,
  ),
  statement<[day: string]>(
    'usage.sum_up_hour_latencies',
    `insert into usage_hour_latencies (org_id, day, hour, model, provider, bucket, requests)
     ${boundedEvents} select org_id, day, hour, coalesce(summed, ''), coalesce(provider, ''), bucket, count(*)
     from (select *, ${hourSql} as hour, ${bucketSql} as bucket from events where ${servedSql}) served group by org_id, day, hour, bucket, cube (summed, provider)`,
  ),
] as const

/**
 * Returns the days of a span on which events and sums disagree, with both values. Days without events are left out, because their events may have
 * been deleted.
 */
export const disagreeingDays = statement<[from: string, to: string], { day: string; events: bigint; summed: bigint; eventsUinr: bigint; summedUinr: bigint }>(
  'usage.disagreeing_days',
  `with events as (
     select day, count(*) as requests, sum(value_uinr)::bigint as value, sum(cost_uinr)::bigint as cost, sum(prompt_tokens + completion_tokens)::bigint as tokens,
       count(*) filter (where ${servedSql}) as served, count(*) filter (where ${onOurs}) as our_requests, coalesce(sum(prompt_tokens + completion_tokens) filter (where ${onOurs}), 0)::bigint as our_tokens
     from usage_events where day between $1::date and $2::date group by 1),
   days as (
     select day, sum(requests) as requests, sum(value_uinr) as value, sum(cost_uinr) as cost, sum(prompt_tokens + completion_tokens) as tokens
     from usage_days where day between $1::date and $2::date group by 1),
   keys as (
     select day, sum(requests) as requests, sum(value_uinr) as value, sum(cost_uinr) as cost, sum(prompt_tokens + completion_tokens) as tokens
     from usage_days_by_key where day between $1::date and $2::date group by 1),
   key_models as (
     select day, sum(requests) as requests, sum(value_uinr) as value, sum(cost_uinr) as cost, sum(prompt_tokens + completion_tokens) as tokens
     from usage_days_by_key_model where day between $1::date and $2::date group by 1),
   agents as (
     select day, sum(requests) as requests, sum(value_uinr) as value, sum(cost_uinr) as cost, sum(prompt_tokens + completion_tokens) as tokens
     from usage_days_by_agent where day between $1::date and $2::date group by 1),
   callers as (
     select day, sum(requests) as requests, sum(value_uinr) as value, sum(cost_uinr) as cost, sum(prompt_tokens + completion_tokens) as tokens
     from usage_days_by_caller where day between $1::date and $2::date group by 1),
   members as (
     select day, sum(requests) as requests, sum(value_uinr) as value, sum(cost_uinr) as cost, sum(prompt_tokens + completion_tokens) as tokens
     from usage_days_by_member where day between $1::date and $2::date group by 1),
   latencies as (select day, sum(requests) as requests from usage_day_latencies
     where model = '' and provider = '' and day between $1::date and $2::date group by 1),
   models as (
     select day, sum(requests) as requests, sum(tokens) as tokens from model_days where day between $1::date and $2::date group by 1)
   select events.day as "day", events.requests as "events", coalesce(days.requests, 0)::bigint as "summed", events.value as "eventsUinr",
     coalesce(days.value, 0)::bigint as "summedUinr"
   from events left join days using (day) left join keys using (day) left join key_models using (day) left join agents using (day) left join callers using (day)
     left join members using (day) left join latencies using (day) left join models using (day)
   where (events.requests, events.value, events.cost, events.tokens) is distinct from (days.requests, days.value, days.cost, days.tokens)
     or (events.requests, events.value, events.cost, events.tokens) is distinct from (keys.requests, keys.value, keys.cost, keys.tokens)
     or (events.requests, events.value, events.cost, events.tokens) is distinct from (key_models.requests, key_models.value, key_models.cost, key_models.tokens)
     or (events.requests, events.value, events.cost, events.tokens) is distinct from (agents.requests, agents.value, agents.cost, agents.tokens)
     or (events.requests, events.value, events.cost, events.tokens) is distinct from (callers.requests, callers.value, callers.cost, callers.tokens)
     or (events.requests, events.value, events.cost, events.tokens) is distinct from (members.requests, members.value, members.cost, members.tokens)
     or events.served is distinct from coalesce(latencies.requests, 0)
     or (events.our_requests, events.our_tokens) is distinct from (coalesce(models.requests, 0), coalesce(models.tokens, 0))
   order by events.day`,
)
