-- When each regular job last ended well, by the clock of the database: a process that lives shorter than the period of a job runs the
-- job when it is due, and of several processes one runs it.
-- Additive: binaries from before this migration run against it.

create table job_runs (
  name text primary key,
  -- End of the last good run; of a job that never ran, the first start that knew it.
  ran_at timestamptz not null
);
