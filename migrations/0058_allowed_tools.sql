-- The tools of MCP servers that calls of an agent or of a key may use: public names, and `slug__*` for all tools of a server. Null allows none.
--
-- Additive: new columns without a default. Processes of the previous version leave them as they are.

alter table agents add column allowed_tools text[];
alter table api_keys add column allowed_tools text[];
