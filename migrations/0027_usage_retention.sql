-- From which IST day on single usage events are still kept. What compares sums with events must not look before it: older events have
-- been deleted, their sums stay. Without a row nothing was ever deleted.
-- Additive: binaries from before this migration run against it.

create table usage_retention (
  single boolean primary key default true check (single),
  kept_from date not null
);
