import type { Counter } from './counters/counter-state.ts'

/** Returns what the cap of the run leaves, as far as this process knows. Null when the run has no such cap. */
export function runRemainingOf(counters: readonly Counter[]): bigint | null {
  const counter = counters.find(({ metric }) => metric === 'run_spend')
  const cap = counter?.capWithIncrease ?? null
  return counter === undefined || cap === null ? null : atLeastZero(cap - counter.knownSpent)
}

/** Returns the calls that the cap of the run leaves beside the running ones of this process, as far as it knows. Null when the run has no such cap. */
export function runCallsRemainingOf(counters: readonly Counter[]): bigint | null {
  const counter = counters.find(({ metric }) => metric === 'run_calls')
  const cap = counter?.capWithIncrease ?? null
  return counter === undefined || cap === null ? null : atLeastZero(cap - counter.knownSpent - counter.held)
}

/** Returns what the calls of the run have cost, as far as this process knows. Null when the run has no cap on its cost. */
export function runSpentOf(counters: readonly Counter[]): bigint | null {
  return counters.find(({ metric }) => metric === 'run_spend')?.knownSpent ?? null
}

const atLeastZero = (amount: bigint): bigint => (amount > 0n ? amount : 0n)
