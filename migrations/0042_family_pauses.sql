-- An agent that its family paused stays paused until somebody at or above the one that paused it resumes it.
--
-- Additive: the column may be null, so binaries from before this migration run against it.

alter table agents
  -- With paused_by = 'agent': how many agents stand above the one that paused it. Null: not known, and every agent above resumes it.
  add column paused_by_depth int check (paused_by_depth >= 0);
