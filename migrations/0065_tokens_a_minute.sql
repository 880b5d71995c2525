-- Limits of tokens a minute of keys and agents, and their counters.
--
-- Additive: nullable columns. Processes of the previous version neither see nor change the limits.

alter table api_keys add column tpm_limit int check (tpm_limit > 0);
alter table agents add column tpm_limit int check (tpm_limit > 0);
