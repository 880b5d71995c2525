import { statement } from '../../platform/db.ts'

/** Appends one event to the outbox. Data is JSON text. */
export const insertEvent = statement<[orgId: number, id: string, type: string, createdS: bigint, data: string]>(
  'webhooks.insert_event',
  `insert into webhook_events (org_id, id, type, created, data)
   values ($1::int, $2::text, $3::text, $4::bigint, $5::jsonb)
   on conflict (id) do nothing`,
)
