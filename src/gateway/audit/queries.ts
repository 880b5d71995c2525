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

/** A line that a page looked at. */
export interface ScannedRow extends LineRow {
  /** Whether the line matches the filters. Only the oldest line of the scan may not. */
  readonly isMatch: boolean
  /** The number of lines of the scan, also of those that are not returned. */
  readonly scanned: number
}

type Filters = [before: bigint | null, actorKind: string | null, actorId: string | null, act: string | null, from: Date | null, to: Date | null]

/**
 * SQL that looks at the newest `scanMax` lines of an owner before an id, newest first. It returns those that match, and the oldest one. The parameters from
 * number `first` on are the filters, `limit` and `scanMax`.
 */
function scanOf(owner: (before: string) => string, order: string, first: number): string {
  const [before, kind, actor, act, from, to, limit, scanMax] = Array.from({ length: 8 }, (_, index) => `$${first + index}`)
  return `with scan as materialized (
     select id, org_id, at, actor_kind, actor_id, act, target, source_ip, request_id, outcome from audit_log
     where ${owner(`coalesce(${before}::bigint, 9223372036854775807)`)} order by ${order} limit ${scanMax}::int),
   judged as (
     select scan.*, (${kind}::text is null or actor_kind = ${kind}::text) and (${actor}::text is null or actor_id = ${actor}::text)
       and (${act}::text is null or act = ${act}::text) and (${from}::timestamptz is null or at >= ${from}::timestamptz)
       and (${to}::timestamptz is null or at < ${to}::timestamptz) as is_match
     from scan)
   select l.id as "id", l.at as "at", l.actor_kind as "actorKind", l.actor_id as "actorId", l.act as "act", l.target as "target",
          l.source_ip as "sourceIp", l.request_id as "requestId", l.outcome as "outcome",
          case l.actor_kind
            when 'user' then (select u.email from users u where u.id = l.actor_id::int)
            when 'key' then (select k.name from api_keys k where k.org_id = l.org_id and k.id = l.actor_id::int)
            when 'agent' then (select a.name from agents a where a.org_id = l.org_id and a.id = l.actor_id::int)
          end as "actorName", l.is_match as "isMatch", (select count(*) from scan)::int as "scanned"
   from judged l where l.is_match or l.id = (select min(id) from scan)
   order by l.id desc limit ${limit}::int`
}

/**
 * Looks at lines of an organisation. A filter that is null has no effect. The pairs are compared because a database without statistics then reads the lines in
 * the order of the index. With a plain comparison it sorts all lines of the organisation. Decision 0656 says why.
 */
export const scanLines = statement<[orgId: number, ...Filters, limit: number, scanMax: number], ScannedRow>(
  'audit.scan_lines',
  scanOf(before => `(org_id, id) < ($1::int, ${before}) and (org_id, id) >= ($1::int, 0)`, 'org_id desc, id desc', 2),
)

/** Looks at acts on the installation itself, as `scanLines` does. */
export const scanInstallationLines = statement<[...Filters, limit: number, scanMax: number], ScannedRow>(
  'audit.scan_installation_lines',
  scanOf(before => `org_id is null and id < ${before}`, 'id desc', 1),
)

/** Deletes at most `limit` lines that are older than the bound. */
export const deleteOldLines = statement<[before: Date, limit: number]>(
  'audit.delete_old_lines',
  `delete from audit_log where id in (select l.id from audit_log l where l.at < $1::timestamptz order by l.at limit $2::int)`,
)
