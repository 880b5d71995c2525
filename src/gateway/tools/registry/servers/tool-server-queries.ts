import { statement } from '../../../../platform/db/db.ts'

/** A registered server. Its header and its secret are masked. */
export interface ToolServerRow {
  readonly id: string
  readonly slug: string
  readonly name: string
  readonly url: string
  readonly authKind: 'none' | 'header' | 'client_credentials' | 'oauth_user'
  readonly headerName: string | null
  readonly headerMask: string | null
  /** The client at the issuer of its tokens. Null: a server that takes none. */
  readonly clientId: string | null
  readonly clientSecretMask: string | null
  readonly clientScopes: string | null
  readonly issuer: string | null
  readonly residency: 'india' | 'global'
  readonly state: 'on' | 'off'
  readonly priceUinr: bigint
  readonly timeoutMs: number | null
  readonly era: 'modern' | 'legacy' | null
  readonly lastSyncAt: Date | null
  readonly lastError: string | null
  readonly createdAt: Date
}

export interface SealedToolServerRow extends ToolServerRow {
  readonly headerSealed: string | null
  /** When the client was given. It tells one client from another. */
  readonly clientChangedAt: Date | null
}

const columns = `s.id, s.slug, s.name, s.url, s.auth_kind as "authKind", c.header_name as "headerName", c.value_mask as "headerMask", s.residency, s.state, s.price_uinr as "priceUinr",
     s.timeout_ms as "timeoutMs", s.era, s.last_sync_at as "lastSyncAt", s.last_error as "lastError", s.created_at as "createdAt",
     o.client_id as "clientId", o.secret_mask as "clientSecretMask", o.scopes as "clientScopes", o.issuer`
const tables = `tool_servers s left join tool_server_credentials c on c.org_id = s.org_id and c.server_id = s.id
     left join tool_oauth_clients o on o.org_id = s.org_id and o.server_id = s.id and s.auth_kind in ('client_credentials', 'oauth_user')`

export const listToolServers = statement<[orgId: number], ToolServerRow>(
  'tools.list_servers',
  `select ${columns} from ${tables} where s.org_id = $1::int and s.deleted_at is null order by s.created_at, s.id`,
)

export const findToolServer = statement<[orgId: number, id: string], SealedToolServerRow>(
  'tools.find_server',
  `select ${columns}, c.value_sealed as "headerSealed", o.changed_at as "clientChangedAt" from ${tables} where s.org_id = $1::int and s.id = $2::uuid and s.deleted_at is null`,
)

/** Locks a server, so that its changes, syncs and approvals run one after the other. Read it after that. */
export const lockToolServer = statement<[orgId: number, id: string], { id: string }>(
  'tools.lock_server',
  `select id from tool_servers where org_id = $1::int and id = $2::uuid and deleted_at is null for no key update`,
)

/** Locks the organisation. Its registrations then run one after the other, and each sees the slugs and the number of servers that the others left. */
export const lockOrg = statement<[orgId: number], { id: number }>('tools.lock_org', `select id from orgs where id = $1::int for no key update`)

/** The slugs of all servers, deleted ones included. */
export const listToolSlugs = statement<[orgId: number], { slug: string; isDeleted: boolean }>(
  'tools.list_slugs',
  `select slug, deleted_at is not null as "isDeleted" from tool_servers where org_id = $1::int`,
)

export const insertToolServer = statement<
  [
    orgId: number,
    id: string,
    slug: string,
    name: string,
    url: string,
    authKind: string,
    residency: string,
    priceUinr: bigint,
    timeoutMs: number | null,
    now: Date,
    nextSyncAt: Date,
  ]
>(
  'tools.insert_server',
  `insert into tool_servers (org_id, id, slug, name, url, auth_kind, residency, price_uinr, timeout_ms, created_at, next_sync_at)
   values ($1::int, $2::uuid, $3::text, $4::text, $5::text, $6::text, $7::text, $8::bigint, $9::int, $10::timestamptz, $11::timestamptz)`,
)

export const changeToolServer = statement<
  [orgId: number, id: string, name: string, url: string, authKind: string, residency: string, priceUinr: bigint, timeoutMs: number | null]
>(
  'tools.change_server',
  `update tool_servers set name = $3::text, url = $4::text, auth_kind = $5::text, residency = $6::text, price_uinr = $7::bigint, timeout_ms = $8::int
   where org_id = $1::int and id = $2::uuid`,
)

export const putToolCredential = statement<[orgId: number, serverId: string, name: string, sealed: string, mask: string]>(
  'tools.put_credential',
  `insert into tool_server_credentials (org_id, server_id, header_name, value_sealed, value_mask) values ($1::int, $2::uuid, $3::text, $4::text, $5::text)
   on conflict (org_id, server_id) do update
     set header_name = excluded.header_name, value_sealed = excluded.value_sealed, value_mask = excluded.value_mask`,
)

export const deleteToolCredential = statement<[orgId: number, serverId: string]>(
  'tools.delete_credential',
  `delete from tool_server_credentials where org_id = $1::int and server_id = $2::uuid`,
)

/** Switches a server. A server that is switched on is due for a sync. */
export const switchToolServer = statement<[orgId: number, id: string, state: string, now: Date]>(
  'tools.switch_server',
  `update tool_servers set state = $3::text, next_sync_at = case when $3::text = 'on' then $4::timestamptz else next_sync_at end
   where org_id = $1::int and id = $2::uuid and deleted_at is null and state <> $3::text`,
)

export const switchAllOff = statement<[orgId: number], { id: string }>(
  'tools.switch_all_off',
  `update tool_servers set state = 'off' where org_id = $1::int and deleted_at is null and state = 'on' returning id`,
)

/** Marks a server as deleted. Its row keeps the slug from being used again. */
export const deleteToolServer = statement<[orgId: number, id: string, now: Date]>(
  'tools.delete_server',
  `update tool_servers set deleted_at = $3::timestamptz, state = 'off', name = slug, url = '' where org_id = $1::int and id = $2::uuid`,
)

export const deletePins = statement<[orgId: number, serverId: string]>(
  'tools.delete_pins',
  `delete from tool_pins where org_id = $1::int and server_id = $2::uuid`,
)

export const deleteDefinitions = statement<[orgId: number, serverId: string]>(
  'tools.delete_definitions',
  `delete from tool_definitions where org_id = $1::int and server_id = $2::uuid`,
)

/** Ends every approval of a server, because another server answers at its new address. */
export const withdrawApprovals = statement<[orgId: number, serverId: string]>(
  'tools.withdraw_approvals',
  `update tool_pins set approved_id = null, approved_by = null, approved_at = null where org_id = $1::int and server_id = $2::uuid and approved_id is not null`,
)

/** Reads a page of the organisations that ever registered a server, by id. */
export const listToolOrgs = statement<[after: number, limit: number], { orgId: number }>(
  'tools.list_tool_orgs',
  'select distinct org_id as "orgId" from tool_servers where org_id > $1::int order by org_id limit $2::int',
)
