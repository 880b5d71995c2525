-- What was last fetched of the price list and the exchange rate that our prices are compared with: shared by all processes, kept while
-- the source is away. Public data.
--
-- Additive: binaries from before this migration run against it.

create table price_feeds (
  -- 'prices' or 'exchange_rate'.
  name text primary key,
  source text not null,
  content jsonb,
  fetched_at timestamptz,
  -- When it was last tried; at most once an hour over all processes.
  tried_at timestamptz not null
);
