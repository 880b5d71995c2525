import { statement } from '../../../platform/db/db.ts'

/** What the organisation is at the issuer of a server, with the address of the server. */
export interface OAuthClientRow {
  readonly orgId: number
  readonly serverId: string
  readonly slug: string
  readonly url: string
  readonly authKind: 'none' | 'header' | 'client_credentials' | 'oauth_user'
  readonly clientId: string
  readonly secretSealed: string | null
  readonly scopes: string
  readonly issuer: string
}

export const findOAuthClient = statement<[orgId: number, serverId: string], OAuthClientRow>(
  'tools.find_oauth_client',
  `select c.org_id as "orgId", c.server_id as "serverId", s.slug, s.url, s.auth_kind as "authKind", c.client_id as "clientId", c.secret_sealed as "secretSealed",
     c.scopes, c.issuer
   from tool_oauth_clients c join tool_servers s on s.org_id = c.org_id and s.id = c.server_id
   where c.org_id = $1::int and c.server_id = $2::uuid`,
)

export const putOAuthClient = statement<
  [orgId: number, serverId: string, clientId: string, sealed: string | null, mask: string | null, scopes: string, issuer: string, now: Date]
>(
  'tools.put_oauth_client',
  `insert into tool_oauth_clients (org_id, server_id, client_id, secret_sealed, secret_mask, scopes, issuer, changed_at)
   values ($1::int, $2::uuid, $3::text, $4::text, $5::text, $6::text, $7::text, $8::timestamptz)
   on conflict (org_id, server_id) do update set client_id = excluded.client_id, secret_sealed = excluded.secret_sealed, secret_mask = excluded.secret_mask,
     scopes = excluded.scopes, issuer = excluded.issuer, changed_at = excluded.changed_at`,
)

/** Deletes the client of a server that needs none any more, when no connection waits for the revocation of its tokens. */
export const deleteUnusedClient = statement<[orgId: number, serverId: string]>(
  'tools.delete_unused_client',
  `delete from tool_oauth_clients c using tool_servers s
   where c.org_id = $1::int and c.server_id = $2::uuid and s.org_id = c.org_id and s.id = c.server_id
     and (s.deleted_at is not null or s.auth_kind not in ('client_credentials', 'oauth_user'))
     and not exists (select 1 from tool_connections t where t.org_id = c.org_id and t.server_id = c.server_id)`,
)

/** Deletes the consents under way of a server, because its issuer or its client has changed. */
export const deleteStatesOfServer = statement<[orgId: number, serverId: string]>(
  'tools.delete_states_of_server',
  `delete from tool_oauth_states where org_id = $1::int and server_id = $2::uuid`,
)
