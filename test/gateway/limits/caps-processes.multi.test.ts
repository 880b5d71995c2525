import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { until } from '../../harness/app.ts'
import { onPostgres } from '../../harness/database.ts'
import { call, chat, countReplies, type Fleet, type FleetReply, fleetAnswer, startFleet, tokenUinr } from '../../harness/fleet.ts'
import type { GatewayProcess } from '../../harness/process.ts'

const unitsOf = statement<[agentId: string], { leased: bigint; spent: bigint }>(
  'test.running_units',
  `select coalesce(sum(leased), 0)::bigint as "leased", coalesce(sum(spent), 0)::bigint as "spent" from counters
   where scope = 'agent' and scope_id = $1::text and metric = 'running'`,
)
const inr = (tokens: number): number => (tokens * Number(tokenUinr)) / 1e6
const times = (count: number): number[] => Array.from({ length: count }, (_, i) => i)
/** Maximum time until a changed rule or budget applies on another process, with room for a busy machine. "Within a second" refers to the poll interval. */
const newsDeadlineMs = 3000

describe.runIf(onPostgres)('caps and rules over several processes', () => {
  let fleet: Fleet
  let folder: string
  let members: GatewayProcess[]
  beforeAll(async () => {
    fleet = await startFleet({ CONTROL_POLL_MS: '1000' })
    folder = fleet.newFolder()
    members = await Promise.all(times(3).map(() => fleet.start({}, folder)))
  })
  afterAll(() => fleet?.stop())
  beforeEach(() => {
    fleet.upstream.reset()
    fleet.upstream.script(fleetAnswer)
  })
  const member = (i: number): GatewayProcess => members[i % members.length] as GatewayProcess
  const rule = async (through: GatewayProcess, agentId: number, rules: object): Promise<void> =>
    expect((await call(through, fleet.key, 'PATCH', `/v1/me/agents/${agentId}`, rules)).status).toBe(200)
  const saidBy = async (process: GatewayProcess, token: string, tokens = 10): Promise<string> => {
    const reply = await chat(process, token, tokens)
    return reply.status === 200 ? 'ok' : reply.json.error.code
  }

  /** Sends calls that the provider holds open. Resolves when all refused calls have their answers. */
  async function crowd(token: string, count: number, to: (i: number) => number): Promise<{ running: Promise<FleetReply>[]; refused: FleetReply[] }> {
    fleet.upstream.reset()
    fleet.upstream.script(request => ({ ...fleetAnswer(request), ...(request.json?.['stream'] === true ? { holdAfterChunks: 1 } : { hold: true }) }))
    const refused: FleetReply[] = []
    const calls = times(count).map(i => chat(member(to(i)), token, 10, i % 2 === 0 ? { stream: true } : {}))
    for (const reply of calls) void reply.then(done => (done.status === 200 ? 0 : refused.push(done))).catch(() => undefined)
    // A stream has its status when it begins. Every call that is not refused waits for the provider.
    await until(() => refused.length + fleet.upstream.requests.length === count)
    return { running: calls, refused }
  }

  const spreads: Record<string, (i: number) => number> = { 'to one': () => 0, 'in turn': i => i, 'mostly to one': i => (i % 5 === 0 ? 1 : 0) }

  test.for(Object.keys(spreads))('CAPS-01 concurrent calls of an agent, sent %s, are counted over all processes, and leave no counts behind', async spread => {
    const cap = 4
    const agent = await fleet.newAgent(`crowd ${spread}`, null)
    for (const through of times(3)) await rule(member(through), agent.id, { max_concurrency: cap })
    await until(async () => (await chat(member(1), agent.token, 1)).status === 200)
    for (const round of times(3)) {
      const { running, refused } = await crowd(agent.token, 24, spreads[spread] as (i: number) => number)
      expect(fleet.upstream.requests.length, `round ${round}`).toBe(cap)
      expect(new Set(refused.map(reply => reply.json.error.code))).toEqual(new Set(['concurrency_limit_reached']))
      fleet.upstream.release()
      expect(countReplies((await Promise.all(running)).filter(reply => reply.status === 200))).toEqual({ '200': cap })
      // After the last call is recorded, the whole cap is free again.
      await until(async () => (await fleet.db.one(unitsOf, String(agent.id))).leased === 0n)
    }
    expect(await fleet.db.one(unitsOf, String(agent.id))).toEqual({ leased: 0n, spent: 0n })
    expect(await fleet.violations()).toEqual([])
  })

  test('CAPS-01 a cap of one concurrent call admits one call at a time over all processes', async () => {
    const agent = await fleet.newAgent('one by one', null)
    await rule(member(0), agent.id, { max_concurrency: 1 })
    for (const i of times(3)) await until(async () => (await saidBy(member(i), agent.token)) === 'ok')
    for (const i of times(15)) expect(await saidBy(member(i), agent.token), String(i)).toBe('ok')
  })

  test('CAPS-01 after kill -9 of a process, the places of its running calls become free', async () => {
    const agent = await fleet.newAgent('killed', null)
    const victim = await fleet.start({}, folder)
    await rule(victim, agent.id, { max_concurrency: 2 })
    fleet.upstream.script(request => ({ ...fleetAnswer(request), hold: true }))
    const running = times(2).map(() => chat(victim, agent.token, 10).catch(() => null))
    await fleet.upstream.arrived(2)
    expect(await saidBy(member(0), agent.token)).toBe('concurrency_limit_reached')
    await victim.kill()
    await Promise.all(running)
    fleet.upstream.reset()
    await until(async () => (await saidBy(member(0), agent.token)) === 'ok', 20_000)
    await until(async () => (await fleet.db.one(unitsOf, String(agent.id))).leased === 0n)
    const { refused } = await crowd(agent.token, 6, i => i)
    expect([fleet.upstream.requests.length, refused.length]).toEqual([2, 4])
    fleet.upstream.release()
    expect(await fleet.violations()).toEqual([])
  })

  test('changed rules of an agent apply on other processes within a second', async () => {
    const agent = await fleet.newAgent('ruled elsewhere', null)
    for (const through of members) expect(await saidBy(through, agent.token, 50)).toBe('ok')
    for (const [rules, code] of [
      [{ max_output_tokens: 20 }, 'call_cap_exceeded'],
      [{ max_output_tokens: null }, 'ok'],
    ] as const) {
      await rule(member(0), agent.id, rules)
      expect(await saidBy(member(0), agent.token, 50)).toBe(code)
      for (const other of [1, 2]) await until(async () => (await saidBy(member(other), agent.token, 50)) === code, newsDeadlineMs)
    }
  })

  test('BUDG-10 a cap that is raised or removed on one process admits calls on another within seconds', async () => {
    const agent = await fleet.newAgent('raised elsewhere', inr(100))
    const set = async (monthly_budget_inr: number | null) =>
      expect((await call(member(0), fleet.key, 'POST', `/v1/me/agents/${agent.id}/budget`, { monthly_budget_inr })).status).toBe(200)
    expect(await saidBy(member(1), agent.token, 100)).toBe('ok')
    for (const more of [inr(200), null]) {
      for (const other of [1, 2]) await until(async () => (await saidBy(member(other), agent.token, 100)) === 'agent_budget_exceeded')
      await set(more)
      await until(async () => (await saidBy(member(1), agent.token, 100)) === 'ok', newsDeadlineMs)
    }
    await until(async () => (await saidBy(member(2), agent.token, 100)) === 'ok', newsDeadlineMs)
    expect(await fleet.violations()).toEqual([])
  })
})
