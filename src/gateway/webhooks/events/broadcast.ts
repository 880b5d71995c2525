/** Writes an event that concerns the whole gateway to the outbox of every subscribed organisation. */
import { statement, type Tx } from '../../../platform/db/db.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import type { EventData, EventType } from './event-catalog.ts'
import { emitToAll, eventId } from './events.ts'

/** Maximum number of organisations for which one statement writes events. */
const atOnce = 1_000

/** An event without an organisation. */
export interface Broadcast<T extends EventType = EventType> {
  readonly type: T
  /** Unix milliseconds. */
  readonly atMs: number
  readonly data: EventData[T]
}

const nobody: ReadonlySet<number> = new Set()

/**
 * Puts an event into the outbox of every organisation with an enabled endpoint for the type. Returns the number of organisations. The
 * events are sent if, and only if, the transaction commits. Organisations in `except` get no event.
 */
export async function broadcast<T extends EventType>(tx: Tx, ids: Ids, happened: Broadcast<T>, except: ReadonlySet<number> = nobody): Promise<number> {
  const subscribers = (await tx.many(listSubscribers, happened.type)).filter(({ orgId }) => !except.has(orgId))
  const heard = subscribers.map(({ orgId }) => ({ orgId, id: eventId(ids, happened.atMs) }))
  for (let from = 0; from < heard.length; from += atOnce) await emitToAll(tx, happened, heard.slice(from, from + atOnce))
  return subscribers.length
}

/** Returns the organisations with an enabled endpoint for the type. */
const listSubscribers = statement<[type: string], { orgId: number }>(
  'webhooks.list_subscribers',
  `select distinct e.org_id as "orgId" from webhook_endpoints e
   where e.enabled and (e.subscribe_all or $1::text = any(e.event_types)) order by 1`,
)
