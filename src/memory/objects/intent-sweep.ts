/** Writes whose process died, or whose owner does not know how they ended: the store is asked, and they are booked or released. */
import type { Clock } from '../../platform/clock.ts'
import type { Log } from '../../platform/observe/log.ts'
import type { RestingStores } from '../upkeep/resting-stores.ts'
import type { MemoryIndex } from './index/memory-index.ts'
import type { IntentRow } from './queries.ts'

/** The most organisations whose stores are asked concurrently, so that a silent store delays few others. */
const orgsTogether = 4
/** A slow store is left to the next round after that. */
const storeMsMax = 30_000
/** A round asks no further store after this time, because other work that asks stores waits for it. */
const roundMsMax = 60_000

export interface IntentSweepDeps {
  readonly index: MemoryIndex
  readonly clock: Clock
  readonly log: Log
  readonly resting: RestingStores
}

/** Resolves what was abandoned before `nowMs`; how many. A store that does not answer is left to a later round, with its bytes reserved. */
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
