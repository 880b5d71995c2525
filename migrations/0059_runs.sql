-- Runs: all calls of one job. An event keeps the id of its run, and the flush adds the events of a run up.
--
-- Additive: the columns may be null, and the tables are new. Processes of the previous version write events without a run.

alter table usage_events
  -- As the caller names it: 1 to 256 printable ASCII characters. Null: the call has no run.
  add column run_id text,
  -- The agent at the top of the family. Null: the run belongs to the key of the event.
  add column run_agent_id integer;

-- The sums of a run over its whole life. A run belongs to the agent at the top of a family, otherwise to a key.
create table runs (
  number bigint generated always as identity primary key,
  org_id integer not null,
  -- others: the calls of the runs that have no row because there were too many on one IST day. The owner is then the day as a number, such as 20261128.
  owner_kind text not null check (owner_kind in ('agent', 'key', 'others')),
  owner_id integer not null,
  run_id text not null check (length(run_id) between 1 and 256),
  first_at timestamptz not null,
  last_at timestamptz not null,
  -- The IST day of the last call.
  last_day date not null,
  calls bigint not null,
  errors bigint not null,
  prompt_tokens bigint not null,
  completion_tokens bigint not null,
  cached_tokens bigint not null,
  value_uinr bigint not null check (value_uinr >= 0),
  cost_uinr bigint not null check (cost_uinr >= 0),
  constraint runs_of_owner unique (org_id, owner_kind, owner_id, run_id)
) with (fillfactor = 80);
create index runs_by_id on runs (org_id, run_id);
create index runs_newest on runs (org_id, last_day, number);
create index runs_of_owner_newest on runs (org_id, owner_kind, owner_id, last_day, number);
-- The sweep that deletes old runs.
create index runs_by_last_day on runs (last_day);

-- The parts of a run: its calls by agent and model. Agent 0 means calls without a registered agent.
create table run_parts (
  run_number bigint not null references runs (number) on delete cascade,
  agent_id integer not null,
  model text not null,
  calls bigint not null,
  errors bigint not null,
  prompt_tokens bigint not null,
  completion_tokens bigint not null,
  cached_tokens bigint not null,
  value_uinr bigint not null check (value_uinr >= 0),
  cost_uinr bigint not null check (cost_uinr >= 0),
  primary key (run_number, agent_id, model)
) with (fillfactor = 80);

-- How many runs began on an IST day. It bounds the rows of an organisation.
create table run_days (
  org_id integer not null,
  day date not null,
  runs integer not null check (runs >= 0),
  primary key (org_id, day)
) with (fillfactor = 70);
create index run_days_by_day on run_days (day);
