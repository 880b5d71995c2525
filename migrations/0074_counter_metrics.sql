-- The metrics of the caps of runs and of tokens a minute. A file of its own: a flush locks counters before agents, keys and runs, so a transaction that
-- locks these first and counters after them would block it for good.
--
-- Additive: more values of a column. Every row has one of the earlier values, so no row has to be read.

alter table counters drop constraint counters_metric_check;
alter table counters add constraint counters_metric_check
  check (metric in ('spend', 'prepaid', 'rpm', 'tpm', 'daily', 'running', 'budget', 'run_spend', 'run_calls')) not valid;
