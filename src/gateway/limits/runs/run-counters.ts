/**
 * The counters of runs: their value and their calls. A call holds in them as in a budget. What a run has used is added here by the transaction that adds
 * its events up, so the counters and the sums of a run cannot disagree. Decision 0809 gives the reasons.
 */
import type { Tx } from '../../../platform/db/db.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import { inrFromUinr } from '../../../platform/values/money.ts'
import { emit, eventId } from '../../webhooks/events/events.ts'
import { runScopeId } from '../engine/counters/counter-state.ts'
import { type ChargedRunRow, chargeRunCounters, deleteRunCounters, insertRunCounters, lockRunCounters, setRunCounters } from './run-counter-queries.ts'

/** A run and its owner. */
export interface CountedRun {
  readonly number: bigint
  readonly orgId: number
  readonly ownerKind: string
  readonly ownerId: number
  readonly runId: string
}

/** What the calls of a run in one flush have used. */
export interface RunCharge extends CountedRun {
  readonly valueUinr: bigint
  readonly calls: bigint
  /** The admission of the last of these calls, in Unix milliseconds. */
  readonly lastMs: number
}

/** What a run has used. */
export interface RunUse {
  readonly valueUinr: bigint
  readonly calls: bigint
}

/** The caps of both counters. Null means no cap. */
export interface RunCounterCaps {
  readonly costUinr: bigint | null
  readonly calls: bigint | null
  readonly strict: boolean
}

/** The rows of both counters. */
export interface RunCounterIds {
  readonly spendId: bigint
  readonly callsId: bigint
}

/** Writes the counters of runs, in the transactions of their callers. */
export class RunCounters {
  readonly #ids: Ids

  constructor(ids: Ids) {
    this.#ids = ids
  }

  /** Makes the counters of a run without counters. The caller has locked the row of the run, whose sums are `used`. */
  async make(tx: Tx, orgId: number, number: bigint, used: RunUse, { costUinr, calls, strict }: RunCounterCaps): Promise<RunCounterIds> {
    return idsOf(await tx.many(insertRunCounters, orgId, runScopeId(number), used.valueUinr, used.calls, costUinr, calls, strict))
  }

  /** Locks the counters of runs. It comes before the lock of the runs' rows. */
  async lock(tx: Tx, runs: readonly Pick<CountedRun, 'orgId' | 'number'>[]): Promise<void> {
    await tx.many(
      lockRunCounters,
      runs.map(run => run.orgId),
      runs.map(run => runScopeId(run.number)),
    )
  }

  /** Sets the caps of a run, and the used amounts to the sums of its row. The caller has locked both counters, and then the row. */
  async set(tx: Tx, orgId: number, number: bigint, used: RunUse, { costUinr, calls, strict }: RunCounterCaps): Promise<RunCounterIds> {
    return idsOf(await tx.many(setRunCounters, orgId, runScopeId(number), used.valueUinr, used.calls, costUinr, calls, strict))
  }

  /** Adds what runs with counters have used, and writes the events of the marks that they reach. */
  async charge(tx: Tx, runs: readonly RunCharge[]): Promise<void> {
    if (runs.length === 0) return
    const nowMs = Math.max(...runs.map(run => run.lastMs))
    const rows = await tx.many(
      chargeRunCounters,
      runs.map(run => run.orgId),
      runs.map(run => runScopeId(run.number)),
      runs.map(run => run.valueUinr),
      runs.map(run => run.calls),
      new Date(nowMs),
    )
    const byScope = new Map(runs.map(run => [runScopeId(run.number), run]))
    for (const row of rows) {
      const run = byScope.get(row.scopeId)
      if (run === undefined) continue
      if (row.warns) await this.#emit(tx, 'run.warn', run, row, nowMs)
      if (row.blocks) await this.#emit(tx, 'run.held', run, row, nowMs)
    }
  }

  /** Deletes the counters of runs that no process leases. Returns the numbers of these runs. */
  async remove(tx: Tx, runs: readonly Pick<CountedRun, 'orgId' | 'number'>[]): Promise<readonly bigint[]> {
    const gone = await tx.many(
      deleteRunCounters,
      runs.map(run => run.orgId),
      runs.map(run => runScopeId(run.number)),
    )
    const scopes = new Set(gone.map(({ scopeId }) => scopeId))
    return runs.filter(run => scopes.has(runScopeId(run.number))).map(({ number }) => number)
  }

  async #emit(tx: Tx, type: 'run.warn' | 'run.held', run: CountedRun, { metric, cap, spent }: ChargedRunRow, atMs: number): Promise<void> {
    const isCalls = metric === 'run_calls'
    await emit(tx, {
      id: eventId(this.#ids, atMs),
      orgId: run.orgId,
      type,
      atMs,
      data: {
        run_id: run.runId,
        agent_id: run.ownerKind === 'agent' ? run.ownerId : null,
        key_id: run.ownerKind === 'key' ? run.ownerId : null,
        cap: isCalls ? 'max_calls' : 'max_cost_inr',
        spent: isCalls ? Number(spent) : inrFromUinr(spent),
        limit: isCalls ? Number(cap) : inrFromUinr(cap ?? 0n),
      },
    })
  }
}

function idsOf(rows: readonly { readonly id: bigint; readonly metric: string }[]): RunCounterIds {
  const spend = rows.find(({ metric }) => metric === 'run_spend')
  const calls = rows.find(({ metric }) => metric === 'run_calls')
  if (spend === undefined || calls === undefined) throw new Error('a run has lost a counter')
  return { spendId: spend.id, callsId: calls.id }
}
