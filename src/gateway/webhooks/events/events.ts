/** The outbox of webhook events. The transaction in which an event happens also writes the event and its deliveries. */
import type { Tx } from '../../../platform/db/db.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import { insertEvents } from '../queries.ts'
import type { EventData, EventType } from './event-catalog.ts'

export type { BudgetCrossing } from './event-catalog.ts'

/**
 * The most deliveries that wait for one endpoint. Further events are not queued for it, and the endpoint counts them. The project chose the number.
 * With WEBHOOK_ENDPOINTS_MAX it bounds the waiting deliveries of an organisation. Decision 0640 gives the reasons.
 */
export const waitingMax = 5_000

export interface NewEvent<T extends EventType = EventType> {
  /** Id of the envelope, made by `eventId`. A second event with the same id is not written. */
  readonly id: string
  readonly orgId: number
  readonly type: T
  /** Unix milliseconds. The envelope contains whole seconds. */
  readonly atMs: number
  readonly data: EventData[T]
}

/** Returns an id for the envelope: `evt_` and 32 hex characters that begin with the time. */
export function eventId(ids: Ids, atMs: number): string {
  return `evt_${ids.uuidv7(atMs).replaceAll('-', '')}`
}

/** Returns the envelope as it is signed and sent. */
export function envelopeOf({ id, type, atMs, orgId, data }: NewEvent): string {
  return JSON.stringify({ id, type, created: Math.floor(atMs / 1000), org_id: orgId, data })
}

/**
 * Puts an event into the outbox of its organisation, with one delivery for every enabled endpoint that subscribes to it and has fewer than
 * `waitingMax` waiting deliveries. The deliveries are sent if, and only if, the transaction commits.
 */
export async function emit<T extends EventType>(tx: Tx, event: NewEvent<T>): Promise<void> {
  await emitToAll(tx, event, [event])
}

/** Like `emit`, but only for endpoints with this URL. With null, for all endpoints. */
export async function emitAt<T extends EventType>(tx: Tx, event: NewEvent<T>, url: string | null): Promise<void> {
  await emitToAll(tx, event, [event], url)
}

/** Like `emit`, for the same event of several organisations, in one statement. */
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
  const created = BigInt(Math.floor(atMs / 1000))
  await tx.exec(insertEvents, orgIds, ids, type, created, JSON.stringify(data), bodies, new Date(atMs), url, waitingMax)
}
