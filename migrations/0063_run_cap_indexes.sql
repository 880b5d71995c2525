-- Indexes of the runs with caps. A file of their own, because agents and keys must not be locked while they are built.
--
-- Additive: indexes.

-- The runs with caps of their own, which every process loads.
create index runs_with_own_caps on runs (number) where asked_cost_uinr is not null or asked_calls is not null or set_caps is not null;
create index runs_capped on runs (last_day) where capped;
