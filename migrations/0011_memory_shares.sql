-- Peer shares of memory: a space that its owner opens to people of the same organisation, one by one.
--
-- A retired space keeps its row for good: its name is burnt and its objects stay in the organisation's bucket.
-- Lock order: memory_shares before memory_share_members.
-- Additive: binaries from before this migration run against it.

create table memory_shares (
  org_id int not null references orgs (id),
  space text not null check (space <> ''),
  owner_id int not null references users (id),
  state text not null default 'active' check (state in ('active', 'retired')),
  created_at timestamptz not null,
  retired_at timestamptz,
  primary key (org_id, space),
  check ((state = 'retired') = (retired_at is not null))
);
create index memory_shares_by_owner on memory_shares (org_id, owner_id);

-- Grants. The owner has none: owning is no grant that could be taken away.
create table memory_share_members (
  org_id int not null,
  space text not null,
  user_id int not null references users (id),
  granted_by int not null references users (id),
  granted_at timestamptz not null,
  primary key (org_id, space, user_id),
  foreign key (org_id, space) references memory_shares (org_id, space)
);
create index memory_share_members_by_user on memory_share_members (org_id, user_id);
