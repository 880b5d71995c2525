-- How the store of an organisation is reached beside keys of its own: by a role that the gateway assumes, or by the gateway's own
-- identity for buckets that the operator named; how the bucket is addressed, and with which key its objects are encrypted.
-- Additive: binaries from before this migration run against it; they cannot open stores that have no keys.

alter table memory_stores
  -- {"credentials":"keys"|"role"|"gateway","roleArn","addressing":"auto"|"path"|"virtual","kmsKeyId","sse"}; never a secret.
  add column access jsonb not null default '{}';

-- What an organisation writes into the trust policy of its role. The gateway makes it, so no organisation can name that of another.
create table memory_external_ids (
  org_id integer primary key,
  external_id text not null
);
