-- Agents can be paused, and it is known which of their limits an owner or admin set.
--
-- Additive: every column has a default, so binaries from before this migration run against it.

alter table agents
  -- Rises with every pause and every resume: odd means paused. News of it may come late or twice, and the higher one is right.
  add column pause_seq int not null default 0 check (pause_seq >= 0),
  -- Who paused it: its family (agent), somebody with a key of the organisation (member), or an owner, admin or the operator (admin).
  add column paused_by text check (paused_by in ('agent', 'member', 'admin')),
  -- Limits that an owner, an admin or the operator set: nobody else loosens them.
  add column admin_set text[] not null default '{}';

-- A starting process loads the agents that are paused.
create index agents_paused on agents (id) where pause_seq % 2 = 1;

-- Nobody wrote down who set what is set already, so it counts as set by an admin.
update agents a set admin_set = array_remove(array[
  case when exists (select 1 from budgets b where b.org_id = a.org_id and b.scope = 'agent' and b.scope_id = a.id::text) then 'budget' end,
  case when allowed_models is not null then 'allowed_models' end,
  case when allowed_providers is not null then 'allowed_providers' end,
  case when max_cost_uinr is not null then 'max_cost_inr_per_call' end,
  case when max_output_tokens is not null then 'max_output_tokens' end,
  case when max_concurrency is not null then 'max_concurrency' end
], null) where status = 'active';
