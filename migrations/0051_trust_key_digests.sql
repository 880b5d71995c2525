-- A digest of the pasted keys of each trust rule, so that an exchange compares the keys of many rules without reading them.
--
-- Additive: the column may be null, so binaries from before this migration run against it. A rule that they make has no digest, and an exchange takes its
-- keys for keys that no other rule has.

alter table agent_trust
  -- SHA-256 of the text of jwks in hexadecimal. Null: the rule has no pasted keys, or a binary from before this migration made it.
  add column jwks_digest text;

update agent_trust set jwks_digest = encode(sha256(convert_to(jwks::text, 'UTF8')), 'hex') where jwks is not null;
