-- Sums of usage by caller and by hour, and latencies of an organisation.
--
-- Reports with filters by agent, person and workspace read `usage_days_by_caller`. Reports by hour read `usage_hours_by_caller`, whose rows are deleted after
-- a month. An hour is one of the 24 hours of an Indian day, so the hours of a day add up to the day. Absent is 0, because a primary key takes no null.
--
-- Additive: binaries from before this migration run against it. Their events are not in the new sums until `brigade admin usage rebuild` has added them up again.

create table usage_days_by_caller (
  org_id int not null,
  day date not null,
  user_id int not null,
  workspace_id int not null,
  agent_id int not null,
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
  -- The model comes second, for reports of one model.
  primary key (org_id, model, day, user_id, workspace_id, agent_id, provider, byok)
);
create index usage_days_by_caller_of_agent on usage_days_by_caller (org_id, agent_id, day) where agent_id <> 0;
create index usage_days_by_caller_of_member on usage_days_by_caller (org_id, user_id, day) where user_id <> 0;
create index usage_days_by_caller_of_workspace on usage_days_by_caller (org_id, workspace_id, day) where workspace_id <> 0;

create table usage_days_by_member (
  org_id int not null,
  day date not null,
  user_id int not null,
  requests bigint not null,
  errors bigint not null,
  prompt_tokens bigint not null,
  completion_tokens bigint not null,
  cached_tokens bigint not null,
  cache_write_tokens bigint not null,
  value_uinr bigint not null,
  cost_uinr bigint not null,
  primary key (org_id, day, user_id)
);

create table usage_hours_by_caller (
  org_id int not null,
  day date not null,
  -- 0 to 23, in Indian time.
  hour smallint not null,
  user_id int not null,
  workspace_id int not null,
  agent_id int not null,
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
  primary key (org_id, day, hour, user_id, workspace_id, agent_id, model, provider, byok)
);
create index usage_hours_by_caller_by_day on usage_hours_by_caller (day);

-- How many served calls of an organisation took how long, in the buckets of model_latencies. Each call is in four rows: of its model and provider, of its
-- model (provider ''), of its provider (model ''), and of all (both ''). So every report reads a few rows a day.
create table usage_day_latencies (
  org_id int not null,
  day date not null,
  model text not null,
  provider text not null,
  bucket smallint not null,
  requests bigint not null,
  primary key (org_id, model, provider, day, bucket)
);

create table usage_hour_latencies (
  org_id int not null,
  day date not null,
  hour smallint not null,
  model text not null,
  provider text not null,
  bucket smallint not null,
  requests bigint not null,
  primary key (org_id, model, provider, day, hour, bucket)
);
create index usage_hour_latencies_by_day on usage_hour_latencies (day);

-- The sums by day say which models have a name of their own on that day.
insert into usage_days_by_caller
select e.org_id, e.day, coalesce(user_id, 0), coalesce(workspace_id, 0), coalesce(agent_id, 0), coalesce(known.model, '(others)'), provider, byok, count(*),
  count(*) filter (where outcome not in ('ok', 'client_gone')), sum(prompt_tokens), sum(completion_tokens), sum(cached_tokens), sum(cache_write_tokens),
  sum(value_uinr), sum(cost_uinr)
from usage_events e left join (select distinct org_id, day, model from usage_days) known on known.org_id = e.org_id and known.day = e.day and known.model = e.model
group by 1, 2, 3, 4, 5, 6, 7, 8;

insert into usage_days_by_member
select org_id, day, user_id, sum(requests), sum(errors), sum(prompt_tokens), sum(completion_tokens), sum(cached_tokens), sum(cache_write_tokens),
  sum(value_uinr), sum(cost_uinr)
from usage_days_by_caller group by 1, 2, 3;

insert into usage_hours_by_caller
select e.org_id, e.day, extract(hour from at at time zone 'Asia/Kolkata')::smallint, coalesce(user_id, 0), coalesce(workspace_id, 0), coalesce(agent_id, 0),
  coalesce(known.model, '(others)'), provider, byok, count(*), count(*) filter (where outcome not in ('ok', 'client_gone')), sum(prompt_tokens),
  sum(completion_tokens), sum(cached_tokens), sum(cache_write_tokens), sum(value_uinr), sum(cost_uinr)
from usage_events e left join (select distinct org_id, day, model from usage_days) known on known.org_id = e.org_id and known.day = e.day and known.model = e.model
where e.day > current_date - 33 group by 1, 2, 3, 4, 5, 6, 7, 8, 9;

insert into usage_day_latencies
select org_id, day, coalesce(model, ''), coalesce(provider, ''), bucket, count(*)
from (
  select e.org_id, e.day, coalesce(known.model, '(others)') as model, provider,
    least(200, floor(8 * ln(greatest(latency_ms, 1)::float8) / ln(2::float8)))::smallint as bucket
  from usage_events e left join (select distinct org_id, day, model from usage_days) known on known.org_id = e.org_id and known.day = e.day and known.model = e.model
  where outcome = 'ok' and status < 400) served
group by org_id, day, bucket, cube (model, provider);

insert into usage_hour_latencies
select org_id, day, hour, coalesce(model, ''), coalesce(provider, ''), bucket, count(*)
from (
  select e.org_id, e.day, extract(hour from at at time zone 'Asia/Kolkata')::smallint as hour, coalesce(known.model, '(others)') as model, provider,
    least(200, floor(8 * ln(greatest(latency_ms, 1)::float8) / ln(2::float8)))::smallint as bucket
  from usage_events e left join (select distinct org_id, day, model from usage_days) known on known.org_id = e.org_id and known.day = e.day and known.model = e.model
  where outcome = 'ok' and status < 400 and e.day > current_date - 33) served
group by org_id, day, hour, bucket, cube (model, provider);
