/** Tokens a minute in one process: what counts in which minute, and what happens while the database is away. */
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { AdmissionRequest } from '../../../../src/gateway/limits/engine/admission.ts'
import { CounterTable } from '../../../../src/gateway/limits/engine/counters/counter-state.ts'
import { tokensHeld } from '../../../../src/gateway/limits/engine/counters/token-rates.ts'
import { TokenUse } from '../../../../src/gateway/limits/engine/counters/token-use.ts'
import { checkInvariants } from '../../../../src/gateway/limits/invariants.ts'
import { systemClock } from '../../../../src/platform/clock.ts'
import { DatabaseUnavailableError, type Db, statement } from '../../../../src/platform/db/db.ts'
import type { CallPolicy } from '../../../../src/platform/security/principal.ts'
import { onPostgres, type TestDatabase, testDatabase } from '../../../harness/database.ts'
import { propertyRuns } from '../../../harness/property-runs.ts'
import { eventOf, movableClock, outcomeOf, request, startEngine, type TestEngine } from '../engine.ts'

const spentByMinute = statement<[], { period: string; scope: string; spent: bigint }>(
  'test.tokens_by_minute',
  `select period as "period", scope as "scope", spent as "spent" from counters where metric = 'tpm' order by period, scope`,
)
const countRows = statement<[], { rows: number }>('test.rows_of_tokens', `select count(*)::int as "rows" from counters where metric = 'tpm'`)

/** 55 s before a minute ends. */
const start = Date.parse('2026-11-25T06:30:05Z')
const minuteMs = 60_000
const policy = (tpmLimit: number, owner: 'key' | 'agent' = 'key'): CallPolicy => ({
  owner,
  ownerId: 7,
  allowedModels: null,
  allowedProviders: null,
  maxCostUinr: null,
  maxOutputTokens: null,
  maxConcurrency: null,
  tpmLimit,
})

/** Wraps the database. Everything fails while `away` is set. */
function interrupted(db: Db): { db: Db; away(is: boolean): void } {
  let isAway = false
  const guarded = new Set(['tx', 'many', 'one', 'maybe', 'exec'])
  const proxy = new Proxy(db, {
    get(target, name) {
      const value = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      const bound = value.bind(target)
      if (!guarded.has(String(name))) return bound
      return (...args: unknown[]) => (isAway ? Promise.reject(new DatabaseUnavailableError('away')) : bound(...args))
    },
  })
  return {
    db: proxy,
    away(is) {
      isAway = is
    },
  }
}

