-- What is out of the ordinary just now: routes whose circuit is open, organisations whose last hour is far above their usual ones. Each
-- is told to webhooks once, when it begins; its row is what keeps it from being told again.
--
-- Additive: binaries from before this migration run against it.

-- Circuits that are open or half-open, of the whole installation. Processes that start while one is open learn of it here.
create table circuit_outages (
  -- 'provider/model', or the key of an organisation's own server.
  route text primary key,
  opened_at timestamptz not null,
  -- When a process last had something to say of it. A row that is old says nothing any more.
  told_at timestamptz not null,
  -- Until when no call tries it first.
  open_until timestamptz not null
);

-- Sums of usage events by whole UTC hour, of the last days: what an hour is measured against.
create table usage_hours (
  org_id int not null,
  hour timestamptz not null,
  spend_uinr bigint not null,
  errors bigint not null,
  tokens bigint not null,
  primary key (org_id, hour)
);
create index usage_hours_by_hour on usage_hours (hour);

-- Anomalies that go on.
create table usage_anomalies (
  org_id int not null,
  metric text not null check (metric in ('spend', 'errors', 'tokens')),
  since timestamptz not null,
  primary key (org_id, metric)
);
