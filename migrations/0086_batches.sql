-- Batches of requests that a provider works on for hours, and the files at that provider.
--
-- Additive: new tables. Processes of the previous version know nothing of them.

-- A file at a provider. The bytes are at the provider only.
create table batch_files (
  id text primary key,
  org_id int not null references orgs (id),
  user_id int,
  key_id int not null,
  agent_id int,
  ancestor_ids int[] not null,
  -- input: uploaded by a caller. output, error: made by the provider for a batch.
  purpose text not null check (purpose in ('input', 'output', 'error')),
  bytes bigint not null,
  -- Of an input: what its lines ask for, together.
  lines int not null,
  endpoint text not null,
  model text not null,
  provider text not null,
  upstream_model text not null,
  -- True: the file is in the account of the organisation's own key.
  byok boolean not null,
  upstream_id text not null,
  -- Of an input: the most that the lines may cost together, and a single one, at these prices, and the most output tokens of a line.
  hold_uinr bigint not null,
  line_uinr bigint not null,
  line_output_tokens int not null,
  price jsonb not null,
  created_at timestamptz not null,
  expires_at timestamptz not null
);

create table batches (
  id text primary key,
  org_id int not null references orgs (id),
  user_id int,
  key_id int not null,
  workspace_id int,
  agent_id int,
  agent_label text,
  ancestor_ids int[] not null,
  run_id text,
  run_agent_id int,
  -- The client's format: openai or anthropic.
  format text not null check (format in ('openai', 'anthropic')),
  endpoint text not null,
  model text not null,
  provider text not null,
  -- The wire format of the route, which reads the replies.
  dialect text not null,
  residency text not null,
  byok boolean not null,
  -- True: the prepaid balance pays.
  debits boolean not null,
  -- Null until the provider has accepted the batch.
  upstream_id text,
  input_file_id text,
  output_file_id text,
  error_file_id text,
  -- As the provider says it.
  status text not null,
  lines int not null,
  completed int not null default 0,
  failed int not null default 0,
  hold_uinr bigint not null check (hold_uinr >= 0),
  -- The prices of its admission, and the counters that its charge goes to.
  price jsonb not null,
  charge jsonb not null,
  event_id uuid not null unique,
  request_id text not null,
  admitted_at timestamptz not null,
  began_at timestamptz,
  ended_at timestamptz,
  expires_at timestamptz not null,
  cancel_asked_at timestamptz,
  cancel_sent_at timestamptz,
  -- The next look at the provider, and who looks until when.
  next_poll_at timestamptz not null,
  polls int not null default 0,
  claimed_by uuid,
  claimed_until timestamptz,
  -- Set in the transaction that charges the batch and gives its holds back.
  settled_at timestamptz,
  value_uinr bigint,
  cost_uinr bigint
);
