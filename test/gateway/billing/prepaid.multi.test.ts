import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { creditIn } from '../../../src/gateway/limits/budgets/prepaid.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { ControlLog } from '../../../src/platform/db/db-control-log.ts'
import { silentLog } from '../../../src/platform/observe/log.ts'
import { until } from '../../harness/app.ts'
import { onPostgres } from '../../harness/database.ts'
import { call, chat, type Fleet, type FleetReply, fleetAnswer, startFleet, tokenUinr } from '../../harness/fleet.ts'
import type { GatewayProcess } from '../../harness/process.ts'

const billingOn = { RAZORPAY_KEY_ID: 'rzp_test_key', RAZORPAY_KEY_SECRET: 'rzp-test-secret' }
const prepaid = statement<[orgId: number], { cap: bigint; spent: bigint; leased: bigint }>(
  'test.prepaid_counter',
  `select cap, spent, leased from counters where org_id = $1::int and metric = 'prepaid'`,
)
const debits = statement<[orgId: number], { count: number; sum: bigint }>(
  'test.prepaid_debits',
  `select count(*)::int as "count", coalesce(sum(-amount_uinr), 0)::bigint as "sum" from ledger where org_id = $1::int and kind = 'debit'`,
)
const setCredited = statement<[orgId: number]>('test.prepaid_set_credited', 'update orgs set credited_at = now() where id = $1::int')
const costTokens = 100
const costUinr = BigInt(costTokens) * tokenUinr
const times = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

describe.runIf(onPostgres)('prepaid credit in several processes', () => {
  let fleet: Fleet
  let members: GatewayProcess[]
  /** One data folder for all processes, because a process adopts the journals of dead processes in its own folder. */
  let folder: string
  let controlLog: ControlLog
  let granted = 0
  beforeAll(async () => {
    fleet = await startFleet({ RECALL_WAIT_MS: '1000', ...billingOn })
    await fleet.db.exec(setCredited, fleet.orgId)
    controlLog = new ControlLog({ db: fleet.db, clock: systemClock, log: silentLog, pollMs: 1000 })
    folder = fleet.newFolder()
    members = await Promise.all(times(3).map(() => fleet.start({}, folder)))
    await until(async () => (await Promise.all(members.map(process => call(process, fleet.key, 'GET', '/health')))).every(reply => reply.status === 200))
  })
  afterAll(() => fleet?.stop())
  beforeEach(() => {
    fleet.upstream.reset()
    fleet.upstream.script(fleetAnswer)
  })
  const member = (i: number): GatewayProcess => members[i % members.length] as GatewayProcess
  const buy = (process: GatewayProcess): Promise<FleetReply> => chat(process, fleet.key, costTokens)
  /** Gives the organisation exactly this balance. */
  async function haveExactly(uinr: bigint): Promise<void> {
    await until(async () => ((await fleet.db.maybe(prepaid, fleet.orgId))?.leased ?? 0n) === 0n)
    const row = await fleet.db.maybe(prepaid, fleet.orgId)
    const amountUinr = uinr - (row === null ? 0n : row.cap - row.spent)
    await controlLog.change(async tx => {
      const at = new Date()
      const { news } = await creditIn(tx, { orgId: fleet.orgId, amountUinr, reason: 'correction', ref: `round ${granted++}`, at })
      return { value: undefined, news }
    })
  }
  async function expectSettled(served: number): Promise<void> {
    await until(async () => (await fleet.db.one(prepaid, fleet.orgId)).leased === 0n)
    expect(await fleet.violations()).toEqual([])
    expect(await fleet.db.one(debits, fleet.orgId)).toEqual({ count: served, sum: BigInt(served) * costUinr })
  }
  let served = 0

  test('of 200 concurrent calls on several processes, exactly as many are served as the balance pays for', async () => {
    for (const round of times(3)) {
      fleet.upstream.requests.length = 0
      await haveExactly(10n * costUinr)
      const replies = await Promise.all(times(200).map(i => buy(member(round === 0 ? 0 : i))))
      for (const { status, json } of replies.filter(reply => reply.status !== 200)) expect([status, json.error.code]).toEqual([402, 'insufficient_credits'])
      expect(replies.filter(reply => reply.status === 200).length).toBeLessThanOrEqual(10)
      // When no call is running, the rest of the balance can be spent to the last call on any process.
      await until(async () => {
        const reply = await buy(member(round))
        return reply.status === 402 && reply.json.balance_inr <= 0
      })
      expect(fleet.upstream.requests).toHaveLength(10)
      served += 10
      await expectSettled(served)
    }
  })

  test('calls that a killed process served are debited once, and the holds of the process are released', async () => {
    await haveExactly(1000n * costUinr)
    const victim = await fleet.start({}, folder)
    const before = fleet.upstream.requests.length
    const replies = Promise.all(times(60).map(i => buy(i % 2 === 0 ? victim : member(i)).catch(() => null)))
    await until(() => fleet.upstream.requests.length - before >= 30)
    await victim.kill()
    await replies
    const dialed = fleet.upstream.requests.length - before
    await until(async () => (await fleet.db.one(debits, fleet.orgId)).count >= served + 1 && (await fleet.db.one(prepaid, fleet.orgId)).leased === 0n, 60_000)
    expect(await fleet.violations()).toEqual([])
    const { count, sum } = await fleet.db.one(debits, fleet.orgId)
    // A call that was cut before its first byte costs nothing. No call is charged twice.
    expect(count - served).toBeLessThanOrEqual(dialed)
    expect(count - served).toBeGreaterThanOrEqual(30)
    const { cap, spent } = await fleet.db.one(prepaid, fleet.orgId)
    expect(cap - spent).toBe(1000n * costUinr - (sum - BigInt(served) * costUinr))
    served = count
  }, 90_000)

  test('every process applies a top-up immediately', async () => {
    await haveExactly(0n)
    for (const process of members) expect((await buy(process)).status).toBe(402)
    await haveExactly(9n * costUinr)
    await until(async () => (await buy(member(0))).status === 200, 2000)
    for (const process of members) await until(async () => (await buy(process)).status === 200, 2000)
  })
})
