-- Events that were not queued for a webhook endpoint because too many of its deliveries waited already.
--
-- Additive: the columns have defaults or may be null, so binaries from before this migration run against it. Those binaries queue every event.

alter table webhook_endpoints
  -- The number of events since the endpoint was made.
  add column dropped bigint not null default 0 check (dropped >= 0),
  -- The time of the last of them. Null: there was none.
  add column dropped_at timestamptz;
