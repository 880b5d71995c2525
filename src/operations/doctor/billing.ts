/** The doctor's checks of payments and webhooks: incomplete configuration, payments that need a decision, and late deliveries. */
import type { OperatorServices } from '../../composition/edges/operator.ts'
import { checkBillingInvariants } from '../../gateway/billing/invariants.ts'
import type { Config } from '../../platform/config.ts'
import type { Db } from '../../platform/db/db.ts'
import { counted } from '../../platform/observe/terminal/counted.ts'
import type { Finding } from './finding.ts'

interface BillingLook {
  readonly db: Db
  readonly config: Config
  readonly operator: Pick<OperatorServices, 'payments' | 'webhooks'>
  readonly baseUrl: string
}

/** The longest normal delay of due deliveries, in milliseconds. Workers normally send a delivery within seconds. */
const lateMs = 2 * 60_000

export async function checkBilling(look: BillingLook): Promise<Finding[]> {
  return [...payments(look), ...seller(look.config), ...(await flagged(look)), ...(await sums(look.db)), ...(await deliveries(look))]
}

function payments({ config, baseUrl }: BillingLook): Finding[] {
  const { RAZORPAY_KEY_ID: keyId, RAZORPAY_KEY_SECRET: keySecret, RAZORPAY_WEBHOOK_SECRET: webhookSecret, PAYMENT_PROVIDER: provider } = config
  const warning = (detail: string): Finding => ({ what: 'payments', state: 'warning', detail })
  if ((keyId === null) !== (keySecret === null))
    return [warning('only one of RAZORPAY_KEY_ID and RAZORPAY_KEY_SECRET is set, so payments are off and no call asks for a balance')]
  if (keyId === null) {
    if (webhookSecret !== null) return [warning('RAZORPAY_WEBHOOK_SECRET is set without RAZORPAY_KEY_ID and RAZORPAY_KEY_SECRET, so payments are off')]
    return [{ what: 'payments', state: 'ok', detail: 'not configured: every key is standard and no call asks for a balance' }]
  }
  const hook = `${baseUrl}/webhooks/${provider}`
  if (webhookSecret === null)
    return [warning(`RAZORPAY_WEBHOOK_SECRET is not set: a payment whose browser goes away is not credited. Make a webhook to ${hook} at the provider`)]
  if (!baseUrl.startsWith('https:'))
    return [warning(`the provider cannot reach its webhook at ${hook}: set BASE_URL to an https address that the world can reach`)]
  return [
    {
      what: 'payments',
      state: 'ok',
      detail: `configured${takesRealMoney(config) ? '' : ' in test mode: no real money moves'}; the provider calls ${hook}`,
    },
  ]
}

/** Returns whether organisations pay real money. They do not when the payment provider is in test mode. */
export function takesRealMoney({ RAZORPAY_KEY_ID: keyId, RAZORPAY_KEY_SECRET: keySecret }: Config): boolean {
  return keyId !== null && keySecret !== null && !keyId.startsWith('rzp_test_')
}

/** Checks the settings about the seller, which invoices need. */
function seller(config: Config): Finding[] {
  if (config.RAZORPAY_KEY_ID === null || config.RAZORPAY_KEY_SECRET === null) return []
  const lacks = [
    ...(config.INVOICE_SELLER_NAME === 'Brigade' ? ['INVOICE_SELLER_NAME (the legal name of your business)'] : []),
    ...(config.INVOICE_SELLER_ADDRESS.trim() === '' ? ['INVOICE_SELLER_ADDRESS (an invoice has to name it)'] : []),
    ...(config.INVOICE_SELLER_GSTIN === null ? ['INVOICE_SELLER_GSTIN (without it invoices show no tax)'] : []),
  ]
  if (lacks.length > 0) return [{ what: 'invoices', state: 'warning', detail: `set ${lacks.join(', ')}` }]
  return [{ what: 'invoices', state: 'ok', detail: `series ${config.INVOICE_PREFIX}/, by ${config.INVOICE_SELLER_NAME}` }]
}

async function flagged({ operator }: BillingLook): Promise<Finding[]> {
  const count = await operator.payments.count()
  if (count === 0) return []
  return [
    {
      what: 'payments',
      state: 'warning',
      detail: `${counted(count, 'payment needs', 'payments need')} a decision, because the money came and was not credited as ordered: brigade admin payments flagged`,
    },
  ]
}

async function sums(db: Db): Promise<Finding[]> {
  const violations = await checkBillingInvariants(db)
  if (violations.length === 0) return [{ what: 'top-ups', state: 'ok', detail: 'payments, invoices and promo codes add up' }]
  return violations.map(detail => ({ what: 'top-ups', state: 'wrong' as const, detail }))
}

async function deliveries({ operator }: BillingLook): Promise<Finding[]> {
  const { endpoints, disabled, open, dueNow, lateMs: late, dead } = await operator.webhooks.backlog()
  if (late !== null && late > lateMs)
    return [
      {
        what: 'webhooks',
        state: 'warning',
        detail: `${counted(dueNow, 'delivery is', 'deliveries are')} due, the oldest for ${Math.round(late / 1000)} s: no process sends them, or not as many as come. brigade admin webhooks list`,
      },
    ]
  if (endpoints === 0) return [{ what: 'webhooks', state: 'ok', detail: 'no organisation has an endpoint' }]
  const trouble = [
    ...(disabled > 0 ? [`${disabled} disabled after failures`] : []),
    ...(dead > 0 ? [`${counted(dead, 'delivery', 'deliveries')} given up in the last day`] : []),
  ]
  const detail = [`${counted(endpoints, 'endpoint')}, ${counted(open, 'delivery', 'deliveries')} to send`, ...trouble].join('; ')
  return [{ what: 'webhooks', state: 'ok', detail: trouble.length === 0 ? detail : `${detail}: brigade admin webhooks list` }]
}
