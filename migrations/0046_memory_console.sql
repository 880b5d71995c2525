-- Indexes that find the objects of one author in the order of their keys, and the number of objects beside the bytes that an organisation uses.
--
-- Additive: the column has a default, so binaries from before this migration run against it. They do not count objects. The next comparison of the store
-- with the index counts them again.

create index memory_objects_by_agent on memory_objects (org_id, agent_id, key) where agent_id is not null;
create index memory_objects_by_user on memory_objects (org_id, user_id, key) where user_id is not null;
-- Keys without a user.
create index memory_objects_by_key on memory_objects (org_id, key_id, key) where user_id is null and key_id is not null;

alter table memory_usage
  -- The number of objects of the index. Running writes are not among them.
  add column objects bigint not null default 0 check (objects >= 0);

update memory_usage u set objects = (select count(*) from memory_objects o where o.org_id = u.org_id);
