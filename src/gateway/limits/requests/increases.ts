/** Grants increases: amounts beside a cap that end at a given time. Decision 0856 gives the reasons. */
import type { Tx } from '../../../platform/db/db.ts'
import { fail } from '../../../platform/errors.ts'
import { istMonth } from '../../../platform/values/ist-time.ts'
import type { Budgets } from '../budgets/budgets.ts'
import { ensureRows } from '../engine/counters/counter-rows.ts'
import { lockIncrease, setIncrease } from './budget-request-queries.ts'
import type { AskedFor } from './request-subjects.ts'

const dayMs = 24 * 3600_000
/** The time for which an increase holds when nobody says it and no period ends it, and the longest one. */
const defaultMs = 30 * dayMs
const longestMs = 90 * dayMs
/** The largest cap in rupees. Up to it rupees and micro-rupees convert both ways without loss. */
const capUinrMax = 1_000_000_000_000_000n

/** A budget or run, and the id under which its counters are. */
export interface Increased extends AskedFor {
  readonly scopeId: string
}

interface Place {
  readonly scope: string
  readonly metric: 'spend' | 'budget' | 'run_spend' | 'run_calls'
  readonly period: string
  /** Infinity: the counter never ends. */
  readonly endsAtMs: number
}

/** Grants increases in the transactions of their callers. */
export class Increases {
  readonly #deps: { readonly budgets: Pick<Budgets, 'windows'>; readonly nowMs: () => number }

  constructor(deps: { readonly budgets: Pick<Budgets, 'windows'>; readonly nowMs: () => number }) {
    this.#deps = deps
  }

  /**
   * Adds an amount beside the cap. It holds on this process when the transaction commits, and on others within a second. Returns its end, and the ref of
   * the news that the caller appends. Throws `bad_request` for an end that is not possible, and for a cap that is gone.
   */
  async grant(
    tx: Tx,
    orgId: number,
    to: Increased,
    { uinr, calls }: { readonly uinr: bigint | null; readonly calls: bigint | null },
    untilMs: number | null,
  ): Promise<{ readonly untilMs: number; readonly ref: string }> {
    const { scope, metric, period, endsAtMs } = await this.#placeOf(tx, orgId, to, calls !== null)
    const { scopeId } = to
    if (to.scope !== 'run') await ensureRows(tx, [{ orgId, scope, scopeId, metric, period, cap: null, endsAtMs }])
    const counter = await tx.maybe(lockIncrease, orgId, scope, scopeId, metric, period)
    if (counter === null || counter.cap === null) throw fail('bad_request', { message: 'The budget or cap was removed, so nothing can be added to it.' })
    const endMs = this.#endOf(untilMs, endsAtMs, counter.extraUntil)
    const extra = counter.extra + (uinr ?? calls ?? 0n)
    if (counter.cap + extra > capUinrMax) throw fail('bad_request', { message: 'The cap with this increase is too large.' })
    await tx.exec(setIncrease, orgId, counter.id, extra, new Date(endMs))
    return { untilMs: endMs, ref: `${orgId}:${scope}:${scopeId}` }
  }

  async #placeOf(tx: Tx, orgId: number, { scope, period }: Increased, ofCalls: boolean): Promise<Place> {
    if (period === null) return { scope: 'org', metric: ofCalls ? 'run_calls' : 'run_spend', period: 'ever', endsAtMs: Number.POSITIVE_INFINITY }
    const { name, endsAtMs } = (await this.#deps.budgets.windows(orgId, tx))[period]
    // The month of India has a counter in any case. The budget uses the same one.
    return { scope, metric: name === istMonth(this.#deps.nowMs()) ? 'spend' : 'budget', period: name, endsAtMs }
  }

  /** Returns the end of an increase: at most the end of the period. A second increase has the end of the one that runs. */
  #endOf(untilMs: number | null, endsAtMs: number, running: Date | null): number {
    const nowMs = this.#deps.nowMs()
    const lastMs = Math.min(endsAtMs, nowMs + longestMs)
    const endMs = untilMs ?? running?.getTime() ?? Math.min(endsAtMs, nowMs + defaultMs)
    if (endMs <= nowMs || endMs > lastMs)
      throw fail('bad_request', {
        message: `until must be later than now and not after ${new Date(lastMs).toISOString()}${endsAtMs === lastMs ? ', the end of the period' : ''}.`,
      })
    if (running !== null && endMs !== running.getTime())
      throw fail('bad_request', { message: `An increase runs until ${running.toISOString()}. Leave until out: what you add ends with it.` })
    return endMs
  }
}
