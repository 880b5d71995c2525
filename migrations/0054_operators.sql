-- Operators use the console: a session says whether its sign-in proved the address of the person, and the operator lists organisations and mail.
--
-- Additive: the column has a default, so processes of the previous version run against it. Their sign-ins prove no address, so these people sign in again
-- before they are operators.

-- True when the identity provider verified the address of the person at this sign-in, or when the operator made the link of this sign-in.
alter table sessions add column address_proven boolean not null default false;

create index orgs_by_name on orgs ((lower(name) collate "C"), id);
create index emails_failed on emails (failed_at, id) where failed_at is not null;
