-- Shared memory: where an organisation's objects live, what is in there, and how many bytes that is.
--
-- Content stays in the organisation's own store; here are only metadata for quota, list and audit. A write reserves bytes and takes
-- its key in memory_intents, talks to the store without any transaction open, and then settles in one statement. An intent whose
-- process died is resolved by asking the store, so no crash leaks quota or loses an index row.
-- Lock order: memory_intents, memory_objects, memory_usage.
-- Additive: binaries from before this migration run against it.

create table memory_stores (
  org_id int primary key,
  store text not null check (store in ('s3', 'folder')),
  -- Null with the folder store.
  endpoint text,
  bucket text,
  region text,
  -- {"accessKey","secretKey"} sealed with the row as associated data; null with the folder store.
  sealed_credentials text,
  access_key_masked text,
  quota_mb int not null check (quota_mb > 0),
  journal_ttl_days int not null check (journal_ttl_days > 0),
  -- What the probe of the store found.
  cas_put boolean not null,
  cas_delete boolean not null,
  clock_skew_ms bigint not null default 0,
  -- Grows with every change of place or credentials: a write that began under another generation cannot settle here.
  generation int not null default 1,
  configured_at timestamptz not null,
  updated_at timestamptz not null
);

create table memory_usage (
  org_id int primary key,
  used_bytes bigint not null default 0 check (used_bytes >= 0),
  reserved_bytes bigint not null default 0 check (reserved_bytes >= 0),
  quota_bytes bigint not null check (quota_bytes > 0)
) with (fillfactor = 70);

create table memory_objects (
  org_id int not null,
  -- Relative to the organisation's prefix. Bytewise order, as object stores list.
  key text collate "C" not null,
  etag text not null,
  -- Null for objects that did not come through the gateway.
  sha256 text,
  size_bytes bigint not null check (size_bytes >= 0),
  user_id int,
  key_id int,
  -- Of a verified agent token; a label is only what the caller said.
  agent_id int,
  agent_name text,
  agent_label text,
  write_id uuid,
  written_at timestamptz not null,
  primary key (org_id, key)
);

create table memory_intents (
  org_id int not null,
  key text collate "C" not null,
  kind text not null check (kind in ('put', 'delete')),
  write_id uuid not null,
  generation int not null,
  -- Bytes reserved in memory_usage for this write.
  delta_bytes bigint not null default 0 check (delta_bytes >= 0),
  sha256 text,
  size_bytes bigint not null default 0,
  user_id int,
  key_id int,
  agent_id int,
  agent_name text,
  agent_label text,
  started_at timestamptz not null,
  -- From here on anyone may resolve it. The owner sets it to now when it does not know how its call ended.
  expires_at timestamptz not null,
  -- One writer of a key at a time.
  primary key (org_id, key)
);
create index memory_intents_by_expiry on memory_intents (expires_at);
