import { checkBillingInvariants } from '../../../src/gateway/billing/invariants.ts'
import { Payments } from '../../../src/gateway/billing/payments/payments.ts'
import { createKeys } from '../../../src/gateway/keys/keys.ts'
import { checkInvariants } from '../../../src/gateway/limits/invariants.ts'
import { Mail } from '../../../src/gateway/mail/mail.ts'
import { createOrgs } from '../../../src/gateway/orgs/orgs.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import type { Db, Tx } from '../../../src/platform/db/db.ts'
import { ControlLog } from '../../../src/platform/db/db-control-log.ts'
import { GatewayError } from '../../../src/platform/errors.ts'
import { silentLog } from '../../../src/platform/observe/log.ts'
import { Secret } from '../../../src/platform/security/secret.ts'
import { systemIds } from '../../../src/platform/values/ids.ts'
import { uinrFromInr } from '../../../src/platform/values/money.ts'
import { providerId, providerSignature, returnBody } from '../../harness/payment-provider.ts'
import { addAddress, addPromo, paymentsOf } from './top-ups.ts'

/**
 * Where the process of a request dies: before the n-th statement of its transaction, after the last statement and before the commit, or after the
 * commit and before the reply.
 */
export type Crash = number | 'before commit' | 'behind commit' | null

/** One report about a refund or dispute. `payment` is the position of the payment in its order, and `id` distinguishes the returns of a payment. */
export interface ReturnStep {
  readonly what: 'refund.created' | 'refund.processed' | 'refund.failed' | `payment.dispute.${'created' | 'won' | 'lost' | 'closed'}`
  readonly order: number
  readonly payment: number
  readonly id: number
  /** Amount in rupees. */
  readonly inr: number
  /** Time in Unix seconds. */
  readonly at: number
  readonly crash: Crash
}

/** One report about a payment. `as` says which data the report has. */
export interface Step {
  readonly what: 'verify' | 'captured' | 'failed'
  readonly order: number
  readonly payment: number
  readonly as: 'ordered' | 'less' | 'dollars'
  readonly crash: Crash
}

export interface ModelOrder {
  readonly orgId: number
  readonly orderId: string
  readonly amountInr: number
  readonly promo: string | null
  readonly paymentIds: readonly string[]
}

class CrashError extends Error {}

const keySecret = 'model-key-secret'
const webhookSecret = 'model-webhook-secret'
const ofRun = { made: 0 }

/** Two organisations with two orders each. The first order of each names the same promo code. The code can be redeemed by only one of them. */
export class CaptureWorld {
  readonly db: Db
  readonly orders: readonly ModelOrder[]
  readonly promo: string
  constructor(db: Db, orders: readonly ModelOrder[], promo: string) {
    this.db = db
    this.orders = orders
    this.promo = promo
  }

  static async start(db: Db): Promise<CaptureWorld> {
    const promo = `RUN-${++ofRun.made}`
    await db.exec(addPromo, promo, uinrFromInr(10), 0n, 1, null)
    const orgs = createOrgs({ db, clock: systemClock, controlLog: controlLogOn(db), cacheTtlMs: 1000 })
    const orders: ModelOrder[] = []
    for (const side of ['one', 'two']) {
      const { orgId, userId } = await orgs.createOrg({ name: side, ownerEmail: `${side}-${ofRun.made}@model.test` })
      await db.exec(addAddress, orgId)
      for (const [amountInr, code] of [
        [100, promo],
        [250, null],
      ] as const) {
        const { orderId } = await paymentsOn(db).createOrder({ orgId, userId, amountInr, promoCode: code })
        orders.push({ orgId, orderId, amountInr, promo: code, paymentIds: [providerId('pay'), providerId('pay')] })
      }
    }
    return new CaptureWorld(db, orders, promo)
  }

