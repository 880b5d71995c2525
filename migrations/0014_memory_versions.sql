-- History of memory: what an object was before it was replaced or deleted.
--
-- The bytes of a version are an object of the organisation's own store, `.versions/<object_id>`, copied there before the write that
-- replaces them; its row is made in the statement that settles that write. A version that is no longer wanted is doomed first (nobody
-- sees it any more), and its object and row are removed later.
-- Lock order: memory_intents, memory_objects, memory_versions, memory_usage.
-- Additive: binaries from before this migration run against it; what they replace has no version.

alter table memory_stores
  -- Versions of one key; 0: no history.
  add column history_versions int not null default 10 check (history_versions >= 0),
  -- Days for which a version is kept after it was replaced.
  add column history_days int not null default 30 check (history_days > 0);

-- Bytes of versions that are not doomed. No part of used_bytes.
alter table memory_usage add column history_bytes bigint not null default 0 check (history_bytes >= 0);

-- How the object came to be: put, append, restore, promote.
alter table memory_objects add column how text not null default 'put';
alter table memory_intents add column how text not null default 'put';

create table memory_versions (
  org_id int not null,
  key text collate "C" not null,
  -- Order of the versions of a key; writes of one key come one after the other.
  seq bigint generated always as identity,
  -- The write that made this version; for bytes that did not come through the gateway the write that found them.
  version_id uuid not null,
  -- The write that replaced it, and the name of the bytes under .versions/. Null for a deletion, which has no bytes.
  object_id uuid,
  how text not null check (how in ('put', 'append', 'restore', 'promote', 'delete')),
  etag text,
  -- Null for bytes that did not come through the gateway, as is key_id.
  sha256 text,
  size_bytes bigint not null check (size_bytes >= 0),
  user_id int,
  key_id int,
  agent_id int,
  agent_name text,
  agent_label text,
  written_at timestamptz not null,
  -- When it was replaced; for a deletion the time of the deletion.
  kept_at timestamptz not null,
  -- Nobody sees it from then on; object and row are removed once this is in the past.
  doomed_at timestamptz,
  primary key (org_id, key, seq)
);
create index memory_versions_doomed on memory_versions (doomed_at) where doomed_at is not null;
-- These do not begin with org_id: what asks for one key must find nothing better than the primary key.
create index memory_versions_by_age on memory_versions (kept_at) where doomed_at is null;
create index memory_versions_journal on memory_versions (written_at) where doomed_at is null and key ~ '^workspaces/[^/]+/journal/.';
