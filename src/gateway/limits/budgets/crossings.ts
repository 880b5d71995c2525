/**
 * The marks of a budget: 80 % and 100 %, and those that its owner adds. Each mark is crossed once per period. When one charge crosses several, they are
 * reported in order. Decision 0799 gives the reasons.
 */
import type { Tx } from '../../../platform/db/db.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import { inrFromUinr } from '../../../platform/values/money.ts'
import { type BudgetCrossing, emit, eventId } from '../../webhooks/events/events.ts'
import type { Scope } from '../engine/counters/counter-state.ts'
import { periodOfName } from './periods/period.ts'

/** The marks that a charge or a changed cap newly crossed. */
export interface Crossed {
  readonly warn: boolean
  readonly block: boolean
  /** The marks that the owner has added, in percent, the lowest first. */
  readonly marked: readonly number[]
}

/** The marks of a budget that have fired, and the ones that its owner has added. */
export interface Marks {
  readonly warned: boolean
  readonly blocked: boolean
  readonly warnPercent: readonly number[]
  readonly warnedPercent: readonly number[]
}

export const noMarks: Crossed = { warn: false, block: false, marked: [] }

/** The mark that every budget has beside 100 %. */
const warnAt = 80

/** Returns true when a mark fires. */
export const isAny = ({ warn, block, marked }: Crossed): boolean => warn || block || marked.length > 0

/** Returns the marks that fire: the spend has reached them and they have not fired in this period. Pure. */
export function crossed(spent: bigint, cap: bigint | null, before: Marks): Crossed {
  if (cap === null || cap <= 0n) return noMarks
  const reaches = (percent: number): boolean => spent * 100n >= cap * BigInt(percent)
  const marked = before.warnPercent.filter(percent => percent !== warnAt && !before.warnedPercent.includes(percent) && reaches(percent))
  return { warn: !before.warned && reaches(warnAt), block: !before.blocked && spent >= cap, marked: marked.sort((a, b) => a - b) }
}

export interface CrossingOwner {
  readonly orgId: number
  readonly scope: Scope
  readonly scopeId: string
  /** The name of the counter's period. */
  readonly period: string
  readonly endsAt: Date | null
  readonly spent: bigint
  readonly cap: bigint
}

/** Writes the events of newly crossed marks into the outbox: the lowest mark first, each followed by a `usage.threshold` event. */
export async function emitCrossings(tx: Tx, ids: Ids, atMs: number, owner: CrossingOwner, marks: Crossed): Promise<void> {
  const data = (threshold: number): BudgetCrossing => ({
    scope: owner.scope,
    scope_id: owner.scopeId,
    threshold,
    spent_inr: inrFromUinr(owner.spent),
    cap_inr: inrFromUinr(owner.cap),
    period: periodOfName(owner.period),
    resets_at: owner.endsAt?.toISOString() ?? null,
  })
  const thresholds = [...marks.marked, ...(marks.warn ? [warnAt] : []), ...(marks.block ? [100] : [])].sort((a, b) => a - b)
  // Sorted, so that the ids of one instant have the order of the events.
  const names = thresholds.flatMap(() => [eventId(ids, atMs), eventId(ids, atMs)]).sort()
  const next = (): string => names.shift() ?? eventId(ids, atMs)
  for (const threshold of thresholds) {
    const type = threshold === 100 ? 'budget.block' : 'budget.warn'
    await emit(tx, { id: next(), orgId: owner.orgId, type, atMs, data: data(threshold) })
    await emit(tx, { id: next(), orgId: owner.orgId, type: 'usage.threshold', atMs, data: data(threshold) })
  }
}
