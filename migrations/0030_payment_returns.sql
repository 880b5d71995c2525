-- Money of top-ups that went back: refunds and disputes as the payment provider tells of them. A return is one row, whatever is told of it
-- how often; what it takes from the balance stands in the ledger under reasons of its own.
-- Additive: binaries from before this migration run against it; they write none of the new reasons and columns.

create table payment_returns (
  return_id text primary key,
  org_id integer not null references orgs (id),
  order_id text not null references payment_orders (order_id),
  -- May name a payment that has not been told of yet.
  payment_id text not null,
  kind text not null check (kind in ('refund', 'dispute')),
  amount_uinr bigint not null check (amount_uinr > 0),
  -- Whether the money counts as gone.
  takes boolean not null,
  -- The event that said so, and when the provider says that it happened; of two events of one second the one of the higher rank counts.
  event text not null,
  told_at timestamptz not null,
  rank smallint not null,
  -- How often it has moved money: numbers its rows of the ledger.
  moves integer not null default 0,
  created_at timestamptz not null,
  changed_at timestamptz not null
);
create index payment_returns_by_payment on payment_returns (payment_id);
create index payment_returns_by_org on payment_returns (org_id, created_at);

alter table payments add column returned_uinr bigint not null default 0 check (returned_uinr >= 0);
alter table payments add column returned_bonus_uinr bigint not null default 0 check (returned_bonus_uinr >= 0);

alter table ledger drop constraint ledger_reason_check;
alter table ledger add constraint ledger_reason_check check (reason in ('usage', 'topup', 'promo', 'grant', 'correction', 'refund', 'chargeback')) not valid;
