-- Budgets of a day, a week and of all time beside the monthly ones, the time zone of an organisation's budgets, and the marks that an owner sets.
--
-- Additive: the new budgets are in their own table and their counters have their own metric, so processes of the previous version neither see nor change
-- them. Those processes hold nothing in the new budgets and count nothing in them.

create table period_budgets (
  org_id int not null,
  scope text not null check (scope in ('org', 'team', 'workspace', 'member', 'key', 'agent')),
  scope_id text not null,
  period text not null check (period in ('day', 'week', 'ever')),
  cap_uinr bigint not null check (cap_uinr > 0),
  strict boolean not null default false,
  warn_percent int[] not null default '{}',
  primary key (org_id, scope, scope_id, period)
);
-- One for each order of the list of budgets, as on the table of monthly budgets.
create index period_budgets_by_scope on period_budgets
  (org_id, (array_position('{org,team,workspace,member,key,agent}'::text[], scope)), (lpad(scope_id, 10, '0')),
   (array_position('{ever,month,week,day}'::text[], period))) where scope_id ~ '^[0-9]{1,10}$';
create index period_budgets_by_cap on period_budgets
  (org_id, cap_uinr, (array_position('{org,team,workspace,member,key,agent}'::text[], scope)), (lpad(scope_id, 10, '0')),
   (array_position('{ever,month,week,day}'::text[], period))) where scope_id ~ '^[0-9]{1,10}$';

-- The time zone of the budgets of an organisation. An organisation without a row has Asia/Kolkata. A period that runs while the zone changes keeps its zone
-- until it ends: the zone of the day, week and month before, and the end of that.
create table budget_zones (
  org_id int primary key,
  zone text not null,
  day_zone text,
  day_until timestamptz,
  week_zone text,
  week_until timestamptz,
  month_zone text,
  month_until timestamptz,
  check ((day_zone is null) = (day_until is null)),
  check ((week_zone is null) = (week_until is null)),
  check ((month_zone is null) = (month_until is null))
);

alter table budgets add column warn_percent int[] not null default '{}';
alter table counters
  -- A copy of the marks of the budget, as `cap` is a copy of its amount.
  add column warn_percent int[] not null default '{}',
  -- The marks of warn_percent that have fired in this period. Those of 80 and 100 percent have their own columns.
  add column warned_percent int[] not null default '{}';

-- `budget` counts the spend in a period of a budget other than the month of India, which `spend` counts for every scope.
alter table counters drop constraint counters_metric_check;
alter table counters add constraint counters_metric_check check (metric in ('spend', 'prepaid', 'rpm', 'daily', 'running', 'budget'));
create index counters_ended_budgets on counters (ends_at) where metric = 'budget';
