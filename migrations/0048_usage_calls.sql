-- The failed attempts of a call, and an index that finds a call by its request id.
--
-- This is a migration of its own because it locks the events: flushes wait while the index is built, and calls continue.
--
-- Additive: the column may be null, and binaries from before this migration do not name it.

-- JSON of the gateway's own words (src/gateway/usage/events/tried-routes.ts). Null for a call without a failed attempt.
alter table usage_events add column tried text;

-- Request ids are random. A hash index has three fifths of the size of an index of the text: 35 bytes for each call.
create index usage_events_by_request on usage_events using hash (request_id);
