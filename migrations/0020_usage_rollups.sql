-- Sums of usage events by IST day, kept by the flush that inserts the events: reports read these, so that they cost the same however
-- many events there are. Rows of events may be dropped when they are old; the sums stay.
--
-- Absent is 0 (keys, agents) or '' (labels), because a primary key takes no null. Sums of one organisation are its own; those of models are
-- over all organisations, and know no caller.
--
-- Additive: binaries from before this migration run against it, but their events are not in the sums until `brigade admin usage rebuild`
-- has added them up again.

create table usage_days (
  org_id int not null,
  day date not null,
  model text not null,
  provider text not null,
  residency text not null,
  byok boolean not null,
  requests bigint not null,
  -- Calls that did not end well and whose client had not gone away.
  errors bigint not null,
  prompt_tokens bigint not null,
  completion_tokens bigint not null,
  cached_tokens bigint not null,
  cache_write_tokens bigint not null,
  value_uinr bigint not null,
  cost_uinr bigint not null,
  primary key (org_id, day, model, provider, residency, byok)
);

create table usage_days_by_key (
  org_id int not null,
  day date not null,
  key_id int not null,
  requests bigint not null,
  errors bigint not null,
  prompt_tokens bigint not null,
  completion_tokens bigint not null,
  cached_tokens bigint not null,
  cache_write_tokens bigint not null,
  value_uinr bigint not null,
  cost_uinr bigint not null,
  primary key (org_id, day, key_id)
);

create table usage_days_by_key_model (
  org_id int not null,
  key_id int not null,
  day date not null,
  model text not null,
  provider text not null,
  byok boolean not null,
  requests bigint not null,
  errors bigint not null,
  prompt_tokens bigint not null,
  completion_tokens bigint not null,
  cached_tokens bigint not null,
  cache_write_tokens bigint not null,
  value_uinr bigint not null,
  cost_uinr bigint not null,
  primary key (org_id, key_id, day, model, provider, byok)
);
create index usage_days_by_key_model_by_model on usage_days_by_key_model (org_id, model, day);

-- Weeks of usage_days_by_key (model '') and of usage_days_by_key_model, for spans with many keys: a quarter of a year is a dozen weeks and a few days.
create table usage_weeks_by_key (
  org_id int not null,
  -- '': all models together.
  model text not null,
  -- Its Monday.
  week date not null,
  key_id int not null,
  requests bigint not null,
  errors bigint not null,
  prompt_tokens bigint not null,
  completion_tokens bigint not null,
  cached_tokens bigint not null,
  cache_write_tokens bigint not null,
  value_uinr bigint not null,
  cost_uinr bigint not null,
  primary key (org_id, model, week, key_id)
);

create table usage_days_by_agent (
  org_id int not null,
  day date not null,
  agent_id int not null,
  -- Of x-br-agent-id, where it names no registered agent. '(others)': beyond a thousand labels of a day.
  agent_label text not null,
  residency text not null,
  requests bigint not null,
  errors bigint not null,
  prompt_tokens bigint not null,
  completion_tokens bigint not null,
  cached_tokens bigint not null,
  cache_write_tokens bigint not null,
  value_uinr bigint not null,
  cost_uinr bigint not null,
  primary key (org_id, day, agent_id, agent_label, residency)
);

-- How models do, over all organisations, on everything but servers of their own. Flushes of different processes write different shards, so that they do not wait for each other.
create table model_days (
  day date not null,
  model text not null,
  shard smallint not null,
  requests bigint not null,
  tokens bigint not null,
  -- Calls that the model's routes served, and calls that they failed. What a client did wrong, or gave up, is neither.
  succeeded bigint not null,
  failed bigint not null,
  -- Completion tokens of served calls, and how long these took from the first to the last, in ms.
  written_tokens bigint not null,
  written_ms bigint not null,
  primary key (day, model, shard)
);

