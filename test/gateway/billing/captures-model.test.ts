import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { balanceOf } from '../../../src/gateway/limits/budgets/prepaid.ts'
import { inrFromUinr } from '../../../src/platform/values/money.ts'
import { onPostgres, type TestDatabase, testDatabase } from '../../harness/database.ts'
import { propertyRuns } from '../../harness/property-runs.ts'
import { CaptureWorld, type Crash, type ModelOrder, type Step } from './captures-world.ts'
import { eventsOf, invoicesOf, paymentsOf, promoRedemptions, receiptsOf } from './top-ups.ts'

const runs = propertyRuns(onPostgres ? 60 : 12, 12)
/** More than the number of statements of a capture, so that a crash can happen at every statement. */
const statements = 26

const crash: fc.Arbitrary<Crash> = fc.oneof(
  { weight: 4, arbitrary: fc.constant(null) },
  { weight: 2, arbitrary: fc.nat(statements) },
  { weight: 1, arbitrary: fc.constantFrom('before commit' as const, 'behind commit' as const) },
)
const step: fc.Arbitrary<Step> = fc.record({
  what: fc.oneof(
    { weight: 3, arbitrary: fc.constant('verify' as const) },
    { weight: 4, arbitrary: fc.constant('captured' as const) },
    fc.constant('failed' as const),
  ),
  order: fc.nat(3),
  payment: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.constant(1)),
  as: fc.oneof({ weight: 5, arbitrary: fc.constant('ordered' as const) }, fc.constantFrom('less' as const, 'dollars' as const)),
  crash,
})

/** The expected state: the state of each payment, and which orders brought which bonus. */
class Model {
  readonly payments = new Map<string, 'failed' | 'captured' | 'flagged'>()
  readonly paid = new Map<ModelOrder, { readonly bonusInr: number }>()
  isPromoUsed = false

  /** Changes the expected state as a completed step does. Returns the expected answer. */
  play(order: ModelOrder, paymentId: string, { what, as }: Step): string {
    const before = this.payments.get(paymentId)
    if (what === 'failed') {
      if (before !== undefined) return 'ignored'
      this.payments.set(paymentId, 'failed')
      return 'failed'
    }
    if (before === 'captured') return 'already_credited'
    if (before === 'flagged') return 'flagged'
    const isGood = !this.paid.has(order) && (what === 'verify' || as === 'ordered')
    this.payments.set(paymentId, isGood ? 'captured' : 'flagged')
    if (!isGood) return 'flagged'
    const bonusInr = order.promo !== null && !this.isPromoUsed ? 10 : 0
    this.isPromoUsed ||= bonusInr > 0
    this.paid.set(order, { bonusInr })
    return 'credited'
  }
}

const paymentOf = (order: ModelOrder, { payment }: Step): string => order.paymentIds[payment % 2] as string

describe('captures compared with a small model', () => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await testDatabase()
  })
  afterAll(() => database?.dispose())

  /** Compares everything in the database with the model. */
  async function compare(world: CaptureWorld, model: Model): Promise<void> {
    for (const orgId of new Set(world.orders.map(order => order.orgId))) {
      const own = world.orders.filter(order => order.orgId === orgId)
      const paid = own.filter(order => model.paid.has(order))
      const inr = paid.reduce((sum, order) => sum + order.amountInr + (model.paid.get(order)?.bonusInr ?? 0), 0)
      expect(inrFromUinr(await balanceOf(world.db, orgId))).toBe(inr)
      const states = Object.fromEntries((await world.db.many(paymentsOf, orgId)).map(({ id, status }) => [id, status]))
      expect(states).toEqual(Object.fromEntries([...model.payments].filter(([id]) => own.some(order => order.paymentIds.includes(id)))))
      expect((await world.db.many(invoicesOf, orgId)).length).toBe(paid.length)
      const events = (await world.db.many(eventsOf, orgId)).map(({ type, data }) => `${type} ${String(data['payment_id'])}`)
      expect(new Set(events).size).toBe(2 * paid.length)
      expect(events.length).toBe(2 * paid.length)
      expect((await world.db.many(receiptsOf, orgId)).length).toBe(paid.length)
    }
    expect((await world.db.one(promoRedemptions, world.promo)).redemptions).toBe(model.isPromoUsed ? 1 : 0)
    expect(await world.violations()).toEqual([])
  }

  test('after any sequence of reports, data and crashes, captures have the same effects and answers as the model', async () => {
    let crashes = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 14, size: 'max' }), async steps => {
        const world = await CaptureWorld.start(database.db)
        const model = new Model()
        for (const each of steps) {
          const order = world.orders[each.order] as ModelOrder
          const said = await world.play(each)
          if (said === 'crashed') crashes++
          else if (said === 'lost') model.play(order, paymentOf(order, each), each)
          else expect(said).toBe(model.play(order, paymentOf(order, each), each))
        }
        await compare(world, model)
      }),
      { numRuns: runs },
    )
    expect(crashes).toBeGreaterThan(runs / 4)
  }, 120_000)

  test("when concurrent captures crash, no order is credited twice, and the provider's next report credits the rest", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 24, size: 'max' }), async steps => {
        const world = await CaptureWorld.start(database.db)
        const said = await Promise.all(steps.map(each => world.play(each)))
        expect(await world.violations()).toEqual([])
        const isGood = ({ what, as }: Step) => what === 'verify' || (what === 'captured' && as === 'ordered')
        for (const [at, order] of world.orders.entries()) {
          const own = said.filter((_, i) => steps[i]?.order === at)
          const credited = own.filter(word => word === 'credited').length
          expect(credited).toBeLessThanOrEqual(1)
          const states = (await world.db.many(paymentsOf, order.orgId)).filter(({ orderId }) => orderId === order.orderId)
          const captured = states.filter(({ status }) => status === 'captured')
          expect(captured.length).toBeLessThanOrEqual(1)
          if (credited === 1) expect(captured.length).toBe(1)
          if (captured.length === 1) continue
          // The order is not credited. So no report that should have credited it succeeded, unless its payment had been flagged before.
          const flagged = new Set(states.filter(({ status }) => status === 'flagged').map(({ id }) => id))
          for (const [i, each] of steps.entries())
            if (each.order === at && isGood(each) && said[i] !== 'crashed') expect(flagged).toContain(paymentOf(order, each))
          if (order.paymentIds.every(id => flagged.has(id))) continue
          const payment = order.paymentIds.findIndex(id => !flagged.has(id))
          expect(await world.play({ what: 'captured', order: at, payment, as: 'ordered', crash: null })).toBe('credited')
        }
        expect(await world.violations()).toEqual([])
      }),
      { numRuns: Math.ceil(runs / 2) },
    )
  }, 120_000)
})
