/** Statements about refused calls. */
import { statement } from '../../../platform/db/db.ts'

/** The most rows that an organisation gets for one hour. A flush that begins below it may exceed it by its own rows. */
const hourRowsMax = 1_000

export interface RefusedRow {
  readonly hour: Date
  readonly keyId: number
  readonly keyName: string | null
  /** 0: no registered agent. */
  readonly agentId: number
  readonly agentName: string | null
  readonly errorName: string
  readonly scope: string
  readonly calls: bigint
  readonly firstAt: Date
  readonly lastAt: Date
  readonly lastRequestId: string
}

/** Adds refused calls to their rows. Element `i` of each list belongs to row `i`. The rows must be sorted, so that processes lock them in one order. */
export const addRefusedCalls = statement<
  [
    orgIds: readonly number[],
    hours: readonly Date[],
    keyIds: readonly number[],
    agentIds: readonly number[],
    errorNames: readonly string[],
    scopes: readonly string[],
    calls: readonly number[],
    firstAt: readonly Date[],
    lastAt: readonly Date[],
    lastRequestIds: readonly string[],
  ]
>(
  'usage.add_refused_calls',
  `insert into refused_calls as c (org_id, hour, key_id, agent_id, error_name, scope, calls, first_at, last_at, last_request_id)
   select n.org_id, n.hour, n.key_id, n.agent_id, n.error_name, n.scope, n.calls, n.first_at, n.last_at, n.last_request_id
   from unnest($1::int[], $2::timestamptz[], $3::int[], $4::int[], $5::text[], $6::text[], $7::bigint[], $8::timestamptz[], $9::timestamptz[], $10::text[])
     as n (org_id, hour, key_id, agent_id, error_name, scope, calls, first_at, last_at, last_request_id)
   left join (select r.org_id, r.hour, count(*) as rows from refused_calls r
     where r.org_id = any($1::int[]) and r.hour = any($2::timestamptz[]) group by r.org_id, r.hour) h on h.org_id = n.org_id and h.hour = n.hour
   where coalesce(h.rows, 0) < ${hourRowsMax}
      or exists (select 1 from refused_calls r where (r.org_id, r.hour, r.key_id, r.agent_id, r.error_name, r.scope)
           = (n.org_id, n.hour, n.key_id, n.agent_id, n.error_name, n.scope))
   on conflict (org_id, hour, key_id, agent_id, error_name, scope) do update set
     calls = c.calls + excluded.calls,
     first_at = least(c.first_at, excluded.first_at),
     last_request_id = case when excluded.last_at >= c.last_at then excluded.last_request_id else c.last_request_id end,
     last_at = greatest(c.last_at, excluded.last_at)`,
)

/** Returns rows of an organisation before a place, the latest hour first. A filter that is null does not filter. */
export const listRefusedCalls = statement<
  [
    orgId: number,
    hour: Date,
    keyId: number,
    agentId: number,
    errorName: string,
    scope: string,
    from: Date,
    ofKey: number | null,
    ofAgent: number | null,
    ofError: readonly string[] | null,
    limit: number,
  ],
  RefusedRow
>(
  'usage.list_refused_calls',
  `select c.hour as "hour", c.key_id as "keyId", k.name as "keyName", c.agent_id as "agentId", a.name as "agentName", c.error_name as "errorName",
     c.scope as "scope", c.calls as "calls", c.first_at as "firstAt", c.last_at as "lastAt", c.last_request_id as "lastRequestId"
   from refused_calls c
   left join api_keys k on k.org_id = c.org_id and k.id = c.key_id
   left join agents a on a.org_id = c.org_id and a.id = c.agent_id
   where c.org_id = $1::int
     and (c.hour, c.key_id, c.agent_id, c.error_name, c.scope) < ($2::timestamptz, $3::int, $4::int, $5::text, $6::text)
     and c.hour >= $7::timestamptz
     and ($8::int is null or c.key_id = $8::int) and ($9::int is null or c.agent_id = $9::int)
     and ($10::text[] is null or c.error_name = any($10::text[]))
   order by c.hour desc, c.key_id desc, c.agent_id desc, c.error_name desc, c.scope desc limit $11::int`,
)

/** Forgets refused calls before a time, at most `limit` rows. */
export const deleteOldRefusedCalls = statement<[before: Date, limit: number]>(
  'usage.delete_old_refused_calls',
  `delete from refused_calls where ctid = any(array(select ctid from refused_calls where hour < $1::timestamptz order by hour limit $2::int))`,
)
