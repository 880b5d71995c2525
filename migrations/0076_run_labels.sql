-- Labels of runs: tags, and the sums of their sub-agents. Also which calls are parts of another call.
--
-- Additive: the columns may be null, and the table is new. Processes of the previous version write events without them, and count each call of an image
-- panel as a call of its run.

alter table usage_events
  -- A JSON object of strings: the tags that the call gives. Null: none.
  add column tags text,
  -- True: a further call of an image panel, which its run counts as one call.
  add column run_part boolean;

alter table runs
  -- The tags of its calls. Of each key, the first value that arrived. Null: none.
  add column tags jsonb;

-- The sums of the sub-agents that the clients of a run name. '(others)': further sub-agents of a run with 200.
create table run_subagent_sums (
  run_number bigint not null references runs (number) on delete cascade,
  -- The id that the client gives.
  name text not null check (length(name) between 1 and 256),
  calls bigint not null,
  errors bigint not null,
  prompt_tokens bigint not null,
  completion_tokens bigint not null,
  cached_tokens bigint not null,
  value_uinr bigint not null check (value_uinr >= 0),
  cost_uinr bigint not null check (cost_uinr >= 0),
  primary key (run_number, name)
) with (fillfactor = 80);
