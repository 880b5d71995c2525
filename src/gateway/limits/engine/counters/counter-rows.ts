/** Finds the rows of counters by their natural key, and makes missing ones. */
import { LRUCache } from 'lru-cache'
import type { Queryable } from '../../../../platform/db/db.ts'
import type { Charge } from '../../journal/journal-records.ts'
import { type CounterRow, ensureCounters, findCounters } from '../queries.ts'

/** The natural key of a counter, and the values of a new one. */
export interface CounterAsk {
  readonly orgId: number
  readonly scope: string
  readonly scopeId: string
  readonly metric: string
  readonly period: string
  readonly cap: bigint | null
  readonly endsAtMs: number
}

/** Returns the rows of the requested counters, in their order. It needs two more round trips when a row must be made. The requests must be distinct. */
export async function ensureRows(db: Queryable, asks: readonly CounterAsk[]): Promise<CounterRow[]> {
  const found = await findRows(db, asks)
  const missing = asks.filter((_, index) => found[index] === undefined)
  if (missing.length > 0) {
    await db.exec(
      ensureCounters,
      missing.map(a => a.orgId),
      missing.map(a => a.scope),
      missing.map(a => a.scopeId),
      missing.map(a => a.metric),
      missing.map(a => a.period),
      missing.map(a => a.cap),
      missing.map(a => (Number.isFinite(a.endsAtMs) ? new Date(a.endsAtMs) : null)),
    )
    for (const [index, row] of (await findRows(db, asks)).entries()) found[index] = row
  }
  return asks.map((_, index) => {
    const row = found[index]
    if (row === undefined) throw new Error('a counter vanished while it was made')
    return row
  })
}

/** Returns the counters whose row is gone or has another id. */
export async function withoutRow<C extends CounterAsk & { readonly id: bigint | null }>(db: Queryable, counters: readonly C[]): Promise<C[]> {
  const known = counters.filter(counter => counter.id !== null)
  const rows = await findRows(db, known)
  return known.filter((counter, index) => rows[index]?.id !== counter.id)
}

async function findRows(db: Queryable, asks: readonly CounterAsk[]): Promise<(CounterRow | undefined)[]> {
  const rows = await db.many(
    findCounters,
    asks.map(a => a.orgId),
    asks.map(a => a.scope),
    asks.map(a => a.scopeId),
    asks.map(a => a.metric),
    asks.map(a => a.period),
  )
  const byPlace = new Map(rows.map(row => [row.place, row]))
  return asks.map((_, index) => byPlace.get(index + 1))
}

/** The most spend counters whose ids the flusher keeps. */
const spendIdsMax = 50_000

/**
 * Caches for the flusher the ids of the counters that charges change: the spend counters of scopes, and the prepaid balances. Every charged scope
 * has a spend counter, with or without a cap.
 */
export class SpendIds {
  readonly #ids = new LRUCache<string, bigint>({ max: spendIdsMax })

  /** Makes sure that every counter of these charges has a row and a known id. It runs outside a transaction. */
  async learn(db: Queryable, charges: Iterable<Charge>): Promise<void> {
    const asks = new Map<string, CounterAsk>()
    for (const charge of charges) {
      for (const ask of spendAsksOf(charge)) {
        const key = spendKey(ask)
        if (this.#ids.get(key) === undefined) asks.set(key, ask)
      }
      const balance = prepaidKey(charge.orgId)
      if (charge.prepaid === true && this.#ids.get(balance) === undefined) asks.set(balance, prepaidAsk(charge.orgId))
    }
    if (asks.size === 0) return
    const rows = await ensureRows(db, [...asks.values()])
    for (const [index, key] of [...asks.keys()].entries()) {
      const row = rows[index]
      if (row !== undefined) this.#ids.set(key, row.id)
    }
  }

  /** Forgets all ids, because rows may be gone. */
  clear(): void {
    this.#ids.clear()
  }

  /** Returns the id of the prepaid counter that a charge debits, or null when it debits none. `learn` must have run before. */
  prepaidOf({ orgId, prepaid }: Charge): bigint | null {
    if (prepaid !== true) return null
    const id = this.#ids.get(prepaidKey(orgId))
    if (id === undefined) throw new Error('prepaid counter was not learnt')
    return id
  }

  /** Returns the ids of a charge's spend counters. `learn` must have run before. */
  of(charge: Charge): bigint[] {
    return spendAsksOf(charge).map(ask => {
      const id = this.#ids.get(spendKey(ask))
      if (id === undefined) throw new Error('spend counter was not learnt')
      return id
    })
  }
}

const prepaidKey = (orgId: number): string => `${orgId}|prepaid`
const prepaidAsk = (orgId: number): CounterAsk => ({
  orgId,
  scope: 'org',
  scopeId: String(orgId),
  metric: 'prepaid',
  period: 'ever',
  cap: 0n,
  endsAtMs: Number.POSITIVE_INFINITY,
})

/** Returns the counters that count what the calls of a charge are worth: the month of each scope, and the other periods of budgets. */
export function spendAsksOf({ orgId, month, monthEndsAtMs, scopes, periods }: Charge): CounterAsk[] {
  const asks: CounterAsk[] = scopes.map(([scope, scopeId]) => ({
    orgId,
    scope,
    scopeId,
    metric: 'spend',
    period: month,
    cap: null,
    endsAtMs: monthEndsAtMs,
  }))
  for (const [scope, scopeId, period, endsAtMs] of periods ?? [])
    asks.push({ orgId, scope, scopeId, metric: 'budget', period, cap: null, endsAtMs: endsAtMs ?? Number.POSITIVE_INFINITY })
  return asks
}

const spendKey = ({ orgId, scope, scopeId, metric, period }: CounterAsk): string => `${orgId}|${scope}|${scopeId}|${metric}|${period}`
