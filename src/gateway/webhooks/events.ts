/** The outbox of webhook events. An event is written in the transaction in which it happened; delivery reads it from there. */
import type { Tx } from '../../platform/db.ts'
import type { Ids } from '../../platform/ids.ts'
import { insertEvent } from './queries.ts'

/** Figures of a budget that crossed a threshold. */
export interface BudgetCrossing {
  readonly scope: string
  readonly scope_id: string
  /** 80 or 100. */
  readonly threshold: number
  readonly spent_inr: number
  readonly cap_inr: number
}

/** A key that was made or ended. Its name is what a person typed and stays at home. */
export interface KeyFacts {
  readonly key_id: number
  /** The start of the key that lists show. */
  readonly prefix: string
  readonly tier: string
  readonly scope: string
}

/** Names of events and what they carry. Content-free by type. */
export interface EventData {
  'key.created': KeyFacts
  'key.revoked': KeyFacts
  'budget.warn': BudgetCrossing
  'budget.block': BudgetCrossing
  /** Mirrors every crossing of a budget. */
  'usage.threshold': BudgetCrossing
}
export type EventType = keyof EventData

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

/** Puts an event into the outbox of the organisation. It is delivered if, and only if, the transaction commits. */
export async function emit<T extends EventType>(tx: Tx, event: NewEvent<T>): Promise<void> {
  await tx.exec(insertEvent, event.orgId, event.id, event.type, BigInt(Math.floor(event.atMs / 1000)), JSON.stringify(event.data))
}
