-- Units beside tokens: prompt tokens that were written to a provider's cache, generated images, seconds of audio, characters of speech.
--
-- Additive: every column has a default, so binaries from before this migration run against it.

alter table usage_events
  add column cache_write_tokens bigint not null default 0,
  add column images int not null default 0,
  add column audio_seconds int not null default 0,
  add column characters bigint not null default 0;
