-- Where the comparison of each memory store with its index goes on, so that a large or slow store is compared in turns; and which audiences of
-- trust rules another organisation had before.
--
-- Additive: the columns may be null or have defaults, so binaries from before this migration run against it. Those binaries compare every store
-- from its beginning, and ask no caller of a passed-on audience for the agent.

alter table memory_stores
  -- The generation of the store that reconcile_after belongs to. Null: the next comparison begins at the beginning.
  add column reconcile_generation int,
  -- The key in the store after which the next turn begins.
  add column reconcile_after text collate "C",
  -- Pages of this comparison so far, and objects that it has added to the index.
  add column reconcile_pages int not null default 0 check (reconcile_pages >= 0),
  add column reconcile_added int not null default 0 check (reconcile_added >= 0);

alter table agent_trust_audiences
  -- When the pair last went to another organisation. Null: it never did.
  add column changed_hands_at timestamptz;
