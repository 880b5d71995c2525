-- Increases with an end: an amount that a person grants beside the cap of a counter. It is kept on the counter of the running period, so it ends with the period
-- at the latest. A file of its own: a flush locks counters before agents, keys and runs.
--
-- Additive: columns with defaults, so no row is rewritten. A process of the previous version knows no increase, and refuses at the cap.

alter table counters add column extra bigint not null default 0, add column extra_until timestamptz;
