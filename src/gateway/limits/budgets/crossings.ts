/** The 80 % and 100 % marks of a budget. Each mark is crossed once per period. When one charge crosses both, both are reported in order. */
import type { Tx } from '../../../platform/db/db.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import { inrFromUinr } from '../../../platform/values/money.ts'
import { type BudgetCrossing, emit, eventId } from '../../webhooks/events/events.ts'
import type { Scope } from '../engine/counters/counter-state.ts'

/** The marks that a charge or a changed cap newly crossed. */
export interface Crossed {
  readonly warn: boolean
  readonly block: boolean
}

/** Returns the marks that fire: the spend has reached them and they have not fired in this period. Pure. */
export function crossed(spent: bigint, cap: bigint | null, before: { readonly warned: boolean; readonly blocked: boolean }): Crossed {
  if (cap === null || cap <= 0n) return { warn: false, block: false }
  return { warn: !before.warned && spent * 100n >= cap * 80n, block: !before.blocked && spent >= cap }
}

export interface CrossingOwner {
  readonly orgId: number
  readonly scope: Scope
  readonly scopeId: string
  readonly spent: bigint
  readonly cap: bigint
}

/** Writes the events of newly crossed marks into the outbox: warn before block, each followed by a `usage.threshold` event. */
export async function emitCrossings(tx: Tx, ids: Ids, atMs: number, owner: CrossingOwner, marks: Crossed): Promise<void> {
  const data = (threshold: 80 | 100): BudgetCrossing => ({
    scope: owner.scope,
    scope_id: owner.scopeId,
    threshold,
    spent_inr: inrFromUinr(owner.spent),
    cap_inr: inrFromUinr(owner.cap),
  })
  // Sorted, so that the ids of one instant have the order of the events.
  const names = [1, 2, 3, 4].map(() => eventId(ids, atMs)).sort()
  const next = (): string => names.shift() ?? eventId(ids, atMs)
  const send = async (type: 'budget.warn' | 'budget.block', threshold: 80 | 100): Promise<void> => {
    await emit(tx, { id: next(), orgId: owner.orgId, type, atMs, data: data(threshold) })
    await emit(tx, { id: next(), orgId: owner.orgId, type: 'usage.threshold', atMs, data: data(threshold) })
  }
  if (marks.warn) await send('budget.warn', 80)
  if (marks.block) await send('budget.block', 100)
}
