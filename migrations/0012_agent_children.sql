-- Children of agents: how many agents stand above one.
--
-- Additive: the column has a default, so binaries from before this migration run against it.

alter table agents add column depth int not null default 0 check (depth between 0 and 3);
