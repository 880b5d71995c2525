-- Routes of the platform that are withheld for the time being, by the operator or by the gateway itself. A row whose time is over
-- withholds nothing any more; it is kept for a while so that a route that goes on failing is withheld for longer each time.
-- Of the whole installation, not of one organisation. Additive: binaries from before this migration run against it.

create table route_maintenance (
  -- 'provider/model'.
  route text primary key,
  set_by text not null check (set_by in ('operator', 'gateway')),
  reason text not null,
  -- How often the gateway has withheld it in a row.
  strikes int not null,
  since timestamptz not null,
  until timestamptz not null
);