  /** Carries out a step. Returns one word for the answer. 'crashed' means a crash before the commit, and 'lost' means a crash after it. */
  async play({ what, order: at, payment, as, crash }: Step): Promise<string> {
    const order = this.orders[at % this.orders.length] as ModelOrder
    const paymentId = order.paymentIds[payment % 2] as string
    const payments = paymentsOn(crashing(this.db, crash))
    try {
      if (what !== 'verify') return await payments.receive('model', ...this.#webhook(what, order, paymentId, as))
      const signature = providerSignature(`${order.orderId}|${paymentId}`, keySecret)
      const { kind } = await payments.verify({ orgId: order.orgId, orderId: order.orderId, paymentId, signature })
      return kind === 'repeated' ? 'already_credited' : kind
    } catch (error) {
      if (error instanceof CrashError) return error.message
      if (error instanceof GatewayError) return error.code
      throw error
    }
  }

  /** Reports a refund or dispute. Returns one word for the answer. The id of the return is made from the payment and `id`. */
  async tellReturn({ what, order: at, payment, id, inr, at: seconds, crash }: ReturnStep): Promise<string> {
    const order = this.orders[at % this.orders.length] as ModelOrder
    const paymentId = order.paymentIds[payment % 2] as string
    const returnId = `${what.startsWith('refund.') ? 'rfnd' : 'disp'}_${id}${paymentId}`
    const bytes = Buffer.from(returnBody(what, { id: returnId, orderId: order.orderId, paymentId, amount: inr * 100, at: seconds }))
    try {
      return await paymentsOn(crashing(this.db, crash)).receive('model', bytes, providerSignature(bytes, webhookSecret))
    } catch (error) {
      if (error instanceof CrashError) return error.message
      throw error
    }
  }

  #webhook(what: 'captured' | 'failed', order: ModelOrder, paymentId: string, as: Step['as']): [Buffer, string] {
    const amount = order.amountInr * 100 - (as === 'less' ? 1 : 0)
    const entity = { id: paymentId, order_id: order.orderId, amount, currency: as === 'dollars' ? 'USD' : 'INR', method: 'upi' }
    const bytes = Buffer.from(JSON.stringify({ event: `payment.${what}`, payload: { payment: { entity } } }))
    return [bytes, providerSignature(bytes, webhookSecret)]
  }

  /** Returns the bonus in rupees of each payment. */
  async bonuses(): Promise<Map<string, number>> {
    const found = new Map<string, number>()
    for (const orgId of new Set(this.orders.map(order => order.orgId)))
      for (const { id, bonusInr } of await this.db.many(paymentsOf, orgId)) found.set(id, bonusInr)
    return found
  }

  /** Returns one sentence for each broken invariant of the whole database. */
  async violations(): Promise<string[]> {
    return [...(await checkInvariants(this.db)), ...(await checkBillingInvariants(this.db))]
  }
}

const controlLogOn = (db: Db): ControlLog => new ControlLog({ db, clock: systemClock, log: silentLog, pollMs: 3_600_000 })

function paymentsOn(db: Db): Payments {
  const controlLog = controlLogOn(db)
  const keys = createKeys({
    db,
    clock: systemClock,
    ids: systemIds,
    controlLog,
    cacheTtlMs: 1000,
    defaultRpm: 600,
    trialLimits: { rpmLimit: 300, dailyLimit: 2000 },
  })
  const seller = { name: 'Seller', addressLines: [], gstin: null, prefix: 'BR', sac: '998315', namesBuyerGstin: false }
  return new Payments({
    db,
    clock: systemClock,
    ids: systemIds,
    log: silentLog,
    controlLog,
    provider: 'model',
    account: {
      client: { createOrder: () => Promise.resolve(providerId('order')) },
      keyId: 'model-key',
      keySecret: new Secret(keySecret),
      webhookSecret: new Secret(webhookSecret),
    },
    capture: {
      ids: systemIds,
      mail: new Mail({ db, clock: systemClock }),
      seller,
      promote: (tx, orgId, at) => keys.promote(tx, orgId, at),
      onDebited: () => Promise.resolve(),
      onReturned: () => Promise.resolve(),
      baseUrl: () => 'https://gateway.example',
    },
  })
}

/**
 * Returns a database whose process dies in its next transaction. A transaction that is not committed when the process dies is rolled back. A
 * committed transaction stays.
 */
function crashing(db: Db, crash: Crash): Db {
  if (crash === null) return db
  return {
    ...db,
    many: (...args) => db.many(...args),
    maybe: (...args) => db.maybe(...args),
    one: (...args) => db.one(...args),
    exec: (...args) => db.exec(...args),
    async tx<T>(fn: (tx: Tx) => Promise<T>): Promise<T> {
      const value = await db.tx(async tx => {
        let count = 0
        const counted = <A extends readonly unknown[], R>(run: (...args: A) => Promise<R>) => {
          return (...args: A): Promise<R> => (count++ === crash ? Promise.reject(new CrashError('crashed')) : run(...args))
        }
        const made = await fn({ ...tx, many: counted(tx.many), maybe: counted(tx.maybe), one: counted(tx.one), exec: counted(tx.exec) } as Tx)
        if (crash === 'before commit') throw new CrashError('crashed')
        return made
      })
      if (crash === 'behind commit') throw new CrashError('lost')
      return value
    },
  }
}
