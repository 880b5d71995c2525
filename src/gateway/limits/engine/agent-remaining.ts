import type { Counter } from './counters/counter-state.ts'

/** What the tightest budget of the charged agent and its ancestors has left, as far as this process knows; null when none of them has one. */
export function agentRemainingOf(counters: readonly Counter[]): bigint | null {
  let least: bigint | null = null
  for (const { scope, metric, cap, knownSpent } of counters) {
    if (scope !== 'agent' || metric !== 'spend' || cap === null) continue
    const left = cap > knownSpent ? cap - knownSpent : 0n
    if (least === null || left < least) least = left
  }
  return least
}
