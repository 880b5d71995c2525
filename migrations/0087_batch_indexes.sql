-- The indexes of batches and their files. The tables are new, so each takes no time.

create index lasting_holds_by_counter on lasting_holds (counter_id);
create index batch_files_newest on batch_files (org_id, created_at, id);
create index batch_files_by_expiry on batch_files (expires_at);
create index batches_newest on batches (org_id, admitted_at, id);
-- The batches that a process still has to look at.
create index batches_open on batches (next_poll_at) where settled_at is null;
create index batches_settled on batches (settled_at) where settled_at is not null;
