-- Indexes of the calls of tools and of the acts about tools. Writers of both tables wait while they are built; readers do not.
--
-- Additive: indexes.

create index usage_events_of_tools on usage_events (org_id, recorded_at, id) where kind = 'tool';
create index audit_log_of_tools on audit_log (org_id, at, id) where act in ('approveTool', 'blockTool', 'noteToolChanges');
