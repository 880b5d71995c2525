/**
 * Refunds and disputes compared with a small model. The amount taken follows from the provider's last report about each return, whatever the order of
 * reports.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { balanceOf } from '../../../src/gateway/limits/budgets/prepaid.ts'
import { inrFromUinr } from '../../../src/platform/values/money.ts'
import { onPostgres, type TestDatabase, testDatabase } from '../../harness/database.ts'
import { propertyRuns } from '../../harness/property-runs.ts'
import { CaptureWorld, type Crash, type ModelOrder, type ReturnStep, type Step } from './captures-world.ts'

const runs = propertyRuns(onPostgres ? 40 : 10)
const ranks = [
  'refund.created',
  'refund.processed',
  'refund.failed',
  'payment.dispute.created',
  'payment.dispute.closed',
  'payment.dispute.won',
  'payment.dispute.lost',
] as const
const gives: readonly string[] = ['refund.failed', 'payment.dispute.won', 'payment.dispute.closed']

const crash: fc.Arbitrary<Crash> = fc.oneof(
  { weight: 5, arbitrary: fc.constant(null) },
  fc.nat(30),
  fc.constantFrom('before commit' as const, 'behind commit' as const),
)
const capture: fc.Arbitrary<Step> = fc.record({
  what: fc.constantFrom('verify' as const, 'captured' as const),
  order: fc.nat(3),
  payment: fc.constant(0),
  as: fc.constant('ordered' as const),
  crash,
})
/** The amount in rupees of each return of a payment. All reports about one return have the same amount. */
const amounts = [40, 90, 300]
const back: fc.Arbitrary<ReturnStep> = fc
  .record({
    what: fc.constantFrom(...ranks),
    order: fc.nat(3),
    payment: fc.constant(0),
    id: fc.nat(2),
    at: fc.integer({ min: 1_767_225_700, max: 1_767_225_706 }),
    crash,
  })
  .map(step => ({ ...step, inr: amounts[step.id] ?? 0 }))
const isReturn = (step: Step | ReturnStep): step is ReturnStep => 'inr' in step

/** Returns what an order leaves in its balance: the credited amount, less the returns that have taken money by their last report. */
function leftOf(order: ModelOrder, bonusInr: number, reported: readonly ReturnStep[]): number {
  const last = new Map<string, ReturnStep>()
  for (const step of reported) {
    const key = `${step.what.startsWith('refund.')} ${step.id}`
    const before = last.get(key)
    // A report that a dispute is won or lost is final. A report that a dispute is closed is not.
    const decided = (one: ReturnStep): number => Number(one.what === 'payment.dispute.won' || one.what === 'payment.dispute.lost')
    const isMoreFinal = before === undefined ? 0 : decided(step) - decided(before)
    const later =
      before === undefined ||
      isMoreFinal > 0 ||
      (isMoreFinal === 0 && (step.at > before.at || (step.at === before.at && ranks.indexOf(step.what) > ranks.indexOf(before.what))))
    if (later) last.set(key, step)
  }
  const gone = Math.min(
    order.amountInr,
    [...last.values()].reduce((sum, { what, inr }) => sum + (gives.includes(what) ? 0 : inr), 0),
  )
  const bonusUinr = Math.floor((2 * bonusInr * 1e6 * gone + order.amountInr) / (2 * order.amountInr))
  return order.amountInr - gone + bonusInr - bonusUinr / 1e6
}

describe('returns compared with a small model', () => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await testDatabase()
  })
  afterAll(() => database?.dispose())

  for (const together of [false, true])
    test(`HARD-18 after refunds, disputes, webhooks and checkouts ${together ? 'all concurrently' : 'in any order'}, repeated and with crashes, the balance follows the last report on each return, and nothing is taken twice`, async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(fc.oneof(capture, { weight: 2, arbitrary: back }), { minLength: 6, maxLength: 24, size: 'max' }), async steps => {
          const world = await CaptureWorld.start(database.db)
          const play = (step: Step | ReturnStep): Promise<string> => (isReturn(step) ? world.tellReturn(step) : world.play(step))
          if (together) await Promise.all(steps.map(play))
          else
            for (const step of steps) {
              await play(step)
              expect(await world.violations()).toEqual([])
            }
          // The provider repeats each report until it succeeds. In the end, every payment is captured.
          for (const step of steps) await play({ ...step, crash: null })
          for (const order of [0, 1, 2, 3]) await world.play({ what: 'captured', order, payment: 0, as: 'ordered', crash: null })
          expect(await world.violations()).toEqual([])
          const bonuses = await world.bonuses()
          for (const orgId of new Set(world.orders.map(order => order.orgId))) {
            let inr = 0
            for (const [at, order] of world.orders.entries()) {
              if (order.orgId !== orgId) continue
              const reported = steps.filter(isReturn).filter(step => step.order === at)
              inr += leftOf(order, bonuses.get(order.paymentIds[0] ?? '') ?? 0, reported)
            }
            expect(inrFromUinr(await balanceOf(world.db, orgId))).toBeCloseTo(inr, 6)
          }
        }),
        { numRuns: runs },
      )
    }, 120_000)
})
