/** Events of the whole gateway, which every subscribed organisation receives. */
import { statement, type Tx } from '../../../platform/db/db.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import type { EventData, EventType } from './event-catalog.ts'
import { emitToAll, eventId } from './events.ts'

/** Organisations that one statement writes events for. */
const atOnce = 1_000

/** What happened, without an organisation. */
export interface Broadcast<T extends EventType = EventType> {
  readonly type: T
  /** Unix milliseconds. */
  readonly atMs: number
  readonly data: EventData[T]
}

const nobody: ReadonlySet<number> = new Set()

/**
 * Puts an event of its own into the outbox of every organisation with an enabled endpoint that subscribes to the type; how many. They
 * are sent if, and only if, the transaction commits. Organisations that do not listen, or that are in `except`, get no row.
 */
export async function broadcast<T extends EventType>(tx: Tx, ids: Ids, happened: Broadcast<T>, except: ReadonlySet<number> = nobody): Promise<number> {
  const subscribers = (await tx.many(listSubscribers, happened.type)).filter(({ orgId }) => !except.has(orgId))
  const heard = subscribers.map(({ orgId }) => ({ orgId, id: eventId(ids, happened.atMs) }))
  for (let from = 0; from < heard.length; from += atOnce) await emitToAll(tx, happened, heard.slice(from, from + atOnce))
  return subscribers.length
}

/** Organisations that have an enabled endpoint for events of the type. */
const listSubscribers = statement<[type: string], { orgId: number }>(
  'webhooks.list_subscribers',
  `select distinct e.org_id as "orgId" from webhook_endpoints e
   where e.enabled and (e.subscribe_all or $1::text = any(e.event_types)) order by 1`,
)
