-- What was last fetched of the price list and the exchange rate that our prices are compared with: shared by all processes, kept while
-- the source is away. Public data.
--
-- Additive: binaries from before this migration run against it.

create table price_feeds (
  -- 'prices' or 'exchange_rate'.
  name text not null,
  -- Host and digest of the URL, which may hold a key. Another URL is another row, so that its first try need not wait for the hour.
  source text not null,
  -- Entries with a price, as {id, input, output} in US dollars a token; the rate as {inr}. All figures are decimal texts.
  content jsonb,
  fetched_at timestamptz,
  -- When it was last tried: a process that moves it may fetch, so there is one try in an hour over all processes.
  tried_at timestamptz not null,
  -- When somebody last asked for the comparison, give or take some minutes: what nobody asks for is not fetched.
  asked_at timestamptz not null,
  primary key (name, source)
);
