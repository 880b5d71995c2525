-- The index of the tags of runs. A file of its own, because writers of runs wait while it is built; readers do not.
--
-- Additive: an index.

create index runs_of_tags on runs using gin (tags jsonb_path_ops) where tags is not null;
