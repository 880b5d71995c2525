/**
 * Statements for the list of single events. Each statement reads a bounded number of rows: from the index `usage_events_newest`, or from the index of request
 * ids.
 */
import { statement } from '../../../platform/db/db.ts'
import { failedSql } from '../events/event-sql.ts'
import type { Outcome, UsageEvent, UsageKind } from '../events/record.ts'

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
  readonly userId: number | null
  readonly workspaceId: number | null
  readonly runId: string | null
  /** A JSON object of strings. Null: none. */
  readonly tags: string | null
  /** Null: a provider served the call. */
  readonly savedUinr: bigint | null
}

/** What a call has in addition to a row of the list. */
export interface CallRow extends EventRow {
  readonly memberName: string | null
  readonly workspaceName: string | null
  readonly cacheWriteTokens: bigint
  readonly reasoningTokens: bigint
  readonly images: number
  readonly audioSeconds: number
  readonly characters: bigint
  readonly searches: number
  /** The attempts that failed, as `tried-routes.ts` writes them. */
  readonly tried: string | null
}

const columns = `e.day as "day", e.id as "id", e.at as "at", e.request_id as "requestId", e.kind as "kind", e.model as "model", e.provider as "provider",
     e.residency as "residency", e.streamed as "streamed", e.byok as "byok", e.estimated as "estimated", e.status as "status", e.outcome as "outcome",
     e.latency_ms as "latencyMs", e.first_byte_ms as "firstByteMs", e.prompt_tokens as "promptTokens", e.completion_tokens as "completionTokens",
     e.cached_tokens as "cachedTokens", e.cost_uinr as "costUinr", e.value_uinr as "valueUinr", e.key_id as "keyId", k.name as "keyName",
     e.agent_id as "agentId", a.name as "agentName", case when e.agent_id is null then e.agent_label end as "agentLabel", e.user_id as "userId",
     e.workspace_id as "workspaceId", e.run_id as "runId", e.tags as "tags", e.saved_uinr as "savedUinr"`
const names = `left join api_keys k on k.org_id = $1::int and k.id = e.key_id left join agents a on a.org_id = $1::int and a.id = e.agent_id`

/**
 * Returns the newest events before a position, from a day on. The condition on the day alone skips partitions. The condition on day and id together skips rows.
 */
export const listEvents = statement<[orgId: number, day: string, beforeId: string, limit: number, from: string], EventRow>(
  'usage.list_events',
  `select ${columns} from (
     select * from usage_events where org_id = $1::int and day <= $2::date and day >= $5::date and (day, id) < ($2::date, $3::uuid)
     order by day desc, id desc limit $4::int) e ${names}
   order by e.day desc, e.id desc`,
)

/** Returns the day of an event. It may be a day before or after the day in the id. */
export const findEventDay = statement<[orgId: number, days: readonly string[], id: string], { day: string }>(
  'usage.find_event_day',
  'select day as "day" from usage_events where org_id = $1::int and day = any($2::date[]) and id = $3::uuid order by day desc limit 1',
)

/** The values that an event must have. Null means any. */
type Match = [
  model: string | null,
  keyId: number | null,
  agentId: number | null,
  isFailed: boolean,
  provider: string | null,
  outcome: Outcome | null,
  kind: UsageKind | null,
  workspaceId: number | null,
  userId: number | null,
  tag: string | null,
]

/** SQL that compares an event with parameters of `Match`, which begin at `$5`. */
const matches = (e: string): string => `($5::text is null or ${e}.model = $5::text) and ($6::int is null or coalesce(${e}.key_id, 0) = $6::int)
         and ($7::int is null or ${e}.agent_id = $7::int) and (not $8::boolean or ${e}.${failedSql}) and ($9::text is null or ${e}.provider = $9::text)
         and ($10::text is null or ${e}.outcome = $10::text) and ($11::text is null or ${e}.kind = $11::text)
         and ($12::int is null or ${e}.workspace_id = $12::int) and ($13::int is null or ${e}.user_id = $13::int)
         and ($14::text is null or ${e}.tags::jsonb @> $14::jsonb)`

/**
 * Examines the newest `scanMax` events of a day before an id. Returns the matching events. It also returns the last examined event, with `isMatch`
 * false if that event does not match. `scanned` is the position of a row among the examined ones, from 1.
 */
