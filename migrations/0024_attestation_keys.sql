-- Keys that sign attestations: an Ed25519 pair, whose public half is published for good, and a secret for the HMAC beside it. One is
-- current; the older ones go on verifying what they signed. And what they have to tell of beside calls.
--
-- Additive: binaries from before this migration run against it.

create table attestation_keys (
  -- Fingerprint of the public key.
  key_id text primary key,
  public_key jsonb not null,
  sealed_private_key text not null,
  -- Fingerprint of the HMAC secret.
  hmac_key_id text not null unique,
  sealed_hmac_key text not null,
  created_at timestamptz not null,
  retired_at timestamptz
);
create unique index attestation_keys_current on attestation_keys ((retired_at is null)) where retired_at is null;

-- Prompts that were sent to a provider to have their tokens counted: no calls, and nothing is charged, but they were there.
create table token_counts (
  org_id int not null,
  -- IST.
  day date not null,
  model text not null,
  provider text not null,
  residency text not null,
  requests bigint not null,
  primary key (org_id, day, model, provider, residency)
);
