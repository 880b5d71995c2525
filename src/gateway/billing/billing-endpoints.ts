/** The account: balance, ledger, payments and usage on one page, the address, and the threshold of the low-balance warning. */
import { z } from 'zod'
import { endpointOf } from '../../platform/endpoint.ts'
import { fail } from '../../platform/errors.ts'
import { uinrFromInr } from '../../platform/values/money.ts'
import type { BillingAccounts, LedgerCursor } from './account.ts'
import { stateName } from './invoices/tax/gst-states.ts'
import { isPincode, placeOfPincode } from './profile/pincodes.ts'

const row = endpointOf<{ billingAccounts: BillingAccounts }>()

const pageDefault = 50
const pageMax = 200
/** One crore rupees. A higher amount is probably a typing error. */
const thresholdMaxInr = 10_000_000

const addressFields = {
  name: z.string(),
  line1: z.string(),
  line2: z.string().nullable(),
  city: z.string(),
  state: z.string().describe('Name as the state list of GST has it.'),
  pincode: z.string(),
  country: z.string(),
}
const address = z.object({ ...addressFields, state_code: z.string().describe('Two digits of the state list of GST.') })

const ledgerEntry = z.object({
  id: z.int(),
  kind: z.enum(['credit', 'debit', 'adjust']),
  reason: z
    .enum(['usage', 'topup', 'promo', 'grant', 'correction', 'refund', 'chargeback'])
    .describe('refund, chargeback: money of a top-up that went back, with its share of the bonus; above zero when it came again.'),
  amount_inr: z.number().describe('Below zero when money was taken.'),
  balance_after_inr: z.number(),
  ref: z.string().describe('What it is about: a payment id, a promo code, the request id of a call.'),
  created_at: z.string(),
})

const payment = z.object({
  payment_id: z.string(),
  order_id: z.string(),
  status: z
    .enum(['captured', 'failed', 'flagged', 'settled'])
    .describe(
      'flagged: taken by the provider but not credited; the operator looks into it. settled: the operator gave it back, or corrected the balance manually.',
    ),
  amount_inr: z.number(),
  bonus_inr: z.number().describe('What a promo code added.'),
  returned_inr: z.number().describe('What of amount_inr went back by refunds and disputes, and was taken from the balance.'),
  promo_code: z.string().nullable(),
  currency: z.string(),
  method: z.string().nullable(),
  reason: z.string().nullable().describe('A code: why it failed or was flagged.'),
  invoice_number: z.string().nullable(),
  created_at: z.string(),
  captured_at: z.string().nullable(),
})

const usageDay = z.object({ day: z.string().describe('IST day.'), requests: z.int(), tokens: z.int(), cost_inr: z.number() })

const cursorText = /^(\d{1,18})\.(-?\d{1,18})$/
const query = z.object({
  before: z
    .string()
    .regex(cursorText, 'must be the next_before of an earlier page')
    .optional()
    .describe('next_before of the page before: older rows of the ledger.'),
  limit: z.coerce.number().int().min(1).max(pageMax).optional().describe('Rows of the ledger. Default 50.'),
})

/** These types are only for the API documents. The handler checks the values, so that one error can name all invalid values. */
const anyText = (description: string) => z.unknown().optional().meta({ type: 'string', description })

export const billingEndpoints = {
  billing: row({
    at: 'GET /me/billing',
    auth: 'session',
    access: {},
    tag: 'billing',
    summary: 'Balance, low-balance threshold, ledger (newest first, in pages), the newest payments, usage of the last 30 IST days, billing address.',
    input: { query },
    output: z.object({
      balance_inr: z.number(),
      low_balance_threshold_inr: z.number().nullable(),
      ledger: z.array(ledgerEntry),
      next_before: z.string().nullable().describe('Send it as `before` to get older rows of the ledger; null: there are no older rows.'),
      payments: z.array(payment).describe('At most 200, newest first.'),
      usage_30d: z.array(usageDay).describe('Oldest first, today last.'),
      address: address.nullable(),
    }),
    errors: ['bad_request', 'database_unavailable'],
    handle: ({ billingAccounts }, { query: asked }, { principal }) =>
      billingAccounts.overview(principal.orgId, cursorOf(asked.before), asked.limit ?? pageDefault),
  }),

  setBillingAddress: row({
    at: 'POST /me/billing/address',
    auth: 'session',
    access: { role: 'owner' },
    tag: 'billing',
    summary: 'Sets the billing address for invoices from now on. Needed before the first top-up.',
    input: {
      body: z.object({
        name: anyText('Person or company, at most 100 characters.'),
        line1: anyText('At most 150 characters.'),
        line2: anyText('May be left out.'),
        city: anyText('At most 80 characters.'),
        state: anyText('State or union territory: name or two-digit GST code.'),
        pincode: anyText('Six digits, in that state.'),
        country: anyText('IN, which is the default.'),
      }),
    },
    output: address.extend({ ok: z.literal(true) }),
    errors: ['forbidden', 'bad_request', 'bad_address', 'database_unavailable'],
    handle: async ({ billingAccounts }, { body }, { principal }) => ({ ok: true, ...(await billingAccounts.setAddress(principal.orgId, body)) }),
  }),

  pincode: row({
    at: 'GET /me/billing/pincode/{pin}',
    auth: 'session',
    access: {},
    tag: 'billing',
    summary: 'Where an Indian PIN code is: its city or postal district, and its state.',
    input: { path: z.object({ pin: z.string() }) },
    output: z.object({ pincode: z.string(), city: z.string(), state: z.string(), state_code: z.string() }),
    errors: ['bad_request', 'not_found'],
    handle: (_services, { path }) => lookUp(path.pin),
  }),

  setBillingSettings: row({
    at: 'POST /me/billing/settings',
    auth: 'session',
    access: { role: 'owner' },
    tag: 'billing',
    summary: 'Sets the balance below which owners are notified by mail (at most once in 24 hours) and webhook; null clears it.',
    input: {
      body: z.object({
        low_balance_threshold_inr: z
          .number()
          .min(0.01, 'must be at least 0.01; send null to clear it')
          .max(thresholdMaxInr)
          .refine(inr => Math.round(inr * 100) / 100 === inr, 'takes at most two decimals')
          .nullable()
          .describe('₹, with at most two decimals.'),
      }),
    },
    output: z.object({ ok: z.literal(true), low_balance_threshold_inr: z.number().nullable() }),
    errors: ['forbidden', 'bad_request', 'database_unavailable'],
    async handle({ billingAccounts }, { body }, { principal }) {
      const inr = body.low_balance_threshold_inr
      await billingAccounts.setThreshold(principal.orgId, inr === null ? null : uinrFromInr(inr))
      return { ok: true, low_balance_threshold_inr: inr }
    },
  }),
}

function cursorOf(text: string | undefined): LedgerCursor | null {
  const [, id, balance] = cursorText.exec(text ?? '') ?? []
  return id === undefined || balance === undefined ? null : { id: BigInt(id), balanceUinr: BigInt(balance) }
}

function lookUp(pincode: string) {
  if (!isPincode(pincode)) throw fail('bad_request', { message: 'A PIN code has six digits, the first not 0.' })
  const place = placeOfPincode(pincode)
  if (place === null) throw fail('not_found', { message: 'That PIN code is not known here. Enter city and state yourself.' })
  return { pincode, city: place.city, state: stateName(place.stateCode) ?? '', state_code: place.stateCode }
}
