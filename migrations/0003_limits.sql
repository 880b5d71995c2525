-- Limits and budgets: shared counters, the slices that processes hold of them, and what makes a slice returnable.
--
-- A process leases part of a counter and decides locally. A lease is given back only by its live owner or by whoever proved the
-- owner dead and replayed its journal to the end, so no clock and no pause can hand out the same rupee twice.
-- Lock order everywhere: processes, beats, budgets, counters by id, leases, usage_events, ledger, webhook_events.
-- Additive: binaries from before this migration run against it.

create table processes (
  id bigint generated always as identity primary key,
  -- Boot id of the kernel: equal ids mean that a refused connection to the owner's socket proves its death.
  boot_id text not null,
  -- Folder of the journal as the owner names it, for the operator.
  journal text not null,
  state text not null default 'live' check (state in ('live', 'closing', 'lost', 'closed')),
  started_at timestamptz not null default clock_timestamp()
);
create index processes_by_state on processes (state) where state <> 'closed';

-- Apart from processes, because acquire holds a share lock there and a beat must not wait for it.
create table beats (
  process_id bigint primary key references processes (id) on delete cascade,
  -- Byte offset of the journal up to which everything is in the database.
  flush_to bigint not null default 0,
  beat_at timestamptz not null default clock_timestamp()
) with (fillfactor = 70);

create table counters (
  id bigint generated always as identity primary key,
  org_id int not null,
  scope text not null check (scope in ('org', 'team', 'workspace', 'member', 'key', 'agent')),
  scope_id text not null,
  metric text not null check (metric in ('spend', 'prepaid', 'rpm', 'daily')),
  -- IST: '2026-11', '2026-11-21', '2026-11-21T09:15', 'ever'.
  period text not null,
  -- null: nothing is refused here, only counted.
  cap bigint check (cap >= 0),
  strict boolean not null default false,
  spent bigint not null default 0 check (spent >= 0),
  leased bigint not null default 0 check (leased >= 0),
  warned_at timestamptz,
  blocked_at timestamptz,
  ends_at timestamptz,
  unique (org_id, scope, scope_id, metric, period)
) with (fillfactor = 70);
create index counters_by_end on counters (ends_at);

create table leases (
  process_id bigint not null references processes (id) on delete cascade,
  counter_id bigint not null references counters (id) on delete cascade,
  amount bigint not null check (amount >= 0),
  primary key (process_id, counter_id)
) with (fillfactor = 70);
create index leases_by_counter on leases (counter_id);

-- The wish of an admin; counters.cap is its copy for the running period.
create table budgets (
  org_id int not null,
  scope text not null check (scope in ('org', 'team', 'workspace', 'member', 'key', 'agent')),
  scope_id text not null,
  cap_uinr bigint not null check (cap_uinr > 0),
  strict boolean not null default false,
  parent_scope_id text,
  primary key (org_id, scope, scope_id)
);
create index budgets_by_parent on budgets (org_id, scope, parent_scope_id) where parent_scope_id is not null;

create table ledger (
  id bigint generated always as identity primary key,
  org_id int not null,
  kind text not null check (kind in ('credit', 'debit', 'adjust')),
  amount_uinr bigint not null,
  event_id uuid unique,
  payment_id text unique,
  at timestamptz not null
);
create index ledger_by_org on ledger (org_id, at);

-- What happened and is to be told to the organisation's webhooks, written in the transaction in which it happened.
create table webhook_events (
  seq bigint generated always as identity primary key,
  id text not null unique,
  org_id int not null,
  type text not null,
  -- Unix seconds.
  created bigint not null,
  data jsonb not null
);
create index webhook_events_by_org on webhook_events (org_id, seq);
