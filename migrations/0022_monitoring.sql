-- Health of collections: when the next canaries are due, what they found, and whom to tell.
--
-- Additive: binaries from before this migration run against it.

-- What is known of the rounds of a collection that is monitored or was checked. A round begins with a claim of this row.
create table collection_monitors (
  collection_id int primary key references collections (id) on delete cascade,
  org_id int not null,
  -- Next round; null: the collection is not monitored.
  due_at timestamptz,
  -- Begin of the last round, and its end when it has one.
  begun_at timestamptz,
  ended_at timestamptz
);
create index collection_monitors_due on collection_monitors (due_at) where due_at is not null;
create index collection_monitors_by_org on collection_monitors (org_id);

-- Single canaries of the last days: what alerts look at. A step is known by its model and the provider that it pins ('' for none), so
-- that what was found stays with it when steps are moved or edited.
create table collection_checks (
  collection_id int not null references collections (id) on delete cascade,
  org_id int not null,
  at timestamptz not null,
  model text not null,
  pinned text not null,
  -- Who answered; null when nobody did.
  provider text,
  ok boolean not null,
  latency_ms int,
  -- Stable code of the failure, never words of a provider.
  code text,
  primary key (collection_id, at, model, pinned)
);
create index collection_checks_by_time on collection_checks (at);

-- The last canary of each step.
create table collection_canaries (
  collection_id int not null references collections (id) on delete cascade,
  org_id int not null,
  model text not null,
  pinned text not null,
  at timestamptz not null,
  -- Who answered last, if ever.
  provider text,
  ok boolean not null,
  code text,
  primary key (collection_id, model, pinned)
);

-- How many canaries of a step ended how, by hour and later by day (UTC). Bucket -1: it failed; bucket n: it took
-- [2^(n/8), 2^((n+1)/8)) ms.
create table collection_health (
  collection_id int not null references collections (id) on delete cascade,
  org_id int not null,
  starts_at timestamptz not null,
  model text not null,
  pinned text not null,
  bucket smallint not null,
  checks int not null,
  is_day boolean not null,
  primary key (collection_id, starts_at, model, pinned, bucket)
);
create index collection_health_by_time on collection_health (is_day, starts_at);

create table collection_alerts (
  id int generated always as identity primary key,
  collection_id int not null references collections (id) on delete cascade,
  org_id int not null,
  metric text not null check (metric in ('error_rate', 'latency_p95')),
  threshold double precision not null check (threshold >= 0),
  channel text not null check (channel in ('email', 'webhook')),
  target text,
  -- While it is at the threshold or above, and when that was last told.
  firing_since timestamptz,
  told_at timestamptz,
  created_by int,
  created_at timestamptz not null
);
create index collection_alerts_by_collection on collection_alerts (collection_id, id);

-- What canaries cost the operator, counted apart from collections so that deleting them begins nothing anew: one row an organisation (0: all
-- together) and kind, of the span that was counted last.
create table canary_use (
  org_id int not null,
  -- asked: rounds by hand in a minute; canaries, mails: in a day (UTC).
  kind text not null check (kind in ('asked', 'canaries', 'mails')),
  starts_at timestamptz not null,
  used bigint not null,
  primary key (org_id, kind)
);
