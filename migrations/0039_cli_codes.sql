-- One-time codes with which `brigade login` fetches its key.
--
-- Additive: a new table.

create table cli_codes (
  code_hash bytea primary key check (octet_length(code_hash) = 32),
  org_id int not null references orgs (id),
  user_id int not null references users (id),
  -- SHA-256 of the verifier, base64url (RFC 7636).
  challenge text not null,
  expires_at timestamptz not null
);
create index cli_codes_expiry on cli_codes (expires_at);
