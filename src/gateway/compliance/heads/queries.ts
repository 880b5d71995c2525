import { statement } from '../../../platform/db/db.ts'

/** A call of a tool as its usage event has it. */
export interface CallRow {
  readonly id: string
  readonly at: Date
  readonly recordedAt: Date
  readonly day: string
  readonly requestId: string
  readonly userId: number | null
  readonly keyId: number | null
  readonly workspaceId: number | null
  readonly agentId: number | null
  readonly agentLabel: string | null
  readonly tool: string
  readonly provider: string
  readonly residency: string
  readonly status: number
  readonly outcome: string
  readonly valueUinr: bigint
  readonly costUinr: bigint
  readonly latencyMs: number
}

/** Reads a page of the calls that were written in a window, in the order of a head. */
export const listToolCalls = statement<[orgId: number, from: Date, until: Date, afterAt: Date, afterId: string, limit: number], CallRow>(
  'compliance.list_tool_calls',
  `select id, at, recorded_at as "recordedAt", day::text as "day", request_id as "requestId", user_id as "userId", key_id as "keyId",
     workspace_id as "workspaceId", agent_id as "agentId", agent_label as "agentLabel", model as "tool", provider, residency, status, outcome,
     value_uinr as "valueUinr", cost_uinr as "costUinr", latency_ms as "latencyMs"
   from usage_events
   where org_id = $1::int and kind = 'tool' and recorded_at >= $2::timestamptz and recorded_at < $3::timestamptz
     and (recorded_at, id) > ($4::timestamptz, $5::uuid)
   order by recorded_at, id limit $6::int`,
)

/** Returns when the first call of a tool was written at or after an instant. */
export const firstToolCall = statement<[orgId: number, from: Date], { at: Date | null }>(
  'compliance.first_tool_call',
  `select min(recorded_at) as "at" from usage_events where org_id = $1::int and kind = 'tool' and recorded_at >= $2::timestamptz`,
)

/** Returns the first IST day whose events are all kept. Null when no event was ever deleted by age. */
export const findCallsKeptFrom = statement<[], { keptFrom: string | null }>(
  'compliance.find_calls_kept_from',
  `select max(kept_from)::text as "keptFrom" from usage_retention`,
)

/** A head as it is stored. `payload` is the signed text. */
export interface HeadRow {
  readonly day: string
  readonly payload: string
  readonly keyId: string
  readonly signature: string
}

const headColumns = `day::text as "day", payload, key_id as "keyId", signature`

/** Reads a page of heads, the oldest first, which begins after a day. */
export const listHeads = statement<[orgId: number, after: string, limit: number], HeadRow>(
  'compliance.list_heads',
  `select ${headColumns} from tool_audit_heads where org_id = $1::int and tool_audit_heads.day > $2::date order by tool_audit_heads.day limit $3::int`,
)

export const findLastHead = statement<[orgId: number], HeadRow>(
  'compliance.find_last_head',
  `select ${headColumns} from tool_audit_heads where org_id = $1::int order by tool_audit_heads.day desc limit 1`,
)

export const insertHead = statement<[orgId: number, day: string, payload: string, keyId: string, signature: string]>(
  'compliance.insert_head',
  `insert into tool_audit_heads (org_id, day, payload, key_id, signature) values ($1::int, $2::date, $3::text, $4::text, $5::text) on conflict do nothing`,
)
