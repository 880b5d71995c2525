-- When a file whose deletion failed is deleted again, so that the failures of one organisation delay no file of another.
--
-- Additive: a nullable column. Processes of the previous version leave it null and retry every hour.

alter table batch_files add column retry_at timestamptz;
