/** Statements for the list of single events. Each statement reads a bounded number of rows from the index `usage_events_newest`. */
import { statement } from '../../../platform/db/db.ts'
import type { Outcome, UsageEvent } from '../events/record.ts'

export interface EventRow {
  readonly day: string
  readonly id: string
  readonly at: Date
  readonly requestId: string
  readonly kind: string
  readonly model: string
  readonly provider: string
  readonly residency: UsageEvent['residency']
  readonly streamed: boolean
  readonly byok: boolean
  readonly estimated: boolean
  readonly status: number
  readonly outcome: Outcome
  readonly latencyMs: number
  readonly firstByteMs: number | null
  readonly promptTokens: bigint
  readonly completionTokens: bigint
  readonly cachedTokens: bigint
  readonly costUinr: bigint
  readonly valueUinr: bigint
  readonly keyId: number | null
  readonly keyName: string | null
  readonly agentId: number | null
  readonly agentName: string | null
  readonly agentLabel: string | null
}

const columns = `e.day as "day", e.id as "id", e.at as "at", e.request_id as "requestId", e.kind as "kind", e.model as "model", e.provider as "provider",
     e.residency as "residency", e.streamed as "streamed", e.byok as "byok", e.estimated as "estimated", e.status as "status", e.outcome as "outcome",
     e.latency_ms as "latencyMs", e.first_byte_ms as "firstByteMs", e.prompt_tokens as "promptTokens", e.completion_tokens as "completionTokens",
     e.cached_tokens as "cachedTokens", e.cost_uinr as "costUinr", e.value_uinr as "valueUinr", e.key_id as "keyId", k.name as "keyName",
     e.agent_id as "agentId", a.name as "agentName", case when e.agent_id is null then e.agent_label end as "agentLabel"`
const names = `left join api_keys k on k.org_id = $1::int and k.id = e.key_id left join agents a on a.org_id = $1::int and a.id = e.agent_id`

/** Returns the newest events before a position. The condition on the day alone skips partitions. The condition on day and id together skips rows. */
export const listEvents = statement<[orgId: number, day: string, beforeId: string, limit: number], EventRow>(
  'usage.list_events',
  `select ${columns} from (
     select * from usage_events where org_id = $1::int and day <= $2::date and (day, id) < ($2::date, $3::uuid)
     order by day desc, id desc limit $4::int) e ${names}
   order by e.day desc, e.id desc`,
)

/** Returns the day of an event. It may be a day before or after the day in the id. */
export const findEventDay = statement<[orgId: number, days: readonly string[], id: string], { day: string }>(
  'usage.find_event_day',
  'select day as "day" from usage_events where org_id = $1::int and day = any($2::date[]) and id = $3::uuid order by day desc limit 1',
)

/**
 * Examines the newest `scanMax` events of a day before an id. Returns the matching events. It also returns the last examined event, with `isMatch`
 * false if that event does not match. `scanned` is the position of a row among the examined ones, from 1.
 */
export const scanDay = statement<
  [
    orgId: number,
    day: string,
    beforeId: string,
    scanMax: number,
    limit: number,
    model: string | null,
    keyId: number | null,
    agentId: number | null,
    isFailed: boolean,
  ],
  EventRow & { readonly isMatch: boolean; readonly scanned: bigint }
>(
  'usage.scan_day',
  `select ${columns}, e.is_match as "isMatch", e.scanned as "scanned" from (
     select s.*, row_number() over (order by s.id desc) as scanned, count(*) over () as total,
       (($6::text is null or s.model = $6::text) and ($7::int is null or coalesce(s.key_id, 0) = $7::int)
         and ($8::int is null or s.agent_id = $8::int) and (not $9::boolean or s.outcome not in ('ok', 'client_gone'))) as is_match
     from (select * from usage_events where org_id = $1::int and day = $2::date and id < $3::uuid order by id desc limit $4::int) s) e ${names}
   where e.is_match or e.scanned = e.total order by e.id desc limit $5::int`,
)

/** Excludes days whose events were deleted. Their sums still exist, but no events can be listed. */
const kept = "day >= coalesce((select max(kept_from) from usage_retention), '-infinity'::date)"

type Filters = [orgId: number, until: string, isFailed: boolean]

/**
 * Returns the days up to a given day, newest first, on which the model was called. Null means any model. With `isFailed`, only days with failures are
 * returned.
 */
export const daysOfModel = statement<[...Filters, model: string | null], { day: string }>(
  'usage.days_of_model',
  `select distinct day as "day" from usage_days
   where org_id = $1::int and day <= $2::date and ${kept} and ($4::text is null or model = $4::text) and (not $3::boolean or errors > 0) order by 1 desc`,
)

/** Returns the same days as `daysOfModel`, for one key. Key 0 means calls without a key. */
export const daysOfKey = statement<[...Filters, model: string | null, keyId: number], { day: string }>(
  'usage.days_of_key',
  `select distinct day as "day" from usage_days_by_key_model
   where org_id = $1::int and key_id = $5::int and day <= $2::date and ${kept} and ($4::text is null or model = $4::text) and (not $3::boolean or errors > 0)
   order by 1 desc`,
)

/** Returns the same days as `daysOfModel`, for one agent. */
export const daysOfAgent = statement<[...Filters, agentId: number], { day: string }>(
  'usage.days_of_agent',
  `select distinct day as "day" from usage_days_by_agent
   where org_id = $1::int and agent_id = $4::int and day <= $2::date and ${kept} and (not $3::boolean or errors > 0) order by 1 desc`,
)
