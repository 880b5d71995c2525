/** Events of the whole gateway, which every organisation hears that subscribes to them. */
import type { Tx } from '../../platform/db.ts'
import type { Ids } from '../../platform/ids.ts'
import type { EventData, EventType } from './event-catalog.ts'
import { emitToAll, eventId } from './events.ts'
import { listSubscribers } from './subscriber-queries.ts'

/** Organisations that one statement writes events for. */
const atOnce = 1_000

/** What happened, without an organisation. */
export interface Broadcast<T extends EventType = EventType> {
  readonly type: T
  /** Unix milliseconds. */
  readonly atMs: number
  readonly data: EventData[T]
}

/**
 * Puts an event of its own into the outbox of every organisation with an enabled endpoint that subscribes to the type; how many. They
 * are sent if, and only if, the transaction commits. Organisations that do not listen get no row.
 */
export async function broadcast<T extends EventType>(tx: Tx, ids: Ids, happened: Broadcast<T>): Promise<number> {
  const subscribers = await tx.many(listSubscribers, happened.type)
  const heard = subscribers.map(({ orgId }) => ({ orgId, id: eventId(ids, happened.atMs) }))
  for (let from = 0; from < heard.length; from += atOnce) await emitToAll(tx, happened, heard.slice(from, from + atOnce))
  return subscribers.length
}
