import { statement } from '../../../platform/db/db.ts'

/**
 * Inserts a row for a journal whose process the database does not know, because the database was restored to an earlier moment. Later processes
 * get higher ids.
 */
export const insertForgotten = statement<[id: bigint, journal: string], { last: bigint }>(
  'limits.insert_forgotten',
  `with made as (
     insert into processes (id, boot_id, journal) overriding system value values ($1::bigint, 'before a restore', $2::text) on conflict (id) do nothing returning id),
    beat as (insert into beats (process_id) select id from made)
   select setval('processes_id_seq', greatest($1::bigint, (select last_value from processes_id_seq)))::bigint as "last"`,
)
