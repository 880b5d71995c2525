import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { AdmissionRequest, Permit } from '../../../src/gateway/limits/engine/admission.ts'
import { checkInvariants } from '../../../src/gateway/limits/invariants.ts'
import { BacklogAge } from '../../../src/gateway/limits/journal/flusher.ts'
import type { UsageEvent } from '../../../src/gateway/usage/events/record.ts'
import { statement } from '../../../src/platform/db/db.ts'
import type { CallPolicy } from '../../../src/platform/security/principal.ts'
import { onPostgres, type TestDatabase, testDatabase } from '../../harness/database.ts'
import { propertyRuns } from '../../harness/property-runs.ts'
import { caller, eventOf, outcomeOf, request, startEngine, type TestEngine } from './engine.ts'

const leased = statement<[scope: string, scopeId: string, metric: string], { leased: bigint; spent: bigint }>(
  'test.leased_units',
  'select coalesce(sum(leased), 0)::bigint as "leased", coalesce(sum(spent), 0)::bigint as "spent" from counters where scope = $1::text and scope_id = $2::text and metric = $3::text',
)
const ageBeats = statement<[processId: bigint]>('test.age_beats', `update beats set beat_at = beat_at - interval '1 hour' where process_id = $1::bigint`)

const policy = (owner: 'key' | 'agent', ownerId: number, maxConcurrency: number | null): CallPolicy => ({
  owner,
  ownerId,
  allowedModels: null,
  allowedProviders: null,
  maxCostUinr: null,
  maxOutputTokens: null,
  maxConcurrency,
})

interface Running {
  readonly asked: AdmissionRequest
  readonly permit: Permit<UsageEvent>
}

let database: TestDatabase
beforeAll(async () => {
  database = await testDatabase()
})
afterAll(() => database.dispose())

let nextKeyId = 1000
const newKeyId = (): number => nextKeyId++
/** Returns a call of a key with a cap. With `agent`, the call is in the name of an agent with its own cap. */
function asking(keyId: number, cap: number | null, agent?: { id: number; cap: number | null }, dailyLimit: number | null = null): AdmissionRequest {
  const policies = [policy('key', keyId, cap), ...(agent === undefined ? [] : [policy('agent', agent.id, agent.cap)])]
  const principal = caller({ keyId, orgId: keyId, userId: null, limits: { rpmLimit: null, dailyLimit } })
  return request(10n, { principal, policies, agentId: agent?.id ?? null })
}
async function end({ asked, permit }: Running, how: 'settle' | 'release'): Promise<void> {
  if (how === 'release') return permit.release()
  void permit.open(eventOf(asked, 0n))
  await permit.settle(eventOf(asked, 5n))
}

