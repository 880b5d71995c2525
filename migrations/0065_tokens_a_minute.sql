-- Limits of tokens a minute of keys and agents, and their counters.
--
-- Additive: nullable columns, and one more metric of counters. Processes of the previous version neither see nor change the limits and their counters.

alter table api_keys add column tpm_limit int check (tpm_limit > 0);
alter table agents add column tpm_limit int check (tpm_limit > 0);

-- `run_spend` and `run_calls` are metrics of the caps of runs.
alter table counters drop constraint counters_metric_check;
alter table counters add constraint counters_metric_check
  check (metric in ('spend', 'prepaid', 'rpm', 'tpm', 'daily', 'running', 'budget', 'run_spend', 'run_calls'));
