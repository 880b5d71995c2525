-- Collections: a chain of steps for one model of the catalog, with a readme, that organisations keep, publish, star, fork and import.
--
-- Additive: binaries from before this migration run against it.

create table collections (
  id int generated always as identity primary key,
  org_id int not null references orgs (id) on delete cascade,
  -- Unique over all organisations; it never changes, so that links hold.
  slug text not null unique,
  name text not null,
  model_id text not null,
  steps jsonb not null,
  readme_md text not null default '',
  is_public boolean not null default false,
  version int not null default 1 check (version >= 1),
  -- Counted anew, under a lock of the row, by whoever changes collection_stars or makes or deletes a fork.
  stars int not null default 0 check (stars >= 0),
  forks int not null default 0 check (forks >= 0),
  -- What it was forked from; the text outlives the source.
  forked_from_id int references collections (id) on delete set null,
  forked_from_slug text,
  monitored boolean not null default false,
  created_by int,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create index collections_by_org on collections (org_id, id);
create index collections_public on collections (stars desc, created_at desc, id desc) where is_public;
create index collections_public_by_model on collections (model_id, stars desc, created_at desc, id desc) where is_public;
create index collections_by_source on collections (forked_from_id) where forked_from_id is not null;
create unique index collections_one_fork on collections (org_id, forked_from_id) where forked_from_id is not null;

-- Every slug that was ever given away: one that is free again would lead old links to something else.
create table collection_slugs (
  slug text primary key,
  -- The last number that was tried behind it, 1 for none.
  last int not null default 1
);

-- Every version, the present one too.
create table collection_versions (
  collection_id int not null references collections (id) on delete cascade,
  version int not null,
  org_id int not null,
  name text not null,
  model_id text not null,
  steps jsonb not null,
  readme_md text not null,
  created_by int,
  created_at timestamptz not null,
  primary key (collection_id, version)
);

create table collection_stars (
  collection_id int not null references collections (id) on delete cascade,
  org_id int not null references orgs (id) on delete cascade,
  created_at timestamptz not null,
  primary key (collection_id, org_id)
);
create index collection_stars_by_org on collection_stars (org_id);
