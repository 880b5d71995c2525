import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { onPostgres } from '../../harness/database.ts'
import { chat, countReplies, type Fleet, type FleetReply, startFleet, tokenUinr } from '../../harness/fleet.ts'
import type { GatewayProcess } from '../../harness/process.ts'
import { until } from '../../harness/until.ts'
import { type McpFixture, startMcpFixture } from './mcp-server.ts'
import { processApp, register } from './registered.ts'

const priceInr = 2
const priceUinr = 2_000_000n
const chatTokens = 20
const times = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

const toolRows = statement<[agentId: number], { outcome: string; value: bigint; tools: boolean }>(
  'test.tool_money_rows',
  `select outcome, value_uinr as value, kind = 'tool' as tools from usage_events where agent_id = $1::int order by id`,
)
const agentSpend = statement<[agentId: string], { spent: bigint; leased: bigint }>(
  'test.tool_money_spend',
  `select spent, leased from counters where scope = 'agent' and scope_id = $1::text and metric = 'spend'`,
)

describe.runIf(onPostgres)('the price of tools over three processes', () => {
  let fleet: Fleet
  let server: McpFixture
  let gone: McpFixture
  let folder: string
  let processes: GatewayProcess[]
  let named = 0

  beforeAll(async () => {
    ;[server, gone] = await Promise.all([startMcpFixture('modern'), startMcpFixture('modern')])
    fleet = await startFleet({ OUTBOUND_ALLOW: `${server.hostPort},${gone.hostPort}`, RECALL_WAIT_MS: '1000' })
    folder = fleet.newFolder()
    // The first process is killed in a test. The second one has the same data folder and adopts its journal.
    processes = await Promise.all([fleet.start({}, folder), fleet.start({}, folder), fleet.start()])
    await register(processApp(fleet, at(1)), 'mod', server.url, { price_inr_per_call: priceInr })
  })
  afterAll(async () => {
    await fleet?.stop()
    await server?.close()
  })

  const at = (i: number): GatewayProcess => processes[i % processes.length] as GatewayProcess
  const tool = (i: number, token: string, name: string, args: object): Promise<FleetReply> =>
    processApp(fleet, at(i)).call('POST', `/v1/tools/mod__${name}/call`, { arguments: args }, { token })
  async function newCaller(budgetInr: number, more: object = {}): Promise<{ id: number; token: string }> {
    const agent = await fleet.newAgent(`payer ${named++}`, budgetInr)
    const changed = await processApp(fleet, at(1)).call('PATCH', `/v1/me/agents/${agent.id}`, { allowed_tools: ['mod__*', 'gone__*'], ...more })
    expect(changed.status).toBe(200)
    for (const i of times(3))
      await until(async () => (await processApp(fleet, at(i)).call('GET', '/v1/tools/mod__echo', undefined, { token: agent.token })).status === 200, 'allowed')
    return agent
  }
  async function settledWith(agentId: number, spentUinr: bigint): Promise<void> {
    await until(async () => (await fleet.db.maybe(agentSpend, String(agentId)))?.spent === spentUinr, 'the spend')
    await until(async () => (await fleet.db.one(agentSpend, String(agentId))).leased === 0n, 'no hold')
    expect(await fleet.violations()).toEqual([])
  }

  async function tenOfAThousand(): Promise<void> {
    // Ten calls of the tool, and all chats. An eleventh call does not fit.
    const chats = times(100)
    const chatUinr = BigInt(chats.length * chatTokens) * tokenUinr
    const { id, token } = await newCaller(10 * priceInr + Number(chatUinr) / 1e6 + priceInr / 2)
    const before = server.calls.length
    const [tools, talks] = await Promise.all([
      Promise.all(times(1000).map(i => tool(i, token, 'echo', { text: String(i) }))),
      Promise.all(chats.map(i => chat(at(i), token, chatTokens))),
    ])
    const counts = countReplies(tools)
    expect(Object.keys(counts).filter(name => name !== '200' && !name.startsWith('429 agent_budget_'))).toEqual([])
    expect(counts['200'] ?? 0).toBeLessThanOrEqual(10)
    // Calls that run hold money of other processes for a moment. Whatever was refused for that reason can be spent now, and no more.
    for (const i of times(3))
      await until(async () => (await tool(i, token, 'echo', { text: 'rest' })).json.error?.code === 'agent_budget_exceeded', `used up ${i}`)
    expect(server.calls.length - before).toBe(10)
    const talked = talks.filter(({ status }) => status === 200).length
    await settledWith(id, 10n * priceUinr + BigInt(talked * chatTokens) * tokenUinr)
    const rows = await fleet.db.many(toolRows, id)
    expect(rows.filter(({ tools: isTool }) => isTool).map(({ outcome, value }) => [outcome, value])).toEqual(Array(10).fill(['ok', priceUinr]))
  }

  /** A call costs its price when bytes of it left, also when the tool fails, and nothing when the server could not be reached. */
  async function chargedWhenSent(): Promise<void> {
    const { id, token } = await newCaller(10)
    expect((await tool(1, token, 'fails', {})).json.isError).toBe(true)
    expect((await tool(2, token, 'echo', { text: 5 })).status).toBe(400)
    await register(processApp(fleet, at(1)), 'gone', gone.url, { price_inr_per_call: priceInr })
    await gone.close()
    const unreached = await processApp(fleet, at(1)).call('POST', '/v1/tools/gone__echo/call', { arguments: { text: 'a' } }, { token })
    expect([unreached.status, unreached.json.error.code]).toEqual([503, 'tool_server_unavailable'])
    await settledWith(id, priceUinr)
    const rows = await fleet.db.many(toolRows, id)
    expect(rows.map(({ outcome, value }) => [outcome, value])).toEqual([
      ['failed', priceUinr],
      ['failed', 0n],
    ])
  }

  async function killedBetweenOpenAndAnswer(): Promise<void> {
    const { id, token } = await newCaller(10)
    const before = server.calls.length
    const running = tool(0, token, 'wait', {}).catch(() => null)
    await until(() => server.calls.length > before, 'the call')
    await at(0).kill()
    expect(await running).toBeNull()
    await until(async () => (await fleet.db.many(toolRows, id)).length > 0, 'adopted')
    await settledWith(id, priceUinr)
    expect(await fleet.db.many(toolRows, id)).toEqual([{ outcome: 'interrupted', value: priceUinr, tools: true }])
    expect(server.calls.length - before).toBe(1)
  }

  test('a daily limit of calls of tools is exact over three processes', async () => {
    const { token } = await newCaller(1000, { tool_daily: 10 })
    const before = server.calls.length
    const replies = await Promise.all(times(60).map(i => tool(i, token, 'echo', { text: String(i) })))
    expect(countReplies(replies)).toEqual({ '200': 10, '429 daily_limit_reached': 50 })
    expect(server.calls.length - before).toBe(10)
    expect(await fleet.violations()).toEqual([])
  })

  test('TGW-07 a tool is paid from the budgets of models, held before and counted once: of 1,000 parallel calls beside chats over three processes, ten reach the server, an unreached server costs nothing, and a killed process counts its call once', {
    timeout: 90_000,
  }, async () => {
    await tenOfAThousand()
    await chargedWhenSent()
    await killedBetweenOpenAndAnswer()
  })
})
