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

/** A line that matches, or nulls when none does, and where the scan ended. */
export type ScannedRow = (LineRow | { readonly [name in keyof LineRow]: null }) & {
  /** The oldest line at which the scan looked. */
  readonly endId: bigint
  /** Whether there are no older lines. */
  readonly isEnd: boolean
}

type Filters = [before: bigint | null, actorKind: string | null, actorId: string | null, act: string | null, from: Date | null, to: Date | null]

/** The number of lines of one step of a scan. */
export const scanStep = 100

/**
 * SQL that looks at the newest lines of an owner before an id, `steps` times `scanStep` of them, and returns those that match, newest first. `isOwner` is the
 * condition on the owner. `isBefore` is that condition and the one that a line is older than an id. The parameters from number `first` on are the filters,
 * `limit` and `steps`. A step reads few lines in the order of the index, and the ids of the steps bound what the rest of the statement reads.
 */
function scanOf({ isOwner, isBefore, order, first }: { isOwner: string; isBefore: string; order: string; first: number }): string {
  const [before, kind, actor, act, from, to, limit, steps] = Array.from({ length: 8 }, (_, index) => `$${first + index}`)
  return `with recursive ends (step, id) as (
     select 0, coalesce(${before}::bigint, 9223372036854775807)
     union all
     select step + 1, (select min(id) from (select id from audit_log where ${isBefore} order by ${order} limit ${scanStep}) as found)
     from ends where ends.id is not null and step < ${steps}::int)
   select l.*, scan.end_id as "endId", scan.is_end as "isEnd"
   from (select max(id) as begin_id, min(id) as end_id, bool_or(id is null) as is_end from ends) as scan
   left join lateral (
     select l.id as "id", l.at as "at", l.actor_kind as "actorKind", l.actor_id as "actorId", l.act as "act", l.target as "target",
            l.source_ip as "sourceIp", l.request_id as "requestId", l.outcome as "outcome",
            case l.actor_kind
              when 'user' then (select u.email from users u where u.id = l.actor_id::int)
              when 'key' then (select k.name from api_keys k where k.org_id = l.org_id and k.id = l.actor_id::int)
              when 'agent' then (select a.name from agents a where a.org_id = l.org_id and a.id = l.actor_id::int)
            end as "actorName"
     from audit_log l
     where ${isOwner} and l.id >= scan.end_id and l.id < scan.begin_id
       and (${kind}::text is null or l.actor_kind = ${kind}::text)
       and (${actor}::text is null or l.actor_id = ${actor}::text)
       and (${act}::text is null or l.act = ${act}::text)
       and (${from}::timestamptz is null or l.at >= ${from}::timestamptz)
       and (${to}::timestamptz is null or l.at < ${to}::timestamptz)
     order by l.id desc limit ${limit}::int) as l on true
   order by l.id desc`
}

/**
 * Looks at lines of an organisation. A filter that is null has no effect. Pairs are compared because a database without statistics then reads the lines in the
 * order of the index. With a plain comparison it may sort all lines of the organisation. Decision 0656 says why.
 */
export const scanLines = statement<[orgId: number, ...Filters, limit: number, steps: number], ScannedRow>(
  'audit.scan_lines',
  scanOf({
    isOwner: 'l.org_id = $1::int',
    isBefore: '(org_id, id) < ($1::int, ends.id) and (org_id, id) >= ($1::int, 0)',
    order: 'org_id desc, id desc',
    first: 2,
  }),
)

/** Looks at acts on the installation itself, as `scanLines` does. */
export const scanInstallationLines = statement<[...Filters, limit: number, steps: number], ScannedRow>(
  'audit.scan_installation_lines',
  scanOf({ isOwner: 'l.org_id is null', isBefore: 'org_id is null and id < ends.id', order: 'id desc', first: 1 }),
)

/** The acts about the definitions of tools. They are those of the index `audit_log_of_tools`. */
const toolActs = "act in ('approveTool', 'blockTool', 'noteToolChanges')"

/** Returns when the first line about a tool was written at or after an instant. */
export const firstToolAct = statement<[orgId: number, from: Date], { at: Date | null }>(
  'audit.first_tool_act',
  `select min(at) as "at" from audit_log where org_id = $1::int and ${toolActs} and at >= $2::timestamptz`,
)

/** Reads a page of the lines about tools in a window, by time and id. */
export const listToolActs = statement<[orgId: number, from: Date, until: Date, afterAt: Date, afterId: bigint, limit: number], Omit<LineRow, 'actorName'>>(
  'audit.list_tool_acts',
  `select id, at, actor_kind as "actorKind", actor_id as "actorId", act, target, source_ip as "sourceIp", request_id as "requestId", outcome
   from audit_log
   where org_id = $1::int and ${toolActs} and at >= $2::timestamptz and at < $3::timestamptz and (at, id) > ($4::timestamptz, $5::bigint)
   order by at, id limit $6::int`,
)

/** Deletes at most `limit` lines that are older than the bound. */
export const deleteOldLines = statement<[before: Date, limit: number]>(
  'audit.delete_old_lines',
  `delete from audit_log where id in (select l.id from audit_log l where l.at < $1::timestamptz order by l.at limit $2::int)`,
)
