/** Every report of one span adds up to the same amount, and to the debits of the ledger. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { uinrFromInr } from '../../../src/platform/values/money.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'

/** A second before midnight in India at the end of October 2026. */
const edgeMs = Date.UTC(2026, 9, 31, 18, 29, 59)
const debited = statement<[orgId: number, from: string, to: string], { uinr: bigint }>(
  'test.sums_debited',
  `select coalesce(-sum(l.amount_uinr), 0)::bigint as "uinr" from ledger l join usage_events e on e.id = l.event_id
   where l.org_id = $1::int and e.day between $2::date and $3::date`,
)

interface Sum {
  requests: number
  prompt_tokens: number
  completion_tokens: number
  cost_uinr: number
}

const callsOf = fc.array(
  fc.record({
    /** How much later the call begins than the previous one. */
    afterMs: fc.constantFrom(0, 0, 400, 1000, 12 * 3600_000),
    model: fc.constantFrom('test-model', 'alpha-only'),
    caller: fc.constantFrom<'key' | 'other key' | 'agent' | 'label'>('key', 'other key', 'agent', 'label'),
    own: fc.boolean(),
    fails: fc.constantFrom(false, false, false, true),
    prompt_tokens: fc.integer({ min: 0, max: 20_000 }),
    completion_tokens: fc.integer({ min: 0, max: 3000 }),
    stream: fc.boolean(),
  }),
  { minLength: 12, maxLength: 25 },
)

const clock = movableClock(edgeMs)
let app: TestApp
beforeAll(async () => {
  app = await startApp({ clock, env: { RAZORPAY_KEY_ID: 'rzp_test_key', RAZORPAY_KEY_SECRET: 'rzp-test-secret' } })
})
afterAll(() => app.stop())

/** Returns sums by column of a CSV whose fields contain no commas. */
function sumOfCsv(text: string): Sum {
  const [head = '', ...lines] = text.trimEnd().split('\r\n')
  const names = head.split(',')
  const sum: Sum = { requests: 0, prompt_tokens: 0, completion_tokens: 0, cost_uinr: 0 }
  for (const line of lines) {
    const cells = line.split(',')
    for (const name of Object.keys(sum) as (keyof Sum)[]) sum[name] += Number(cells[names.indexOf(name)])
  }
  return sum
}

const sumOf = (rows: readonly Sum[]): Sum =>
  rows.reduce<Sum>(
    (sum, row) => ({
      requests: sum.requests + row.requests,
      prompt_tokens: sum.prompt_tokens + row.prompt_tokens,
      completion_tokens: sum.completion_tokens + row.completion_tokens,
      cost_uinr: sum.cost_uinr + row.cost_uinr,
    }),
    { requests: 0, prompt_tokens: 0, completion_tokens: 0, cost_uinr: 0 },
  )

let named = 0

test('USAGE-12 the sums by model, agent and day and the CSV equal the totals and the debits of the ledger, even over the end of an IST month', async () => {
  await fc.assert(
    fc.asyncProperty(callsOf, async calls => {
      clock.moveTo(edgeMs)
      const org = await app.otherOrg(`Sums ${++named}`)
      await app.gateway.app.operator.credits.give({ orgId: org.orgId, reason: 'grant', amountUinr: uinrFromInr(1000), ref: `sums ${named}` })
      const made = await app.call('POST', '/v1/me/agents', { name: 'summer' }, { token: org.key })
      const minted = async (): Promise<string> => (await app.call('POST', `/v1/me/agents/${made.json.id}/token`, {}, { token: org.key })).json.access_token
      const other = await app.gateway.app.keys.create({ orgId: org.orgId, userId: org.userId, workspaceId: null, name: 'other', scope: 'full' })
      for (const { afterMs, model, caller, own, fails, stream, ...tokens } of calls) {
        clock.advance(afterMs)
        const usage = { ...tokens, total_tokens: tokens.prompt_tokens + tokens.completion_tokens }
        for (const server of [app.alpha, app.beta, app.indus]) server.script(() => (fails ? { status: 500 } : { usage }))
        const token = caller === 'other key' ? other.key : caller === 'agent' ? await minted() : org.key
        const body = { model, stream, messages: [{ role: 'user', content: 'hello' }], ...(own ? { upstream_key: 'sk-somebody-0001', provider: 'alpha' } : {}) }
        const reply = await fetch(`${app.baseUrl}/v1/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${token}`, ...(caller === 'label' ? { 'x-br-agent-id': 'night-shift' } : {}) },
          body: JSON.stringify(body),
        })
        await reply.text()
        expect([200, 502]).toContain(reply.status)
        // A route that fails often is tried last for a while. The clock moves on so that this does not affect the test.
        clock.advance(fails ? 31_000 : 0)
      }
      for (const [from, to] of [
        ['2026-10-31', '2026-10-31'],
        ['2026-11-01', '2026-11-01'],
        ['2026-10-01', '2026-12-31'],
      ] as const) {
        const span = `from=${from}&to=${to}`
        const { json } = await app.call('GET', `/v1/usage?${span}&group_by=day`, undefined, { token: org.key })
        expect(json.error).toBeUndefined()
        const csv = await fetch(`${app.baseUrl}/v1/usage?${span}&format=csv`, { headers: { authorization: `Bearer ${org.key}` } })
        const total = sumOf([json.totals])
        expect(sumOf(json.by_model)).toEqual(total)
        expect(sumOf(json.by_agent)).toEqual(total)
        expect(sumOf(json.by_day)).toEqual(total)
        expect(sumOfCsv(await csv.text())).toEqual(total)
        expect(total.cost_uinr).toBe(Number((await app.db.one(debited, org.orgId, from, to)).uinr))
      }
      const all = await app.call('GET', '/v1/usage?from=2026-10-01&to=2026-12-31', undefined, { token: org.key })
      expect(all.json.totals.requests).toBe(calls.length)
    }),
    { numRuns: 4, endOnFailure: true },
  )
})
