-- Searches of rankings as a unit of usage, and what a call saved because the reply cache answered it.
--
-- Additive: both columns have a default, so binaries from before this migration run against it.

alter table usage_events
  add column searches int not null default 0,
  add column saved_uinr bigint;
