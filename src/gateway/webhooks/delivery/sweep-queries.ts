import { statement } from '../../../platform/db/db.ts'

/** Deletes at most `limit` deliveries that were settled before the time `before`. */
export const deleteSettledDeliveries = statement<[before: Date, limit: number]>(
  'webhooks.delete_settled_deliveries',
  `delete from webhook_deliveries where id in (
     select d.id from webhook_deliveries d where d.settled_at < $1::timestamptz and d.due_at is null limit $2::int for update skip locked)`,
)

/**
 * Deletes events before `beforeS` that have no delivery left, at most `limit`. Budget crossings of the present month stay. They prevent a second
 * report of the same crossing.
 */
export const deleteOldEvents = statement<[beforeS: bigint, monthStartS: bigint, limit: number]>(
  'webhooks.delete_old_events',
  `delete from webhook_events where seq in (
     select v.seq from webhook_events v
     where v.created < $1::bigint and not (v.created >= $2::bigint and v.type in ('budget.warn', 'budget.block', 'usage.threshold'))
       and not exists (select 1 from webhook_deliveries d where d.event_id = v.id)
     limit $3::int for update skip locked)`,
)
