-- Ended runs: their later calls are refused on every process.
--
-- Additive: a new table. Processes of the previous version serve the calls of an ended run.

create table run_ends (
  org_id integer not null,
  owner_kind text not null check (owner_kind in ('agent', 'key')),
  owner_id integer not null,
  run_id text not null check (length(run_id) between 1 and 256),
  ended_at timestamptz not null,
  -- Who ended it: the id of a user at the console, or of an API key.
  ended_by_user integer,
  ended_by_key integer,
  primary key (org_id, owner_kind, owner_id, run_id)
);
create index run_ends_by_time on run_ends (ended_at);
