/** The caps of runs over several processes. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { until } from '../../harness/app.ts'
import { onPostgres } from '../../harness/database.ts'
import { call, countReplies, type Fleet, type FleetReply, fleetAnswer, chat as fleetChat, startFleet, tokenUinr } from '../../harness/fleet.ts'
import type { GatewayProcess } from '../../harness/process.ts'
import { startTcpProxy } from '../../harness/tcp-proxy.ts'

const runCounters = statement<[], { metric: string; spent: bigint; leased: bigint }>(
  'test.leased_runs',
  `select metric as "metric", spent as "spent", leased as "leased" from counters where metric in ('run_spend', 'run_calls') and leased > 0`,
)
const openProcesses = statement<[], { count: number }>('test.open_processes', `select count(*)::int as "count" from processes where state <> 'closed'`)
const costTokens = 100
const inr = (tokens: number): number => (tokens * Number(tokenUinr)) / 1e6
const times = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

describe.runIf(onPostgres)('caps of runs on several processes', () => {
  let fleet: Fleet
  let members: GatewayProcess[]
  let made = 0
  beforeAll(async () => {
    fleet = await startFleet({ RECALL_WAIT_MS: '1000' })
    members = await Promise.all([fleet.start(), fleet.start(), fleet.start()])
  })
  afterAll(() => fleet?.stop())
  beforeEach(() => {
    fleet.upstream.reset()
    fleet.upstream.script(fleetAnswer)
  })

  const member = (i: number): GatewayProcess => members[i % members.length] as GatewayProcess
  const newAgent = async (run: object) => {
    const agent = await fleet.newAgent(`capped ${made++}`, null)
    await call(member(0), fleet.key, 'PATCH', `/v1/me/agents/${agent.id}`, { run })
    // Every process has heard of the caps when it counts them.
    for (const process of members)
      await until(async () => {
        const { headers } = await chat(process, agent.token, `probe ${made++}`)
        return headers.get('x-br-run-calls-remaining') !== null || headers.get('x-br-run-remaining-inr') !== null
      })
    fleet.upstream.requests.length = 0
    return agent
  }
  const chat = (process: GatewayProcess, token: string, run: string, headers: Record<string, string> = {}): Promise<FleetReply> =>
    fleetChat(process, token, costTokens, {}, { 'x-br-run-id': run, ...headers })
  const code = (reply: FleetReply): string => reply.json?.error?.code ?? 'ok'
  const settled = async (): Promise<void> => {
    await until(async () => (await fleet.db.many(runCounters)).length === 0)
    expect(await fleet.violations()).toEqual([])
  }

  test('RUN-02 three processes together make at most as many calls as the caps of a run pay for, strict or not', async () => {
    for (const caps of [{ max_calls: 10 }, { max_cost_inr: inr(10 * costTokens) }, { max_cost_inr: inr(10 * costTokens), strict: true }]) {
      const { token } = await newAgent(caps)
      const counts = countReplies(await Promise.all(times(60).map(i => chat(member(i), token, 'shared'))))
      expect(counts['200'], JSON.stringify(counts)).toBeLessThanOrEqual(10)
      const refusal = 'max_calls' in caps ? 'run_calls_exceeded' : 'run_budget_exceeded'
      expect(Object.keys(counts).filter(name => name !== '200')).toEqual([`429 ${refusal}`])
      // What is left can be used on any process, up to the last call.
      await until(async () => code(await chat(member(made++), token, 'shared')) === refusal)
      await until(async () => (await fleet.db.many(runCounters)).length === 0)
      let last = 'ok'
      for (let n = 0; n < 11 && last === 'ok'; n++) last = code(await chat(member(n), token, 'shared'))
      expect(last).toBe(refusal)
      expect(fleet.upstream.requests).toHaveLength(10)
      await settled()
    }
  })

  test('RUN-03 a cap that is raised on one process lets the next call pass on another within a second, and its totals stay', async () => {
    const agent = await newAgent({ max_calls: 2 })
    for (const n of times(2)) expect(code(await chat(member(n), agent.token, 'held'))).toBe('ok')
    for (const process of members) expect(code(await chat(process, agent.token, 'held'))).toBe('run_calls_exceeded')
    for (const [n, process] of members.entries()) {
      const cap = 3 + n
      const raised = await call(member(0), fleet.key, 'PATCH', `/v1/me/runs/held?agent_id=${agent.id}`, { max_calls: cap })
      expect(raised.json).toMatchObject({ max_calls: cap })
      const atMs = Date.now()
      await until(async () => code(await chat(process, agent.token, 'held')) === 'ok')
      expect(Date.now() - atMs).toBeLessThan(1000)
    }
    expect(fleet.upstream.requests).toHaveLength(5)
    await settled()
    expect((await call(member(1), fleet.key, 'GET', `/v1/me/runs/held?agent_id=${agent.id}`)).json).toMatchObject({ state: 'held', calls: 5 })
    // A cap that a call asks for on one process binds calls on the others that do not say it.
    const free = await fleet.newAgent(`free ${made++}`, null)
    expect(code(await chat(member(0), free.token, 'asked', { 'x-br-run-max-calls': '2' }))).toBe('ok')
    await until(async () => code(await chat(member(1), free.token, 'asked')) === 'run_calls_exceeded')
    expect(code(await chat(member(2), free.token, 'asked'))).toBe('run_calls_exceeded')
    // Sub-agents count over all processes.
    const family = await newAgent({ max_subagents: 2, max_calls: 100 })
    const sub = (i: number, name: string) => chat(member(i), family.token, 'family', { 'x-claude-code-agent-id': name })
    const both = await Promise.all(times(6).map(n => sub(n, `sub ${n}`)))
    expect(countReplies(both)).toEqual({ '200': 2, '429 run_subagents_exceeded': 4 })
    const known = both.findIndex(({ status }) => status === 200)
    for (const n of times(3)) expect(code(await sub(n, `sub ${known}`))).toBe('ok')
    await settled()
  })

  test('RUN-09 the counters of a run are exact after kill -9, and without the database a known run is served from its lease and a new one with caps is not', {
    timeout: 120_000,
  }, async () => {
    const agent = await newAgent({ max_calls: 50, max_cost_inr: inr(50 * costTokens) })
    const folder = fleet.newFolder()
    const heir = await fleet.start({}, folder)
    const victim = await fleet.start({}, folder)
    for (const n of times(6)) expect(code(await chat(n % 2 === 0 ? victim : heir, agent.token, 'killed'))).toBe('ok')
    fleet.upstream.script(() => ({ hold: true }))
    const before = fleet.upstream.requests.length
    const running = times(4).map(() => chat(victim, agent.token, 'killed').catch(() => null))
    await fleet.upstream.arrived(before + 4)
    const open = (await fleet.db.one(openProcesses)).count
    await victim.kill()
    await Promise.all(running)
    fleet.upstream.reset()
    fleet.upstream.script(fleetAnswer)
    await until(async () => (await fleet.db.one(openProcesses)).count < open, 60_000)
    await settled()
    // The four calls were dialed, so they are calls of the run.
    expect((await call(heir, fleet.key, 'GET', `/v1/me/runs/killed?agent_id=${agent.id}`)).json).toMatchObject({ calls: 10, max_calls: 50 })

    const target = new URL(fleet.database.url as string)
    const proxy = await startTcpProxy({ host: target.hostname, port: Number(target.port) })
    target.host = `127.0.0.1:${proxy.port}`
    const cut = await fleet.start({ DATABASE_URL: target.href })
    try {
      const outage = await newAgent({ max_calls: 1000, max_cost_inr: inr(1000 * costTokens) })
      const free = await fleet.newAgent(`unbound ${made++}`, null)
      // Enough calls for a slice of both counters.
      for (const _ of times(20)) expect(code(await chat(cut, outage.token, 'known'))).toBe('ok')
      expect(code(await chat(cut, free.token, 'warm'))).toBe('ok')
      await proxy.cut()
      expect(code(await chat(cut, outage.token, 'known'))).toBe('ok')
      const refused = await chat(cut, outage.token, 'new')
      expect([refused.status, code(refused)]).toEqual([503, 'database_unavailable'])
      expect(code(await chat(cut, free.token, 'grouped later'))).toBe('ok')
      await proxy.restore()
      await until(async () => code(await chat(cut, outage.token, 'new')) === 'ok')
      await settled()
    } finally {
      await proxy.close()
    }
  })
})
