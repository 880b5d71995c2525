/** Statements for the lists of an activity report: keys, models and latencies. Its sums are in `activity-sum-queries.ts`. */
import { statement } from '../../../platform/db/db.ts'
import { bucketSql, servedSql } from '../events/event-sql.ts'
import { keySums } from '../reports/usage-queries.ts'
import { sumColumns, type TotalsRow } from '../reports/usage-totals.ts'
import type { EventRoom } from './activity-filters.ts'
import { type EventParams, eventRows } from './activity-sum-queries.ts'

/** Sums of one key. `keyId` is null for calls without a key. */
export type ActivityKeyRow = TotalsRow & { readonly keyId: number | null; readonly name: string | null; readonly revoked: boolean | null }

const named = (summed: string): string => `
   select nullif(s.key_id, 0) as "keyId", k.name as "name", case when k.id is not null then k.revoked_at is not null end as "revoked",
     s."requests", s."errors", s."promptTokens", s."completionTokens", s."valueUinr", s."costUinr", s."cachedTokens", s."cacheWriteTokens"
   from (${summed}) s left join api_keys k on k.org_id = $1::int and k.id = s.key_id order by s."valueUinr" desc, s."requests" desc, s.key_id`

/** A span, divided into whole weeks and the days around them. `weeksIn` makes it. */
type Weeks = [orgId: number, from: string, headTo: string, tailFrom: string, to: string]
const mostFirst = 'group by key_id order by sum(value_uinr) desc, sum(requests) desc, key_id'

/** Returns the keys with the highest value of usage in a span. */
export const topKeys = statement<[...Weeks, limit: number], ActivityKeyRow>(
  'usage.top_keys',
  named(`select key_id, ${sumColumns} from (${keySums('usage_days_by_key')}) as s ${mostFirst} limit $6::int`),
)

/** Returns the keys with the highest value of usage of one model. */
export const topKeysOfModel = statement<[...Weeks, limit: number, model: string], ActivityKeyRow>(
  'usage.top_keys_of_model',
  named(`select key_id, ${sumColumns} from (${keySums('usage_days_by_key_model', '$7::text')}) as s ${mostFirst} limit $6::int`),
)

/** Returns the keys with the highest value among single calls. */
export const topKeysOfEvents = statement<EventParams, ActivityKeyRow>(
  'usage.top_keys_of_events',
  named(`select key_id, ${sumColumns} from (${eventRows}) as s ${mostFirst} limit $4::int`),
)

/** Returns the models with the highest value of usage, by name. */
export const listModels = statement<[orgId: number, from: string, to: string, limit: number], { model: string }>(
  'usage.list_models',
  `select model as "model" from (
     select model from usage_days where org_id = $1::int and day between $2::date and $3::date group by model
     order by sum(value_uinr) desc, sum(requests) desc, model limit $4::int) as used order by 1`,
)

export const findKeyName = statement<[orgId: number, keyId: number], { name: string; revoked: boolean }>(
  'usage.find_key_name',
  'select name as "name", revoked_at is not null as "revoked" from api_keys where org_id = $1::int and id = $2::int',
)

/** Returns how many calls a span has, and from which day on single calls are kept. */
export const findEventRoom = statement<[orgId: number, from: string, to: string], EventRoom>(
  'usage.find_event_room',
  `select (select coalesce(sum(requests), 0)::bigint from usage_days where org_id = $1::int and day between $2::date and $3::date) as "calls",
     (select max(kept_from) from usage_retention) as "keptFrom"`,
)

/** The number of served calls in one bucket of latencies, in a day or an hour. */
export interface LatencyRow {
  readonly day: string
  readonly hour: number | null
  readonly bucket: number
  readonly requests: bigint
}

/** Model '' means all models together, and provider '' all providers. */
type OfModel = [orgId: number, from: string, to: string, model: string, provider: string]
const ofModel = 'org_id = $1::int and day between $2::date and $3::date and model = $4::text and provider = $5::text'

export const sumDayLatencies = statement<OfModel, LatencyRow>(
  'usage.sum_day_latencies',
  `select day as "day", null::smallint as "hour", bucket as "bucket", requests as "requests" from usage_day_latencies where ${ofModel} order by 1, 3`,
)

export const sumHourLatencies = statement<OfModel, LatencyRow>(
  'usage.sum_hour_latencies',
  `select day as "day", hour as "hour", bucket as "bucket", requests as "requests" from usage_hour_latencies where ${ofModel} order by 1, 2, 3`,
)

/** Returns the latencies of single calls, by hour if `byHour` is true. The limit of models is ignored. */
export const sumEventLatencies = statement<[...EventParams, byHour: boolean], LatencyRow>(
  'usage.sum_event_latencies',
  `select day as "day", case when $12::boolean then hour end as "hour", ${bucketSql} as "bucket", count(*) as "requests"
   from (${eventRows}) e where ${servedSql} and $4::int > 0 group by 1, 2, 3 order by 1, 2, 3`,
)
