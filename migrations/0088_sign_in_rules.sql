-- What an organisation gives to people who sign in at an issuer that may vouch for its mail domains, and what such sign-ins gave to whom.
--
-- Additive: two new tables. Processes of the previous version write nothing to them.

create table sign_in_rules (
  org_id int not null references orgs (id),
  -- The id of the issuer in the operator's file (SIGN_IN_FILE).
  issuer text not null check (length(issuer) between 1 and 32),
  -- The role of a person who joins because of the mail domain. Nobody becomes an owner by signing in.
  default_role text not null check (default_role in ('member', 'admin')),
  -- A list of {"group", "role", "workspace_ids"}.
  groups jsonb not null,
  changed_at timestamptz not null,
  primary key (org_id, issuer)
);

-- The role and the workspaces that a person has only because of groups. The next sign-in takes away what the groups no longer give.
create table sign_in_grants (
  user_id int not null references users (id),
  issuer text not null check (length(issuer) between 1 and 32),
  org_id int not null references orgs (id),
  role text check (role in ('member', 'admin')),
  workspace_ids int[] not null,
  changed_at timestamptz not null,
  -- Begins with the person, because a sign-in reads what it gave in every organisation.
  primary key (user_id, issuer, org_id)
);