export const scanDay = statement<
  [orgId: number, day: string, beforeId: string, scanMax: number, ...Match, limit: number],
  EventRow & { readonly isMatch: boolean; readonly scanned: bigint }
>(
  'usage.scan_day',
  `select ${columns}, e.is_match as "isMatch", e.scanned as "scanned" from (
     select s.*, row_number() over (order by s.id desc) as scanned, count(*) over () as total, (${matches('s')}) as is_match
     from (select * from usage_events where org_id = $1::int and day = $2::date and id < $3::uuid order by id desc limit $4::int) s) e ${names}
   where e.is_match or e.scanned = e.total order by e.id desc limit $15::int`,
)

/** Returns the matching events of one request, newest first. A request has one event for each call that it makes, which is one for almost every request. */
export const listEventsOfRequest = statement<[orgId: number, from: string, to: string, requestId: string, ...Match, limit: number], EventRow>(
  'usage.list_events_of_request',
  `select ${columns} from usage_events e ${names}
   where e.org_id = $1::int and e.day between $2::date and $3::date and e.request_id = $4::text and ${matches('e')}
   order by e.day desc, e.id desc limit $15::int`,
)

/** Returns the calls of one request, oldest first. */
export const findCalls = statement<[orgId: number, requestId: string, limit: number], CallRow>(
  'usage.find_calls',
  `select ${columns}, u.name as "memberName", w.name as "workspaceName", e.cache_write_tokens as "cacheWriteTokens", e.reasoning_tokens as "reasoningTokens",
     e.images as "images", e.audio_seconds as "audioSeconds", e.characters as "characters", e.searches as "searches", e.tried as "tried"
   from usage_events e ${names} left join org_members m on m.org_id = $1::int and m.user_id = e.user_id left join users u on u.id = m.user_id
     left join workspaces w on w.org_id = $1::int and w.id = e.workspace_id
   where e.org_id = $1::int and e.request_id = $2::text order by e.day, e.id limit $3::int`,
)

/** Excludes days whose events were deleted. Their sums still exist, but no events can be listed. */
const kept = "day >= coalesce((select max(kept_from) from usage_retention), '-infinity'::date)"

/** Days up to `until` on which there can be matches, newest first. With `isFailed`, only days with failures are returned. */
type Days = [orgId: number, from: string, until: string, isFailed: boolean, limit: number]
const ofDays = `org_id = $1::int and day between $2::date and $3::date and ${kept} and (not $4::boolean or errors > 0)`
const newestFirst = 'order by 1 desc limit $5::int'
const ofModel = '($6::text is null or model = $6::text) and ($7::text is null or provider = $7::text)'

/** Returns the days on which the model was called at the provider. Null means any. */
export const daysOfModel = statement<[...Days, model: string | null, provider: string | null], { day: string }>(
  'usage.days_of_model',
  `select distinct day as "day" from usage_days where ${ofDays} and ${ofModel} ${newestFirst}`,
)

/** Returns the same days as `daysOfModel`, for one key. Key 0 means calls without a key. */
export const daysOfKey = statement<[...Days, model: string | null, provider: string | null, keyId: number], { day: string }>(
  'usage.days_of_key',
  `select distinct day as "day" from usage_days_by_key_model where ${ofDays} and key_id = $8::int and ${ofModel} ${newestFirst}`,
)

/** Returns the days on which the agent was used. */
export const daysOfAgent = statement<[...Days, agentId: number], { day: string }>(
  'usage.days_of_agent',
  `select distinct day as "day" from usage_days_by_agent where ${ofDays} and agent_id = $6::int ${newestFirst}`,
)

/** Returns the same days as `daysOfModel`, for one member. */
export const daysOfMember = statement<[...Days, model: string | null, provider: string | null, userId: number], { day: string }>(
  'usage.days_of_member',
  `select distinct day as "day" from usage_days_by_caller where ${ofDays} and user_id = $8::int and user_id <> 0 and ${ofModel} ${newestFirst}`,
)

/** Returns the same days as `daysOfModel`, for one workspace. */
export const daysOfWorkspace = statement<[...Days, model: string | null, provider: string | null, workspaceId: number], { day: string }>(
  'usage.days_of_workspace',
  `select distinct day as "day" from usage_days_by_caller where ${ofDays} and workspace_id = $8::int and workspace_id <> 0 and ${ofModel} ${newestFirst}`,
)
