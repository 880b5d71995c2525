import { statement } from '../../platform/db.ts'

/** Organisations that have an enabled endpoint for events of the type. */
export const listSubscribers = statement<[type: string], { orgId: number }>(
  'webhooks.list_subscribers',
  `select distinct e.org_id as "orgId" from webhook_endpoints e
   where e.enabled and (e.subscribe_all or $1::text = any(e.event_types)) order by 1`,
)
