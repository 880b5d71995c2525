import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { until } from '../../harness/app.ts'
import { onPostgres } from '../../harness/database.ts'
import { call, chat, type Fleet, startFleet, tokenUinr } from '../../harness/fleet.ts'
import type { GatewayProcess } from '../../harness/process.ts'

const counterOf = statement<[agentId: string], { spent: bigint; leased: bigint }>(
  'test.counter_beside_stopped',
  `select spent as "spent", leased as "leased" from counters where scope = 'agent' and scope_id = $1::text and metric = 'spend'`,
)
const silenceOf = statement<[], { seconds: number }>(
  'test.longest_silence',
  `select extract(epoch from max(clock_timestamp() - b.beat_at))::float8 as "seconds" from beats b join processes p on p.id = b.process_id where p.state = 'live'`,
)
const tokens = 100
const offlineMaxMs = 3000

describe.runIf(onPostgres)('a process that is stopped for longer than it may be offline', () => {
  let fleet: Fleet
  let stopped: GatewayProcess
  let other: GatewayProcess
  beforeAll(async () => {
    fleet = await startFleet({ OFFLINE_MAX_MS: String(offlineMaxMs), RECALL_WAIT_MS: '500' })
    ;[stopped, other] = await Promise.all([fleet.start(), fleet.start()])
  })
  afterAll(() => fleet?.stop())

  test('a suspended process keeps its leases, and both processes together serve exactly the calls that the budget pays for', async () => {
    const calls = 30
    const agent = await fleet.newAgent('beside a stopped process', (calls * tokens * Number(tokenUinr)) / 1e6)
    for (let i = 0; i < 3; i++) expect((await chat(stopped, agent.token, tokens)).status).toBe(200)
    const idle = (await fleet.leasesOf('agent', agent.id)).reduce((sum, lease) => sum + lease.amount, 0n)
    expect(idle).toBeGreaterThan(0n)
    stopped.child.kill('SIGSTOP')
    let served = 3
    // The other process spends the rest. The amounts of the suspended process are not granted to others, however long it is silent.
    await until(async () => {
      const reply = await chat(other, agent.token, tokens)
      if (reply.status === 200) served++
      else expect([reply.status, reply.json.error.code, reply.headers.get('retry-after')]).toEqual([429, 'agent_budget_exceeded', '5'])
      const { seconds } = await fleet.db.one(silenceOf)
      return reply.status === 429 && seconds * 1000 > offlineMaxMs + 500
    }, 25_000)
    const { spent, leased } = await fleet.db.one(counterOf, String(agent.id))
    // The last admitted call is held in full.
    expect(spent + leased).toBeLessThan(BigInt((calls + 1) * tokens) * tokenUinr)
    expect(served).toBeLessThan(calls)
    const heldBack = await call(other, agent.token, 'GET', '/v1/me/budgets')
    expect(heldBack.json.budgets[0].held_inr + heldBack.json.budgets[0].in_doubt_inr).toBeGreaterThan(0)

    stopped.child.kill('SIGCONT')
    const replies = await Promise.all(Array.from({ length: 40 }, (_, i) => chat(i % 2 === 0 ? stopped : other, agent.token, tokens)))
    served += replies.filter(reply => reply.status === 200).length
    await until(async () => {
      const reply = await chat(served % 2 === 0 ? stopped : other, agent.token, tokens)
      if (reply.status === 200) served++
      return reply.status === 429 && reply.headers.get('retry-after') !== '5'
    }, 25_000)
    expect(served).toBe(calls)
    await until(async () => (await fleet.usage()).filter(row => row.agentId === agent.id).length === calls)
    await until(async () => (await fleet.db.one(counterOf, String(agent.id))).leased === 0n)
    expect((await fleet.db.one(counterOf, String(agent.id))).spent).toBe(BigInt(calls * tokens) * tokenUinr)
    expect(fleet.upstream.requests).toHaveLength(calls)
    expect(await fleet.violations()).toEqual([])
  }, 90_000)
})