-- How many served calls took how long: bucket n holds latencies from 2^(n/8) ms to below 2^((n+1)/8) ms, bucket 0 all below.
create table model_latencies (
  day date not null,
  model text not null,
  bucket smallint not null,
  shard smallint not null,
  requests bigint not null,
  primary key (day, model, bucket, shard)
);

insert into usage_days
select org_id, day, model, provider, residency, byok, count(*), count(*) filter (where outcome not in ('ok', 'client_gone')), sum(prompt_tokens),
  sum(completion_tokens), sum(cached_tokens), sum(cache_write_tokens), sum(value_uinr), sum(cost_uinr)
from usage_events group by 1, 2, 3, 4, 5, 6;

insert into usage_days_by_key_model
select org_id, coalesce(key_id, 0), day, model, provider, byok, count(*), count(*) filter (where outcome not in ('ok', 'client_gone')), sum(prompt_tokens),
  sum(completion_tokens), sum(cached_tokens), sum(cache_write_tokens), sum(value_uinr), sum(cost_uinr)
from usage_events group by 1, 2, 3, 4, 5, 6;

insert into usage_days_by_key
select org_id, day, key_id, sum(requests), sum(errors), sum(prompt_tokens), sum(completion_tokens), sum(cached_tokens), sum(cache_write_tokens), sum(value_uinr),
  sum(cost_uinr)
from usage_days_by_key_model group by 1, 2, 3;

insert into usage_weeks_by_key
select org_id, model, day - (extract(isodow from day)::int - 1), key_id, sum(requests), sum(errors), sum(prompt_tokens), sum(completion_tokens), sum(cached_tokens),
  sum(cache_write_tokens), sum(value_uinr), sum(cost_uinr)
from (select org_id, model, day, key_id, requests, errors, prompt_tokens, completion_tokens, cached_tokens, cache_write_tokens, value_uinr, cost_uinr
      from usage_days_by_key_model where model <> ''
      union all
      select org_id, '', day, key_id, requests, errors, prompt_tokens, completion_tokens, cached_tokens, cache_write_tokens, value_uinr, cost_uinr
      from usage_days_by_key) as days
group by 1, 2, 3, 4;

insert into usage_days_by_agent
with labelled as materialized (select *, case when agent_id is null then coalesce(agent_label, '') else '' end as label from usage_events),
  kept as (
    select org_id, day, label from (
      select org_id, day, label, row_number() over (partition by org_id, day order by count(*) desc, label) as place
      from labelled where label <> '' group by 1, 2, 3) as ranked
    where place <= 1000)
select org_id, day, coalesce(agent_id, 0), case when label = '' or kept.label is not null then label else '(others)' end, residency, count(*),
  count(*) filter (where outcome not in ('ok', 'client_gone')), sum(prompt_tokens), sum(completion_tokens), sum(cached_tokens), sum(cache_write_tokens),
  sum(value_uinr), sum(cost_uinr)
from labelled left join kept using (org_id, day, label) group by 1, 2, 3, 4, 5;

insert into model_days
select day, model, 0, count(*), sum(prompt_tokens + completion_tokens),
  count(*) filter (where outcome = 'ok' and status < 400),
  count(*) filter (where outcome = 'upstream_broke' or (outcome = 'failed' and status >= 500)),
  coalesce(sum(completion_tokens) filter (where outcome = 'ok' and status < 400 and completion_tokens > 0), 0),
  coalesce(sum(latency_ms) filter (where outcome = 'ok' and status < 400 and completion_tokens > 0), 0)
from usage_events where provider not like 'byoe:%' group by 1, 2;

insert into model_latencies
select day, model, least(200, floor(8 * ln(greatest(latency_ms, 1)::float8) / ln(2::float8)))::smallint, 0, count(*)
from usage_events where outcome = 'ok' and status < 400 and provider not like 'byoe:%' group by 1, 2, 3;

-- Sums come from above now. What is still read of single events is the newest of an organisation, page by page.
create index usage_events_newest on usage_events (org_id, day, id);
drop index usage_events_by_org;
drop index usage_events_by_agent;
