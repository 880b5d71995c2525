import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { onPostgres } from '../harness/database.ts'
import { barriers, planOf, workerBarriers } from './plan.ts'
import { playRound, type RoundResult } from './round.ts'
import { type Stage, startStage } from './stage.ts'

/** Run by scripts/test-chaos.mjs, which says how much. */
const seed = Number(process.env['CHAOS_SEED'] ?? 1)
const first = Number(process.env['CHAOS_FIRST'] ?? 0)
const rounds = Number(process.env['CHAOS_ROUNDS'] ?? 20)
const workers = process.env['CHAOS_WORKERS'] === '3'
const mostMs = Number(process.env['CHAOS_SECONDS'] ?? 780) * 1000

describe.runIf(onPostgres)('kill -9, again and again', () => {
  let stage: Stage
  beforeAll(async () => {
    stage = await startStage({ workers })
  })
  afterAll(() => stage?.stop())

  test('nothing is lost, doubled or held', { timeout: mostMs + 120_000 }, async () => {
    const startMs = Date.now()
    const results: RoundResult[] = []
    for (let index = first; index < first + rounds && Date.now() - startMs < mostMs; index++) {
      const result = await playRound(stage, planOf(seed, index, { lanes: 10, steps: 8, barriers: workers ? workerBarriers : barriers }))
      results.push(result)
      const { barrier } = result.plan
      const where = barrier === null ? 'from outside' : `${barrier.at} ${barrier.side} #${barrier.nth}${result.reached ? '' : ' (not reached)'}`
      process.stdout.write(
        `round ${index}: ${where}; ${result.sent} calls, ${result.complete} complete, ${result.interrupted} interrupted, adopted in ${result.adoptedMs} ms${result.wrong.length > 0 ? '; WRONG' : ''}\n`,
      )
      for (const sentence of result.wrong) process.stdout.write(`  ${sentence}\n`)
      if (result.wrong.length > 0) process.stdout.write(`  again: --seed ${seed} --first ${index} --rounds 1${workers ? ' --workers 3' : ''}\n`)
    }
    const sum = (of: (result: RoundResult) => number): number => results.reduce((total, result) => total + of(result), 0)
    process.stdout.write(
      `seed ${seed}: ${results.length} ${results.length < rounds ? `of ${rounds} rounds (the time was up)` : 'rounds'}, ${sum(r => r.sent)} calls, ${sum(r => r.complete)} complete, ${sum(r => r.interrupted)} interrupted, ${sum(r => Number(r.reached))} deaths at their barrier, slowest adoption ${Math.max(...results.map(r => r.adoptedMs))} ms\n`,
    )
    expect(results.flatMap(result => result.wrong)).toEqual([])
    expect(results.length).toBeGreaterThan(0)
  })
})
