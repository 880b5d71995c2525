/** Events of the whole gateway, which every organisation hears that subscribes to them. */
import type { Tx } from '../../platform/db.ts'
import type { Ids } from '../../platform/ids.ts'
import type { EventData, EventType } from './event-catalog.ts'
import { emit, eventId } from './events.ts'
import { listSubscribers } from './subscriber-queries.ts'

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
export async function broadcast<T extends EventType>(tx: Tx, ids: Ids, { type, atMs, data }: Broadcast<T>): Promise<number> {
  const subscribers = await tx.many(listSubscribers, type)
  for (const { orgId } of subscribers) await emit(tx, { id: eventId(ids, atMs), orgId, type, atMs, data })
  return subscribers.length
}
