-- Keys that sign attestations: an Ed25519 pair, whose public half is published for good, and a secret for the HMAC beside it. One is
-- current; the older ones go on verifying what they signed.
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
