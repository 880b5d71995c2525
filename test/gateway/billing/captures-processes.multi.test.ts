import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkBillingInvariants } from '../../../src/gateway/billing/invariants.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { onPostgres } from '../../harness/database.ts'
import { type Fleet, startFleet } from '../../harness/fleet.ts'
import { billingEnv, type CheckoutResult, type PaymentProvider, startPaymentProvider } from '../../harness/payment-provider.ts'
import type { GatewayProcess } from '../../harness/process.ts'
import { addAddress, addPromo, eventsOf, invoicesOf, ledgerOf, promoRedemptions, receiptsOf } from './top-ups.ts'

/** Ends the database sessions that are inside a transaction, as if their connections broke during a capture. */
const killWriters = statement<[], { count: number }>(
  'test.kill_capturing_sessions',
  `select count(pg_terminate_backend(pid))::int as "count" from pg_stat_activity
   where datname = current_database() and pid <> pg_backend_pid() and state = 'idle in transaction'`,
)

interface Answer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
  readonly json: any
}
/** The result of a request to a process that died. */
const noAnswer: Answer = { status: 0, json: null }

describe.runIf(onPostgres)('captures on several processes', () => {
  let provider: PaymentProvider
  let fleet: Fleet
  let cookie: string
  let processes: GatewayProcess[]
  const env = () => ({ ...billingEnv(provider), CONSOLE_RPM: '100000' })
  beforeAll(async () => {
    provider = await startPaymentProvider()
    fleet = await startFleet(env())
    await fleet.db.exec(addAddress, fleet.orgId)
    cookie = await fleet.signIn()
    processes = [await fleet.start(), await fleet.start(), await fleet.start()]
  })
  afterAll(async () => {
    await fleet?.stop()
    await provider?.close()
  })

  const at = (i: number): GatewayProcess => processes[i % processes.length] as GatewayProcess
  async function post(process: GatewayProcess, path: string, headers: Readonly<Record<string, string>>, body: string): Promise<Answer> {
    try {
      const reply = await fetch(process.baseUrl + path, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body })
      return { status: reply.status, json: await reply.json() }
    } catch {
      return noAnswer
    }
  }
  /** Repeats the request while the process is too busy for it, as browsers and the provider do. */
  async function patiently(send: () => Promise<Answer>): Promise<Answer> {
    let reply = await send()
    for (let tries = 1; reply.status === 503 && tries < 20; tries++) reply = await send()
    return reply
  }
  const verify = (process: GatewayProcess, proof: CheckoutResult) => post(process, '/me/billing/verify', { cookie }, JSON.stringify(proof))
  function receive(process: GatewayProcess, proof: CheckoutResult, event = 'payment.captured'): Promise<Answer> {
    const { body, headers } = provider.webhook(event, { orderId: proof.order_id, paymentId: proof.payment_id })
    return post(process, '/webhooks/razorpay', headers, body)
  }
  /** Makes `count` orders of ₹100, ₹101 and so on, each with a successful payment. */
  const newProofs = (count: number, promo_code?: string): Promise<CheckoutResult[]> =>
    Promise.all(
      Array.from({ length: count }, async (_, i) => {
        const made = await patiently(() => post(at(i), '/me/billing/orders', { cookie }, JSON.stringify({ amount_inr: 100 + i, promo_code })))
        expect(made.status, JSON.stringify(made.json)).toBe(201)
        return provider.checkout(made.json.order_id)
      }),
    )
  /** Expects one credit, one invoice, two events and one mail for each of these payments, and no broken invariant. */
  async function expectOnce(proofs: readonly CheckoutResult[]): Promise<void> {
    const { db, orgId } = fleet
    const ids = proofs.map(({ payment_id }) => payment_id).sort()
    const known = new Set(ids)
    const ofThese = (found: readonly unknown[]) => found.filter(id => known.has(String(id))).sort()
    expect(ofThese((await db.many(ledgerOf, orgId)).map(({ ref }) => ref))).toEqual(ids)
    expect(ofThese((await db.many(invoicesOf, orgId)).map(({ paymentId }) => paymentId))).toEqual(ids)
    expect(ofThese((await db.many(receiptsOf, orgId)).map(({ data }) => data['paymentId']))).toEqual(ids)
    const events = await db.many(eventsOf, orgId)
    for (const type of ['payment.captured', 'invoice.created'])
      expect(ofThese(events.filter(event => event.type === type).map(({ data }) => data['payment_id']))).toEqual(ids)
    expect(await fleet.violations()).toEqual([])
    expect(await checkBillingInvariants(db)).toEqual([])
  }

  test('fifty concurrent captures are each reported four times to three processes; each is credited once, and exactly one reply says so', {
    timeout: 120_000,
  }, async () => {
    await fleet.db.exec(addPromo, 'FLEET', 10_000_000n, 0n, null, null)
    const proofs = await newProofs(50, 'FLEET')
    const replies = await Promise.all(
      proofs.flatMap((proof, i) => [
        patiently(() => verify(at(i), proof)),
        patiently(() => receive(at(i + 1), proof)),
        patiently(() => receive(at(i + 2), proof)),
        patiently(() => receive(at(i), proof, 'payment.failed')),
      ]),
    )
    expect(replies.filter(({ status }) => status !== 200)).toEqual([])
    expect(replies.filter(({ json }) => json.credited).length).toBe(50)
    await expectOnce(proofs)
    // An organisation redeems a code once, even when several of its orders name the code.
    expect((await fleet.db.one(promoRedemptions, 'FLEET')).redemptions).toBe(1)
  })

  test('after kill -9 during captures, a repeated report credits the lost captures and nothing else', { timeout: 120_000 }, async () => {
    for (let round = 0; round < 4; round++) {
      const victim = await fleet.start()
      const proofs = await newProofs(20)
      let answered = 0
      const first = proofs.map(async (proof, i) => {
        const reply = await (i % 2 === 0 ? receive(victim, proof) : verify(victim, proof))
        if (++answered === round * 3 + 1) await victim.kill()
        return reply
      })
      const before = await Promise.all(first)
      expect(before.some(({ status }) => status === 0)).toBe(true)
      const again = await Promise.all(proofs.map((proof, i) => patiently(() => receive(at(i), proof))))
      for (const [i, { status, json }] of again.entries()) {
        expect(status).toBe(200)
        if (before[i]?.json?.credited) expect(json.outcome).toBe('already_credited')
        else expect(['credited', 'already_credited']).toContain(json.outcome)
      }
      await expectOnce(proofs)
    }
  })

  test('a capture whose database session ends returns 503 or is credited, and after a repeated report it is credited exactly once', {
    timeout: 120_000,
  }, async () => {
    const proofs = await newProofs(30)
    let running = true
    let killed = 0
    const killing = (async () => {
      while (running) killed += (await fleet.db.one(killWriters)).count
    })()
    const before = await Promise.all(proofs.map((proof, i) => receive(at(i), proof)))
    running = false
    await killing
    expect(killed).toBeGreaterThan(0)
    for (const { status } of before) expect([200, 503]).toContain(status)
    for (const [i, proof] of proofs.entries()) expect((await patiently(() => receive(at(i), proof))).json.ok).toBe(true)
    await expectOnce(proofs)
  })
})