describe.each([
  ['with a database request for every call', '0'],
  ['with slices', '10'],
])('concurrent calls, %s', (_, seconds) => {
  let engine: TestEngine
  beforeAll(async () => {
    engine = await startEngine(database.db, { env: { ALLOWANCE_SECONDS: seconds } })
  })
  afterAll(async () => {
    await engine.stop()
    expect(await checkInvariants(database.db)).toEqual([])
  })
  const admit = async (asked: AdmissionRequest): Promise<Running> => ({ asked, permit: await engine.limits.admit(asked) })

  it('exactly as many concurrent calls as the cap allows are admitted, and again after they have ended', async () => {
    const keyId = newKeyId()
    for (let round = 0; round < 3; round++) {
      const answers = await Promise.allSettled(Array.from({ length: 40 }, () => admit(asking(keyId, 7))))
      const running = answers.flatMap(answer => (answer.status === 'fulfilled' ? [answer.value] : []))
      expect(running).toHaveLength(7)
      for (const answer of answers) if (answer.status === 'rejected') expect(answer.reason.errorName).toBe('concurrency_limit_reached')
      for (const [i, call] of running.entries()) await end(call, i % 2 === 0 ? 'settle' : 'release')
    }
  })

  it('calls above the cap of concurrent calls are refused with advice and a retry-after of one second', async () => {
    const keyId = newKeyId()
    const call = await admit(asking(keyId, 1))
    const thrown = await admit(asking(keyId, 1)).catch(error => error)
    expect(thrown.status).toBe(429)
    expect(thrown.toHeaders()).toMatchObject({ 'retry-after': '1', 'x-should-retry': 'true' })
    expect(thrown.toBody()).toMatchObject({ error: { code: 'concurrency_limit_reached' }, scope: 'key', limit: 1 })
    await end(call, 'settle')
  })

  it('the caps of key and agent both apply, and a call holds a unit in both or in none', async () => {
    const keyId = newKeyId()
    const agent = { id: keyId, cap: 1 }
    const first = await admit(asking(keyId, 5, agent))
    const thrown = await admit(asking(keyId, 5, agent)).catch(error => error)
    expect(thrown.toBody()).toMatchObject({ scope: 'agent', limit: 1 })
    // Four more calls of the key alone are admitted, because the refused call holds no unit.
    const others = await Promise.all(Array.from({ length: 4 }, () => admit(asking(keyId, 5))))
    expect(await outcomeOf(admit(asking(keyId, 5)))).toBe('concurrency_limit_reached')
    for (const call of [first, ...others]) await end(call, 'settle')
  })

  it('a changed cap of concurrent calls applies to the next call', async () => {
    const keyId = newKeyId()
    const first = await admit(asking(keyId, 1))
    expect(await outcomeOf(admit(asking(keyId, 1)))).toBe('concurrency_limit_reached')
    const second = await admit(asking(keyId, 2))
    await end(first, 'settle')
    expect(await outcomeOf(admit(asking(keyId, 1)))).toBe('concurrency_limit_reached')
    const free = await admit(asking(keyId, null))
    await end(second, 'settle')
    await end(free, 'settle')
    await end(await admit(asking(keyId, 1)), 'settle')
  })

  it('a call that the cap refuses gives its daily unit back', async () => {
    const keyId = newKeyId()
    const first = await admit(asking(keyId, 1, undefined, 2))
    for (let i = 0; i < 3; i++) expect(await outcomeOf(admit(asking(keyId, 1, undefined, 2)))).toBe('concurrency_limit_reached')
    await end(first, 'settle')
    await end(await admit(asking(keyId, 1, undefined, 2)), 'settle')
    expect(await outcomeOf(admit(asking(keyId, 1, undefined, 2)))).toBe('daily_limit_reached')
  })

  const step = fc.oneof(
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('admit' as const), withAgent: fc.boolean() }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('end' as const), how: fc.constantFrom('settle' as const, 'release' as const), which: fc.nat() }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('caps' as const), key: fc.integer({ min: 1, max: 4 }), agent: fc.integer({ min: 1, max: 4 }) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('flush' as const) }) },
  )

  it('a call is admitted exactly when fewer calls run than the caps allow, and no hold remains', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 30 }), async steps => {
        const keyId = newKeyId()
        const caps = { key: 3, agent: 2 }
        const running: (Running & { withAgent: boolean })[] = []
        for (const next of steps) {
          if (next.kind === 'flush') await engine.limits.flushNow()
          else if (next.kind === 'caps') Object.assign(caps, { key: next.key, agent: next.agent })
          else if (next.kind === 'admit') {
            const isOpen = running.length < caps.key && (!next.withAgent || running.filter(call => call.withAgent).length < caps.agent)
            const asked = asking(keyId, caps.key, next.withAgent ? { id: keyId, cap: caps.agent } : undefined)
            const answer = engine.limits.admit(asked)
            expect(await outcomeOf(answer)).toBe(isOpen ? 'ok' : 'concurrency_limit_reached')
            if (isOpen) running.push({ asked, permit: await answer, withAgent: next.withAgent })
          } else if (running.length > 0) {
            const [call] = running.splice(next.which % running.length, 1)
            if (call !== undefined) await end(call, next.how)
          }
        }
        for (const call of running) await end(call, 'settle')
        await engine.limits.flushNow()
        expect(await checkInvariants(database.db)).toEqual([])
        const fresh = await Promise.all(Array.from({ length: caps.key }, () => admit(asking(keyId, caps.key))))
        for (const call of fresh) call.permit.release()
      }),
      { numRuns: propertyRuns(60) },
    )
  }, 120_000)
})

