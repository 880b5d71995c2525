import { expect, test } from 'vitest'
import { ReconcileTurns } from '../../src/memory/upkeep/reconcile-turns.ts'
import { systemClock } from '../../src/platform/clock.ts'

const settled = (): Promise<void> => new Promise(resolve => setTimeout(resolve, 5))

test('four requested comparisons run concurrently, and after a minute one gives its place to the one that has waited longest', async () => {
  let nowMs = 0
  const turns = new ReconcileTurns({ ...systemClock, monotonicMs: () => nowMs }, String)
  const begun: number[] = []
  const passes = new Map<number, () => Promise<void>>()
  const ends = new Map<number, () => void>()
  const all = [1, 2, 3, 4, 5, 6].map(orgId =>
    turns.run(orgId, pass => {
      begun.push(orgId)
      passes.set(orgId, pass)
      return new Promise<void>(resolve => ends.set(orgId, resolve))
    }),
  )
  await settled()
  expect(begun).toEqual([1, 2, 3, 4])
  await passes.get(1)?.()
  expect(begun).toHaveLength(4)
  nowMs = 60_000
  let isBack = false
  const yielding = passes
    .get(1)?.()
    .then(() => {
      isBack = true
    })
  await settled()
  expect([begun, isBack]).toEqual([[1, 2, 3, 4, 5], false])
  for (const orgId of [2, 3]) ends.get(orgId)?.()
  await yielding
  expect([begun, isBack]).toEqual([[1, 2, 3, 4, 5, 6], true])
  for (const orgId of [1, 4, 5, 6]) ends.get(orgId)?.()
  await Promise.all(all)
})

test('statements of comparisons run one at a time, each followed by a pause as long as the statement took', async () => {
  const turns = new ReconcileTurns(systemClock, String)
  let running = 0
  let busyMs = 0
  const startedMs = performance.now()
  const statement = async (): Promise<void> => {
    expect(++running).toBe(1)
    const beganMs = performance.now()
    await systemClock.sleep(20)
    busyMs += performance.now() - beganMs
    running--
  }
  await Promise.all(Array.from({ length: 6 }, () => turns.heal(statement)))
  // The pause after the last statement does not count, because no statement waits for it.
  expect(performance.now() - startedMs).toBeGreaterThan(busyMs * 1.6)
})
