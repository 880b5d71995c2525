import { statement } from '../../../platform/db/db.ts'

/**
 * Inserts the rows that the retention window of their organisation covers at this moment. The lock on the organisation's row makes the insert
 * wait for a change of the window that is in progress; the new window then decides.
 */
export const insertContent = statement<
  [
    orgIds: readonly number[],
    requestIds: readonly string[],
    at: readonly Date[],
    keyIds: readonly number[],
    models: readonly string[],
    sealed: readonly string[],
    now: Date,
  ]
>(
  'content.insert',
  `insert into content_log (org_id, request_id, at, key_id, model, sealed)
   select c.org_id, c.request_id, c.at, c.key_id, c.model, c.sealed
   from unnest($1::int[], $2::text[], $3::timestamptz[], $4::int[], $5::text[], $6::text[]) as c(org_id, request_id, at, key_id, model, sealed)
   join orgs o on o.id = c.org_id
   where o.retention_days > 0 and c.at > $7::timestamptz - make_interval(days => o.retention_days)
   for share of o
   on conflict (org_id, request_id) do nothing`,
)

export const findContent = statement<
  [orgId: number, requestId: string, now: Date],
  { requestId: string; at: Date; keyId: number; model: string; sealed: string }
>(
  'content.find',
  `select c.request_id as "requestId", c.at, c.key_id as "keyId", c.model, c.sealed
   from content_log c join orgs o on o.id = c.org_id
   where c.org_id = $1::int and c.request_id = $2::text and c.at > $3::timestamptz - make_interval(days => o.retention_days)`,
)

export const deleteContentBefore = statement<[orgId: number, before: Date, limit: number]>(
  'content.delete_before',
  `delete from content_log where org_id = $1::int and request_id in
     (select request_id from content_log where org_id = $1::int and at <= $2::timestamptz limit $3::int)`,
)

export const deleteExpiredContent = statement<[now: Date, limit: number]>(
  'content.delete_expired',
  `delete from content_log where (org_id, request_id) in
     (select c.org_id, c.request_id from content_log c join orgs o on o.id = c.org_id
      where c.at <= $1::timestamptz - make_interval(days => o.retention_days) limit $2::int)`,
)
