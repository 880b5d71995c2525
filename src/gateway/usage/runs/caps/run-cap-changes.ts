/** Changes the caps of one run, and gives back the counters of runs that nobody calls any more. */
import type { Clock } from '../../../../platform/clock.ts'
import type { Db, Tx } from '../../../../platform/db/db.ts'
import type { ControlLog } from '../../../../platform/db/db-control-log.ts'
import { fail } from '../../../../platform/errors.ts'
import type { Principal } from '../../../../platform/security/principal.ts'
import { capsAfter, capsText, type RunCapsInput, runCapsOf } from '../../../../platform/security/run-caps.ts'
import { istDay } from '../../../../platform/values/ist-time.ts'
import { type RunRef, runKeyOf } from '../ended-runs.ts'
import { beginRun, hasBoth } from './begin-run.ts'
import { findCappedRun, findOwnerCaps, findRestingRuns, lockRestingRuns, lockRun, setRunCaps, unsetCapped } from './cap-queries.ts'
import { type NumberedRun, type RunCounterBook, runCapsChanged } from './capped-runs.ts'
import { type EffectiveCaps, effectiveCaps } from './effective-caps.ts'

/** The time after the last call in which the counters of a run are kept. Their amounts stay in its row. */
const restDays = 30
const restBatch = 500
const dayMs = 24 * 3600_000
/** The most times that a change begins again because another process changed the run. */
const roundsMax = 8

/** The owner of a run that can have caps. */
export type OwnedRun = RunRef & { readonly ownerKind: 'agent' | 'key' }

export interface RunCapChangesDeps {
  readonly controlLog: ControlLog
  readonly counters: RunCounterBook
  /** The time of the database's clock in Unix milliseconds. */
  readonly nowMs: () => number
  /** Throws `not_found` for an owner of another organisation, and `forbidden` unless the person may act on the agent or key. */
  checkOwner(principal: Principal, ownerKind: 'agent' | 'key', ownerId: number): Promise<void>
  /** Resolves with the error for a caller who may lower caps of the runs of the agent or key and may not raise them, otherwise with null. */
  raising(principal: Principal, ownerKind: 'agent' | 'key', ownerId: number): Promise<Error | null>
}

/** Changes the caps of runs. */
export class RunCapChanges {
  readonly #deps: RunCapChangesDeps

  constructor(deps: RunCapChangesDeps) {
    this.#deps = deps
  }

  /**
   * Gives a run caps of its own, which come before those of its owner. A cap that is left out does not change, and null gives it back to its owner's. The
   * change is in force on this process when the promise resolves, and on other processes within a second. Throws `not_found` and `forbidden`.
   */
  async change(principal: Principal, ref: OwnedRun, change: RunCapsInput): Promise<void> {
    const { controlLog } = this.#deps
    await this.#deps.checkOwner(principal, ref.ownerKind, ref.ownerId)
    const refusal = await this.#deps.raising(principal, ref.ownerKind, ref.ownerId)
    for (let round = 0; round < roundsMax; round++) {
      const isDone = await controlLog.change(async tx => {
        const isDone = await this.#changeIn(tx, ref, change, refusal)
        return { value: isDone, news: isDone ? [{ kind: runCapsChanged, ref: runKeyOf(ref) }] : [] }
      })
      if (isDone) return
    }
    throw fail('database_unavailable')
  }

  /** Returns false when another process changed the run meanwhile. */
  async #changeIn(tx: Tx, ref: OwnedRun, change: RunCapsInput, refusal: Error | null): Promise<boolean> {
    const { orgId, ownerKind, ownerId, runId } = ref
    const { counters } = this.#deps
    const row = await tx.maybe(findCappedRun, orgId, ownerKind, ownerId, runId)
    const hasCounters = hasBoth(row)
    if (hasCounters) await counters.lock(tx, [{ orgId, number: row.number }])
    const locked = row === null ? await beginRun(tx, ref, this.#deps.nowMs()) : await tx.maybe(lockRun, orgId, ownerKind, ownerId, runId)
    if (locked === null || (locked.capped && !hasCounters && row?.capped !== true)) return false
    const owner = runCapsOf((await tx.maybe(findOwnerCaps, orgId, ownerKind, ownerId))?.caps ?? null)
    const own = { ...locked, setCaps: capsAfter(locked.setCaps, change) }
    const caps = effectiveCaps(own, owner)
    if (refusal !== null && isLooser(effectiveCaps(locked, owner), caps)) throw refusal
    await tx.exec(setRunCaps, locked.number, locked.askedCostUinr, locked.askedCalls, capsText(own.setCaps))
    if (hasCounters) await counters.set(tx, orgId, locked.number, locked, caps)
    else await counters.make(tx, orgId, locked.number, locked, caps)
    return true
  }
}

function isLooser(before: EffectiveCaps, after: EffectiveCaps): boolean {
  const isMore = <T extends number | bigint>(was: T | null, is: T | null): boolean => was !== null && (is === null || is > was)
  return (
    isMore(before.costUinr, after.costUinr) ||
    isMore(before.calls, after.calls) ||
    isMore(before.minutes, after.minutes) ||
    isMore(before.subagents, after.subagents)
  )
}

interface RestDeps {
  readonly db: Db
  readonly clock: Clock
  readonly counters: Pick<RunCounterBook, 'lock' | 'remove'>
  readonly keepDays: number
}

/**
 * Deletes the counters of runs without a call for 30 days, or for the time in which usage is kept. A later call gets new ones with the same amounts. It
 * stops early when the signal aborts.
 */
export async function deleteRestingCounters({ db, clock, counters, keepDays }: RestDeps, signal: AbortSignal): Promise<void> {
  const before = istDay(clock.nowMs() - Math.min(restDays, keepDays) * dayMs)
  for (let deleted = restBatch; deleted === restBatch && !signal.aborted; ) {
    const resting = await db.many(findRestingRuns, before, restBatch)
    deleted = resting.length === 0 ? 0 : await db.tx(tx => removeCounters(tx, resting, before, counters))
  }
}

/** A flush locks counters before the rows of runs, so this does too. */
async function removeCounters(tx: Tx, resting: readonly NumberedRun[], before: string, counters: RestDeps['counters']): Promise<number> {
  await counters.lock(tx, resting)
  const numbers = resting.map(({ number }) => number)
  const gone = await counters.remove(tx, await tx.many(lockRestingRuns, numbers, before))
  if (gone.length > 0) await tx.exec(unsetCapped, gone)
  return gone.length
}
