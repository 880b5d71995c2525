-- Keys of organisations at clouds: the values that fill the address (a resource, a region, a project), and the models or deployments that the organisation
-- names because the cloud does not list them.
alter table provider_keys add column place jsonb not null default '{}';
alter table provider_keys add column named_models text[] not null default '{}';
