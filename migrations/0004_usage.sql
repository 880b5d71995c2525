-- Usage events: one content-free row per metered call, in monthly partitions.
--
-- `day` is the IST day of admission; the id is a UUIDv7 made at the same instant, so (day, id) is unique when id is. Partitions are
-- made ahead by the running processes; rows that find none land in the default partition and are still reported.
-- Additive: binaries from before this migration run against it.

create table usage_events (
  day date not null,
  id uuid not null,
  at timestamptz not null,
  request_id text not null,
  org_id int not null,
  user_id int,
  key_id int,
  workspace_id int,
  agent_id int,
  agent_label text,
  kind text not null,
  model text not null,
  provider text not null,
  residency text not null,
  streamed boolean not null,
  byok boolean not null,
  status int not null,
  outcome text not null,
  prompt_tokens bigint not null,
  completion_tokens bigint not null,
  cached_tokens bigint not null,
  reasoning_tokens bigint not null,
  estimated boolean not null,
  value_uinr bigint not null check (value_uinr >= 0),
  cost_uinr bigint not null check (cost_uinr >= 0),
  latency_ms int not null,
  first_byte_ms int,
  primary key (day, id)
) partition by range (day);

create table usage_events_default partition of usage_events default;

create index usage_events_by_org on usage_events (org_id, day, model, provider);
create index usage_events_by_agent on usage_events (org_id, agent_id, day) where agent_id is not null;
