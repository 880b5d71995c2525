/** The outbox of webhook events. An event and its deliveries are written in the transaction in which it happened. */
import type { Tx } from '../../../platform/db/db.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import { insertEvents } from '../queries.ts'
import type { EventData, EventType } from './event-catalog.ts'

export type { BudgetCrossing } from './event-catalog.ts'

export interface NewEvent<T extends EventType = EventType> {
  /** Envelope id; `eventId` makes one. A second emit of the same id does nothing. */
  readonly id: string
  readonly orgId: number
  readonly type: T
  /** Unix milliseconds; the envelope carries whole seconds. */
  readonly atMs: number
  readonly data: EventData[T]
}

/** An id for the envelope: `evt_` and 32 hex characters that begin with the time. */
export function eventId(ids: Ids, atMs: number): string {
  return `evt_${ids.uuidv7(atMs).replaceAll('-', '')}`
}

/** The envelope as it is signed and sent. */
export function envelopeOf({ id, type, atMs, orgId, data }: NewEvent): string {
  return JSON.stringify({ id, type, created: Math.floor(atMs / 1000), org_id: orgId, data })
}

/**
 * Puts an event into the outbox of the organisation, with one delivery for every enabled endpoint that subscribes to it. They are sent
 * if, and only if, the transaction commits.
 */
export async function emit<T extends EventType>(tx: Tx, event: NewEvent<T>): Promise<void> {
  await emitToAll(tx, event, [event])
}

/** The same for those of its endpoints alone that have this URL; null: for all. */
export async function emitAt<T extends EventType>(tx: Tx, event: NewEvent<T>, url: string | null): Promise<void> {
  await emitToAll(tx, event, [event], url)
}

/** The same for an event of several organisations, in one statement. */
export async function emitToAll<T extends EventType>(
  tx: Tx,
  happened: Pick<NewEvent<T>, 'type' | 'atMs' | 'data'>,
  heard: readonly Pick<NewEvent, 'id' | 'orgId'>[],
  url: string | null = null,
): Promise<void> {
  const { type, atMs, data } = happened
  const orgIds = heard.map(({ orgId }) => orgId)
  const ids = heard.map(({ id }) => id)
  const bodies = heard.map(({ id, orgId }) => envelopeOf({ id, orgId, type, atMs, data }))
  await tx.exec(insertEvents, orgIds, ids, type, BigInt(Math.floor(atMs / 1000)), JSON.stringify(data), bodies, new Date(atMs), url)
}
