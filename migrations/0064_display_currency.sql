-- The currency in which reports of an organisation show amounts beside rupees. Null: rupees only.
--
-- Additive: a nullable column. Processes of the previous version show rupees only.

alter table orgs add column display_currency text check (display_currency ~ '^[A-Z]{3}$');
