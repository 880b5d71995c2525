/**
 * Keeps the ended runs in the memory of every process, so that a call costs no query. The control log brings the end of a run to all processes. Decision
 * 0794 gives the reasons.
 */
import type { Db } from '../../../platform/db/db.ts'
import type { ControlLog } from '../../../platform/db/db-control-log.ts'
import { fail, type GatewayError } from '../../../platform/errors.ts'
import type { Inflight } from '../../../platform/loop/inflight.ts'
import type { Log } from '../../../platform/observe/log.ts'
import type { RunOfCall } from '../events/record.ts'
import { findRunEnds } from './run-end-queries.ts'

/** The kind of news about an ended run. Its ref is the key of the run. */
export const runEnded = 'run_ended'

/** The most ended runs of all organisations that a process knows. Beyond it, the run that ended first is forgotten. */
const knownMax = 200_000

export interface EndedRunsDeps {
  readonly db: Db
  readonly log: Log
  readonly controlLog: ControlLog
  readonly inflight: Pick<Inflight, 'abortRun'>
}

/** The identity of a run. */
export interface RunRef {
  readonly orgId: number
  readonly ownerKind: string
  readonly ownerId: number
  readonly runId: string
}

/** Returns the key of a run in memory and in news. */
export const runKeyOf = ({ orgId, ownerKind, ownerId, runId }: RunRef): string => `${orgId}:${ownerKind}:${ownerId}:${runId}`

/** Returns the identity of the run of a call with this key. */
export function runRefOf(orgId: number, keyId: number, { runId, runAgentId }: RunOfCall): RunRef {
  return runAgentId === null ? { orgId, ownerKind: 'key', ownerId: keyId, runId } : { orgId, ownerKind: 'agent', ownerId: runAgentId, runId }
}

/** Returns the error for a call of an ended run. */
export const runEndedError = (runId: string): GatewayError => fail('run_ended', { extra: { scope: 'run', run_id: runId } })

/** The ended runs that this process knows. */
export class EndedRuns {
  readonly #deps: EndedRunsDeps
  readonly #ended = new Set<string>()

  constructor(deps: EndedRunsDeps) {
    this.#deps = deps
    deps.controlLog.on(news => {
      if (news.kind === runEnded) this.#learn(news.ref)
    })
    deps.controlLog.onGap(() => void this.#load().catch(error => deps.log.error('ended_runs_load_failed', { error })))
  }

  /** Loads the ended runs. Call it after the control log has started. */
  start(): Promise<void> {
    return this.#load()
  }

  /**
   * Registers a call under its run with `join`, so that the end of the run cuts it, and then throws `run_ended` when the run has ended already. So every
   * end is either seen here or cuts the call. Returns the key of the run.
   */
  enter(ref: RunRef, join: ((runKey: string) => void) | undefined): string {
    const key = runKeyOf(ref)
    join?.(key)
    if (this.#ended.has(key)) throw runEndedError(ref.runId)
    return key
  }

  #learn(key: string): void {
    if (!this.#ended.has(key) && this.#ended.size >= knownMax) for (const oldest of this.#ended) if (this.#ended.delete(oldest)) break
    this.#ended.add(key)
    this.#deps.inflight.abortRun(key, 'run_ended')
  }

  async #load(): Promise<void> {
    for (const ref of (await this.#deps.db.many(findRunEnds, knownMax)).toReversed()) this.#learn(runKeyOf(ref))
  }
}
