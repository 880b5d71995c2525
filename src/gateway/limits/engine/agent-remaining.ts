import { type Counter, isSpend } from './counters/counter-state.ts'

/**
 * Returns the remaining amount of the tightest budget of the charged agent and its ancestors, as far as this process knows. Null when none of
 * them has a budget.
 */
export function agentRemainingOf(counters: readonly Counter[]): bigint | null {
  let least: bigint | null = null
  for (const { scope, metric, capWithIncrease: cap, knownSpent } of counters) {
    if (scope !== 'agent' || !isSpend(metric) || cap === null) continue
    const left = cap > knownSpent ? cap - knownSpent : 0n
    if (least === null || left < least) least = left
  }
  return least
}
