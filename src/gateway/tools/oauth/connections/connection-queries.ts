import { statement } from '../../../../platform/db/db.ts'

/** A connection with its sealed tokens. */
export interface ConnectionRow {
  readonly id: string
  readonly orgId: number
  readonly serverId: string
  /** Null: the organisation itself. */
  readonly userId: number | null
  readonly issuer: string
  readonly resource: string
  readonly scopes: string
  readonly accessSealed: string | null
  readonly refreshSealed: string | null
  readonly renewAt: Date | null
  readonly expiresAt: Date | null
  readonly version: number
  readonly needsConsentSince: Date | null
}

const columns = `c.id, c.org_id as "orgId", c.server_id as "serverId", c.user_id as "userId", c.issuer, c.resource, c.scopes, c.access_sealed as "accessSealed",
     c.refresh_sealed as "refreshSealed", c.renew_at as "renewAt", c.expires_at as "expiresAt", c.version, c.needs_consent_since as "needsConsentSince"`

/** The connection of a person with a server, or the organisation's own for the user null. */
export const findConnectionOf = statement<[orgId: number, serverId: string, userId: number | null], ConnectionRow>(
  'tools.find_connection_of',
  `select ${columns} from tool_connections c
   where org_id = $1::int and server_id = $2::uuid and user_id is not distinct from $3::int and ended_at is null`,
)

export const findConnection = statement<[orgId: number, id: string], ConnectionRow>(
  'tools.find_connection',
  `select ${columns} from tool_connections c where org_id = $1::int and id = $2::uuid and ended_at is null`,
)

/** The connection that reads the tools of a server: the oldest one of an owner or admin that works. */
export const findReadingConnection = statement<[orgId: number, serverId: string], ConnectionRow>(
  'tools.find_reading_connection',
  `select ${columns}
   from tool_connections c join org_members m on m.org_id = c.org_id and m.user_id = c.user_id
   where c.org_id = $1::int and c.server_id = $2::uuid and c.ended_at is null and c.needs_consent_since is null and m.role in ('owner', 'admin') and m.status = 'active'
   order by c.created_at, c.id limit 1`,
)

export const insertConnection = statement<
  [
    orgId: number,
    id: string,
    serverId: string,
    userId: number | null,
    issuer: string,
    resource: string,
    scopes: string,
    access: string,
    refresh: string | null,
    renewAt: Date | null,
    expiresAt: Date | null,
    now: Date,
  ]
>(
  'tools.insert_connection',
  `insert into tool_connections (org_id, id, server_id, user_id, issuer, resource, scopes, access_sealed, refresh_sealed, renew_at, expires_at, created_at)
   values ($1::int, $2::uuid, $3::uuid, $4::int, $5::text, $6::text, $7::text, $8::text, $9::text, $10::timestamptz, $11::timestamptz, $12::timestamptz)`,
)

/** Gives a connection the tokens of a new consent, also while another process renews it: that process then keeps nothing. */
export const replaceTokens = statement<
  [
    orgId: number,
    serverId: string,
    userId: number,
    issuer: string,
    resource: string,
    scopes: string,
    access: string,
    refresh: string | null,
    renewAt: Date | null,
    expiresAt: Date | null,
    id: string,
  ],
  { id: string }
>(
  'tools.replace_tokens',
  `update tool_connections set issuer = $4::text, resource = $5::text, scopes = $6::text, access_sealed = $7::text, refresh_sealed = $8::text,
     renew_at = $9::timestamptz, expires_at = $10::timestamptz, version = version + 1, needs_consent_since = null, renewing_by = null, renewing_until = null
   where org_id = $1::int and server_id = $2::uuid and user_id = $3::int and id = $11::uuid and ended_at is null returning id`,
)

/**
 * Claims the next renewal of a connection for one process. Nobody gets it while another process has it, when the tokens are newer than `version`, and when
 * the connection works no more. The clock is that of the database.
 */
export const claimRenewal = statement<[orgId: number, id: string, version: number, claim: string, leaseMs: number], ConnectionRow>(
  'tools.claim_renewal',
  `update tool_connections c set renewing_by = $4::uuid, renewing_until = clock_timestamp() + make_interval(secs => $5::int / 1000.0)
   where org_id = $1::int and id = $2::uuid and version = $3::int and ended_at is null and needs_consent_since is null
     and (renewing_until is null or renewing_until < clock_timestamp())
   returning ${columns}`,
)

/** Keeps new tokens. It has an effect only for the process that holds the claim. */
export const keepTokens = statement<
  [
    orgId: number,
    id: string,
    version: number,
    claim: string,
    access: string,
    refresh: string | null,
    renewAt: Date | null,
    expiresAt: Date | null,
    scopes: string,
  ],
  ConnectionRow
