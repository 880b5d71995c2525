-- What the operator has ruled for one organisation as a whole, in the place of the settings ORG_RPM, ORG_RUNNING, ORG_KEYS, ORG_AGENTS and
-- ORG_STREAMS. Null is the setting, 0 is no limit.
-- Additive: binaries from before this migration run against it.

create table org_limits (
  org_id int primary key references orgs(id) on delete cascade,
  rpm int check (rpm >= 0),
  running int check (running >= 0),
  keys int check (keys >= 0),
  agents int check (agents >= 0),
  streams int check (streams >= 0)
);
