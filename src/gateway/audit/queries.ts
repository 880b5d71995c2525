import { statement } from '../../platform/db/db.ts'

/** Writes a line and returns its id. A null outcome means that the act has not ended. */
export const insertLine = statement<
  [
    orgId: number | null,
    at: Date,
    actorKind: string,
    actorId: string | null,
    act: string,
    target: string | null,
    sourceIp: string | null,
    requestId: string | null,
    outcome: string | null,
  ],
  { id: bigint }
>(
  'audit.insert_line',
  `insert into audit_log (org_id, at, actor_kind, actor_id, act, target, source_ip, request_id, outcome)
   values ($1::int, $2::timestamptz, $3::text, $4::text, $5::text, $6::text, $7::text, $8::text, $9::text)
   returning id as "id"`,
)

/** Completes a line. It adds the target and the organisation if they became known only during the act. */
export const endLine = statement<[id: bigint, outcome: string, target: string | null, orgId: number | null]>(
  'audit.end_line',
  `update audit_log set outcome = $2::text, target = coalesce($3::text, target), org_id = coalesce(org_id, $4::int) where id = $1::bigint`,
)

export interface LineRow {
  readonly id: bigint
  readonly at: Date
  readonly actorKind: 'user' | 'key' | 'agent' | 'operator' | 'system'
  readonly actorId: string | null
  readonly actorName: string | null
  readonly act: string
  readonly target: string | null
  readonly sourceIp: string | null
  readonly requestId: string | null
  readonly outcome: string | null
}

/** Lists lines, newest first. Without an organisation, it lists acts on the installation itself. A filter that is null has no effect. */
export const listLines = statement<
  [
    orgId: number | null,
    before: bigint | null,
    actorKind: string | null,
    actorId: string | null,
    act: string | null,
    from: Date | null,
    to: Date | null,
    limit: number,
  ],
  LineRow
>(
  'audit.list_lines',
  `select l.id as "id", l.at as "at", l.actor_kind as "actorKind", l.actor_id as "actorId", l.act as "act", l.target as "target",
          l.source_ip as "sourceIp", l.request_id as "requestId", l.outcome as "outcome",
          case l.actor_kind
            when 'user' then (select u.email from users u where u.id = l.actor_id::int)
            when 'key' then (select k.name from api_keys k where k.org_id = l.org_id and k.id = l.actor_id::int)
            when 'agent' then (select a.name from agents a where a.org_id = l.org_id and a.id = l.actor_id::int)
          end as "actorName"
   from audit_log l
   where (l.org_id = $1::int or ($1::int is null and l.org_id is null))
     and ($2::bigint is null or l.id < $2::bigint)
     and ($3::text is null or l.actor_kind = $3::text)
     and ($4::text is null or l.actor_id = $4::text)
     and ($5::text is null or l.act = $5::text)
     and ($6::timestamptz is null or l.at >= $6::timestamptz)
     and ($7::timestamptz is null or l.at < $7::timestamptz)
   order by l.id desc
   limit $8::int`,
)

/** Deletes at most `limit` lines that are older than the bound. */
export const deleteOldLines = statement<[before: Date, limit: number]>(
  'audit.delete_old_lines',
  `delete from audit_log where id in (select l.id from audit_log l where l.at < $1::timestamptz order by l.at limit $2::int)`,
)
