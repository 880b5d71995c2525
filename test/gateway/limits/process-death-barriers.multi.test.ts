import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { barriers, planOf } from '../../chaos/plan.ts'
import { playRound } from '../../chaos/round.ts'
import { type Stage, startStage } from '../../chaos/stage.ts'
import { onPostgres } from '../../harness/database.ts'

/** A short form of test:chaos for every run: each point of death once. The full form has two hundred rounds and a minute of soak. */
const seed = 20

describe.runIf(onPostgres)('death at a point of the journal or of a transaction', () => {
  let stage: Stage
  beforeAll(async () => {
    stage = await startStage()
  })
  afterAll(() => stage?.stop())

  test('BUDX-02 kill -9 around every kind of record and commit loses and duplicates nothing, leaves no hold, and gives one flagged row for each call', {
    timeout: 300_000,
  }, async () => {
    let reached = 0
    let interrupted = 0
    for (let index = 0; index <= barriers.length; index++) {
      const result = await playRound(stage, planOf(seed, index, { lanes: 6, steps: 5 }))
      expect(result.wrong, `round ${index} of seed ${seed}`).toEqual([])
      reached += Number(result.reached)
      interrupted += result.interrupted
    }
    // Most processes reach their barrier. The others are killed when their calls have ended.
    expect(reached).toBeGreaterThan(barriers.length / 2)
    expect(interrupted).toBeGreaterThan(0)
  })
})
