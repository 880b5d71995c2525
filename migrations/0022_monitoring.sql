-- Health of monitored collections: when the next canaries are due, what they found, and whom to tell.
--
-- Additive: binaries from before this migration run against it.

-- A row stands for a collection that is monitored.
create table collection_monitors (
  collection_id int primary key references collections (id) on delete cascade,
  org_id int not null,
  due_at timestamptz not null
);
create index collection_monitors_due on collection_monitors (due_at);

-- One canary of one step.
create table collection_checks (
  collection_id int not null references collections (id) on delete cascade,
  org_id int not null,
  at timestamptz not null,
  step smallint not null,
  model text not null,
  -- Who answered, or the provider of the step, or ''.
  provider text not null,
  ok boolean not null,
  latency_ms int,
  -- Stable code of the failure, never words of a provider.
  code text,
  primary key (collection_id, at, step)
);

create table collection_alerts (
  id int generated always as identity primary key,
  collection_id int not null references collections (id) on delete cascade,
  org_id int not null,
  metric text not null check (metric in ('error_rate', 'latency_p95')),
  threshold double precision not null check (threshold >= 0),
  channel text not null check (channel in ('email', 'webhook')),
  target text,
  -- While it is above the threshold, and when it was last told.
  firing_since timestamptz,
  told_at timestamptz,
  created_by int,
  created_at timestamptz not null
);
create index collection_alerts_by_collection on collection_alerts (collection_id, id);
