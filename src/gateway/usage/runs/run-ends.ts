/** Ends runs, and forgets the ends of old ones. */
import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import type { ControlLog } from '../../../platform/db/db-control-log.ts'
import { fail } from '../../../platform/errors.ts'
import type { Principal } from '../../../platform/security/principal.ts'
import { type RunRef, runEnded, runKeyOf } from './ended-runs.ts'
import { countRunEnds, deleteOldRunEnds, findRunEnd, insertRunEnd, type RunEndRow } from './run-end-queries.ts'

/** The most ended runs of an organisation whose ids are still refused. */
const endsMax = 10_000
/** How long the id of an ended run is refused. */
const endKeptMs = 400 * 24 * 3600_000
const deleteBatch = 5_000

export interface RunEndsDeps {
  readonly db: Db
  readonly clock: Clock
  readonly controlLog: ControlLog
  /** Throws `not_found` for an owner of another organisation, and `forbidden` unless the person may act on the agent or key. */
  checkOwner(principal: Principal, ownerKind: 'agent' | 'key', ownerId: number): Promise<void>
}

/** Ends runs. */
export class RunEnds {
  readonly #deps: RunEndsDeps

  constructor(deps: RunEndsDeps) {
    this.#deps = deps
  }

  /**
   * Ends a run: its running calls are cut and later ones are refused. That holds in this process when the promise resolves, and in the others within a
   * second. A second call changes nothing. Throws `not_found`, `forbidden`, and `cap` when the organisation has ended too many runs.
   */
  async end(principal: Principal, ref: RunRef & { readonly ownerKind: 'agent' | 'key' }): Promise<RunEndRow> {
    const { clock, controlLog } = this.#deps
    const { orgId, ownerKind, ownerId, runId } = ref
    await this.#deps.checkOwner(principal, ownerKind, ownerId)
    return controlLog.change(async tx => {
      const before = await tx.maybe(findRunEnd, orgId, ownerKind, ownerId, runId)
      if (before !== null) return { value: before, news: [] }
      if ((await tx.one(countRunEnds, orgId, endsMax)).count >= endsMax)
        throw fail('cap', { message: `An organisation ends at most ${endsMax} runs in 400 days. Pause or revoke the agent instead.` })
      const [byUser, byKey] = principal.kind === 'session' ? [principal.userId, null] : [null, principal.keyId]
      await tx.exec(insertRunEnd, orgId, ownerKind, ownerId, runId, new Date(clock.nowMs()), byUser, byKey)
      const value = await tx.one(findRunEnd, orgId, ownerKind, ownerId, runId)
      return { value, news: [{ kind: runEnded, ref: runKeyOf(ref) }] }
    })
  }
}

/** Forgets the ends of old runs. It stops early when the signal aborts. */
export async function deleteOldEnds({ db, clock }: Pick<RunEndsDeps, 'db' | 'clock'>, signal: AbortSignal): Promise<void> {
  const before = new Date(clock.nowMs() - endKeptMs)
  for (let count = deleteBatch; count === deleteBatch && !signal.aborted; ) count = await db.exec(deleteOldRunEnds, before, deleteBatch)
}
