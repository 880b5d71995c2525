/** Resolves writes whose process died, or whose owner does not know how they ended. It asks the store, and settles or releases the intents. */
import type { Clock } from '../../platform/clock.ts'
import type { Log } from '../../platform/observe/log.ts'
import type { RestingStores } from '../upkeep/resting-stores.ts'
import type { MemoryIndex } from './index/memory-index.ts'
import type { IntentRow } from './queries.ts'

/** Maximum number of organisations whose stores are asked concurrently. A silent store therefore delays few others. */
const orgsTogether = 4
/** Maximum time for one store. Its other writes are left to the next round. */
const storeMsMax = 30_000
/** Maximum time of a round. After it no further store is asked, because other work with stores waits for the round. */
const roundMsMax = 60_000

export interface IntentSweepDeps {
  readonly index: MemoryIndex
  readonly clock: Clock
  readonly log: Log
  readonly resting: RestingStores
}

/**
 * Resolves the writes that were abandoned before `nowMs`. Returns their number. The writes of a store that does not answer are left to a later round,
 * and their bytes stay reserved.
 */
export async function sweepIntents({ index, clock, log, resting }: IntentSweepDeps, nowMs: number): Promise<number> {
  const byOrg = new Map<number, IntentRow[]>()
  for (const intent of await index.expired(nowMs, resting.at(nowMs))) byOrg.set(intent.orgId, [...(byOrg.get(intent.orgId) ?? []), intent])
  let count = 0
  const left = byOrg.entries()
  const roundEndMs = clock.monotonicMs() + roundMsMax
  const worker = async (): Promise<void> => {
    for (const [orgId, intents] of left) {
      if (clock.monotonicMs() >= roundEndMs) return
      const endMs = clock.monotonicMs() + storeMsMax
      try {
        for (const intent of intents) {
          if (clock.monotonicMs() >= endMs) break
          await index.resolve(intent)
          count++
        }
        resting.worked(orgId)
      } catch (error) {
        resting.failed(orgId, nowMs)
        log.warn('memory.intent_unresolved', { orgId, error })
      }
    }
  }
  await Promise.all(Array.from({ length: orgsTogether }, worker))
  return count
}
