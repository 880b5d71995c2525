-- The calls of tools that an agent or a key may make in a minute and in a day of India. Null: no limit.
--
-- Additive: new columns without a default. Processes of the previous version leave them as they are, and do not apply the limits.

alter table agents add column tool_rpm integer check (tool_rpm >= 1), add column tool_daily integer check (tool_daily >= 1);
alter table api_keys add column tool_rpm integer check (tool_rpm >= 1), add column tool_daily integer check (tool_daily >= 1);