describe.runIf(onPostgres)('concurrent calls over several processes', () => {
  let engines: TestEngine[] = []
  beforeAll(async () => {
    for (let i = 0; i < 3; i++) engines.push(await startEngine(await database.open(), { env: { BEAT_MS: '200', JANITOR_MS: '200' } }))
    for (const engine of engines) await engine.limits.beat()
  })
  afterAll(async () => {
    for (const engine of engines) await engine.stop()
    engines = []
    expect(await checkInvariants(database.db)).toEqual([])
  })
  const on = (i: number): TestEngine => engines[i % engines.length] as TestEngine
  const admit = async (i: number, asked: AdmissionRequest): Promise<Running> => ({ asked, permit: await on(i).limits.admit(asked) })

  it('concurrent calls over all processes together never exceed the cap', async () => {
    for (const cap of [1, 4, 100]) {
      const keyId = newKeyId()
      const answers = await Promise.allSettled(Array.from({ length: 3 * cap + 30 }, (_, i) => admit(i, asking(keyId, cap))))
      const running = answers.flatMap(answer => (answer.status === 'fulfilled' ? [answer.value] : []))
      expect(running.length).toBeLessThanOrEqual(cap)
      expect(running.length).toBeGreaterThan(0)
      for (const call of running) await end(call, 'settle')
    }
  })

  it('sequential calls are never refused, on any process', async () => {
    const keyId = newKeyId()
    for (let i = 0; i < 30; i++) await end(await admit(i, asking(keyId, 1)), 'settle')
  })

  it('one process can use the whole of a large cap, even though other processes have unused leases of it', async () => {
    const keyId = newKeyId()
    for (const other of [1, 2]) await end(await admit(other, asking(keyId, 100)), 'settle')
    const calls = await Promise.all(Array.from({ length: 100 }, () => admit(0, asking(keyId, 100))))
    expect(await outcomeOf(admit(0, asking(keyId, 100)))).toBe('concurrency_limit_reached')
    for (const call of calls) await end(call, 'settle')
  })

  it('units of a process that is lost with its disk are returned when it must have stopped', async () => {
    const keyId = newKeyId()
    const lost = await startEngine(await database.open(), { env: { BEAT_MS: '3600000', JANITOR_MS: '3600000' } })
    const running = { asked: asking(keyId, 1), permit: await lost.limits.admit(asking(keyId, 1)) }
    expect(await outcomeOf(admit(0, asking(keyId, 1)))).toBe('concurrency_limit_reached')
    await database.db.exec(ageBeats, lost.limits.processId)
    await expect.poll(() => outcomeOf(admit(0, asking(keyId, 1)).then(call => end(call, 'settle'))), { timeout: 10_000, interval: 300 }).toBe('ok')
    // A later release by that process has no effect.
    running.permit.release()
    await lost.stop()
    await on(0).limits.flushNow()
    expect(await database.db.one(leased, 'key', String(keyId), 'running')).toEqual({ leased: 0n, spent: 0n })
  })
})

it('BacklogAge reports the waiting time of the oldest record, also for a flusher that is too slow although each flush succeeds', () => {
  const age = new BacklogAge()
  expect(age.at(1000)).toBe(0)
  age.appended(() => 1000)
  age.appended(() => 1500)
  expect(age.at(2000)).toBe(1000)
  // Each second a flush writes 100 bytes while 200 arrive. At the end the delay is half of the elapsed time.
  for (let second = 1; second <= 60; second++) age.flushed(second * 100, second * 200, 1000 + second * 1000)
  expect(age.at(61_000)).toBeGreaterThanOrEqual(30_000)
  expect(age.at(61_000)).toBeLessThanOrEqual(32_000)
  age.flushed(12_000, 12_000, 62_000)
  expect(age.at(99_000)).toBe(0)
})
