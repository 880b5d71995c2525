-- Usage records that the database refused: kept with their bytes, so that they do not stand in the way of the others and are not lost.
-- Records of the whole installation, for the operator: a parked charge is in no budget and no report, and the doctor counts it.
-- Additive: binaries from before this migration run against it.

create table parked_records (
  id bigint generated always as identity primary key,
  -- Whose journal it was in, and the offset behind it there.
  process_id bigint not null,
  end_offset bigint not null,
  kind text not null,
  -- Empty for records without an event.
  event_id text not null,
  value_uinr numeric not null,
  -- What the database said.
  reason text not null,
  -- The record as JSON. Bytes, because its text may be what was refused.
  record bytea not null,
  at timestamptz not null,
  unique (process_id, end_offset, event_id)
);