describe('tokens a minute in one process', () => {
  const clock = movableClock(start)
  let database: TestDatabase
  let engine: TestEngine
  let away: (is: boolean) => void
  beforeEach(async () => {
    clock.moveTo(start)
    database = await testDatabase()
    const wrapped = interrupted(database.db)
    away = wrapped.away
    engine = await startEngine(wrapped.db, { clock, env: { BEAT_MS: '3600000', OFFLINE_MAX_MS: '3600000', JANITOR_MS: '3600000' } })
  })
  afterEach(async () => {
    away(false)
    await engine.stop()
    expect(await checkInvariants(database.db)).toEqual([])
    await database.dispose()
  })
  const asked = (policies: readonly CallPolicy[], outputTokens = 90, promptTokens = 10): AdmissionRequest =>
    request(1n, { policies, promptTokens, outputTokens }, clock.nowMs())
  const begin = async (call: AdmissionRequest) => {
    const permit = await engine.limits.admit(call)
    const atMs = permit.admittedAtMs
    await permit.open(eventOf(call, 0n, { atMs }))
    return {
      permit,
      end: (promptTokens: number, completionTokens: number, cachedTokens = 0) =>
        permit.settle(eventOf(call, 1n, { atMs, promptTokens, completionTokens, cachedTokens })),
    }
  }
  const once = async (policies: readonly CallPolicy[], used = 100): Promise<void> => (await begin(asked(policies))).end(10, used - 10)
  const minutes = async (): Promise<string[]> => {
    await engine.limits.beat()
    await engine.limits.flushNow()
    return (await database.db.many(spentByMinute)).map(({ period, scope, spent }) => `${period.slice(-5)} ${scope} ${spent}`)
  }

  it('holds the tokens in the limits of the key and of the agent, all or none, and counts no prompt that came from a cache', async () => {
    const both = [policy(1000), policy(250, 'agent')]
    await once(both)
    const { end } = await begin(asked(both))
    await end(500, 50, 480)
    expect(await minutes()).toEqual(['12:00 agent 170', '12:00 key 170'])
    expect(await outcomeOf(once(both))).toBe('rate_limit_exceeded')
    expect(await minutes()).toEqual(['12:00 agent 170', '12:00 key 170'])
    await once([policy(1000)])
    expect(await minutes()).toEqual(['12:00 agent 170', '12:00 key 270'])
  })

  it('follows a changed limit from the next call on', async () => {
    await once([policy(1000)])
    expect(await outcomeOf(once([policy(150)]))).toBe('rate_limit_exceeded')
    expect(await outcomeOf(once([policy(200)]))).toBe('ok')
    expect(await outcomeOf(once([policy(200)]))).toBe('rate_limit_exceeded')
    expect(await outcomeOf(once([]))).toBe('ok')
  })

  it.runIf(!onPostgres)('asks the database once in a minute, and a warm call is decided without a promise', async () => {
    await once([policy(100_000)])
    const { acquires } = engine.limits
    for (let i = 0; i < 50; i++) {
      const call = asked([policy(100_000)])
      const permit = engine.limits.admit(call)
      expect(permit).not.toBeInstanceOf(Promise)
      if (!(permit instanceof Promise)) await permit.settle(eventOf(call, 1n, { atMs: permit.admittedAtMs, promptTokens: 10, completionTokens: 20 }))
    }
    expect(engine.limits.acquires).toBe(acquires)
  })

  it('charges a stream to each minute as it runs, and gives back only what the running minute has', async () => {
    const { permit, end } = await begin(asked([policy(1000)], 256))
    expect(permit.extendTo(1n, false, { completionTokens: 700 })).toBe(true)
    clock.moveTo(start + minuteMs)
    expect(permit.extendTo(1n, false, { completionTokens: 2700 })).toBe(true)
    expect(await minutes()).toEqual(['12:00 key 434', '12:01 key 2000'])
    clock.moveTo(start + 2 * minuteMs)
    expect(permit.extendTo(1n, false, { completionTokens: 4700 })).toBe(true)
    expect(await minutes()).toEqual(['12:00 key 434', '12:01 key 2000', '12:02 key 2000'])
    // The last minute is above the limit, and the stream is not cut.
    expect(await outcomeOf(once([policy(1000)]))).toBe('rate_limit_exceeded')
    await end(10, 2800)
    expect(await minutes()).toEqual(['12:00 key 700', '12:01 key 2000', '12:02 key 110'])
    expect(await outcomeOf(once([policy(1000)]))).toBe('ok')
  })

  it('serves its share of a limit once while the database is away, and refuses the rest as unavailable', async () => {
    const call = [policy(350)]
    await once(call)
    away(true)
    clock.moveTo(start + minuteMs)
    for (let i = 0; i < 3; i++) expect(await outcomeOf(once(call)), String(i)).toBe('ok')
    expect(await outcomeOf(once(call))).toBe('database_unavailable')
    // A call whose output does not fit in the share holds all of it.
    clock.moveTo(start + 2 * minuteMs)
    expect(await outcomeOf((await begin(asked([policy(350)], 4096))).end(10, 300))).toBe('ok')
    away(false)
    clock.moveTo(start + 3 * minuteMs)
    expect(await outcomeOf(once(call))).toBe('ok')
    expect((await database.db.one(countRows)).rows).toBeGreaterThan(0)
  })
})

describe('the tokens of a call', () => {
  it('are its prompt and its first slice of output, or the whole limit where only the output does not fit', () => {
    for (const [cap, promptTokens, outputTokens, held] of [
      [1000n, 10, 256, 266n],
      [100n, 10, 4096, 100n],
      [100n, 100, 4096, 100n],
      [100n, 101, 0, 101n],
      [null, 10, 5, 15n],
    ] as const)
      expect(tokensHeld(cap, { promptTokens, outputTokens })).toBe(held)
  })

  it('count once over all minutes: never less than what was used, never less in a past minute, and exactly what was used within one minute', () => {
    const step = fc.record({ tokens: fc.nat(5000), afterMs: fc.nat(90_000) })
    fc.assert(
      fc.property(
        fc.nat(2000),
        fc.bigInt(1n, 1000n),
        fc.array(step, { maxLength: 6 }),
        fc.nat(12_000),
        fc.nat(90_000),
        (lease, held, steps, total, endAfterMs) => {
          const table = new CounterTable(systemClock)
          let nowMs = start
          const at = () => table.get({ orgId: 1, scope: 'key', scopeId: '7' }, 'tpm', nowMs, 1000n)
          const first = at()
          first.idle = BigInt(lease)
          first.held = held
          const use = new TokenUse([first], [held], () => at())
          const counted = () => [...table.all()].map(counter => counter.counted + counter.over)
          let noted = 0
          for (const { tokens, afterMs } of steps) {
            nowMs += afterMs
            noted += tokens
            use.extendTo(BigInt(noted))
          }
          const before = counted()
          nowMs += endAfterMs
          const own = use.end(BigInt(total), nowMs).get(0) ?? -1n
          const after = counted()
          for (const [i, counter] of [...table.all()].entries()) if (counter.endsAtMs <= nowMs && before[i] !== undefined) expect(after[i]).toBe(before[i])
          const sum = after.reduce((all, part) => all + part, own)
          expect(own).toBeGreaterThanOrEqual(0n)
          expect(own).toBeLessThanOrEqual(held)
          for (const part of after) expect(part).toBeGreaterThanOrEqual(0n)
          expect(sum).toBeGreaterThanOrEqual(BigInt(total))
          if (nowMs < first.endsAtMs) expect(sum).toBe(BigInt(total))
          // The lease of this process is never used twice.
          expect(first.idle + first.counted).toBe(BigInt(lease))
        },
      ),
      { numRuns: propertyRuns(400) },
    )
  })
})
