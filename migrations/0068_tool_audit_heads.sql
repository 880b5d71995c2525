-- Day heads of calls of tools and of acts about tools: signed roots over the rows of a day, each with the hash of the head before it.
--
-- Additive: the column has a default, and processes of the previous version insert events without it.

-- The moment at which the row was written, to the millisecond. A row belongs to the head of this day, because a row of a process that died may be written days
-- after its call. Rows from before this migration belong to its day.
alter table usage_events add column recorded_at timestamptz not null default date_trunc('milliseconds', now());

create table tool_audit_heads (
  org_id integer not null,
  -- The IST day.
  day date not null,
  -- The signed text, in the form of RFC 8785.
  payload text not null,
  key_id text not null,
  signature text not null,
  primary key (org_id, day)
);
