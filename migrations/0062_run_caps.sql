-- Caps of runs: what an agent or a key allows for each of its runs, and what a run itself was given.
--
-- Additive: the columns have defaults or may be null, and the table is new. Processes of the previous version hold nothing in the caps of a run. They add
-- calls to the sums of a run and not to its counters; the next process that looks the run up corrects its counters.

-- Caps of each run: max_cost_uinr, max_calls, max_minutes, max_subagents, max_depth, required, strict. A missing field is no cap. Null: no caps.
alter table agents add column run_caps jsonb;
alter table api_keys add column run_caps jsonb;

alter table runs
  -- True: the run has two counters, which count its value and its calls as this row does.
  add column capped boolean not null default false,
  -- The lowest caps that calls have asked for.
  add column asked_cost_uinr bigint check (asked_cost_uinr > 0),
  add column asked_calls bigint check (asked_calls > 0),
  -- The caps that its owner has given to this run, as those of an agent.
  add column set_caps jsonb;

-- The sub-agents of a run with a cap on them. `name` is the id that the client gives. It is never shown.
create table run_subagents (
  run_number bigint not null references runs (number) on delete cascade,
  name text not null check (length(name) between 1 and 300),
  depth integer not null check (depth >= 1),
  primary key (run_number, name)
);
