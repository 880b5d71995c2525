/** The rows below day heads, in the form that their leaves cover. They contain no text of arguments, results or definitions. */
import canonicalize from 'canonicalize'
import type { AuditRow } from './audit-head-shape.ts'
import type { CallRow } from './queries.ts'

/** A line of the audit trail about a tool. */
export interface ActRow {
  readonly id: bigint
  readonly at: Date
  readonly actorKind: string
  readonly actorId: string | null
  readonly act: string
  readonly target: string | null
  readonly sourceIp: string | null
  readonly requestId: string | null
  readonly outcome: string | null
}

/** Returns the text of a leaf: the row in the form of RFC 8785. Throws for a value that JSON cannot express. */
export function leafOf(row: AuditRow): string {
  const text = canonicalize(row)
  if (text === undefined) throw new TypeError('there is no row')
  return text
}

export function callRow(orgId: number, row: CallRow): AuditRow {
  return {
    kind: 'call',
    id: row.id,
    at: row.at.toISOString(),
    recorded_at: row.recordedAt.toISOString(),
    day: row.day,
    org_id: orgId,
    request_id: row.requestId,
    user_id: row.userId,
    key_id: row.keyId,
    workspace_id: row.workspaceId,
    agent_id: row.agentId,
    agent_label: row.agentLabel,
    tool: row.tool,
    provider: row.provider,
    residency: row.residency,
    status: row.status,
    outcome: row.outcome,
    value_uinr: String(row.valueUinr),
    cost_uinr: String(row.costUinr),
    latency_ms: row.latencyMs,
  }
}

export function actRow(orgId: number, row: ActRow): AuditRow {
  return {
    kind: 'act',
    id: String(row.id),
    at: row.at.toISOString(),
    org_id: orgId,
    act: row.act,
    actor_kind: row.actorKind,
    actor_id: row.actorId,
    target: row.target,
    source_ip: row.sourceIp,
    request_id: row.requestId,
    outcome: row.outcome,
  }
}
