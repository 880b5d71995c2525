-- The list of workspaces counts the keys that are bound to each of them.
--
-- Additive: an index. Processes of the previous version run against it.

create index api_keys_of_workspace on api_keys (org_id, workspace_id) where workspace_id is not null and revoked_at is null;
