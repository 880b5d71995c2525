-- Calls that were refused before a provider was asked: how many in each hour, of which credential, and why. Such calls cost nothing and have no usage event.
--
-- Additive: a new table. Processes of the previous version write nothing to it.

create table refused_calls (
  org_id integer not null,
  -- The beginning of an hour of UTC.
  hour timestamptz not null,
  key_id integer not null,
  -- 0: the call names no registered agent.
  agent_id integer not null,
  -- The name of the error in the table of errors of the program.
  error_name text not null check (length(error_name) between 1 and 64),
  -- Whose limit refused: org, team, workspace, member, key, agent or run. Empty for other refusals.
  scope text not null check (length(scope) <= 16),
  calls bigint not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  last_request_id text not null check (length(last_request_id) <= 100),
  primary key (org_id, hour, key_id, agent_id, error_name, scope)
);
create index refused_calls_by_hour on refused_calls (hour);
