import { statement } from '../../../../platform/db/db.ts'
import type { Finding } from '../definitions/findings.ts'

/**
 * The state of a tool. `approved`: the definition that was seen last is the approved one, so the tool can be called. `pending`: none was ever approved.
 * `changed`: another one was approved. `gone`: the server does not list the tool. `blocked`: a person blocked it.
 */
export const pinStates = ['pending', 'approved', 'changed', 'blocked', 'gone'] as const
export type PinState = (typeof pinStates)[number]

const state = `case when p.blocked_at is not null then 'blocked' when p.gone_at is not null then 'gone' when p.approved_id is null then 'pending'
     when p.approved_id = p.seen_id then 'approved' else 'changed' end`

/** A tool of a server in a list. Hashes are in hexadecimal. */
export interface PinRow {
  readonly id: number
  readonly publicName: string
  readonly upstreamName: string
  readonly state: PinState
  readonly seenHash: string
  readonly approvedHash: string | null
  readonly approvedBy: number | null
  readonly approvedAt: Date | null
  readonly blockedAt: Date | null
  readonly blockedReason: string | null
  readonly goneAt: Date | null
  readonly firstSeenAt: Date
  readonly seenAt: Date
  readonly findings: readonly Finding[]
}

const columns = `p.id, p.public_name as "publicName", p.upstream_name as "upstreamName", ${state} as "state", encode(d.sha256, 'hex') as "seenHash",
     encode(a.sha256, 'hex') as "approvedHash", p.approved_by as "approvedBy", p.approved_at as "approvedAt", p.blocked_at as "blockedAt",
     p.blocked_reason as "blockedReason", p.gone_at as "goneAt", p.first_seen_at as "firstSeenAt", d.first_seen_at as "seenAt", d.findings`
const tables = `tool_pins p join tool_definitions d on d.org_id = p.org_id and d.id = p.seen_id
     left join tool_definitions a on a.org_id = p.org_id and a.id = p.approved_id`

/** A page of the tools of a server by public name, which begins after `after`. */
export const listPins = statement<[orgId: number, serverId: string, after: string, state: string | null, limit: number], PinRow>(
  'tools.list_pins',
  `select ${columns} from ${tables}
   where p.org_id = $1::int and p.server_id = $2::uuid and p.public_name > $3::text and ($4::text is null or ${state} = $4::text)
   order by p.public_name limit $5::int`,
)

/** One tool with both definitions. `approved` is null when none was approved. */
export const findPin = statement<[orgId: number, serverId: string, publicName: string], PinRow & { readonly seen: unknown; readonly approved: unknown }>(
  'tools.find_pin',
  `select ${columns}, d.definition as "seen", a.definition as "approved" from ${tables}
   where p.org_id = $1::int and p.server_id = $2::uuid and p.public_name = $3::text`,
)

export const countPins = statement<[orgId: number], { serverId: string; state: PinState; tools: number }>(
  'tools.count_pins',
  `select p.server_id as "serverId", ${state} as "state", count(*)::int as "tools" from tool_pins p where p.org_id = $1::int group by 1, 2`,
)

/** Counts the tools of an organisation that can be called, and the bytes of their definitions. */
export const countCallable = statement<[orgId: number], { tools: number; bytes: bigint }>(
  'tools.count_callable',
  `select count(*)::int as "tools", coalesce(sum(octet_length(d.definition::text)), 0)::bigint as "bytes"
   from tool_pins p join tool_definitions d on d.org_id = p.org_id and d.id = p.approved_id
   where p.org_id = $1::int and p.approved_id = p.seen_id and p.blocked_at is null and p.gone_at is null`,
)

export interface NamedPin {
  readonly id: number
  readonly publicName: string
  readonly seenHash: string
  readonly isGone: boolean
  readonly isBlocked: boolean
  /** True when a finding blocks the approval of the definition that was seen last. */
  readonly isBarred: boolean
}

export const listNamedPins = statement<[orgId: number, serverId: string, names: readonly string[]], NamedPin>(
  'tools.list_named_pins',
  `select p.id, p.public_name as "publicName", encode(d.sha256, 'hex') as "seenHash", p.gone_at is not null as "isGone", p.blocked_at is not null as "isBlocked",
     d.findings @> '[{"blocks": true}]'::jsonb as "isBarred"
   from tool_pins p join tool_definitions d on d.org_id = p.org_id and d.id = p.seen_id
   where p.org_id = $1::int and p.server_id = $2::uuid and p.public_name = any($3::text[])`,
)

/** Approves the definitions that were seen last. The caller holds the lock of the server, and has compared the hashes. */
export const approvePins = statement<[orgId: number, ids: readonly number[], userId: number | null, now: Date]>(
  'tools.approve_pins',
  `update tool_pins set approved_id = seen_id, approved_by = $3::int, approved_at = $4::timestamptz, blocked_at = null, blocked_reason = null
   where org_id = $1::int and id = any($2::int[])`,
)

export const blockPins = statement<[orgId: number, ids: readonly number[], reason: string | null, now: Date]>(
  'tools.block_pins',
  `update tool_pins set blocked_at = $4::timestamptz, blocked_reason = $3::text where org_id = $1::int and id = any($2::int[])`,
)
