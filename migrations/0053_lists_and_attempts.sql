-- The console searches, filters and sorts its lists, and shows each attempt of a webhook delivery and the sessions of a person.
--
-- Additive: the columns have defaults or may be null, so binaries from before this migration run against it. Those binaries record no attempt of a
-- delivery, and no use and no browser of a session.

-- One for each order of a list. Each list begins with the rows that are in use.
create index api_keys_newest on api_keys (org_id, (revoked_at is null), id);
create index api_keys_by_name on api_keys (org_id, (revoked_at is not null), (lower(name) collate "C"), id);
create index api_keys_by_last_use on api_keys (org_id, (revoked_at is null), (coalesce(last_used_at, '-infinity'::timestamptz)), id);
create index workspaces_oldest on workspaces (org_id, (archived_at is not null), id);
create index workspaces_by_name on workspaces (org_id, (archived_at is not null), (lower(name) collate "C"), id);
create index budgets_by_scope on budgets
  (org_id, (array_position('{org,team,workspace,member,key,agent}'::text[], scope)), (lpad(scope_id, 10, '0'))) where scope_id ~ '^[0-9]{1,10}$';
create index budgets_by_cap on budgets
  (org_id, cap_uinr, (array_position('{org,team,workspace,member,key,agent}'::text[], scope)), (lpad(scope_id, 10, '0'))) where scope_id ~ '^[0-9]{1,10}$';
create index chains_by_update on chains (org_id, updated_at, model_id);
