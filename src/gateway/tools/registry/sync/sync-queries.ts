import { statement } from '../../../../platform/db/db.ts'

/** A tool of a server as the last sync left it, with hashes in hexadecimal. */
export interface SyncedPin {
  readonly id: number
  readonly upstreamName: string
  readonly publicName: string
  readonly seenHash: string
  readonly approvedHash: string | null
  readonly isGone: boolean
}

export const listSyncedPins = statement<[orgId: number, serverId: string], SyncedPin>(
  'tools.list_synced_pins',
  `select p.id, p.upstream_name as "upstreamName", p.public_name as "publicName", encode(d.sha256, 'hex') as "seenHash",
     encode(a.sha256, 'hex') as "approvedHash", p.gone_at is not null as "isGone"
   from tool_pins p join tool_definitions d on d.org_id = p.org_id and d.id = p.seen_id
     left join tool_definitions a on a.org_id = p.org_id and a.id = p.approved_id
   where p.org_id = $1::int and p.server_id = $2::uuid`,
)

/** Adds definitions that were not seen before. */
export const insertDefinitions = statement<
  [orgId: number, serverId: string, names: readonly string[], definitions: readonly string[], hashes: readonly string[], findings: readonly string[], now: Date]
>(
  'tools.insert_definitions',
  `insert into tool_definitions (org_id, server_id, upstream_name, definition, sha256, findings, first_seen_at)
   select $1::int, $2::uuid, d.name, d.definition::json, decode(d.hash, 'hex'), d.findings::jsonb, $7::timestamptz
   from unnest($3::text[], $4::text[], $5::text[], $6::text[]) as d(name, definition, hash, findings)
   on conflict (org_id, server_id, upstream_name, sha256) do nothing`,
)

/** Adds tools that were not seen before. A tool whose public name another tool has is not added. */
export const insertPins = statement<
  [orgId: number, serverId: string, names: readonly string[], publicNames: readonly string[], hashes: readonly string[], now: Date],
  { upstreamName: string }
>(
  'tools.insert_pins',
  `insert into tool_pins (org_id, server_id, upstream_name, public_name, seen_id, first_seen_at)
   select d.org_id, d.server_id, d.upstream_name, t.public_name, d.id, $6::timestamptz
   from unnest($3::text[], $4::text[], $5::text[]) as t(name, public_name, hash)
     join tool_definitions d on d.org_id = $1::int and d.server_id = $2::uuid and d.upstream_name = t.name and d.sha256 = decode(t.hash, 'hex')
   on conflict do nothing returning upstream_name as "upstreamName"`,
)

/** Notes the definitions that the server shows now, of tools that changed or came back. */
export const noteSeen = statement<[orgId: number, serverId: string, names: readonly string[], hashes: readonly string[]]>(
  'tools.note_seen',
  `update tool_pins p set seen_id = d.id, gone_at = null
   from unnest($3::text[], $4::text[]) as t(name, hash)
     join tool_definitions d on d.org_id = $1::int and d.server_id = $2::uuid and d.upstream_name = t.name and d.sha256 = decode(t.hash, 'hex')
   where p.org_id = $1::int and p.server_id = $2::uuid and p.upstream_name = t.name`,
)

export const noteGone = statement<[orgId: number, serverId: string, names: readonly string[], now: Date]>(
  'tools.note_gone',
  `update tool_pins set gone_at = $4::timestamptz
   where org_id = $1::int and server_id = $2::uuid and upstream_name = any($3::text[]) and gone_at is null`,
)

/** Deletes old versions of the named tools. The approved one, the one that was seen last, and a number of newer ones stay. */
export const deleteOldVersions = statement<[orgId: number, serverId: string, names: readonly string[], keep: number]>(
  'tools.delete_old_versions',
  `delete from tool_definitions d
   using (select id, row_number() over (partition by upstream_name order by id desc) as place from tool_definitions
     where org_id = $1::int and server_id = $2::uuid and upstream_name = any($3::text[])) as v
   where d.org_id = $1::int and d.id = v.id and v.place > $4::int
     and not exists (select 1 from tool_pins p where p.org_id = $1::int and p.server_id = $2::uuid and p.upstream_name = d.upstream_name
       and (p.seen_id = d.id or p.approved_id = d.id))`,
)

export const noteSync = statement<[orgId: number, serverId: string, era: string, now: Date]>(
  'tools.note_sync',
  `update tool_servers set era = $3::text, era_seen_at = $4::timestamptz, last_sync_at = $4::timestamptz, last_error = null
   where org_id = $1::int and id = $2::uuid`,
)

export const noteSyncError = statement<[orgId: number, serverId: string, code: string]>(
  'tools.note_sync_error',
  `update tool_servers set last_error = $3::text where org_id = $1::int and id = $2::uuid and deleted_at is null`,
)

/** Claims the server whose sync has been due for longest. Its next sync is due after the pause, also when this process dies. */
export const claimDueServer = statement<[now: Date, nextSyncAt: Date, busyOrgs: readonly number[]], { orgId: number; id: string }>(
  'tools.claim_due_server',
  `update tool_servers set next_sync_at = $2::timestamptz
   where id = (select id from tool_servers where next_sync_at <= $1::timestamptz and deleted_at is null and state = 'on' and org_id <> all($3::int[])
     order by next_sync_at limit 1 for update skip locked)
   returning org_id as "orgId", id`,
)
