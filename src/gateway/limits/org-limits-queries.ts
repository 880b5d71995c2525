import { statement } from '../../platform/db/db.ts'

/** The operator's limits for an organisation. Null means the setting, and 0 means no limit. */
export interface OrgLimitsRow {
  readonly rpm: number | null
  readonly running: number | null
  readonly keys: number | null
  readonly agents: number | null
  readonly streams: number | null
}

const columns = `l.rpm as "rpm", l.running as "running", l.keys as "keys", l.agents as "agents", l.streams as "streams"`

/** `isFirst` is true for the oldest organisation of the installation. */
export const findOrgLimits = statement<[orgId: number], OrgLimitsRow & { isFirst: boolean }>(
  'limits.find_org_limits',
  `select o.id = (select min(id) from orgs) as "isFirst", ${columns} from orgs o left join org_limits l on l.org_id = o.id where o.id = $1::int`,
)

/** A null parameter leaves its limit unchanged. */
export const setOrgLimits = statement<
  [orgId: number, rpm: number | null, running: number | null, keys: number | null, agents: number | null, streams: number | null],
  OrgLimitsRow
>(
  'limits.set_org_limits',
  `insert into org_limits as l (org_id, rpm, running, keys, agents, streams)
   select o.id, $2::int, $3::int, $4::int, $5::int, $6::int from orgs o where o.id = $1::int
   on conflict (org_id) do update set rpm = coalesce(excluded.rpm, l.rpm), running = coalesce(excluded.running, l.running),
     keys = coalesce(excluded.keys, l.keys), agents = coalesce(excluded.agents, l.agents), streams = coalesce(excluded.streams, l.streams)
   returning ${columns}`,
)

export const deleteOrgLimits = statement<[orgId: number]>('limits.delete_org_limits', `delete from org_limits where org_id = $1::int`)

/** Locks the organisation, so that one transaction at a time makes keys or agents. Otherwise two transactions would not see each other's new rows. */
export const lockOrgToCount = statement<[orgId: number], { id: number }>('limits.lock_org_to_count', `select id from orgs where id = $1::int for no key update`)

export const countLiveKeys = statement<[orgId: number, now: Date], { count: number }>(
  'limits.count_live_keys',
  `select count(*)::int as "count" from api_keys where org_id = $1::int and revoked_at is null and (expires_at is null or expires_at > $2::timestamptz)`,
)

export const countActiveAgents = statement<[orgId: number], { count: number }>(
  'limits.count_active_agents',
  `select count(*)::int as "count" from agents where org_id = $1::int and status = 'active'`,
)
