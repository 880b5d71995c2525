-- The console lists, filters and sorts agents, names who answers for each, and gives each person an agent for the playground.
--
-- Additive: the columns may be null, so binaries from before this migration run against it. Those binaries take the creator of an agent for its
-- owner, write no time of a last call, and treat a playground agent like every other agent.

alter table agents
  -- The member who answers for the agent. Null: nobody changed it, and it is created_by_user.
  add column owner_user int references users (id),
  -- When its last call ended, to within ten seconds. Null: it has made no call since this migration.
  add column last_call_at timestamptz,
  -- The person whose playground agent it is, and the key that binds the agent's tokens. Null: an ordinary agent.
  add column playground_user int references users (id),
  add column playground_key int,
  add foreign key (org_id, playground_key) references api_keys (org_id, id);

create unique index agents_playground on agents (org_id, playground_user) where playground_user is not null and status = 'active';
-- One for each order of the list. Each list begins with the active agents.
create index agents_newest on agents (org_id, (status = 'active'), id);
create index agents_by_name on agents (org_id, (status = 'revoked'), (lower(name) collate "C"), id);
create index agents_by_last_call on agents (org_id, (status = 'active'), (coalesce(last_call_at, '-infinity'::timestamptz)), id);
create index agents_by_owner on agents (org_id, (coalesce(owner_user, created_by_user)), id);

-- Agents by their spend of a month.
create index counters_spend_of_agents on counters (org_id, period) where scope = 'agent' and metric = 'spend';
