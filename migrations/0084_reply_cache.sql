-- Replies that callers asked to keep for the same request, only for organisations with a retention window.
--
-- Additive: a new table. Processes of the previous version do not read it.

create table reply_cache (
  org_id int not null references orgs (id) on delete cascade,
  -- HMAC of the request and of everything that decides its reply, under a key of the organisation.
  mac bytea not null check (length(mac) = 32),
  at timestamptz not null,
  expires_at timestamptz not null,
  -- What the entry counts for in the organisation's room.
  bytes int not null check (bytes > 0),
  -- What the call was worth that a provider served. A reply from here saves as much.
  value_uinr bigint not null,
  residency text not null,
  provider text not null,
  -- {headers, body}, sealed with the row as associated data.
  sealed text not null,
  primary key (org_id, mac)
);
create index reply_cache_expires on reply_cache (expires_at);