>(
  'tools.keep_tokens',
  `update tool_connections c set access_sealed = $5::text, refresh_sealed = $6::text, renew_at = $7::timestamptz, expires_at = $8::timestamptz,
     scopes = $9::text, version = version + 1, renewing_by = null, renewing_until = null
   where org_id = $1::int and id = $2::uuid and version = $3::int and renewing_by = $4::uuid and ended_at is null
   returning ${columns}`,
)

/** Gives a claim back without new tokens. */
export const releaseClaim = statement<[orgId: number, id: string, claim: string]>(
  'tools.release_claim',
  `update tool_connections set renewing_by = null, renewing_until = null where org_id = $1::int and id = $2::uuid and renewing_by = $3::uuid`,
)

/** Marks a connection as one that needs a consent, and forgets its tokens. */
export const needConsent = statement<[orgId: number, id: string, claim: string, now: Date], { id: string }>(
  'tools.need_consent',
  `update tool_connections set needs_consent_since = $4::timestamptz, access_sealed = null, refresh_sealed = null, renewing_by = null, renewing_until = null,
     version = version + 1
   where org_id = $1::int and id = $2::uuid and renewing_by = $3::uuid and ended_at is null returning id`,
)

/** Ends one connection. Its tokens stay until they are revoked. */
export const endConnection = statement<[orgId: number, id: string, now: Date], { id: string }>(
  'tools.end_connection',
  `update tool_connections set ended_at = $3::timestamptz where org_id = $1::int and id = $2::uuid and ended_at is null returning id`,
)

export const endConnectionsOfServer = statement<[orgId: number, serverId: string, now: Date], { id: string }>(
  'tools.end_connections_of_server',
  `update tool_connections set ended_at = $3::timestamptz where org_id = $1::int and server_id = $2::uuid and ended_at is null returning id`,
)

export const endConnectionsOfPerson = statement<[orgId: number, userId: number, now: Date], { id: string }>(
  'tools.end_connections_of_person',
  `update tool_connections set ended_at = $3::timestamptz where org_id = $1::int and user_id = $2::int and ended_at is null returning id`,
)

/** Claims the connection that ended first, so that one process revokes its tokens. A connection whose process died is free after the lease. */
export const claimEnded = statement<[leaseMs: number], ConnectionRow>(
  'tools.claim_ended_connection',
  `update tool_connections c set renewing_until = clock_timestamp() + make_interval(secs => $1::int / 1000.0)
   where id = (select id from tool_connections where ended_at is not null and (renewing_until is null or renewing_until < clock_timestamp())
     order by ended_at limit 1 for update skip locked)
   returning ${columns}`,
)

export const deleteConnection = statement<[orgId: number, id: string]>(
  'tools.delete_connection',
  `delete from tool_connections where org_id = $1::int and id = $2::uuid and ended_at is not null`,
)

/** A connection in a list. It contains no token. */
export interface ListedConnection {
  readonly id: string
  readonly serverId: string
  readonly slug: string
  readonly userId: number
  readonly email: string
  readonly issuer: string
  readonly scopes: string
  readonly expiresAt: Date | null
  readonly needsConsentSince: Date | null
  readonly createdAt: Date
}

const listed = `c.id, c.server_id as "serverId", s.slug, c.user_id as "userId", u.email, c.issuer, c.scopes, c.expires_at as "expiresAt",
     c.needs_consent_since as "needsConsentSince", c.created_at as "createdAt"`

/** A page of the connections of people, by id. The user null means everybody of the organisation, and the server null every server. */
export const listConnections = statement<[orgId: number, userId: number | null, serverId: string | null, after: string, limit: number], ListedConnection>(
  'tools.list_connections',
  `select ${listed}
   from tool_connections c join tool_servers s on s.org_id = c.org_id and s.id = c.server_id join users u on u.id = c.user_id
   where c.org_id = $1::int and c.ended_at is null and c.id > $4::uuid and ($2::int is null or c.user_id = $2::int) and ($3::uuid is null or c.server_id = $3::uuid)
   order by c.id limit $5::int`,
)

export const findListedConnection = statement<[orgId: number, id: string], ListedConnection>(
  'tools.find_listed_connection',
  `select ${listed}
   from tool_connections c join tool_servers s on s.org_id = c.org_id and s.id = c.server_id join users u on u.id = c.user_id
   where c.org_id = $1::int and c.id = $2::uuid and c.ended_at is null`,
)
