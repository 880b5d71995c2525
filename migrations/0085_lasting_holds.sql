-- Holds that outlive every process. A file of its own: a flush locks counters before other tables, so a transaction that locks these first and counters
-- after them would block it for good.
--
-- Additive: a new table. Processes of the previous version count these amounts, because they are part of `leased`.

-- Amounts that no process leases: work under way at a provider holds them, and they outlive every process. `counters.leased` contains them.
create table lasting_holds (
  -- What the amount is held for, such as the id of a batch.
  owner text not null check (length(owner) between 1 and 100),
  counter_id bigint not null references counters (id),
  amount bigint not null check (amount > 0),
  primary key (owner, counter_id)
);
