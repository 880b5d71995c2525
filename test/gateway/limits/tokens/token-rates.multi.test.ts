/** Tokens a minute over three processes: real ones through HTTP, and three engines whose clock the test moves. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, test } from 'vitest'
import type { AdmissionRequest } from '../../../../src/gateway/limits/engine/admission.ts'
import { checkInvariants } from '../../../../src/gateway/limits/invariants.ts'
import { statement } from '../../../../src/platform/db/db.ts'
import type { CallPolicy } from '../../../../src/platform/security/principal.ts'
import { onPostgres, type TestDatabase, testDatabase } from '../../../harness/database.ts'
import { call, chat, type Fleet, startFleet } from '../../../harness/fleet.ts'
import type { GatewayProcess } from '../../../harness/process.ts'
import { until } from '../../../harness/until.ts'
import { eventOf, movableClock, outcomeOf, request, startEngine, type TestEngine } from '../engine.ts'

const spentOf = statement<[scope: string, scopeId: string], { period: string; spent: bigint; leased: bigint }>(
  'test.tokens_of_minutes',
  `select period as "period", spent as "spent", leased as "leased" from counters
   where metric = 'tpm' and scope = $1::text and scope_id = $2::text order by period`,
)
const times = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

describe.runIf(onPostgres)('tokens a minute over several processes', () => {
  let fleet: Fleet
  let members: GatewayProcess[]
  beforeAll(async () => {
    fleet = await startFleet()
    members = await Promise.all(times(3).map(() => fleet.start()))
  })
  afterAll(() => fleet?.stop())
  const member = (i: number): GatewayProcess => members[i % members.length] as GatewayProcess
  const codeOf = ({ status, json }: { status: number; json: { error?: { code?: string } } }) => [status, json.error?.code]

  test('TPM-01 tokens a minute of a key and of an agent bind the calls of all processes together with the budgets, a small limit serves its first call, and a prompt above the limit is 403', async () => {
    const limit = 1000
    fleet.upstream.script(({ json }) => ({ usage: { prompt_tokens: 1, completion_tokens: Number(json?.['max_tokens'] ?? 10), total_tokens: 0 } }))
    const cookie = await fleet.signIn()
    const agent = await fleet.newAgent('of tokens', 100)
    const key = await fleet.newKey({ budgetInr: 100 })
    expect((await call(member(0), fleet.key, 'PATCH', `/v1/me/agents/${agent.id}`, { tpm_limit: limit })).json.tpm_limit).toBe(limit)
    const patched = await fetch(`${member(0).baseUrl}/me/keys/${key.id}`, {
      method: 'PATCH',
      headers: { cookie, 'content-type': 'application/json', origin: 'http://brigade.test' },
      body: JSON.stringify({ tpm_limit: limit }),
    })
    const { key: changed } = (await patched.json()) as { key?: { tpm_limit: number } }
    expect([patched.status, changed?.tpm_limit]).toEqual([200, limit])
    for (const [scope, id, credential] of [
      ['agent', agent.id, agent.token],
      ['key', key.id, key.key],
    ] as const) {
      for (const i of times(3))
        await until(async () => (await chat(member(i), credential, 1)).headers.get('x-ratelimit-limit-tokens') === String(limit), 'the process knows the limit')
      fleet.upstream.requests.length = 0
      // Each call uses 91 tokens, and holds a little more, because a prompt is estimated.
      const replies = await Promise.all(times(45).map(i => chat(member(i), credential, 90)))
      const refused = replies.filter(({ status }) => status !== 200)
      expect(refused.length).toBeGreaterThan(0)
      expect(fleet.upstream.requests.length).toBe(45 - refused.length)
      for (const reply of refused) {
        expect(codeOf(reply)).toEqual([429, 'rate_limit_exceeded'])
        expect(reply.json).toMatchObject({ scope, limit, limit_name: 'tpm_limit' })
        expect(Number(reply.headers.get('retry-after'))).toBeLessThanOrEqual(60)
      }
      // No minute has more than the limit, whichever processes served it, and the counters have what the calls used.
      const minutes = async () => fleet.db.many(spentOf, scope, String(id))
      await until(async () => (await minutes()).reduce((sum, { spent }) => sum + spent, 0n) >= BigInt((45 - refused.length) * 91), 'the tokens are counted')
      for (const { spent, leased } of await minutes()) expect(spent + leased).toBeLessThanOrEqual(BigInt(limit))
    }

    // The first call of a small limit is served, and a prompt that no minute has room for is not retried.
    const small = await fleet.newAgent('small', null)
    await call(member(1), fleet.key, 'PATCH', `/v1/me/agents/${small.id}`, { tpm_limit: 100 })
    const ask = (content: string) =>
      call(member(1), small.token, 'POST', '/v1/chat/completions', { model: 'fixed-model', messages: [{ role: 'user', content }] })
    expect((await ask('Hello')).status).toBe(200)
    const impossible = await ask('many words '.repeat(200))
    expect(codeOf(impossible)).toEqual([403, 'call_cap_exceeded'])
    expect(impossible.json).toMatchObject({ scope: 'agent', tpm_limit: 100 })
    expect(await fleet.violations()).toEqual([])
  })
})

/** 55 s before a minute ends. */
const start = Date.parse('2026-11-25T06:30:05Z')

