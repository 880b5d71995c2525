-- OAuth for MCP servers: the client that an organisation is at an issuer, the connections with their tokens, and consents under way.
--
-- Additive: new tables, and two more values of a column. Processes of the previous version send no credential to a server with one of these values.

alter table tool_servers drop constraint tool_servers_auth_kind_check;
alter table tool_servers add constraint tool_servers_auth_kind_check check (auth_kind in ('none', 'header', 'client_credentials', 'oauth_user'));

-- What the organisation is at the issuer of a server. A row outlives its server until the tokens of the server are revoked.
create table tool_oauth_clients (
  org_id int not null,
  server_id uuid not null,
  client_id text not null check (client_id <> ''),
  -- Sealed with the row as associated data. Null: a public client.
  secret_sealed text,
  secret_mask text,
  -- With spaces between them. Empty: those that the server names.
  scopes text not null default '',
  -- The only issuer that ever gets the secret.
  issuer text not null,
  changed_at timestamptz not null,
  primary key (org_id, server_id),
  foreign key (org_id, server_id) references tool_servers (org_id, id)
);

-- A connection of a person, or of the organisation itself, with a server.
create table tool_connections (
  id uuid primary key,
  org_id int not null,
  server_id uuid not null,
  -- Null: the organisation itself, with client credentials.
  user_id int references users (id),
  issuer text not null,
  resource text not null,
  scopes text not null,
  -- Both are sealed with the row as associated data. Null: none.
  access_sealed text,
  refresh_sealed text,
  -- When a new token is asked for. Null: only after the server refused the token.
  renew_at timestamptz,
  expires_at timestamptz,
  -- Counts the tokens. A process that found an older one reads the row again instead of renewing.
  version int not null default 1,
  -- The process that asks the issuer for the next token, and until when nobody else does.
  renewing_by uuid,
  renewing_until timestamptz,
  -- Since when the person must consent again. Null: the connection works.
  needs_consent_since timestamptz,
  created_at timestamptz not null,
  -- It works no more, and the row waits until its tokens are revoked at the issuer.
  ended_at timestamptz,
  foreign key (org_id, server_id) references tool_servers (org_id, id)
);
create unique index tool_connections_of_person on tool_connections (org_id, server_id, user_id) where ended_at is null and user_id is not null;
create unique index tool_connections_of_org on tool_connections (org_id, server_id) where ended_at is null and user_id is null;
create index tool_connections_list on tool_connections (org_id, id) where ended_at is null;
create index tool_connections_ended on tool_connections (ended_at) where ended_at is not null;

-- Consents under way: from the redirect to the issuer until the callback, at most 10 minutes.
create table tool_oauth_states (
  state_hash bytea primary key check (length(state_hash) = 32),
  org_id int not null,
  server_id uuid not null,
  user_id int not null references users (id),
  -- The session that began it, as the hash of its cookie.
  session_id text not null,
  -- The PKCE verifier, sealed with the row as associated data.
  verifier_sealed text not null,
  issuer text not null,
  resource text not null,
  expires_at timestamptz not null,
  foreign key (org_id, server_id) references tool_servers (org_id, id)
);
create index tool_oauth_states_of_person on tool_oauth_states (org_id, user_id, expires_at);
create index tool_oauth_states_old on tool_oauth_states (expires_at);
