-- Idempotency keys of charging calls: which call a key stands for and what became of it. Never what was asked or answered: the body
-- is kept as a MAC under a key of ours, because a plain hash of a short prompt could be guessed back.
--
-- reserved: the call runs. finished: it was charged. unknown: its process died while a provider worked on it. A call that cost
-- nothing leaves no row. Additive: binaries from before this migration run against it.

create table idempotency_keys (
  org_id int not null,
  -- Whose key it is: 'key:<id>' or 'agent:<id>'.
  principal text not null,
  key_hash bytea not null,
  body_mac bytea not null,
  state text not null check (state in ('reserved', 'finished', 'unknown')),
  -- The usage event that ends it; null for a call that is charged in several events.
  event_id uuid,
  -- Who runs it, while it is reserved.
  process_id bigint not null,
  usage jsonb,
  reserved_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (org_id, principal, key_hash)
);
create unique index idempotency_keys_by_event on idempotency_keys (event_id);
create index idempotency_keys_by_process on idempotency_keys (process_id) where state = 'reserved';
create index idempotency_keys_by_end on idempotency_keys (expires_at);
