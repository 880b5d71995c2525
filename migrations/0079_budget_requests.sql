-- Requests for more budget, and their answers. The reason is what a person or an agent wrote. The gateway deletes a request, with its reason, 30 days after it was
-- decided or has expired.
--
-- Additive: a new table. Processes of the previous version write nothing to it.

create table budget_requests (
  id bigint generated always as identity primary key,
  org_id integer not null,
  -- Names what is asked for: `agent/7/month`, or `run/agent/7/` and the id of the run.
  subject text not null check (length(subject) <= 400),
  -- run, or the scope of a budget.
  scope text not null check (scope in ('run', 'org', 'team', 'workspace', 'member', 'key', 'agent')),
  -- The id of the scope. For a run, the id of the agent or key that the run belongs to.
  target_id text not null check (length(target_id) <= 64),
  period text check (period in ('ever', 'month', 'week', 'day')),
  run_owner text check (run_owner in ('agent', 'key')),
  run_id text check (length(run_id) <= 256),
  amount_uinr bigint check (amount_uinr > 0),
  calls bigint check (calls > 0),
  reason text not null check (length(reason) between 1 and 500),
  asked_by_key integer,
  asked_by_agent integer,
  asked_by_user integer,
  asked_at timestamptz not null,
  -- From then on nobody can decide an open request.
  expires_at timestamptz not null,
  state text not null default 'open' check (state in ('open', 'granted', 'refused', 'expired')),
  decided_at timestamptz,
  decided_by_user integer,
  granted_uinr bigint,
  granted_calls bigint,
  -- The end of the increase.
  increase_until timestamptz,
  check (scope = 'run' or period is not null),
  check (scope <> 'run' or (run_owner is not null and run_id is not null)),
  check ((amount_uinr is null) <> (calls is null))
);
create unique index budget_requests_open on budget_requests (org_id, subject) where state = 'open';
create index budget_requests_by_org on budget_requests (org_id, id desc);
create index budget_requests_by_end on budget_requests (expires_at);
