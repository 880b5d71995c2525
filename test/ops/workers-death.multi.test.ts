import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { planOf, workerBarriers } from '../chaos/plan.ts'
import { playRound } from '../chaos/round.ts'
import { type Stage, startStage } from '../chaos/stage.ts'
import { onPostgres } from '../harness/database.ts'

/** The part of `npm run test:chaos -- --workers 3` that every run can afford: before, in and after a record, after an acquire, and from outside. */
const seed = 18
const rounds = [0, 4, 8, 16, workerBarriers.length] as const

describe.runIf(onPostgres)('death of a worker at a point of the journal or of a transaction', () => {
  let stage: Stage
  beforeAll(async () => {
    stage = await startStage({ workers: true })
  })
  afterAll(() => stage?.stop())

  test('FAST-02 kill -9 of one worker loses, doubles and holds nothing, and the other workers serve all calls that were not on its connections', {
    timeout: 240_000,
  }, async () => {
    let complete = 0
    for (const index of rounds) {
      const result = await playRound(stage, planOf(seed, index, { lanes: 6, steps: 5, barriers: workerBarriers }))
      expect(result.wrong, `round ${index} of seed ${seed}`).toEqual([])
      complete += result.complete
    }
    expect(complete).toBeGreaterThan(0)
  })
})
