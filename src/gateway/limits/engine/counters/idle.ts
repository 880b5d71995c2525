/** Gives back the unused leases of this process, and records the rate units that it used. */

import type { Flusher } from '../../journal/flusher.ts'
import { JournalWriteError } from '../../journal/journal.ts'
import type { ChargedEvent } from '../admission.ts'
import type { Counter, CounterTable } from './counter-state.ts'

/** The time after which an unused slice goes back. The project chose the number. */
const idleMs = 2000
/** The time after which an empty and unused counter is dropped. */
const forgetMs = 60_000

/** Appends one `return` record for the idle parts of these counters. Returns true when there was an idle part and the record was written. */
export function returnIdle<E extends ChargedEvent>(flusher: Flusher<E>, counters: Iterable<Counter>): boolean {
  const given = [...counters].filter(counter => counter.idle > 0n && counter.id !== null && !counter.offline)
  if (given.length === 0) return false
  try {
    flusher.append({ kind: 'return', released: given.map(counter => [counter.id as bigint, counter.idle] as const) })
  } catch (error) {
    if (error instanceof JournalWriteError) return false
    throw error
  }
  for (const counter of given) {
    counter.unflushed += counter.idle
    counter.idle = 0n
    counter.slice = 0n
  }
  return true
}

/** Appends one `count` record for the rate units used since the last one, and for the tokens used beyond the leases. */
export function writeCounts<E extends ChargedEvent>(flusher: Flusher<E>, counters: Iterable<Counter>): void {
  const used: Counter[] = []
  const over: (readonly [bigint, bigint])[] = []
  const told: Counter[] = []
  for (const counter of counters) {
    if (counter.id === null || counter.offline) continue
    if (counter.counted > 0n) used.push(counter)
    if (counter.over === 0n) continue
    over.push([counter.id, counter.over])
    told.push(counter)
  }
  if (used.length === 0 && over.length === 0) return
  try {
    flusher.append({ kind: 'count', counts: used.map(counter => [counter.id as bigint, counter.counted] as const), ...(over.length > 0 ? { over } : {}) })
  } catch (error) {
    if (error instanceof JournalWriteError) return
    throw error
  }
  for (const counter of used) {
    counter.unflushed += counter.counted
    counter.counted = 0n
  }
  for (const counter of told) counter.over = 0n
}

/** Runs the regular round: counts, unused slices, ended periods and dropped counters. Returns the number of dropped counters. */
export function sweepIdle<E extends ChargedEvent>(flusher: Flusher<E>, table: CounterTable, nowMs: number, monotonicMs: number): number {
  writeCounts(flusher, table.all())
  returnIdle(
    flusher,
    [...table.all()].filter(counter => counter.flight === null && (monotonicMs - counter.usedAtMs >= idleMs || counter.endsAtMs <= nowMs)),
  )
  // The grace period also covers calls that are about to request the counter and hold nothing of it yet.
  const gone = [...table.all()].filter(counter => monotonicMs - counter.usedAtMs >= forgetMs && (counter.offline || (counter.isEmpty && !counter.unsure)))
  for (const counter of gone) table.forget(counter)
  return gone.length
}
