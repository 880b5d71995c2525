import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkInvariants } from '../../../src/gateway/limits/invariants.ts'
import { onPostgres, type TestDatabase, testDatabase } from '../../harness/database.ts'
import { caller, callOnce, outcomeOf, request, startEngine, type TestEngine } from './engine.ts'

const freeCalls = 20

describe.runIf(onPostgres)('free calls of trial keys on three processes', () => {
  let database: TestDatabase
  let engines: TestEngine[] = []
  beforeEach(async () => {
    database = await testDatabase()
    engines = []
  })
  afterEach(async () => {
    for (const engine of engines) await engine.stop()
    expect(await checkInvariants(database.db)).toEqual([])
    await database.dispose()
  })

  it('all trial keys of an organisation together make exactly the free calls of a day, and calls that are not free go on', async () => {
    const env = { BEAT_MS: '200', TRIAL_ORG_DAILY: String(freeCalls), ORG_RUNNING: '0' }
    for (let i = 0; i < 3; i++) engines.push(await startEngine(await database.open(), { env, orgLimits: true }))
    for (const engine of engines) await engine.limits.beat()
    const call = (i: number, isFree: boolean, orgId = 9) => {
      const principal = caller({ orgId, keyId: 100 + i, limits: { rpmLimit: null, dailyLimit: 10 }, isTrial: true })
      return outcomeOf(callOnce(engines[i % 3] as TestEngine, request(100n, { principal, isFree }), 100n))
    }
    const outcomes = await Promise.all(Array.from({ length: 60 }, (_, i) => call(i % 30, true)))
    expect(outcomes.filter(outcome => outcome === 'ok')).toHaveLength(freeCalls)
    expect(new Set(outcomes)).toEqual(new Set(['ok', 'trial_limit_reached']))
    expect(await Promise.all([1, 2, 3].map(i => call(i, false)))).toEqual(['ok', 'ok', 'ok'])
    expect(await Promise.all([1, 2, 3].map(i => call(i, true)))).toEqual(Array.from({ length: 3 }, () => 'trial_limit_reached'))
    expect(await call(1, true, 10)).toBe('ok')
  })
})