describe.runIf(onPostgres)('tokens a minute of three engines', () => {
  const clock = movableClock(start)
  let database: TestDatabase
  let engines: TestEngine[]
  beforeEach(async () => {
    clock.moveTo(start)
    database = await testDatabase()
    engines = []
    for (let i = 0; i < 3; i++) engines.push(await startEngine(await database.open(), { clock, env: { BEAT_MS: '200', RECALL_WAIT_MS: '300' } }))
    for (const engine of engines) await engine.limits.beat()
  })
  afterEach(async () => {
    for (const engine of engines) await engine.stop()
    expect(await checkInvariants(database.db)).toEqual([])
    await database.dispose()
  })
  const on = (i: number): TestEngine => engines[i % engines.length] as TestEngine
  const asked = (tpmLimit: number, outputTokens = 90): AdmissionRequest => {
    const policy: CallPolicy = {
      owner: 'key',
      ownerId: 7,
      allowedModels: null,
      allowedProviders: null,
      maxCostUinr: null,
      maxOutputTokens: null,
      maxConcurrency: null,
      tpmLimit,
    }
    return request(1n, { policies: [policy], promptTokens: 10, outputTokens }, clock.nowMs())
  }
  /** One call that holds 100 tokens and uses so many. */
  const once = async (i: number, limit: number, used = 100): Promise<void> => {
    const call = asked(limit)
    const permit = await on(i).limits.admit(call)
    const atMs = permit.admittedAtMs
    await permit.open(eventOf(call, 0n, { atMs }))
    await permit.settle(eventOf(call, 1n, { atMs, promptTokens: 10, completionTokens: used - 10 }))
  }
  const minutes = async (): Promise<[string, bigint][]> => {
    for (const engine of engines) await engine.limits.beat()
    for (const engine of engines) await engine.limits.flushNow()
    return (await database.db.many(spentOf, 'key', '7')).map(({ period, spent }) => [period, spent])
  }

  it.each([1000, 20_000])('a limit of %i admits exactly what fits, whichever processes ask', async limit => {
    const outcomes = await Promise.all(times(limit / 100 + 60).map(i => outcomeOf(once(i, limit))))
    let served = outcomes.filter(outcome => outcome === 'ok').length
    expect(served).toBeLessThanOrEqual(limit / 100)
    // What the others lease and do not use comes to the one that asks.
    for (let tries = 0; served < limit / 100 && tries < 50; tries++) if ((await outcomeOf(once(2, limit))) === 'ok') served++
    expect(served).toBe(limit / 100)
    for (const i of times(3)) expect(await outcomeOf(once(i, limit))).toBe('rate_limit_exceeded')
    expect((await minutes()).map(([, spent]) => spent)).toEqual([BigInt(limit)])
  })

  it('what a call uses beyond its hold keeps the next calls of every process waiting, and what it does not use goes back', async () => {
    await once(0, 1000, 900)
    expect((await minutes()).map(([, spent]) => spent)).toEqual([900n])
    await once(1, 1000, 20)
    expect(await outcomeOf(once(2, 1000))).toBe('rate_limit_exceeded')
    await until(async () => (await minutes())[0]?.[1] === 920n, 'the rest is given back')
    clock.moveTo(start + 60_000)
    expect(await outcomeOf(once(2, 1000))).toBe('ok')
  })

  it('a call that ends in a later minute adds what it used beyond its hold to that minute, for every process', async () => {
    const call = asked(1000)
    const permit = await on(0).limits.admit(call)
    const atMs = permit.admittedAtMs
    await permit.open(eventOf(call, 0n, { atMs }))
    clock.moveTo(start + 60_000)
    await permit.settle(eventOf(call, 1n, { atMs, promptTokens: 10, completionTokens: 1040 }))
    await until(async () => (await minutes()).length === 2, 'the tokens of the new minute are counted')
    expect((await minutes()).map(([, spent]) => spent)).toEqual([100n, 950n])
    expect(await outcomeOf(once(1, 1000))).toBe('rate_limit_exceeded')
    clock.moveTo(start + 120_000)
    expect(await outcomeOf(once(1, 1000))).toBe('ok')
  })
})
