-- Money of organisations: what they paid or were given, promo codes, and the papers that the tax office asks for.
--
-- The balance stands nowhere: it is what the prepaid counter of the organisation has left, and always the sum of its ledger.
-- Ledger rows are only ever added. Additive: binaries from before this migration run against it.

-- Why money moved, and what about: a payment, a promo code, a word of the operator. The same credit is never written twice.
alter table ledger
  add column reason text not null default 'usage' check (reason in ('usage', 'topup', 'promo', 'grant', 'correction')),
  add column ref text;
create unique index ledger_once on ledger (org_id, reason, ref) where ref is not null;
-- Pages go by id: ids are given under the lock of the prepaid counter, so their order is the order in which the balance moved.
drop index ledger_by_org;
create index ledger_by_org on ledger (org_id, id);

create table billing_accounts (
  org_id int primary key references orgs (id),
  -- Below it the owners are told; null: nobody is.
  low_balance_threshold_uinr bigint check (low_balance_threshold_uinr > 0),
  -- When it was told that the balance is low; null: it is armed.
  low_since timestamptz,
  low_mailed_at timestamptz,
  -- What stands on invoices beside the address.
  legal_name text,
  billing_email text,
  gstin text,
  updated_at timestamptz not null
);

create table billing_addresses (
  org_id int primary key references orgs (id),
  name text not null,
  line1 text not null,
  line2 text,
  city text not null,
  state text not null,
  -- Two digits of the GST state list: the place of supply.
  state_code text not null check (state_code ~ '^[0-9]{2}$'),
  pincode text not null check (pincode ~ '^[1-9][0-9]{5}$'),
  country text not null default 'IN',
  updated_at timestamptz not null
);

-- An order at the payment provider. It is paid at most once.
create table payment_orders (
  order_id text primary key,
  org_id int not null references orgs (id),
  provider text not null,
  amount_uinr bigint not null check (amount_uinr > 0),
  promo_code text,
  key_id text not null,
  created_by int,
  status text not null default 'created' check (status in ('created', 'paid')),
  created_at timestamptz not null,
  paid_at timestamptz,
  -- When the provider was last asked whether it is paid after all; null: never.
  asked_at timestamptz,
  check ((status = 'paid') = (paid_at is not null))
);
create index payment_orders_by_org on payment_orders (org_id, created_at);
create index payment_orders_unpaid on payment_orders (created_at) where status = 'created';

-- What the provider said of payments of our orders. Amounts are what it named; what was credited stands in the ledger.
create table payments (
  payment_id text primary key,
  org_id int not null references orgs (id),
  order_id text not null references payment_orders (order_id),
  status text not null check (status in ('captured', 'failed', 'flagged')),
  amount_uinr bigint not null,
  currency text not null,
  -- upi, card, netbanking, wallet …, as the provider names it; null while nobody told.
  method text,
  -- A code, never free text: why it failed or was flagged.
  reason text,
  promo_code text,
  bonus_uinr bigint not null default 0 check (bonus_uinr >= 0),
  created_at timestamptz not null,
  captured_at timestamptz,
  -- When the operator decided about one that did not fit: credited it after all, or put it right elsewhere.
  settled_at timestamptz,
  check ((status = 'captured') = (captured_at is not null)),
  check (settled_at is null or status <> 'failed')
);
-- An order is paid once; a second payment of it can only be credited by the operator.
create unique index payments_captured_once on payments (order_id) where status = 'captured' and settled_at is null;
create index payments_to_look_at on payments (created_at) where settled_at is null and reason is not null and status <> 'failed';
create index payments_by_org on payments (org_id, created_at);

create table promo_codes (
  -- Capital letters, digits and dashes.
  code text primary key check (code ~ '^[A-Z0-9][A-Z0-9-]{2,31}$'),
  bonus_uinr bigint not null check (bonus_uinr > 0),
  -- Least top-up that it comes with.
  topup_min_uinr bigint not null default 0 check (topup_min_uinr >= 0),
  redemptions_max int check (redemptions_max > 0),
  redemptions int not null default 0 check (redemptions >= 0),
  expires_at timestamptz,
  ended_at timestamptz,
  created_at timestamptz not null,
  check (redemptions_max is null or redemptions <= redemptions_max)
);
create table promo_redemptions (
  org_id int not null references orgs (id),
  code text not null references promo_codes (code),
  payment_id text not null references payments (payment_id),
  at timestamptz not null,
  primary key (org_id, code)
);

-- The last number of a series such as BR/26-27. Its row lock is what leaves no hole: a transaction that rolls back gives the number back.
create table invoice_series (
  series text primary key,
  last int not null default 0 check (last >= 0)
);
create table invoices (
  number text primary key check (length(number) <= 16),
  org_id int not null references orgs (id),
  payment_id text not null unique references payments (payment_id),
  series text not null references invoice_series (series),
  seq int not null check (seq > 0),
  issued_at timestamptz not null,
  -- Seller, buyer and what was sold (description, service code, percent of tax) as they were on that day.
  seller jsonb not null,
  buyer jsonb not null,
  item jsonb not null,
  -- Two digits of the GST state list; empty when neither party has a state.
  place_of_supply text not null,
  total_paise bigint not null check (total_paise > 0),
  taxable_paise bigint not null,
  cgst_paise bigint not null,
  sgst_paise bigint not null,
  igst_paise bigint not null,
  unique (series, seq),
  check (taxable_paise + cgst_paise + sgst_paise + igst_paise = total_paise)
);
create index invoices_by_org on invoices (org_id, issued_at);
